#!/usr/bin/env bats
# run_failure.bats — the messages of gpuload run when a kernel fails, does not compile, or does not do what its arguments expect.
load ../helper

needs_nvrtc() {
	gpuload version | grep -q "^NVRTC  *[0-9]" || skip "no libnvrtc"
}

needs_the_software_driver() {
	[[ $GPULOAD_DRIVER == soft ]] || skip "only the software driver knows the line of a fault"
}

# ptx_of FILE: write k.ptx, whose only instruction is line 2 of FILE and stores to address 0.
ptx_of() {
	cat > k.ptx <<-END
		.version 7.0
		.target sm_75
		.address_size 64
		.visible .entry k(.param .u64 p)
		{
			.reg .b64 %rd<2>;
			.loc 1 2 0
			ld.param.u64 %rd1, [p];
			st.global.u32 [%rd1], 1;
			ret;
		}
		.file 1 "$1"
	END
}

@test "a fault shows the line of CUDA C++ that the PTX names" {
	needs_the_software_driver
	printf 'first\n\tsecond line\nthird\n' > k.cu
	touch -d "1 hour ago" k.cu
	ptx_of "$PWD/k.cu"
	run --separate-stderr gpuload run k.ptx u64=0 --grid 1 --block 1
	[[ $status == 1 && ${stderr_lines[0]} == "gpuload run: k.ptx:9 (k.cu:2): 4-byte global store at 0x0 is a NULL pointer"* ]] || show "should name the line"
	[[ ${#stderr_lines[@]} == 2 && ${stderr_lines[1]} == $'\tsecond line' ]] || show "should show the line"
}

@test "a fault shows no line of a file that is newer than its PTX, missing or not a regular file" {
	needs_the_software_driver
	printf 'first\nsecond\n' > k.cu
	ptx_of "$PWD/k.cu"
	touch -d "1 hour ago" k.ptx
	fails 1 "k.ptx:9 (k.cu:2)" run k.ptx u64=0 --grid 1 --block 1
	rm k.cu
	fails 1 "k.ptx:9 (k.cu:2)" run k.ptx u64=0 --grid 1 --block 1
	mkfifo k.cu
	fails 1 "k.ptx:9 (k.cu:2)" run k.ptx u64=0 --grid 1 --block 1
}

@test "a fault or an assertion in a .cu names its line and shows it" {
	needs_nvrtc
	needs_the_software_driver
	mkdir dir
	cat > dir/fault.cu <<-'END'
		#include "store.h"
		__global__ void far_away(float *p)
		{
			p[threadIdx.x + 5000000000] = 1;
		}
		__global__ void in_a_header(float *p)
		{
			store(p);
		}
		__global__ void asserts(int *p)
		{
			assert(p[0] == 1);
		}
	END
	printf '__device__ inline void store(float *p)\n{\n\tp[5000000000] = 2;\n}\n' > dir/store.h
	run --separate-stderr gpuload run dir/fault.cu --kernel far_away --grid 1 --block 1 "out:f32[1]"
	[[ ${stderr_lines[0]} == "gpuload run: dir/fault.cu:4: 4-byte global store"* ]] || show "should name the line of the .cu"
	[[ ${stderr_lines[1]} == *"p[threadIdx.x + 5000000000] = 1;" ]] || show "should show the line of the .cu"
	run --separate-stderr gpuload run dir/fault.cu --kernel in_a_header --grid 1 --block 1 "out:f32[1]"
	[[ ${stderr_lines[0]} == "gpuload run: dir/fault.cu:8, inlined from store.h:3: "* ]] || show "should name both lines"
	[[ ${stderr_lines[1]} == "store(p);" ]] || show "should show the line of the .cu"
	run --separate-stderr gpuload run dir/fault.cu --kernel asserts --grid 1 --block 1 "i32[1]=0"
	[[ ${stderr_lines[0]} == "gpuload run: dir/fault.cu:12: void asserts(int *): assertion "* ]] || show "should name the line once"
	[[ ${stderr_lines[1]} == 'assert(p[0] == 1);' ]] || show "should show the assertion"
}

@test "all errors of the compiler are shown, with their source lines" {
	needs_nvrtc
	for i in {1..12}; do echo "__global__ void kernel_with_a_long_name_$i() { int x = undefined_name_$i; }"; done > bad.cu
	for command in run compile; do
		run --separate-stderr gpuload $command bad.cu
		[[ $status == 1 ]] || show "$command should fail"
		for i in {1..12}; do
			[[ $stderr == *"bad.cu($i): error: identifier \"undefined_name_$i\" is undefined"* ]] || show "error $i is missing"
		done
		[[ $stderr == *"kernel_with_a_long_name_12() { int x = undefined_name_12; }"* ]] || show "a source line is missing"
		[[ ${stderr_lines[-1]} == "gpuload $command: bad.cu was not compiled"* ]] || show "the last line should be gpuload's"
	done
}

@test "compile --lineinfo records the lines of the source" {
	needs_nvrtc
	echo '__global__ void f(int *p) { *p = 1; }' > f.cu
	works compile f.cu -o -
	says_not ".loc"
	works compile f.cu --lineinfo -o -
	says ".loc"
	says "f.cu"
}

@test "--json prints an object with the error" {
	run --separate-stderr gpuload run "$faults" --kernel traps --grid 1 --block 1 --json
	[[ $status == 1 && $stderr == *trap* ]] || show "should fail"
	[[ $(json 'j["ok"], j["kernel"], j["error"]["kind"], j["error"]["code"]') == "(False, 'traps', 'cuda', 719)" ]]
	[[ $stderr == "gpuload run: $(json 'j["error"]["message"]')" ]] || show "should be the message on stderr"
	cat > table.ptx <<-'END'  # a table of pointers, whose contents gpuload cannot invent
		.version 8.0
		.target sm_80
		.address_size 64
		.visible .entry table(.param .u64 p) {
			.reg .b64 %d<3>; ld.param.u64 %d1, [p]; ld.global.u64 %d2, [%d1]; st.global.u32 [%d2], 1; ret;
		}
	END
	run --separate-stderr gpuload run table.ptx --json
	[[ $status == 2 && $(json 'j["error"]["kind"]') == usage ]]
	[[ $(json '"gpuload run" in j["error"]["advice"] and "hex:" not in j["error"]["message"]') == True ]]
	run --separate-stderr gpuload run nothing.ptx --json
	[[ $status == 1 && $(json 'j["error"]["kind"], j["error"]["code"]') == "('system', 2)" ]]
	run --separate-stderr gpuload run "$vecadd" f32=1 --json
	[[ $status == 2 && $(json 'j["error"]["kind"], j["kernel"]') == "('usage', 'vecadd')" ]]
	if gpuload version | grep -q "^NVRTC  *[0-9]"; then
		printf '__global__ void f() { x; }\n__global__ void g() { y; }\n' > bad.cu
		run --separate-stderr gpuload run bad.cu --json
		[[ $(json '"x" in j["error"]["message"] and "\"y\"" in j["error"]["compiler_log"]') == True ]] || show "should have the log"
	fi
}

@test "--json keeps what the kernel prints in a member, so that stdout is one object" {
	cat > prints.ptx <<-'END'
		.version 7.0
		.target sm_75
		.address_size 64
		.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 values);
		.global .align 1 .b8 text[4] = { 104, 105, 10, 0 };
		.visible .entry prints()
		{
			.reg .b64 %rd<2>;
			.param .b64 format;
			.param .b64 values;
			.param .b32 r;
			mov.u64 %rd1, text;
			cvta.global.u64 %rd1, %rd1;
			st.param.b64 [format], %rd1;
			mov.u64 %rd1, 0;
			st.param.b64 [values], %rd1;
			call.uni (r), vprintf, (format, values);
			ret;
		}
	END
	works run prints.ptx --json --grid 1 --block 2
	[[ $(json 'j["printf"], j["ok"]') == "('hi\\nhi\\n', True)" ]]
	works run "$vecadd" --json
	[[ $(json '"printf" in j') == False ]]
}

@test "a buffer that was given as input is shown if the kernel wrote it" {
	works run "$faults" --kernel increment "u32[2]=41" --grid 1 --block 1
	says "arg 0     u32[2]=41: 42 41"
	says "note      argument 0 is given as input, but the kernel writes it: use inout:u32[2]=41 to refill it before each launch"
	works run "$faults" --kernel increment "u32[2]=41" --grid 1 --block 1 --json
	[[ $(json 'j["arguments"][0]["changed"], j["arguments"][0]["first"]') == "(True, [42, 41])" ]]
	works run "$faults" --kernel increment "inout:u32[2]=41" --grid 1 --block 1
	says_not "note"
}

@test "a direction that contradicts what the kernel does is reported" {
	works run "$vecadd" "out:f64[8]" "f64[8]=1" "f64[8]=1" i32=8
	says "note      argument 0 is given as output, but the kernel only reads it: use f64[8]=FILL for an input"
	says "note      argument 2 is given as input, but the kernel writes it: use inout:f64[8]=1 to refill it before each launch"
	says_not "argument 1 is"
	works run "$faults" --kernel increment "out:u32[1]" --grid 1 --block 1
	says "note      argument 0 is given as output, but the kernel also reads it: use inout:u32[1]=FILL to set its contents"
	works run "$vecadd" "f64[8]=1" "f64[8]=1" "out:f64[8]" i32=8 --json
	[[ $(json '[a.get("note") for a in j["arguments"]]') == "[None, None, None, None]" ]]
}

@test "the result names the software driver, so no notice does" {
	needs_the_software_driver
	export -n GPULOAD_DRIVER
	if ldconfig -p | grep -q "libcuda.so.1"; then skip "NVIDIA's driver is installed"; fi
	works run "$vecadd"
	says "(soft driver)"
	[[ -z $stderr ]] || show "should be quiet"
}
