#!/usr/bin/env bats
# run_tools.bats — options of gpuload run that hand the kernel to a tool of the software driver.
load helper

@test "run --trace writes the instructions of the kernel to a file" {
	works run "$vecadd" --trace out.txt
	says "kernel    vecadd"
	[[ $(grep -c "add.f64" out.txt) -gt 0 ]] || show "should contain the addition: $(head -3 out.txt)"
}

@test "run --trace - writes to stdout, before the result" {
	works run "$vecadd" --trace -
	says "add.f64"
	[[ ${output##*add.f64} == *"kernel    vecadd"* ]] || show "the result should follow"
}

@test "a tool of GPULOAD_SOFT_TOOLS is started, too" {
	GPULOAD_SOFT_TOOLS=trace:file=a.txt works run "$vecadd"
	[[ -s a.txt ]] || show "should write a trace"
}

@test "run --trace says when the limit is reached" {
	works run "$vecadd" --trace out.txt --trace-limit 7
	[[ $(grep -c "^#" out.txt) == 7 ]] || show "should contain 7 instructions"
	[[ $stderr == *"only the first 7 instructions were recorded"* ]] || show "should say so"
}

@test "a file name with characters that GPULOAD_SOFT_TOOLS uses is possible" {
	works run "$vecadd" --trace 'a:b,c=d\e.txt'
	[[ -s 'a:b,c=d\e.txt' ]] || show "should write this file"
}

@test "a kernel is watched on the software driver only" {
	fails 2 "leave out --driver nvidia" run "$vecadd" --trace out.txt --driver nvidia
	GPULOAD_DRIVER=nvidia works run "$vecadd" --trace out.txt
	says "(soft driver)"
}

@test "options of tools are refused in one line if they are wrong" {
	fails 2 "--trace-limit has no effect without --trace" run "$vecadd" --trace-limit 3
	fails 2 "limit needs a number of at least 1, not 'x'" run "$vecadd" --trace out.txt --trace-limit x
	fails 2 "--trace - and --json both print on stdout" run "$vecadd" --trace - --json
	fails 1 "cannot write the trace to no/folder" run "$vecadd" --trace no/folder
}

@test "a wrong GPULOAD_SOFT_TOOLS is one clear line" {
	GPULOAD_SOFT_TOOLS=vecadd fails 2 "there is no tool 'vecadd': GPULOAD_SOFT_TOOLS=help lists them" run "$vecadd"
	GPULOAD_SOFT_TOOLS=trace:file=x:colour=red fails 2 "trace has no option 'colour'" run "$vecadd"
	GPULOAD_SOFT_TOOLS=trace fails 2 "trace needs a file" run "$vecadd"
	GPULOAD_SOFT_TOOLS=trace:file=x fails 2 "the tool trace is given twice" run "$vecadd" --trace y
	[[ ! -e y ]] || show "should write nothing"
}

@test "the tools of a program are those of the options" {
	[[ -x ${GPULOAD_NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)} ]] || skip "no nvcc"
	! grep -qaE '__(asan|ubsan|tsan|gcov)_' "$(dirname "$(command -v gpuload)")/libgpuload-rt.a" || skip "the program would need the sanitizer's library"
	cat > program.cu <<-'END'
		__global__ void k(float *p) { p[threadIdx.x] *= 2; }
		int main() { float *p; cudaMalloc(&p, 256); k<<<1, 64>>>(p); return cudaDeviceSynchronize() ? 1 : 7; }
	END
	GPULOAD_CACHE=$PWD/cache run --separate-stderr gpuload run program.cu --trace out.txt
	[[ $status == 7 ]] || show "should run the program"
	grep -q "warp 1 .*mul.*f32\|warp 1 .*add.*f32" out.txt || show "should trace it: $(head -3 out.txt)"
}

@test "run --synccheck reports wrong barriers, and ends a deadlock" {
	planted="$BATS_TEST_DIRNAME/../softcuda/tools/faults/synccheck"
	cp "$planted"/two_barriers.ptx "$planted"/spin_on_shared_flag.ptx .
	run --separate-stderr gpuload run two_barriers.ptx --synccheck
	[[ $status == 1 && $stderr == *"two_barriers.ptx:21: bar.sync: divergent barrier"* ]] || show "should find the barrier"
	run --separate-stderr gpuload run spin_on_shared_flag.ptx --synccheck
	[[ $status == 1 && $stderr == *"polls 4 bytes at offset 0 of shared memory"* ]] || show "should find the flag"
	works run "$vecadd" --synccheck
	[[ $stderr == *"gpuload synccheck: no errors"* ]] || show "should find nothing"
	fails 2 "--synccheck-timeout has no effect without --synccheck" run "$vecadd" --synccheck-timeout 3
	fails 2 "timeout needs a number of at least 1, not '0'" run "$vecadd" --synccheck --synccheck-timeout 0
}
