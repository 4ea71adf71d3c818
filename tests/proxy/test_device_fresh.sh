#!/bin/bash
# Run test_device with fifo_device.cuh compiled by NVRTC, instead of the build's PTX.
set -eu
build=$(cd "${GPULOAD_BUILD:-build}" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
if ! "$build/gpuload" compile tests/proxy/device.cu -I . -I include -o "$out/device.ptx" 2>"$out/log"; then
	cat "$out/log"
	grep -q 'no libnvrtc\|NVRTC' "$out/log" && exit 77
	exit 1
fi
GPULOAD_TEST_FIFO_PTX="$out/device.ptx" "$build/tests/proxy/test_device"
