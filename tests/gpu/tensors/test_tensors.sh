#!/bin/bash
# The software driver copies random boxes of random tensors with the results that the documentation and an H200 give; and tensors.py detects
# a result that this test has changed.
set -eu
command -v python3 >/dev/null || exit 77
soft=${GPULOAD_SOFT_DRIVER:-${GPULOAD_BUILD:-build}/softcuda/libcuda-soft.so}
if grep -q "__asan_init\|__tsan_init" "$soft"; then
	echo "skipped: a library with a sanitizer cannot be loaded into Python"; exit 77
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tests/gpu/tensors/tensors.py run "$soft" "$tmp/a" >"$tmp/log"
grep -q "^1881 cases" "$tmp/log"  # without 19 cases that follow 20 errors in their class, as on an H200
tests/gpu/tensors/tensors.py model "$tmp/a" --most 150 >"$tmp/log"
grep -qF "673 cases, not as the model: []" "$tmp/log"
tests/gpu/tensors/tensors.py compare "$tmp/a" "$tmp/a" >"$tmp/log"
grep -q "^im2col: 400 cases, 0 differ" "$tmp/log"
python3 - "$tmp/a" "$tmp/b" "$tmp/c" <<'END'
import base64, json, sys, zlib
lines = open(sys.argv[1]).read().splitlines()
row = json.loads(lines[3])
data = bytearray(zlib.decompress(base64.b64decode(row["out"])))
data[0] ^= 1
row["out"] = base64.b64encode(zlib.compress(bytes(data))).decode()
lines[3] = json.dumps(row)
open(sys.argv[2], "w").write("\n".join(lines) + "\n")
lines[3] = json.dumps({"case": row["case"], "class": row["class"], "map": 801})
open(sys.argv[3], "w").write("\n".join(lines) + "\n")
END
if tests/gpu/tensors/tensors.py compare "$tmp/a" "$tmp/b" >"$tmp/log"; then
	echo "a changed result was not found"; exit 1
fi
grep -q "^tile: 300 cases, 1 differ" "$tmp/log"
if tests/gpu/tensors/tensors.py model "$tmp/b" --most 150 >"$tmp/log"; then
	echo "the model did not find a changed result"; exit 1
fi
grep -qF "not as the model: [2]" "$tmp/log"
tests/gpu/tensors/tensors.py sum "$tmp/a" >"$tmp/sums"
tests/gpu/tensors/tensors.py check "$tmp/a" "$tmp/sums" >/dev/null
if tests/gpu/tensors/tensors.py check "$tmp/b" "$tmp/sums" >"$tmp/log"; then
	echo "a changed result has the checksum of the right one"; exit 1
fi
grep -qF "1880 have the expected results, 0 are refused, not: [2]" "$tmp/log"
tests/gpu/tensors/tensors.py check "$tmp/c" "$tmp/sums" >"$tmp/log"
grep -qF "1881 cases: 1880 have the expected results, 1 are refused, not: []" "$tmp/log"
tests/gpu/tensors/tensors.py check "$tmp/a" tests/gpu/tensors/tensors.h200 >"$tmp/log" || { cat "$tmp/log"; exit 1; }
grep -qF "1881 cases: 1881 have the expected results, 0 are refused, not: []" "$tmp/log"
