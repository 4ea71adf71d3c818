#!/bin/bash
# The software driver returns the expected errors of calls.c for unusual and invalid calls.
set -eu
build=${GPULOAD_BUILD:-build}
LD_LIBRARY_PATH=$build/softcuda "$build/tests/gpu/plain/calls"
