#!/usr/bin/env bats
# attach.bats — gpuload attach: maps another process' memory.
load ../sharing

@test "--wait waits until the name is shared" {
	background waiting.out attach w --wait 20 --dump --rows 1
	waiting=$pid
	sleep 0.2
	share w --kind memfd --fill u32=iota --bytes 4K
	wait "$waiting"
	wait_for_line waiting.out "0 1 2 3 4 5 6 7 8 9"
}

@test "without options it prints a description" {
	share w --kind memfd --fill f16=ones --shape 8,8
	works attach w
	says "ATTACHED   w: memfd, 128 bytes of f16 8x8, CPU and GPU 0x"
	says ", owner $owner"
	works attach w --json
	[[ $(json 'j["kind"], j["bytes"], j["dtype"], j["shape"], j["owner"]') == "('memfd', 128, '<f2', [8, 8], $owner)" ]]
}

@test "device memory can be printed and saved" {
	share d --kind device --fill i64=iota --shape 3,4
	works attach d --dump --json
	[[ $(json 'j["cpu"], j["rows"]') == "(None, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])" ]]
	works attach d --save d.npy
	[[ $(stat -c %s d.npy) == 224 ]]
}

@test "the sums of GPU and CPU agree for every kind of memory" {
	for kind in host-numa device memfd shm device-ipc; do
		share "$kind" --kind "$kind" --fill f32=rand --bytes 1000004
		works attach "$kind" --sum
		says " of 250001 f32, by the GPU and the CPU"
		echo "${output##*SUM*: }" >>sums
	done
	[[ $(sort -u sums | wc -l) == 1 ]]
	works attach memfd --sum --json
	[[ $(json 'j["sum"]["agree"], 124000 < j["sum"]["gpu"] < 126000, j["sum"]["gpu"] == j["sum"]["cpu"]') == "(True, True, True)" ]]
	share untyped --kind memfd --bytes 4K
	fails 2 "--sum needs the element type of the 4096 bytes: add --type" attach untyped --sum
	works attach untyped --sum --type u8
	says "SUM        untyped: 0 of 4096 u8"
}

@test "--type prints the data as another type" {
	share w --kind memfd --fill u8=iota --bytes 12
	works attach w --type u32 --dump
	says "[0] 50462976 117835012 185207048"
	fails 2 "is not a multiple of 8 bytes (f64)" attach w --type f64
	fails 2 "--type must be" attach w --type float
}

@test "--save replaces a file only with --force" {
	share w --kind memfd --fill u8=iota --bytes 4K
	echo mine >f
	fails 1 "already exists; --force replaces it" attach w --save f
	[[ $(cat f) == mine ]]
	works attach w --save f --force
	[[ $(stat -c %s f) == 4096 ]]
	fails 1 "cannot be written" attach w --save no/such/folder/f
}

@test "a process killed during --save leaves no file" {
	share w --kind memfd --bytes 1M
	mkdir saved
	run bash -c 'ulimit -c 0 -f 64; exec gpuload attach w --save saved/f'  # the system sends SIGXFSZ after 64 KiB
	[[ $status -gt 128 ]] || show "the signal SIGXFSZ should kill it"
	[[ -z $(ls -A saved) ]] || show "$(ls -A saved)"
}

@test "--hold stays attached until a signal or the end of the owner" {
	share w --kind memfd --bytes 4K
	hold peer.out w
	ends "$peer"
	wait_for_line peer.out "ENDED *w: SIGTERM"
	wait_for_line w.out "DETACHED *w: pid $peer"
	hold again.out w
	ends "$owner"
	wait "$peer"
	wait_for_line again.out "DETACHED *w: pid $owner"
}

@test "--hold reports a killed owner and exits with status 1" {
	share w --kind memfd --bytes 4K
	hold peer.out w
	kill -KILL "$owner"
	local code=0
	wait "$peer" || code=$?
	[[ $code == 1 ]]
	wait_for_line peer.out "OWNER_DIED w: pid $owner"
	wait_for_line peer.out "the owner of w died"
}

@test "memory of a killed owner stays readable" {
	share w --kind memfd --fill u8=iota --bytes 1M
	gpuload attach w --dump --rows 1000000 2>err | {
		read -r
		kill -KILL "$owner"
		cat >rest
	}
	[[ ${PIPESTATUS[0]} == 0 ]]
	grep -q "the owner of w died during this command; its memory could still be read" err
	[[ $(tail -n 1 rest) == "[1048570] 250 251 252 253 254 255" ]]
}

@test "an unknown name gets a suggestion" {
	fails 1 "nothing is shared as 'w'; gpuload shares lists all names" attach w
	share weights --kind memfd --bytes 4K
	fails 1 "nothing is shared as 'wieghts'; did you mean weights?" attach wieghts
	fails 1 "did you mean weights?" map weigths
	fails 2 "invalid name" attach 'a b'
}

@test "a dead owner is reported" {
	share w --kind memfd --bytes 4K
	kill -KILL "$owner"
	wait "$owner" || true
	fails 1 "'w' is no longer shared" attach w
	fails 1 "'w' is no longer shared" map w
}

@test "--timeout limits the wait for a stopped owner" {
	share w --kind memfd --bytes 4K
	kill -STOP "$owner"
	fails 1 "has not answered within 300 ms" attach w --timeout 0.3
	kill -CONT "$owner"
	works attach w --timeout 5
}

@test "it detaches in order behind a closed pipe" {
	share w --kind memfd --bytes 1M
	run bash -o pipefail -c 'gpuload attach w --dump --rows 100000 | head -n 1'
	[[ $status == 1 && ${#lines[@]} == 1 ]] || show "one line on stdout and no error message"
	wait_for_line w.out "DETACHED *w: "
}

@test "another GPU can add up device memory only with peer access" {
	export GPULOAD_SOFT_DEVICES=2
	share both --kind device --fill f32=iota --bytes 4K --devices 1,0
	works attach both --devices 0 --sum
	says "SUM        both: 523776 of 1024 f32, by the GPU and the CPU"
	works attach both --devices 1,0 --dump --rows 1
	says "[0] 0 1 2 3"
	works map both --json
	local uuid
	uuid=$(json 'j["device_uuid"]')
	CUDA_VISIBLE_DEVICES=0 fails 1 "GPU-${uuid:0:8}-${uuid:8:4}-${uuid:12:4}" attach both
}

@test "wrong command lines are refused with a reason" {
	fails 2 "expected one NAME" attach
	fails 2 "expected one NAME" attach a b
	fails 2 "--rows needs --dump" attach w --rows 4
	fails 2 "--wait must be a number of seconds" attach w --wait soon
	fails 2 "--devices must be numbers" attach w --devices x
	fails 2 "--driver must be auto, nvidia or soft" attach w --driver amd
}
