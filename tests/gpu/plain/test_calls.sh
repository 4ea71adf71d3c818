#!/bin/bash
# The software driver answers odd and wrong calls as the list in calls.c says.
set -eu
build=${GPULOAD_BUILD:-build}
LD_LIBRARY_PATH=$build/softcuda "$build/tests/gpu/plain/calls"
