#!/bin/bash
# Runs some rounds on the software driver, only of scenarios that do not end by a time-out: waiting kernels use the CPU, so on a busy
# machine a time-out that is short enough for a test could also end a correct call.
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
