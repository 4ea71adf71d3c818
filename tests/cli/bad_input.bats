#!/usr/bin/env bats
# bad_input.bats — each mistake is reported in one line, with the right exit code.  These tests also run in a build with
# --sanitize=address, where a memory leak is a failure, too.
load helper

three=("f64[1024]=iota" "f64[1024]=iota" "out:f64[1024]")

@test "reports a missing file, a folder, an empty file and an unreadable @FILE" {
	fails 1 "nothing.ptx: no such file" run nothing.ptx
	fails 1 "nothing.ptx: no such file" run nothing.ptx i32=1
	fails 1 "is a directory" run .
	: > empty.ptx
	fails 1 "empty.ptx is empty" run empty.ptx
	fails 1 "empty.ptx is empty" ls empty.ptx
	fails 1 "nothing.npy: no such file" run "$vecadd" "f64[4]=@nothing.npy" "f64[4]=1" "out:f64[4]" i32=4
}

@test "refuses files of random bytes" {
	head -c 4096 /dev/urandom > rubbish.ptx
	fails 1 "rubbish.ptx" run rubbish.ptx
	printf '\x7fELF\x02\x01\x01' > cut.elf
	fails 1 "cut.elf" run cut.elf
	head -c 100 /dev/zero > zeros.ptx
	fails 1 "zeros.ptx" run zeros.ptx
}

# ptx_error FILE LINE: the error is at most three lines; the first is a complete message with file and line, the others
# quote the line and mark the column.
ptx_error() {
	run --separate-stderr gpuload run "$1"
	[[ $status == 1 ]] || show "exit code"
	[[ ${stderr_lines[0]} == "gpuload run: $1:$2:"* ]] || show "should name line $2"
	(( ${#stderr_lines[@]} <= 3 )) || show "more than three lines"
}

@test "refuses a truncated PTX file" {
	head -c 600 "$vecadd" > cut.ptx
	ptx_error cut.ptx 25
	for n in 10 100 200 300 400 500 700 800; do
		head -c $n "$vecadd" > cut.ptx
		run --separate-stderr gpuload run cut.ptx
		[[ $status == 1 && ${stderr_lines[0]} == "gpuload run: "*cut.ptx* ]] || show "cut after $n bytes"
	done
}

@test "reports a PTX syntax error with file, line and column, and quotes the line" {
	sed 's/add.f64 %fd3, %fd1, %fd2;/add.f64 %fd3, %fd1 %fd2;/' "$vecadd" > syntax.ptx
	ptx_error syntax.ptx 32
	[[ $stderr == *"add.f64 %fd3, %fd1 %fd2;"* ]] || show "should quote the line"
	sed 's/%fd1, %fd2;/%fd1, %fd9;/' "$vecadd" > undeclared.ptx
	ptx_error undeclared.ptx 32
}

@test "offers similar names for an unknown kernel" {
	fails 2 "vecadd" run "$vecadd" --kernel vecad
	fails 2 "endless" run "$faults" --kernel endles
	fails 2 "half" run "$faults"
}

@test "shows the signature if there are too few or too many arguments" {
	fails 2 "vecadd(f64 *, f64 *, f64 *, i32) takes 4 arguments, but 3 were given" run "$vecadd" "${three[@]}"
	fails 2 "takes 4 arguments, but 5 were given" run "$vecadd" "${three[@]}" i32=1 i32=1
	fails 2 "takes 4 arguments, but 1 was given" run "$vecadd" i32=1
}

@test "shows the signature if an argument has the wrong type" {
	fails 2 "argument 3 is f32=1024, but parameter 3 of vecadd(f64 *, f64 *, f64 *, i32) must be a value: i32=NUMBER" \
		run "$vecadd" "${three[@]}" f32=1024
	fails 2 "argument 3 is i64=1024" run "$vecadd" "${three[@]}" i64=1024
	fails 2 "argument 0 is f32=1, but parameter 0 of vecadd(f64 *, f64 *, f64 *, i32) must be an address (f64 *)" \
		run "$vecadd" f32=1 "f64[4]=1" "out:f64[4]" i32=4
	fails 2 "argument 1 is f32[4]=1" run "$vecadd" "f64[4]=1" "f32[4]=1" "out:f64[4]" i32=4
	fails 2 "argument 3 is i32[4]=1" run "$vecadd" "${three[@]}" "i32[4]=1"
}

@test "refuses malformed arguments" {
	fails 2 "300 is out of the range of i8 (-128 to 127)" run "$vecadd" i8=300
	fails 2 "is not a valid kernel argument" run "$vecadd" 1024
	fails 2 "unknown type 'double'" run "$vecadd" "double[4]=1"
	fails 2 "does not describe the contents of a buffer" run "$vecadd" "f64[4]=random"
	fails 2 "needs contents" run "$vecadd" "f64[4]"
	fails 1 "memory" run "$vecadd" "f64[1000000G]=zeros"
}

@test "offers similar names for unknown options and commands" {
	fails 2 "did you mean --grid?" run "$vecadd" --gird 4
	fails 2 "--grid needs a value" run "$vecadd" --grid
	fails 2 "did you mean devices?" device
	fails 2 "needs a FILE" run
	fails 2 "needs a FILE" ls
	fails 2 "unknown command 'frob'" help frob
}

@test "refuses blocks and grids beyond the limits of the device" {
	fails 2 "2048" run "$vecadd" "${three[@]}" i32=1024 --block 2048
	fails 2 "1024" run "$vecadd" "${three[@]}" i32=1024 --block 64,64
	fails 2 "65" run "$vecadd" "${three[@]}" i32=1024 --block 1,1,65
	fails 2 "70000" run "$vecadd" "${three[@]}" i32=1024 --grid 1,70000
}

@test "refuses more dynamic shared memory than the device has" {
	fails 2 "shared" run "$faults" --kernel shared_user "out:u32[1]" --grid 1 --block 1 --shared 1M
}

@test "refuses machine code on the software driver" {
	[[ $GPULOAD_DRIVER == soft ]] || skip "this driver runs machine code"
	# A minimal cubin: ELF, 64 bit, little-endian, e_machine 190, and one section with the section names.
	python3 - <<-'END'
		import struct
		head = b"\x7fELF\x02\x01\x01\x41\x08" + bytes(7) + struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64, 90 << 8, 64, 56, 0, 64, 2, 1)
		section = struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, 192, 11, 0, 0, 1, 0)
		open("kernel.cubin", "wb").write(head + bytes(64) + section + b"\0.shstrtab\0")
	END
	fails 1 "kernel.cubin" run kernel.cubin
	[[ $stderr == *PTX* ]] || show "should say that PTX is needed"
}

# faults KERNEL [ARG...]: run a kernel that must fail.  The driver may report the fault in a line before the message of gpuload.
faults() {
	run --separate-stderr gpuload run "$faults" --kernel "$@" --grid 1 --block 1
	[[ $status == 1 ]] || show "should end with 1"
	[[ ${stderr_lines[-1]} == "gpuload run: "* ]] || show "the last line should come from gpuload"
	(( ${#stderr_lines[@]} <= 2 )) || show "at most two lines are expected"
}

@test "reports an access out of bounds" {
	faults out_of_bounds "out:u32[4]"
	[[ $stderr == *ILLEGAL_ADDRESS* ]] || show "should name the error"
	[[ $GPULOAD_DRIVER != soft || $stderr == *out_of_bounds* ]] || show "should name the kernel"
}

@test "reports a trap instruction" {
	faults traps
	[[ $stderr == *LAUNCH_FAILED* || $stderr == *ILLEGAL_INSTRUCTION* ]] || show "should name the error"
}

@test "stops waiting for an endless kernel after --timeout" {
	start=$(date +%s)
	fails 1 "endless is still running after 0.5 s" run "$faults" --kernel endless --timeout 0.5
	(( $(date +%s) - start < 20 )) || show "should not wait for the kernel"
}

@test "refuses fill files of the wrong size, type or order" {
	head -c 100 /dev/zero > raw
	fails 1 "contains 25 elements of type f32, but the buffer has 4" run "$vecadd" "f32[4]=@raw"
	fails 1 "is not a multiple of 8 bytes (f64)" run "$vecadd" "f64[]=@raw"
	python3 - <<-'END'
		def npy(name, descr, order, shape, n):
		    h = "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)
		    open(name, "wb").write(b"\x93NUMPY\x01\x00" + len(h).to_bytes(2, "little") + h.encode() + bytes(n))
		npy("f4.npy", "<f4", False, "(4,)", 16)
		npy("big.npy", ">f8", False, "(4,)", 32)
		npy("order.npy", "<f8", True, "(2, 2)", 32)
		npy("short.npy", "<f8", False, "(4,)", 31)
	END
	fails 1 "dtype <f4, but a buffer of f64 needs <f8" run "$vecadd" "f64[4]=@f4.npy"
	fails 1 "big-endian" run "$vecadd" "f64[4]=@big.npy"
	fails 1 "Fortran order" run "$vecadd" "f64[4]=@order.npy"
	fails 1 "the file has 31 bytes of data" run "$vecadd" "f64[4]=@short.npy"
}

@test "refuses impossible --expect and --save" {
	fails 2 "argument 7 does not exist" run "$vecadd" "${three[@]}" i32=1024 --expect 7=ones
	fails 2 "not a buffer" run "$vecadd" "${three[@]}" i32=1024 --expect 3=1024
	fails 2 "--expect needs ARG=WHAT" run "$vecadd" "${three[@]}" i32=1024 --expect ones
	fails 1 "cannot be written" run "$vecadd" "${three[@]}" i32=1024 --save 2=/nonexistent/c.npy
}

@test "refuses a device number that does not exist" {
	fails 2 "7" run "$vecadd" --device 7
}

@test "reports that no driver was found" {
	export GPULOAD_SOFT_DRIVER=/nonexistent/libcuda-soft.so GPULOAD_DRIVER=
	fails 1 "the software driver cannot be loaded" run "$vecadd" --driver soft
	export GPULOAD_DRIVER=opencl
	fails 2 "GPULOAD_DRIVER=opencl: expected auto, nvidia or soft" run "$vecadd"
}

@test "fails if stdout cannot be written" {
	run --separate-stderr bash -c "gpuload help > /dev/full"
	[[ $status == 1 && $stderr == "gpuload help: the output could not be written" ]] || show "should fail"
}

@test "a file that is cut while it is read is reported in one line" {
	python3 - "$vecadd" <<-'END'
		import sys
		ptx = open(sys.argv[1], "rb").read().ljust(20000)
		member = b"%-16s%-32s%-10d`\n" % (b"k.ptx/", b"0", len(ptx)) + ptx
		open("whole.a", "wb").write(b"!<arch>\n" + 1500 * member)
	END
	for i in {1..12}; do
		cp whole.a cut.a
		(sleep "0.0$i"; truncate -s 100000 cut.a) &
		run --separate-stderr gpuload ls --json cut.a
		wait
		[[ $status == 0 || ($status == 1 && ${#stderr_lines[@]} == 1) ]] || show "round $i" # 0: read before the cut
		cp whole.a cut.a
		(sleep "0.0$i"; truncate -s 100000 cut.a) &
		run --separate-stderr gpuload extract cut.a -o out --force
		wait
		[[ $status == 0 || ($status == 1 && ${#stderr_lines[@]} == 1) ]] || show "round $i"
	done
}

@test "devices, and pipes without a writer, are refused" {
	mkfifo pipe
	for command in ls run "extract -o out"; do
		fails 1 "/dev/zero is a device" $command /dev/zero
		fails 1 "/dev/full is a device" $command /dev/full
		fails 1 "no process writes to" $command pipe
	done
}

@test "ls, extract and run read standard input" {
	run --separate-stderr bash -c "cat '$vecadd' | gpuload ls -"
	[[ $status == 0 && ${lines[0]} == "stdin: PTX"* ]] || show "ls"
	run --separate-stderr bash -c "gpuload ls --json - < '$vecadd'"
	[[ $status == 0 && $output == *'"file":"stdin"'* ]] || show "ls of a file"
	run --separate-stderr bash -c "cat '$vecadd' | gpuload extract - -o out"
	[[ $status == 0 && -s $(echo out/stdin.0.*.ptx) ]] || show "extract"
	run --separate-stderr bash -c "cat '$vecadd' | gpuload run - ${three[*]} i32=1024"
	[[ $status == 0 ]] || show "run"
}
