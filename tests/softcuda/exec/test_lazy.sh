#!/bin/bash
# The tests of the interpreter once more, with functions that are parsed and decoded when they are needed.  Left out: the tests of
# errors that are then reported later (test_odd, test_multimem, test_launch), and of what an access reaches behind shared memory, of
# which such programs always have 1 KiB more (test_access); test_random.c and alu/ load no program that calls a function.
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
