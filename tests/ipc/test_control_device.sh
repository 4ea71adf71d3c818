#!/bin/bash
# Runs test_control with control_device.cuh compiled by NVRTC instead of the PTX that nvcc compiled in the build.
set -eu
build=$(cd "${GPULOAD_BUILD:-build}" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
if ! "$build/gpuload" compile tests/ipc/control.cu -I . -I include -o "$out/control.ptx" 2>"$out/log"; then
	cat "$out/log"
	grep -q 'no libnvrtc\|NVRTC' "$out/log" && exit 77
	exit 1
fi
GPULOAD_TEST_CONTROL_PTX="$out/control.ptx" "$build/tests/ipc/test_control"
