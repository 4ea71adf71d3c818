#!/usr/bin/env bats
# share.bats — gpuload share: memory that other processes attach to, and the printed events.
load ../sharing

@test "an attached process reads the owner's data" {
	share numbers --kind memfd --fill i32=iota:5:3 --shape 4,20
	wait_for_line numbers.out "READY *numbers: memfd (--kind), 320 bytes of i32 4x20, .* node 0, .*/run/numbers.sock"
	works attach numbers --dump --rows 2
	says "[0] 5 8 11 14 17 20 23 26 29 32 ..."
	says "[20] 65 68"
	wait_for_line numbers.out "DETACHED *numbers: pid [0-9]*, 0 attached"
	ends "$owner"
	wait_for_line numbers.out "ENDED *numbers: SIGTERM"
	[[ ! -e run/numbers.sock && ! -e run/numbers.lock ]]
}

@test "Ctrl-C ends with status 130, after everything is closed" {
	# a background process of a script ignores SIGINT, so python3 starts the owner
	python3 - <<-'END'
		import signal, subprocess
		owner = subprocess.Popen(["gpuload", "share", "numbers", "--kind", "memfd", "--fill", "i32=iota", "--bytes", "4K"], stdout=subprocess.PIPE,
		                         text=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
		assert owner.stdout.readline().startswith("READY")
		owner.send_signal(signal.SIGINT)
		assert owner.communicate()[0].endswith("SIGINT\n")
		assert owner.returncode == 130, owner.returncode
	END
	[[ ! -e run/numbers.sock ]]
}

@test "every kind of memory can be shared with its contents" {
	for kind in auto host-numa device memfd shm device-ipc; do
		share "$kind" --kind "$kind" --fill f64=rand --bytes 1M --devices 0
		works attach "$kind" --save "$kind.raw"
		ends "$owner"
	done
	for kind in host-numa device memfd shm device-ipc; do
		cmp auto.raw "$kind.raw"
	done
	[[ $(stat -c %s auto.raw) == 1048576 ]]
}

@test "type and shape of a .npy file are kept through share and --save" {
	python3 - <<-'END'
		import struct
		h = "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3, 5), }"
		h = h.ljust(117) + "\n"
		open("a.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(h)) + h.encode() + struct.pack("<30h", *range(30)))
	END
	share cube --kind memfd --from a.npy
	wait_for_line cube.out "60 bytes of i16 2x3x5"
	works attach cube --save b.npy
	cmp a.npy b.npy
	works attach cube --json --dump --rows 2
	[[ $(json 'j["shape"], j["dtype"], j["rows"]') == "([2, 3, 5], '<i2', [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]])" ]]
}

@test "any file can be shared as bytes" {
	printf 'hello, other process\n' >text
	share text --kind memfd --from text
	works attach text --dump
	says "68 65 6c 6c 6f"
	says "hello, other pro"
	works attach text --save copy
	cmp text copy
	fails 2 "a .npy file needs an element type" attach text --save copy.npy
}

@test "--until-detached and --for end it" {
	share brief --kind memfd --bytes 4K --until-detached
	works attach brief
	wait "$owner"
	wait_for_line brief.out "ENDED *brief: the last peer has detached"
	works share short --kind memfd --bytes 4K --for 0.1
	says "ENDED      short: the time given by --for has passed"
}

@test "--json prints one object per line" {
	share j --kind memfd --bytes 64K --json --until-detached
	works attach j
	wait "$owner"
	[[ $(python3 -c 'import json; print(*[json.loads(line)["event"] for line in open("j.out")])') == "READY ATTACHED DETACHED ENDED" ]]
	[[ $(python3 -c 'import json; j = json.loads(open("j.out").readline()); print(j["kind"], j["bytes"], j["node"], j["socket"][-11:])') == "memfd 65536 0 /run/j.sock" ]]
}

@test "a killed peer is distinguished from a detached one" {
	share w --kind memfd --bytes 4K
	hold peer.out w
	kill -KILL "$peer"
	wait_for_line w.out "PEER_DIED *w: pid $peer, 0 attached"
}

@test "it ends when stdout is closed" {
	timeout 20 gpuload share w --kind memfd --bytes 4K 2>err | grep -m 1 READY
	[[ ! -s err && -z $(ls -A run) ]]
}

@test "a name can be shared once, or again after its owner died" {
	share w --kind memfd --bytes 4K
	fails 1 "process $owner already shares memory as" share w --kind memfd --bytes 4K
	kill -KILL "$owner"
	wait "$owner" || true
	[[ -e run/w.sock ]]
	share w --kind memfd --bytes 8K
	works attach w
	says "8 KiB"
}

@test "--read-only memory cannot be written by peers" {
	share w --kind memfd --bytes 4K --read-only
	works attach w
	says "read-only"
}

@test "wrong command lines are refused with a reason" {
	fails 2 "expected one NAME" share
	fails 2 "the size is missing" share w
	fails 2 "--bytes must be more than 0" share w --bytes 0
	fails 2 "is not a size" share w --bytes 12Q
	fails 2 "pinned memory (cuMemHostAlloc) cannot be shared" share w --bytes 4K --kind pinned
	fails 2 "--kind must be auto, host-numa" share w --bytes 4K --kind vram
	fails 2 "invalid name" share .hidden --bytes 4K
	fails 2 "invalid name" share 'a b' --bytes 4K
	fails 2 "--fill must be TYPE=FILL" share w --bytes 4K --fill rand
	fails 2 "does not describe the contents of a buffer" share w --bytes 4K --fill f32=random
	fails 2 "is not a multiple of 8 bytes (f64)" share w --bytes 12 --fill f64=ones
	fails 2 "the number of f32 elements is missing" share w --fill f32=ones
	fails 2 "--bytes is 4096" share w --bytes 4K --fill f32=ones --shape 8,8
	fails 2 "--shape must be numbers above 0" share w --fill f32=ones --shape 8,0
	fails 2 "exceeds the address space" share w --fill f64=ones --shape 2305843009213693952
	fails 2 "--shape needs a type" share w --bytes 4K --shape 64,64
	fails 2 "cannot be combined" share w --fill u8=@x --from x
	fails 2 "--fabric needs" share w --bytes 4K --fabric
	fails 2 "--node must be" share w --bytes 4K --node -2
	fails 2 "--for must be a number of seconds" share w --bytes 4K --for ever
	fails 1 "no-such-file" share w --from no-such-file
	fails 2 "device 7 does not exist" share w --bytes 4K --devices 7
	run --separate-stderr gpuload share w --bytes 1000000G --kind memfd
	[[ $status == 1 && ${#stderr_lines[@]} == 1 ]] || show "a size beyond the memory should fail with one line"
	[[ -z $(ls -A run) ]]
}

@test "refuses a runtime folder that other users can enter" {
	chmod 755 run
	fails 1 "is accessible to other users" share w --bytes 4K --kind memfd
	fails 1 "is accessible to other users" attach w
	fails 1 "is accessible to other users" shares
}

@test "refuses a runtime folder of another user" {
	[[ $(id -u) == 0 ]] || skip "only root can give a folder away"
	chown 65534 run
	fails 1 "belongs to user 65534" share w --bytes 4K --kind memfd
	fails 1 "belongs to user 65534" attach w
}

@test "a name with a slash is a path" {
	share ./here --kind memfd --bytes 4K
	works attach ./here
}
