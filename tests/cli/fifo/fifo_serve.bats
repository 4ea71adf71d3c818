#!/usr/bin/env bats
# fifo_serve.bats — gpuload fifo serve and gpuload fifo push: two processes share one FIFO, and report the end of the other process.
load ../sharing

# serve NAME ARG...: start a proxy in the background and wait for READY; output in NAME.out, pid in $owner.
serve() {
	background "$1.out" fifo serve "$@"
	owner=$pid
	wait_for_line "$1.out" READY
}

# pushing NAME ARG...: start a kernel in the background that pushes without end; output in push.out, pid in $peer.
pushing() {
	background push.out fifo push "$@" --count 1000000000
	peer=$pid
	wait_for_line "$1.out" ATTACHED
	until catches_sigterm "$peer"; do sleep 0.01; done  # the handler is installed after attaching
}

# True if a process has a handler for SIGTERM (signal 15, bit 14 of SigCgt), or has ended.
catches_sigterm() {
	local mask
	mask=$(sed -n 's/^SigCgt:\t//p' "/proc/$1/status" 2>/dev/null) || return 0
	[[ -z $mask ]] || (( 16#${mask: -4} & 0x4000 ))
}

# ended CODE TEXT: wait for the end of the pushing process; check its exit status and its one line of output.
ended() {
	local code=0
	wait "$peer" || code=$?
	[[ $code == "$1" && $(cat push.out) == *"$2"* && $(wc -l <push.out) == 1 ]] || { echo "$code"; cat push.out; return 1; }
}

@test "a proxy handles the triggers of another process" {
	serve jobs --slots 16 --lanes 4 --until-detached
	wait_for_line jobs.out "READY *jobs: 16 slots in 4 lanes, host-numa"
	works fifo push jobs --count 100
	says "PUSHED     jobs: 4 blocks x 100 triggers, all handled, in "
	wait "$owner"
	wait_for_line jobs.out "DETACHED *jobs: pid [0-9]*, 0 attached"
	wait_for_line jobs.out "HANDLED *jobs: 400 triggers in [0-9.]* ms$"
	wait_for_line jobs.out "ENDED *jobs: the process has detached"
	[[ ! -e run/jobs.sock ]]
}

@test "several processes push in turn, in all modes" {
	serve jobs --kind memfd --slots 8
	works fifo push jobs --count 50 --blocks 3
	wait_for_line jobs.out "HANDLED *jobs: 150 triggers"
	works fifo push jobs --count 20 --blocks 20 --sync-each --relaxed --json
	[[ $(json 'j["pushed"], j["result"], j["blocks"]') == "(400, 'ok', 20)" ]]
	wait_for_line jobs.out "HANDLED *jobs: 400 triggers"
	works fifo push jobs --count 0
	wait_for_line jobs.out "HANDLED *jobs: 0 triggers"
	ends "$owner"
	wait_for_line jobs.out "ENDED *jobs: SIGTERM"
}

@test "--print prints lane and position of each trigger" {
	serve jobs --slots 4 --lanes 2 --print --kind shm
	works fifo push jobs --count 3
	wait_for_line jobs.out "TRIGGER *jobs: lane 1, position 2: 0x0000000000000002 0x0800000000000001, kind 1"
	[[ $(grep -c TRIGGER jobs.out) == 6 ]]
	serve j --slots 1 --lanes 1 --print --json --until-detached
	works fifo push j --count 2
	wait "$owner"
	[[ $(python3 -c 'import json; print(*[json.loads(line)["event"] for line in open("j.out")])') == \
		"READY ATTACHED TRIGGER TRIGGER DETACHED HANDLED ENDED" ]]
	[[ $(python3 -c 'import json; j = [json.loads(line) for line in open("j.out")]; print(j[3]["words"], j[3]["position"], j[5]["triggers"])') == \
		"['0x0000000000000001', '0x0800000000000000'] 1 2" ]]
}

@test "if the proxy is killed, push aborts its kernel and prints one line" {
	serve jobs
	pushing jobs
	kill -KILL "$owner"
	ended 1 "gpuload fifo push: the process that serves 'jobs' has died; "
	fails 1 "'jobs' is no longer shared" fifo push jobs
}

@test "if the proxy ends in order, push aborts its kernel" {
	serve jobs
	pushing jobs
	ends "$owner"
	ended 1 "gpuload fifo push: the process that serves 'jobs' has ended; "
}

@test "after a push command was killed, the next process begins with an empty FIFO" {
	serve jobs --slots 32
	for _ in 1 2 3; do
		pushing jobs
		kill -KILL "$peer"
		wait_for_line jobs.out "PEER_DIED *jobs: pid $peer"
		works fifo push jobs --count 7
		wait_for_line jobs.out "HANDLED *jobs: 56 triggers in [0-9.]* ms$"
		: >jobs.out
	done
}

@test "a stopped proxy makes push fail after --timeout" {
	serve jobs
	pushing jobs --timeout 0.3
	kill -STOP "$owner"
	ended 1 "gpuload fifo push: a push waited more than 300 ms for the proxy of 'jobs' (--timeout)"
	kill -CONT "$owner"
	wait_for_line jobs.out "HANDLED *jobs: "
	works fifo push jobs --count 10
}

@test "a signal to push aborts its kernel" {
	serve jobs
	pushing jobs
	kill -TERM "$peer"
	ended 1 "gpuload fifo push: ended by SIGTERM"
	wait_for_line jobs.out "HANDLED *jobs: [0-9]* triggers in [0-9.]* ms, aborted: "
	works fifo push jobs --count 10
}

@test "a second process cannot push at the same time" {
	serve jobs
	pushing jobs
	fails 1 "the limit of 1 attached peer is reached" fifo push jobs
	kill -TERM "$peer"
}

@test "wrong command lines are refused with a reason" {
	fails 2 "expected one NAME" fifo serve
	fails 2 "expected one NAME" fifo push
	fails 2 "powers of two" fifo serve jobs --slots 3
	fails 2 "powers of two" fifo serve jobs --slots 4 --lanes 8
	fails 2 "--kind must be auto, host-numa, memfd or shm" fifo serve jobs --kind device
	fails 2 "--blocks must be" fifo push jobs --blocks 0
	fails 1 "nothing is shared as 'jobs'" fifo push jobs
	share numbers --bytes 4K
	fails 1 "'numbers' is shared, but it is not a FIFO" fifo push numbers
	share far --bytes 4K --kind device
	fails 1 "is device memory, which a proxy cannot access" fifo push far
}
