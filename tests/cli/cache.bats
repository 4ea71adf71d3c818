#!/usr/bin/env bats
# cache.bats — the cache of compiled and linked code: reuse, status, --clear.
load helper

# Use a private cache; the test runner turns the cache off.
use_cache() {
	export GPULOAD_CACHE=$BATS_TEST_TMPDIR/cache
	gpuload version | grep -q "^NVRTC  *[0-9]" || skip "no libnvrtc"
	echo 'extern "C" __global__ void fill(int *p) { p[threadIdx.x] = VALUE; }' >fill.cu
}

# results N: the cache contains N results.
results() {
	run --separate-stderr gpuload cache --json
	[[ $output == *'"results":'"$1"',"bytes":'* ]] || show "the cache should contain $1 results"
}

@test "a kernel is compiled once and then taken from the cache" {
	use_cache
	results 0
	works run fill.cu -DVALUE=7 'out:i32[4]' --block 4 --expect 0=7
	results 1
	GPULOAD_LOG=debug works run fill.cu -DVALUE=7 'out:i32[4]' --block 4 --expect 0=7
	[[ $stderr == *"found"* && $stderr != *"stored"* ]] || show "the result should come from the cache"
	works run fill.cu -DVALUE=8 'out:i32[4]' --block 4 --expect 0=8
	results 2
}

@test "compile uses the cache unless --no-cache is given" {
	use_cache
	works compile fill.cu -DVALUE=1 -o a.ptx --no-cache
	results 0
	works compile fill.cu -DVALUE=1 -o b.ptx
	results 1
	works compile fill.cu -DVALUE=1 -o c.ptx
	results 1
	cmp a.ptx b.ptx
	cmp b.ptx c.ptx
}

@test "cache prints its folder, the number of results and their size" {
	use_cache
	works compile fill.cu -DVALUE=1
	works cache
	says "folder   $GPULOAD_CACHE"
	says "results  1"
	says "of at most 268435456"
	GPULOAD_CACHE_MAX_BYTES=1G works cache
	says "of at most 1073741824"
	GPULOAD_CACHE=off works cache
	says "GPULOAD_CACHE is off"
	GPULOAD_CACHE=off works cache --json
	says '"folder":null,"unused_because":"GPULOAD_CACHE is off","results":0'
}

@test "cache --clear removes all results" {
	use_cache
	works compile fill.cu -DVALUE=1
	works compile fill.cu -DVALUE=2
	results 2
	works cache --clear
	says "results  0"
	results 0
	fails 2 "accepts no operands" cache clear
}

@test "a damaged result is compiled again" {
	use_cache
	works compile fill.cu -DVALUE=1 -o a.ptx
	file=$(find "$GPULOAD_CACHE" -type f)
	printf x | dd of="$file" bs=1 seek=100 conv=notrunc status=none
	GPULOAD_LOG=debug works compile fill.cu -DVALUE=1 -o b.ptx
	[[ $stderr == *"damaged"* && $stderr == *"stored"* ]] || show "the damaged result should be replaced"
	cmp a.ptx b.ptx
}

@test "a cache folder that cannot be used is ignored" {
	use_cache
	: >file
	GPULOAD_CACHE=$PWD/file works run fill.cu -DVALUE=7 'out:i32[4]' --block 4 --expect 0=7
	GPULOAD_CACHE=/proc/nowhere works run fill.cu -DVALUE=7 'out:i32[4]' --block 4 --expect 0=7
	GPULOAD_CACHE=/proc/nowhere works cache
}

@test "twenty processes can use the cache at the same time" {
	use_cache
	for i in {1..20}; do
		gpuload run fill.cu -DVALUE=$((i % 4)) 'out:i32[4]' --block 4 --expect 0=$((i % 4)) >log.$i 2>&1 &
	done
	for job in $(jobs -p); do
		wait "$job" || show "$(cat log.*)"
	done
	results 4
}

@test "LTO objects are linked once and then taken from the cache" {
	objects=$(cd "$cli_tests/../.." && cd "${GPULOAD_BUILD:-build}" && pwd)/tests/inputs
	[[ -e $objects/liblto.a ]] || skip "no nvcc"
	export GPULOAD_CACHE=$BATS_TEST_TMPDIR/cache
	for event in stored found; do
		GPULOAD_LOG=debug works run "$objects/liblto.a" --kernel vecadd 'f32[1024]=iota' \
			'f32[1024]=iota:0:2' 'out:f32[1024]' i32=1024 --expect 2=iota:0:3
		[[ $stderr == *"cache: $event"* ]] || show "the result should be $event"
	done
	GPULOAD_LOG=debug works run "$objects/liblto.a" --no-cache --kernel vecadd 'f32[1024]=iota' \
		'f32[1024]=iota:0:2' 'out:f32[1024]' i32=1024 --expect 2=iota:0:3
	[[ $stderr != *"cache:"* ]] || show "the cache should not be used"
}
