#!/bin/bash
# control_device.cuh as NVRTC compiles it does what the PTX of the build does.
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
