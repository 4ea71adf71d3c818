#!/usr/bin/env bats
# function.bats — fn: arguments: function pointers read from the loaded module.
load ../helper

fnptr="$cli_tests/../corpus/ptx/fnptr.sm_90.ptx"

# apply works FN, apply fails FN CODE PATTERN: run fnptr2 with FN and the inputs a[i] = i, b[i] = 3.
apply() {
	"$1" "${@:3}" run "$fnptr" --kernel fnptr2 "$2" "f32[64]=iota" "f32[64]=3" "out:f32[64]" i32=64
}

@test "passes the function pointer in a __device__ variable" {
	apply works fn:table
	says "arg 0     fn:table: op_add(float, float)"
	says "arg 3     out:f32[64]: 3 4 5 6 7 8 9 10 11 12 ..."
}

@test "passes an element of a table of function pointers" {
	apply works "fn:table[1]"
	says "arg 0     fn:table[1]: op_mul(float, float)"
	says "out:f32[64]: 0 3 6 9 12 15 18 21 24 27 ..."
	apply works "fn:table[2]"
	says "out:f32[64]: 3 3 3 3 4 5 6 7 8 9 ..."
}

@test "the gpuload run: line of a file may contain an fn: argument" {
	{
		echo "// gpuload run: --kernel fnptr2 fn:table[1] f32[4]=iota f32[4]=3 out:f32[4] i32=4 --expect 3=iota:0:3"
		cat "$fnptr"
	} >own.ptx
	works run own.ptx
	says "yes, all of 4 elements"
}

@test "--json lists the function among the arguments" {
	run --separate-stderr gpuload run "$fnptr" --kernel fnptr2 "fn:table[1]" "f32[4]=1" "f32[4]=3" "out:f32[4]" i32=4 --json
	[[ $(json "[j['arguments'][0][k] for k in ('text', 'kind', 'bytes')]") == "['fn:table[1]', 'function', 8]" ]] || show kinds
}

@test "explains what is wrong with an fn: argument" {
	apply fails fn:tabel 2 "no variable 'tabel' in the module: did you mean 'table'?"
	apply fails fn:other 2 "no __device__ or __constant__ variable 'other' in the module; it has: table"
	apply fails "fn:table[3]" 2 "table[3] is beyond the end of the variable: 24 bytes, 3 function pointers"
	apply fails fn:_ZTV4Plus 1 "_ZTV4Plus[0] is 0: it has no function yet"
	apply fails fn: 2 "fn: needs a __device__ variable that contains a function pointer"
	apply fails "fn:table[" 2 "fn: needs"
	apply fails "fn:table[1]x" 2 "fn: needs"
	apply fails "fn:[1]" 2 "fn: needs"
}

@test "a parameter that the kernel calls needs an fn: argument" {
	fails 2 "parameter 0 is a function pointer" run "$fnptr" --kernel fnptr2
	says "fnptr2(function, f32 *, f32 *, f32 *, i32)"
	says "fn:VARIABLE 'f32[1024]=iota'"
	fails 2 "argument 0 is f64=1, but parameter 0 of fnptr2(function, f32 *, f32 *, f32 *, i32) must be a function: fn:VARIABLE" \
		run "$fnptr" --kernel fnptr2 f64=1 "f32[4]=1" "f32[4]=1" "out:f32[4]" i32=4
}

@test "an fn: argument fits a parameter of 8 bytes that is not a buffer" {
	fails 2 "argument 3 is fn:table, but parameter 3 of fnptr(" run "$fnptr" --kernel fnptr \
		"f32[4]=1" "f32[4]=1" "out:f32[4]" fn:table i32=4
	fails 2 "argument 4 is fn:table, but parameter 4 of fnptr2(" run "$fnptr" --kernel fnptr2 \
		fn:table "f32[4]=1" "f32[4]=1" "out:f32[4]" fn:table
}

@test "reports that a function pointer is the address of a kernel" {
	cat >kernel.ptx <<-'END'
	.version 8.0
	.target sm_75
	.address_size 64
	.visible .entry other() { ret; }
	.global .u64 p = other;
	.visible .entry keep(.param .u64 out, .param .u64 f) {
		.reg .u64 %rd<4>;
		ld.param.u64 %rd1, [out];
		ld.param.u64 %rd2, [f];
		st.global.u64 [%rd1], %rd2;
		ret;
	}
	END
	works run kernel.ptx --kernel keep --grid 1 --block 1 "out:u64[1]" fn:p
	says "arg 1     fn:p: other, a kernel: device code may launch it, not call it"
}
