#!/usr/bin/env bats
# program.bats — gpuload run of a .cu with main() and <<<>>>.
load ../helper

needs_nvcc() {
	[[ -x ${GPULOAD_NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)} ]] || skip "no nvcc"
	! grep -qaE '__(asan|ubsan|tsan|gcov)_' "$(dirname "$(command -v gpuload)")/libgpuload-rt.a" || skip "the program would need the sanitizer's library"
}

write_program() {
	cat > program.cu <<-'END'
		#include <cstdio>
		#include <cstdlib>
		#include <vector>
		#include "value.h"

		__global__ void add(float *p, int n)
		{
			if (threadIdx.x < n)
				p[threadIdx.x] += VALUE;
		}

		int main(int argc, char **argv)
		{
			std::vector<float> v(32, 1.0f);
			float *p;

			cudaMalloc(&p, sizeof(float) * v.size());
			cudaMemcpy(p, v.data(), sizeof(float) * v.size(), cudaMemcpyHostToDevice);
			add<<<1, 256>>>(p, argc > 1 ? atoi(argv[1]) : 32);
			cudaMemcpy(v.data(), p, sizeof(float) * v.size(), cudaMemcpyDeviceToHost);
			printf("%s: %d arguments, %g\n", argv[0], argc - 1, v[31]);
			return cudaDeviceSynchronize() ? 1 : 7;
		}
	END
	echo "#define VALUE 2" > value.h
	export GPULOAD_CACHE=$PWD/cache
}

@test "a program is built and run with its arguments" {
	needs_nvcc
	write_program
	run --separate-stderr gpuload run program.cu
	[[ $status == 7 && $output == "program: 0 arguments, 3" && -z $stderr ]] || show "should run"
	run --separate-stderr gpuload run program.cu -- 16 --json
	[[ $status == 7 && $output == "program: 2 arguments, 1" ]] || show "should pass the arguments"
}

@test "a program is built again only if it, a header, or an option has changed" {
	needs_nvcc
	write_program
	run --separate-stderr gpuload run program.cu
	[[ $output == "program: 0 arguments, 3" ]] || show "should run"
	export GPULOAD_LOG=info
	run --separate-stderr gpuload run program.cu
	[[ $output == "program: 0 arguments, 3" && $stderr != *"building program.cu"* ]] || show "should be in the cache"
	echo "#define VALUE 40" > value.h
	run --separate-stderr gpuload run program.cu
	[[ $output == "program: 0 arguments, 41" && $stderr == *"building program.cu"* ]] || show "should be built again"
}

@test "a fault in a program is printed on stderr with its line" {
	needs_nvcc
	[[ $GPULOAD_DRIVER == soft ]] || skip "only the software driver knows the line of a fault"
	write_program
	run --separate-stderr gpuload run program.cu -- 256
	[[ $status == 1 && $stderr == *"(program.cu:9): 4-byte global load at "* ]] || show "should name the line"
	[[ ${stderr_lines[1]} == *"p[threadIdx.x] += VALUE;" ]] || show "should show the line"
	[[ ${#stderr_lines[@]} == 2 ]] || show "should be printed once"
}

@test "the errors of nvcc are shown" {
	needs_nvcc
	write_program
	echo "int x = y;" >> program.cu
	run --separate-stderr gpuload run program.cu
	[[ $status == 1 && $stderr == *'program.cu(24): error: identifier "y" is undefined'* ]] || show "should show the error"
	[[ ${stderr_lines[-1]} == "gpuload run: the program was not built"* && -z $output ]] || show "the last line should be gpuload's"
}

@test "without nvcc, the kernel of a program is run alone" {
	gpuload version | grep -q "^NVRTC  *[0-9]" || skip "no libnvrtc"
	write_program
	export GPULOAD_NVCC=/nonexistent
	run --separate-stderr gpuload run program.cu
	[[ $status == 0 && $stderr == "gpuload run: program.cu is a program (main() in line 12), and nvcc"*" was not found: running its kernel alone."* ]] ||
		show "should say what it does"
	says "kernel    add(float*, int), grid"
	says "inout:f32[1024]=iota: 2 3 4"
	works run program.cu "inout:f32[4]=1" i32=4 --expect 0=3
	fails 1 "nvcc was not found" run program.cu -- 16
}

@test "with the arguments or options of a kernel, the kernel of a program is run" {
	gpuload version | grep -q "^NVRTC  *[0-9]" || skip "no libnvrtc"
	write_program
	works run program.cu "inout:f32[4]=1" i32=4 --expect 0=3
	works run program.cu --kernel add --expect 0=iota:2
	sed -i '1i // gpuload run: inout:f32[4]=5 i32=4 --expect 0=7' program.cu
	works run program.cu
	says "expect    arg 0 = 7: yes"
}

@test "after --, the name of a program may begin with a dash, and the next -- begins its arguments" {
	needs_nvcc
	write_program
	mv program.cu ./-x.cu
	run --separate-stderr gpuload run -- -x.cu
	[[ $status == 7 && $output == "-x: 0 arguments, 3" && -z $stderr ]] || show "should run"
	run --separate-stderr gpuload run -- -x.cu -- 16 -- --json
	[[ $status == 7 && $output == "-x: 3 arguments, 1" ]] || show "should pass the arguments"
}

@test "a program can come from a pipe, from stdin and from <(...)" {
	needs_nvcc
	write_program
	mkfifo pipe.cu
	cat program.cu > pipe.cu &
	run --separate-stderr gpuload run pipe.cu
	[[ $status == 7 && $output == "pipe: 0 arguments, 3" ]] || show "should run from a pipe"
	run --separate-stderr gpuload run /dev/stdin -- 16 < program.cu
	[[ $status == 7 && $output == "/dev/stdin: 1 arguments, 1" ]] || show "should run from stdin"
	run --separate-stderr gpuload run <(cat program.cu)
	[[ $status == 7 && $output == *": 0 arguments, 3" ]] || show "should run from <(...)"
}

@test "headers beside the source are found, and no header of the system is replaced by them" {
	needs_nvcc
	write_program
	mkdir "a, b"
	mv program.cu value.h "a, b"
	echo "#error not the one of the system" > "a, b/cstdlib"
	run --separate-stderr gpuload run "a, b/program.cu"
	[[ $status == 7 && $output == "a, b/program: 0 arguments, 3" ]] || show "should run"
}

@test "a program that calls the driver API is linked with it" {
	needs_nvcc
	export GPULOAD_CACHE=$PWD/cache
	cat > driver.cu <<-'END'
		#include <cuda.h>
		#include <cstdio>
		__global__ void set(int *p) { *p = 3; }
		int main()
		{
			cudaFunction_t f;
			int h = 0, *p, regs = -1;
			void *args[] = { &p };
			cudaMalloc(&p, 4);
			cudaGetFuncBySymbol(&f, (void *)set);
			CUresult r = cuLaunchKernel((CUfunction)f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL);
			cuMemcpyDtoH(&h, (CUdeviceptr)p, 4);
			cuFuncGetAttribute(&regs, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)f);
			printf("%d %d %d\n", r, h, regs > 0);
		}
	END
	run --separate-stderr gpuload run driver.cu
	[[ $status == 0 && $output == "0 3 1" ]] || show "should run"
}

@test "the error of the user's line comes before those of a header for host code" {
	gpuload version | grep -q "^NVRTC  *[0-9]" || skip "no libnvrtc"
	printf '#include <cuda.h>\n__global__ void k(int *x) { *x = undefined_name; }\n' > typo.cu
	run --separate-stderr gpuload run typo.cu
	[[ $status == 1 && ${stderr_lines[0]} == 'typo.cu(2): error: identifier "undefined_name" is undefined' ]] || show "should begin with the error"
	[[ ${#stderr_lines[@]} -lt 20 && ${stderr_lines[-1]} == "gpuload run: typo.cu was not compiled"* ]] || show "should be short"
}
