#!/usr/bin/env bats
# mmap_sum.bats — several processes map one buffer, and their sums agree.
load ../helper

# sums: print the different sums of the last command.  n_lines: print the number of its sums.
sums() {
	sed -n 's/^total sum \[.*\]: //p' <<<"$output" | sort -u
}
n_lines() {
	grep -c '^total sum \[' <<<"$output"
}

# children_of PID [NAME]: print the pids of the children.  Reads /proc, because ps and pgrep may not be installed.
children_of() {
	cat /proc/[0-9]*/stat 2>/dev/null |
		sed -E 's/^([0-9]+) \((.*)\) (.) ([0-9]+) .*/\1 \4 \2/' |
		awk -v parent="$1" -v name="${2-}" '$2 == parent && (name == "" || $3 == name) { print $1 }'
}

# begin N [OPTION...]: start mmap-sum in the background and wait for its N - 1 children; sets master and children.
begin() {
	local n=$1
	shift
	gpuload mmap-sum -n "$n" "$@" >out 2>err 3>&- &
	master=$!
	for _ in $(seq 1000); do
		mapfile -t children < <(children_of "$master")
		((${#children[@]} == n - 1)) && return
		sleep 0.002
	done
	false
}

# gone PID...: wait up to five seconds until none of the processes runs.
gone() {
	for pid; do
		for _ in $(seq 500); do
			kill -0 "$pid" 2>/dev/null || continue 2
			grep -qs '^State:.Z' "/proc/$pid/status" && continue 2
			sleep 0.01
		done
		echo "process $pid still runs"
		return 1
	done
}

@test "all processes agree on the sum, for every kind of memory" {
	for kind in auto host-numa device memfd shm device-ipc; do
		works mmap-sum -n 3 --bytes 4M --kind $kind
		[[ $(n_lines) == 3 ]] || show "$kind: should print three lines"
		[[ $(sums) == 262068.37744532706 ]] || show "$kind: all sums should be equal"
	done
}

@test "processes on two GPUs map the same memory" {
	export GPULOAD_SOFT_DEVICES=2
	for kind in host-numa device memfd shm device-ipc; do
		works mmap-sum -n 3 --bytes 4M --kind $kind --devices 0,1 --json
		[[ $(json '[p["device"] for p in j["processes"]]') == "[0, 1, 0]" ]] || show "$kind: GPUs should be used in turn"
		[[ $(json '{p["gpu_sum"] for p in j["processes"]}') == "{262068.37744532706}" ]] || show "$kind"
	done
}

@test "works with 1, 2 and 8 processes" {
	for n in 1 2 8; do
		works mmap-sum -n $n --bytes 1M --fill i32=iota
		[[ $(n_lines) == "$n" ]] || show "$n lines"
		[[ $(sums) == 34359607296 ]] || show "the sum of 0 ... 262143"
		[[ ${lines[0]} == "total sum [master]: "* ]] || show "the first line should be the master's"
	done
}

@test "works with every element type" {
	for type in i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64; do
		works mmap-sum -n 2 --bytes 64K --fill $type=3
		bytes=$(tr -dc 0-9 <<<"$type")
		[[ $type != bf16 ]] || bytes=16
		[[ $(sums) == $((65536 * 8 / bytes * 3)) ]] || show "$type"
	done
}

@test "a file as fill sets the size of the buffer" {
	printf '\1\2\3\4' >four.bin
	works mmap-sum -n 2 --fill u8=@four.bin
	[[ $(sums) == 10 ]] || show "1 + 2 + 3 + 4"
}

@test "--json prints every process" {
	works mmap-sum -n 3 --bytes 1M --kind memfd --fill f32=rand --json
	[[ $(json 'j["kind"], j["agree"], j["bytes"]') == "('memfd', True, 1048576)" ]]
	[[ $(json '[p["role"] for p in j["processes"]]') == "['master', 'child', 'child']" ]]
	[[ $(json 'len({p["pid"] for p in j["processes"]})') == 3 ]]
	[[ $(json 'len({p["gpu_sum"] for p in j["processes"]} | {p["cpu_sum"] for p in j["processes"]})') == 1 ]]
	works mmap-sum -n 2 --bytes 1M --kind device --json
	[[ $(json '[p["cpu_address"] for p in j["processes"]]') == "[None, None]" ]]
}

@test "refuses wrong command lines before it starts children" {
	fails 2 "no other process can map it" mmap-sum --kind pinned
	fails 2 "--kind must be auto, host-numa" mmap-sum --kind ram
	fails 2 "from 1 to 64, not '0'" mmap-sum -n 0
	fails 2 "from 1 to 64, not '65'" mmap-sum -n 65
	fails 2 "from 1 to 64, not 'two'" mmap-sum -n two
	fails 2 "--bytes 12 is not a multiple of 8 bytes (f64)" mmap-sum --bytes 12
	fails 2 "or is 0" mmap-sum --bytes 0
	fails 2 "not a size" mmap-sum --bytes lots
	fails 2 "--fill must be TYPE=FILL" mmap-sum --fill rand
	fails 2 "unknown type 'f23'" mmap-sum --fill f23=rand
	fails 2 "has only options" mmap-sum 3
	fails 2 "--timeout must be a number of seconds above 0" mmap-sum --timeout never
	fails 2 "device 0 twice" mmap-sum --devices 0,0
}

@test "later errors leave no child behind" {
	fails 2 "does not describe the contents of a buffer" mmap-sum -n 4 --bytes 1M --fill f32=random
	fails 1 "does not fit in this machine's memory" mmap-sum -n 4 --bytes 1000000G
	fails 2 "device 99 does not exist" mmap-sum -n 2 --devices 99 --bytes 1M
	[[ -z $(children_of $$ gpuload) ]]
}

@test "a child that is killed is reported, and the others end" {
	begin 4 --bytes 256M
	kill -KILL "${children[1]}"
	status=0
	wait "$master" || status=$?
	[[ $status == 1 ]]
	[[ $(<err) == *"mmap-sum: process ${children[1]} was killed by signal 9 (Killed)" ]] || { cat err && false; }
	[[ ! -s out ]]
	gone "${children[@]}"
}

@test "a stopped child is reported after --timeout" {
	begin 3 --bytes 64M --timeout 2
	kill -STOP "${children[0]}"
	status=0
	wait "$master" || status=$?
	[[ $status == 1 ]]
	[[ $(<err) == *"process ${children[0]} has not "*" within the time limit (--timeout)" ]] || { cat err && false; }
	gone "${children[@]}"
}

@test "children end when their master ends for any reason" {
	for signal in TERM KILL; do
		begin 4 --bytes 256M
		kill -$signal "$master"
		wait "$master" || true
		gone "${children[@]}"
	done
}
