#!/bin/bash
# Every version of the interpreter's handlers gives the same results, also with all threads on one CPU.
set -eu
build=${GPULOAD_BUILD:-build}
export GPULOAD_SOFT_DRIVER=${GPULOAD_SOFT_DRIVER:-$build/softcuda/libcuda-soft.so}
cpu=$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for isa in base v3 v4; do
	GPULOAD_SOFT_ISA=$isa taskset -c "$cpu" "$build/tests/corpus/test_corpus" --driver soft >"$log" || {
		grep '^FAIL' "$log"
		exit 1
	}
	echo "$isa: $(tail -1 "$log")"
done
