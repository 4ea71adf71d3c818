#!/bin/bash
# Some rounds of the scenarios that do not end by a time-out, on the software driver: kernels that wait for one use the CPU, and a
# busy machine can be slower than any time-out that a test has time for.
set -e
while read -r scenario rounds; do
	GPULOAD_DRIVER=soft "${GPULOAD_BUILD:-build}/tests/comm/fault/fault" --only "$scenario" --rounds "$rounds"
done <<-END
	kill 8
	exit 4
	abort 1
	size 2
	trap 3
	no-memory 4
	no-window 2
	options 1
	pids 2
END
