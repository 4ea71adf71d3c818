#!/usr/bin/env bats
# fifo_trace.bats — gpuload fifo trace: the file is valid and consistent.
load ../helper

# traces N OPTION...: check that the command succeeds, and that its file contains N triggers.
traces() {
	local n=$1
	shift
	works fifo trace -o t.json --force "$@"
	run python3 "$BATS_TEST_DIRNAME/check_trace.py" t.json
	[[ $status == 0 && $output == "$n" ]] || show "gpuload fifo trace $* should show $n triggers"
}

@test "the trace has push, handle and arrows of every trigger" {
	traces 256
	traces 256 --sync
	traces 30 --parallel 3 --triggers 10 --mode shared --sync
	traces 120 --parallel 12 --triggers 10 --size 1 --handler-ns 0
	traces 40 --parallel 2 --triggers 20 --size 4 --handler-ns 20K --kind memfd
	traces 60 --parallel 6 --triggers 10 --size 4 --mode lanes --sync --kind pinned
	traces 1 --parallel 1 --triggers 1 --size 1024
}

@test "works on a second GPU" {
	export GPULOAD_SOFT_DEVICES=2
	traces 256 --device 1 --sync
}

@test "the text has percentiles of each step and the clock error" {
	works fifo trace --sync --parallel 2 --triggers 8 --mode shared --size 16
	says "16 triggers of 2 blocks through 1 lane of 16 slots, "
	says "GPU times are accurate to "
	says "push begun to popped"
	says "push begun to synced"
	says "fifo-trace.json: open it in https://ui.perfetto.dev"
	[[ -s fifo-trace.json ]] || show "the file should exist"
}

@test "a full ring appears as wait for room" {
	works fifo trace --parallel 1 --triggers 16 --size 1 --handler-ns 100K
	says "  wait for room"
	grep -q '"name":"wait for room"' fifo-trace.json || show "the file should contain it"
	works fifo trace --parallel 1 --triggers 16 --size 16 --force
	says_not "wait for room"
}

@test "-o - writes the trace to stdout and the text to stderr" {
	works fifo trace -o - --triggers 4
	[[ $stderr == *"16 triggers of 4 blocks"* ]] || show "the text should be on stderr"
	[[ $(json 'j["otherData"]["triggers"], j["otherData"]["driver"], j["displayTimeUnit"]') == "(16, 'soft', 'ns')" ]] ||
		show "one JSON object"
}

@test "an existing file is replaced only with --force" {
	echo mine >t.json
	fails 1 "t.json already exists; --force replaces it" fifo trace -o t.json --triggers 4
	[[ $(cat t.json) == mine ]] || show "the file should be unchanged"
	works fifo trace -o t.json --triggers 4 --force
	mkfifo pipe
	cat pipe >piped &
	works fifo trace -o pipe --triggers 4 --force  # a pipe is written, not replaced
	wait $!
	[[ -p pipe && $(head -c 10 piped) == '{"displayT' ]] || show "the pipe should receive the trace"
	fails 1 "no/where.json: cannot be written" fifo trace -o no/where.json --triggers 4
}

@test "wrong command lines are refused before the kernel runs" {
	fails 2 "--size 12 is not a power of two; the next one is 16" fifo trace --size 12
	fails 2 "--size must be a number from 1 to" fifo trace --size 0
	fails 2 "--parallel must be a number from 1 to 4096, not 'x'" fifo trace --parallel x
	fails 2 "a trace can have at most 100000" fifo trace --parallel 1000 --triggers 101
	fails 2 "--mode must be shared or lanes, not 'both'" fifo trace --mode both
	fails 2 "--kind must be auto, host-numa, memfd, shm or pinned" fifo trace --kind device
	fails 2 "--handler-ns must be a number from 0 to" fifo trace --handler-ns -1
	fails 2 "fifo trace has only options" fifo trace t.json
	fails 2 "--device must be a number from 0 to 2147483647, not '0,1'" fifo trace --device 0,1
	fails 2 "device 7 does not exist: the soft driver has 1" fifo trace --device 7
	fails 2 "no/where" fifo trace --driver no/where
	fails 1 "could not push or sync" fifo trace --timeout 0.001 --size 1 --handler-ns 50M --sync
	[[ ! -e fifo-trace.json ]] || show "no file should remain"
}

# catches_term PID: wait up to ten seconds until the process has a handler for SIGTERM (bit 14 of SigCgt).
catches_term() {
	for _ in $(seq 1000); do
		caught=$(sed -n 's/^SigCgt:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
		(( 16#${caught:-0} & 0x4000 )) && return
		sleep 0.01
	done
	false
}

@test "a signal ends it with one line and no file" {
	gpuload fifo trace --size 1 --triggers 1000 --handler-ns 20M >out 2>err 3>&- &
	child=$!
	catches_term $child
	kill -TERM $child
	code=0
	wait $child || code=$?
	[[ $code == 1 ]] || show "exit code $code"
	[[ $(cat err) == "gpuload fifo"*"ended by SIGTERM" ]] || show "stderr should be one line: $(cat err)"
	[[ ! -e fifo-trace.json ]] || show "no file should remain"
}
