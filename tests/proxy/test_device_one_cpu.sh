#!/bin/bash
# Run test_device on one CPU: the interpreted kernel and the CPU's end must yield to each other.
set -eu
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')  # the first allowed CPU
exec taskset -c "$cpu" "${GPULOAD_BUILD:-build}/tests/proxy/test_device"
