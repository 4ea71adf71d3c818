#!/bin/bash
# Run the tests of the interpreter again, with functions that are parsed and decoded only when they are needed.  Not run: test_odd,
# test_multimem and test_launch, because some errors are then reported later; test_access, because such programs always have 1 KiB more
# shared memory than their kernels declare; test_random.c and alu/, because their programs call no function.
build=${GPULOAD_BUILD:-build}
for test in "$build"/tests/softcuda/exec/test_* "$build"/tests/softcuda/exec/{decode,machine}/test_*; do
	case $test in *.ok | */test_odd | */test_multimem | */test_launch | */test_access) continue ;; esac
	[[ -x $test ]] || continue
	if GPULOAD_SOFT_LAZY=1 "$test" >"${TMPDIR:-/tmp}/lazy.$$" 2>&1; then
		echo "[       OK ] ${test##*/}"
	else
		cat "${TMPDIR:-/tmp}/lazy.$$"
		echo "[  FAILED  ] ${test##*/}"
		failed=1
	fi
done
rm -f "${TMPDIR:-/tmp}/lazy.$$"
exit "${failed:-0}"
