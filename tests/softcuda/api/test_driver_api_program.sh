#!/bin/bash
# An ordinary driver API program runs unchanged on the software driver, by LD_LIBRARY_PATH.
set -euo pipefail
build=${GPULOAD_BUILD:-build}
program=$build/tests/softcuda/api/driver_api_program

export LD_LIBRARY_PATH=$build/softcuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
output=$("$program")
if [ "$output" != "gpuload software GPU: 0 of 50000 elements are wrong" ]; then
	echo "unexpected output: $output" >&2
	exit 1
fi
