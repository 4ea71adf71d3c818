#!/bin/bash
# The demo runs without a GPU, prints its commands, and all results are as expected.
set -eu
out=$(demo/run)
echo "$out"
test "$(grep -c '^\$ gpuload run demo/' <<<"$out")" = 3
test "$(grep -c '^expect .*: yes' <<<"$out")" = 3
grep -q '^3 kernels ran, and all results are as expected' <<<"$out"
