#!/bin/sh
# LL128 between two blocks, from a warp that has diverged: a reader must not find a flag before the data of its line.
set -e
build=${GPULOAD_BUILD:-build}
for apart in 0 1 2 3; do
	for seed in 1 2 3 4 5 6 7 8; do
		"$build/gpuload" run "$build/kernels/tests/comm/split_warp.ptx" --driver soft --grid 2 --block 32 --schedule "$seed" \
			"out:u32[32]" u32=4 "u32=$apart" --expect 0=0 >/dev/null
	done
done
echo "32 schedules: no wrong data"
