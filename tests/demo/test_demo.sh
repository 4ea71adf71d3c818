#!/bin/bash
# The demo runs without a GPU, shows its commands, and every result is the expected one.
set -eu
out=$(demo/run)
echo "$out"
test "$(grep -c '^\$ gpuload run demo/' <<<"$out")" = 3
test "$(grep -c '^expect .*: yes' <<<"$out")" = 3
grep -q '^3 kernels ran, and every result was the expected one' <<<"$out"
