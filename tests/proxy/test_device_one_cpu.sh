#!/bin/bash
# A kernel that waits for the CPU's end, which waits for it, on one CPU: each must let the other run.
set -eu
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')  # the first of those that we may use
exec taskset -c "$cpu" "${GPULOAD_BUILD:-build}/tests/proxy/test_device"
