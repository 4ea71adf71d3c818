#!/bin/bash
# A driver-API program linked with -lcuda, without gpuload, runs on the software driver.
set -eu
build=${GPULOAD_BUILD:-build}
LD_LIBRARY_PATH=$build/softcuda "$build/tests/gpu/plain/plain" tests/corpus/ptx/vecadd.sm_90.ptx 100000
