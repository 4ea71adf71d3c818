#!/usr/bin/env bats
# run.bats — gpuload run, end to end, on the driver selected by GPULOAD_DRIVER.
load ../helper

@test "runs a kernel with the given arguments and prints its output buffers" {
	works run "$vecadd" "f64[1024]=iota" "f64[1024]=ones" "out:f64[1024]" i32=1024
	says "kernel    vecadd, grid 4, block 256"
	says "arg 2     out:f64[1024]: 1 2 3 4 5 6 7 8 9 10 ..."
	says_not unwritten
	[[ $output =~ (^|$'\n')"time      "[0-9.]+" "(ns|us|ms|s)", "[0-9.]+" "[kMGT]?B/s ]] || show "time and rate have the units that fit"
	[[ -z $stderr ]]
}

@test "invents arguments and a launch if none are given" {
	works run "$vecadd"
	says "assumed   gpuload run $vecadd --grid 4 --block 256 'f64[1024]=iota' 'f64[1024]=iota' 'out:f64[1024]' i32=1024"
	says "0 2 4 6 8 10 12 14 16 18 ..."
}

@test "invents a launch that writes every element, also if the kernel ignores its block or thread index" {
	one_block=$ptx/one_block.ptx
	works run "$one_block" --kernel by_thread --expect 0=iota
	says "kernel    by_thread, grid 1, block 1024"
	works run "$one_block" --kernel by_block --expect 0=iota
	says "kernel    by_block, grid 1024, block 1"
	works run "$one_block" --kernel few_threads --expect 0=iota
	says "kernel    few_threads, grid 1, block 64"
	works run "$one_block" --kernel by_thread "out:u32[100]" --expect 0=iota
	says "grid 1, block 100"
}

@test "invents arguments for handwritten PTX that reuses registers" {
	sed "/gpuload run:/d" "$cli_tests/../../demo/vecadd.ptx" >"$BATS_TEST_TMPDIR/by_hand.ptx"
	works run "$BATS_TEST_TMPDIR/by_hand.ptx" --expect 2=iota:0:2
	says "yes, all of 1024 elements"
}

@test "the printed command line can be pasted into a shell" {
	works run "$vecadd"
	line=$(sed -n 's/^assumed *//p' <<<"$output")
	run --separate-stderr bash -c "$line --expect 2=iota:0:2"
	[[ $status == 0 ]] || show "$line"
	says "yes, all of 1024 elements"
}

@test "--expect reports the first wrong element, both values and the number of wrong elements" {
	works run "$vecadd" "f64[1024]=iota" "f64[1024]=iota:0:2" "out:f64[1024]" i32=1024 --expect 2=iota:0:3 --expect 2=sum:1571328
	says "expect    arg 2 = iota:0:3: yes, all of 1024 elements"
	fails 1 "argument 2: element 3 is 6, expected 3; 1021 of 1024 are wrong" \
		run "$vecadd" "f64[1024]=iota" "f64[1024]=iota" "out:f64[1024]" i32=1024 --expect 2=iota --atol 2
	fails 1 "the sum of the elements is 8, expected 9" run "$vecadd" "f64[8]=1" "f64[8]=0" "out:f64[8]" i32=8 --expect 2=sum:9
}

@test "marks elements that the kernel did not write" {
	works run "$faults" --kernel half "out:u32[8]" --block 4 --grid 1
	says "0 unwritten 1 unwritten 2 unwritten 3 unwritten (4 of 8 unwritten)"
	fails 1 "element 1 is unwritten" run "$faults" --kernel half "out:u32[8]" --block 4 --grid 1 --expect 0=zeros --json
}

@test "restores inout buffers before each launch" {
	works run "$faults" --kernel increment "inout:u32[1]=41" --repeat 5 --grid 1 --block 1 --expect 0=42
	[[ $output =~ "time      "[0-9.]+" "(ns|us|ms|s)" median, "[0-9.]+" "(ns|us|ms|s)" minimum of 5 launches" ]] || show "two times"
}

@test "passes structs by value" {
	works run "$faults" --kernel by_value hex:010000000200000003000000 "out:u32[1]" --grid 1 --block 1 --expect 1=6
	printf '\x0a\0\0\0\x14\0\0\0\x1e\0\0\0' > struct
	works run "$faults" --kernel by_value bytes=@struct "out:u32[1]" --grid 1 --block 1 --expect 1=60
}

@test "--shared gives the kernel dynamic shared memory" {
	works run "$faults" --kernel shared_user "out:u32[1]" --grid 1 --block 1 --shared 4 --expect 0=7
}

@test "reads and writes .npy and raw files" {
	works run "$vecadd" "f64[16]=iota" "f64[16]=ones" "out:f64[16]" i32=16 --save 2=c.npy --save 2=c.raw --save 0=a.npy
	[[ $(stat -c %s c.raw) == 128 && $(stat -c %s c.npy) == 256 ]]
	works run "$vecadd" "f64[]=@c.npy" "f64[]=@c.raw" "out:f64[16]" i32=16 --expect 2=iota:2:2 --expect 0=@c.npy
}

@test "--save does not replace a file unless --force is given" {
	works run "$vecadd" "f64[16]=iota" "f64[16]=ones" "out:f64[16]" i32=16 --save 2=c.raw
	cp c.raw before.raw
	fails 1 "c.raw already exists; --force replaces it" run "$vecadd" "f64[16]=zeros" "f64[16]=ones" "out:f64[16]" i32=16 --save 2=c.raw
	[[ -z $output ]]  # the kernel was not launched
	cmp c.raw before.raw
	works run "$vecadd" "f64[16]=zeros" "f64[16]=ones" "out:f64[16]" i32=16 --save 2=c.raw --force
	! cmp -s c.raw before.raw
	works run "$vecadd" "f64[16]=zeros" "f64[16]=ones" "out:f64[16]" i32=16 --save 2=/dev/null
}

@test "a struct is given by its members, and members are inferred" {
	works run "$ptx/struct.ptx" 'struct[24]{0:out:f32[12];8:u64=16;16:i32=3}' i32=3 --grid 1 --block 4,4
	says "arg 0+0   out:f32[12]: 0 1 2 unwritten 1 2 3 unwritten 2 3 ... (3 of 12 unwritten)"
	works run "$ptx/struct.ptx" --json
	[[ $(json '[m["offset"] for m in j["arguments"][0]["members"]], j["arguments"][0]["members"][0]["direction"], j["ok"]') == "([0, 8, 16], 'out', True)" ]]
	[[ $(json '"{0:out:f32[" in j["assumed"]') == True ]]
	works run "$ptx/struct.ptx"
	line=$(sed -n 's/^assumed *//p' <<<"$output")
	run --separate-stderr bash -c "$line"
	[[ $status == 0 ]] || show "$line"
	fails 2 "only for --grid" run "$ptx/struct.ptx" --grid 100
	fails 2 "is not a struct; expected struct[BYTES]" run "$ptx/struct.ptx" 'struct[24]{0:f32[1]=1' i32=3
	fails 2 "ends beyond the struct of 4 bytes" run "$ptx/struct.ptx" 'struct[4]{0:f32[1]=1}' i32=3
	fails 2 "must be a struct of 24 bytes" run "$ptx/struct.ptx" 'struct[16]{0:f32[1]=1}' i32=3
}

@test "a --save that fails hides neither the results nor the verdict of --expect" {
	fails 1 "none/c.raw: cannot be written" run "$vecadd" "f64[16]=iota" "f64[16]=ones" "out:f64[16]" i32=16 --save 2=none/c.raw --expect 2=iota:1
	says "arg 2     out:f64[16]: 1 2 3 4"
	says "yes, all of 16 elements"
	run --separate-stderr gpuload run "$vecadd" "f64[16]=iota" "f64[16]=ones" "out:f64[16]" i32=16 --save 2=none/c.raw --expect 2=zeros --json
	[[ $status == 1 && $stderr == *"none/c.raw: cannot be written"*"not as expected"* ]] || show "both errors"
	[[ $(json 'j["arguments"][2]["first"][1], j["expect"][0]["ok"], j["ok"], "none/c.raw" in j["save_error"]') == "(2, False, False, True)" ]]
}

@test "--json prints the launch, the times, the arguments and the checks" {
	works run "$vecadd" "f64[1024]=iota" "f64[1024]=iota" "out:f64[1024]" i32=1024 --json --repeat 3 --expect 2=iota:0:2
	[[ $(json 'j["kernel"], j["grid"], j["block"], len(j["times_ms"]), j["ok"]') == "('vecadd', [4, 1, 1], [256, 1, 1], 3, True)" ]]
	[[ $(json 'j["arguments"][2]["first"][:3], j["arguments"][2]["unwritten"]') == "([0, 2, 4], 0)" ]]
	[[ $(json 'j["expect"][0]["ok"], j["driver"]["name"]') == "(True, 'soft')" ]]
	works run "$vecadd" --json
	[[ $(json '"--grid 4 --block 256" in j["assumed"]') == True ]]
}

@test "the gpuload run: lines of a file give the arguments of its kernels" {
	works run "$ptx/own_line.ptx"
	says "arg 0     out:u32[4]: 7 7 7 7"
	says "yes, all of 4 elements"
	works run "$ptx/own_line.ptx" --kernel nine
	says "arg 0     out:u32[4]: 9 9 9 9"
	works run "$ptx/own_line.ptx" --kernel seven "out:u32[2]" --block 2
	says "arg 0     out:u32[2]: 7 7"
}

@test "prints a command line to fill in if the code does not show all arguments" {
	big=$cli_tests/../corpus/ptx/const.sm_90.ptx
	fails 2 "no arguments given" run "$big" --kernel bigparam
	says "bigparam("
	says "gpuload run $big --kernel bigparam"
	says "bytes=@FILE"
	fails 2 "dynamic shared memory" run "$faults" --kernel shared_user
	says "--shared BYTES"
}

@test "runs a kernel without parameters" {
	cat > nothing.ptx <<-'END'
		.version 7.0
		.target sm_75
		.address_size 64
		.visible .entry nothing() { ret; }
	END
	works run nothing.ptx
	works run nothing.ptx --timeout 5
}

@test "a kernel that reaches an instruction which is not interpreted is refused in one line; the others run" {
	[[ $GPULOAD_DRIVER == soft ]] || skip "for the software driver"
	printf '%s\n' '.version 8.0' '.target sm_90a' '.address_size 64' \
		'.func helper() { tcgen05.wait::ld.sync.aligned; ret; }' \
		'.visible .entry good(.param .u64 out) { .reg .b64 %d; ld.param.u64 %d, [out]; st.global.u32 [%d], 7; ret; }' \
		'.visible .entry bad(.param .u64 out) { call helper; ret; }' >"$BATS_TEST_TMPDIR/partly.ptx"
	works run "$BATS_TEST_TMPDIR/partly.ptx" --kernel good "out:u32[1]" --grid 1 --block 1 --expect 0=7
	fails 1 "partly.ptx:4: tcgen05.wait::ld.sync.aligned: tcgen05 is not supported by the software driver; kernel bad reaches it: CUDA_ERROR_NOT_SUPPORTED" \
		run "$BATS_TEST_TMPDIR/partly.ptx" --kernel bad "out:u32[1]" --grid 1 --block 1
}

@test "after --, the name of a FILE may begin with a dash" {
	sed "/gpuload run:/d" "$vecadd" > -v.ptx
	fails 2 "unknown option -v.ptx" run -v.ptx
	works run --expect 2=iota:0:2 -- -v.ptx "f64[8]=iota" "f64[8]=iota" "out:f64[8]" i32=8
	works run -- -v.ptx -- "f64[8]=iota" "f64[8]=iota" "out:f64[8]" i32=8
	says "arg 2     out:f64[8]: 0 2 4 6"
	works run -- -v.ptx
	says "assumed   gpuload run ./-v.ptx --grid 4"
	fails 2 "run needs a FILE" run --
}

@test "--show selects how many elements are printed, as text and as JSON" {
	works run "$vecadd" "f64[12]=iota" "f64[12]=ones" "out:f64[12]" i32=12 --show 3
	says "arg 2     out:f64[12]: 1 2 3 ..."
	says_not "1 2 3 4"
	works run "$vecadd" "f64[12]=iota" "f64[12]=ones" "out:f64[12]" i32=12 --show all
	says "arg 2     out:f64[12]: 1 2 3 4 5 6 7 8 9 10 11 12"
	says_not "..."
	works run "$vecadd" "f64[12]=iota" "f64[12]=ones" "out:f64[12]" i32=12 --show 0
	says "arg 2     out:f64[12]: ..."
	works run "$vecadd" "f64[12]=iota" "f64[12]=ones" "out:f64[12]" i32=12 --show all --json
	[[ $(json 'len(j["arguments"][2]["first"])') == 12 ]]
	works run "$vecadd" "f64[12]=iota" "f64[12]=ones" "out:f64[12]" i32=12 --show 0 --json
	[[ $(json 'j["arguments"][2]["first"]') == "[]" ]]
	fails 2 "--show needs a number of elements or 'all', not 'most'" run "$vecadd" --show most
}

@test "a misspelt gpuload run: line is reported with its place and the right spelling" {
	local spelling
	sed "/gpuload run:/d" "$vecadd" > plain.ptx
	for spelling in "// gpuload: run f64=1" "// gpuload run f64[4]=iota" "//gpuload-run: x" "// gpu load run: x" "// gpuload run --grid 4" \
			"// GPULoad Run: x" "/* gpuload run: x */" "// gpuload run :" "// gpuload: run"; do
		{ echo "// a comment"; echo "$spelling"; cat plain.ptx; } > k.ptx
		works run k.ptx
		[[ $stderr == "gpuload run: k.ptx:2: this comment is ignored; write the arguments of a kernel as \`// gpuload run: ARG...\`" ]] ||
			show "should report $spelling"
	done
	for spelling in "// gpuload runs it: x=1" "// gpuload run k.ptx prints c" "// gpuload: runs" "// Use gpuload run: it prints c" "gpuload"; do
		{ echo "// ${spelling#// }"; cat plain.ptx; } > k.ptx
		works run k.ptx
		[[ -z $stderr ]] || show "should not report $spelling"
	done
	{ echo "// gpuload-run: x"; cat plain.ptx; } > k.ptx
	works run k.ptx "f64[8]=iota" "f64[8]=iota" "out:f64[8]" i32=8
	[[ -z $stderr ]] || show "a command line with arguments does not need the line"
	{ echo "// gpuload run: f64[8]=iota f64[8]=iota out:f64[8] i32=8"; echo "// gpuload run f64[8]"; cat plain.ptx; } > k.ptx
	works run k.ptx
	[[ -z $stderr ]] || show "the file has a valid line"
	{ echo "// gpuload run: --kernel other"; cat plain.ptx; } > k.ptx
	works run k.ptx --kernel vecadd
	[[ -z $stderr ]] || show "the file has a valid line for another kernel"
}

@test "names of C++ kernels are printed as in C++, and JSON has the mangled name, too" {
	sed "/gpuload run:/d; s/vecadd/_Z6vecaddPKdS0_Pdi/" "$vecadd" > cxx.ptx
	works run cxx.ptx
	says "kernel    vecadd(double const*, double const*, double*, int), grid 4"
	works run cxx.ptx --json
	[[ $(json 'j["kernel"] + " " + j["demangled"]') == "_Z6vecaddPKdS0_Pdi vecadd(double const*, double const*, double*, int)" ]]
	sed "s/half/_Z4halfPj/" "$faults" > faults.ptx
	fails 1 "is a NULL pointer; half(unsigned int*), block 0, thread 0" run faults.ptx --kernel half u64=16 --grid 1 --block 1
	fails 1 "half(unsigned int*), block 0" run faults.ptx --kernel half u64=16 --grid 1 --block 1 --json
	[[ $(json 'j["kernel"] + j["error"]["message"]') == _Z4halfPj*"; half(unsigned int*), block 0"* ]]
	sed "s/endless/_Z7endlessi/" "$faults" > faults.ptx
	fails 1 "endless(int) is still running after 0.1 s" run faults.ptx --kernel endless --timeout 0.1
}
