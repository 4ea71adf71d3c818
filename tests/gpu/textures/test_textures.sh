#!/bin/bash
# The software driver reads random textures with the results of an H200; and textures.py detects a result that this test has changed.
set -eu
command -v python3 >/dev/null || exit 77
soft=${GPULOAD_SOFT_DRIVER:-${GPULOAD_BUILD:-build}/softcuda/libcuda-soft.so}
if grep -q "__asan_init\|__tsan_init" "$soft"; then
	echo "skipped: a library with a sanitizer cannot be loaded into Python"; exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tests/gpu/textures/textures.py run "$soft" "$tmp/a"
tests/gpu/textures/textures.py compare "$tmp/a" "$tmp/a" | grep -q "102400 operand sets: 102400 equal in all bits"
sed '3s/"out": "......../"out": "deadbeef/' "$tmp/a" >"$tmp/b"
if tests/gpu/textures/textures.py compare "$tmp/a" "$tmp/b" >"$tmp/log"; then
	echo "a changed result was not found"; exit 1
fi
grep -q "^1 differences" "$tmp/log"
tests/gpu/textures/textures.py check "$tmp/a" tests/gpu/textures/textures.h200 || exit $?
if tests/gpu/textures/textures.py check "$tmp/b" tests/gpu/textures/textures.h200 >"$tmp/log"; then
	echo "a changed result has the checksum of the right one"; exit 1
fi
grep -qF "1600 textures: 1599 have the expected results, not: [2]" "$tmp/log"
