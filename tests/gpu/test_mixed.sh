#!/bin/bash
# gpuload and the software driver select the same images (`tests/gpu/run --only mixed` on the software driver).
set -eu
build=${GPULOAD_BUILD:-build}
[[ -f $build/tests/gpu/mixed/mixed.json ]] || { echo "skipped: built without nvcc"; exit 77; }
tests/gpu/mixed.py compare "$build/tests/gpu/mixed" --driver soft --build "$build"
