#!/bin/bash
# The dry run of `tests/gpu/run --only mixed`: gpuload and the software driver choose the same images.
set -eu
build=${GPULOAD_BUILD:-build}
[[ -f $build/tests/gpu/mixed/mixed.json ]] || { echo "skipped: no nvcc made fatbins"; exit 77; }
tests/gpu/mixed.py compare "$build/tests/gpu/mixed" --driver soft --build "$build"
