#!/usr/bin/env bats
# fifo_trace_put.bats — gpuload fifo trace --put: messages to a kernel of another process, traced whole.

load ../helper

# traces N OPTION...: check that the command succeeds, and that its file contains N messages.
traces() {
	local n=$1
	shift
	works fifo trace --put --provider tcp -o t.json --force "$@"
	run python3 "$BATS_TEST_DIRNAME/check_trace.py" t.json
	[[ $status == 0 && $output == "$n" ]] || show "gpuload fifo trace --put $* should show $n messages"
}

@test "the trace has each step of every message, in both processes" {
	traces 256
	traces 1 --parallel 1 --triggers 1
	traces 60 --parallel 6 --triggers 10 --bytes 4104 --kind memfd
}

@test "works between two GPUs, and over another provider" {
	export GPULOAD_SOFT_DEVICES=2
	traces 20 --parallel 2 --triggers 10 --device 1 --peer-device 0
	works fifo trace --put --provider shm -o t.json --force --parallel 1 --triggers 5
	says "over libfabric, shm"
}

@test "the text has percentiles of each step and both clock errors" {
	works fifo trace --put --provider tcp --parallel 2 --triggers 8
	says "16 puts of 64 bytes from 2 blocks over libfabric, tcp"
	says "GPU times are accurate to "
	says "in the receiving process"
	for step in "push begun to popped" "popped to posted" "posted to acknowledged" "step seen by peer's CPU" flush \
		"step seen by peer's GPU" "push begun to synced"; do
		says "$step"
	done
	says "fifo-trace.json: open it in https://ui.perfetto.dev"
}

@test "-o - writes the trace to stdout and the text to stderr" {
	works fifo trace --put --provider tcp -o - --triggers 4
	[[ $stderr == *"16 puts of 64 bytes from 4 blocks"* ]] || show "the text should be on stderr"
	[[ $(json 'j["otherData"]["puts"], j["otherData"]["driver"], j["displayTimeUnit"]') == "(16, 'soft', 'ns')" ]] ||
		show "one JSON object"
}

@test "wrong command lines are refused" {
	fails 2 "--bytes must be a multiple of 8, not 12" fifo trace --put --bytes 12
	fails 2 "--bytes must be a number from 8 to 65536, not '4'" fifo trace --put --bytes 4
	fails 2 "--backend must be auto, verbs, libfabric, reliable-udp or reliable-verbs, not 'tcp'" fifo trace --put --backend tcp
	fails 2 "--provider tcp selects libfabric, but --backend is verbs" fifo trace --put --backend verbs --provider tcp
	fails 2 "--sync cannot be combined with --put" fifo trace --put --sync
	fails 2 "--handler-ns cannot be combined with --put" fifo trace --put --handler-ns 5
	fails 2 "--provider needs the option --put" fifo trace --provider tcp
	fails 2 "device 7 does not exist: the soft driver has 1" fifo trace --put --provider tcp --device 7
	[[ ! -e fifo-trace.json ]] || show "no file should remain"
}

@test "errors of both processes are one line" {
	fails 1 "libfabric has no provider 'none'" fifo trace --put --provider none
	fails 2 "device 3 does not exist: the soft driver has 1" fifo trace --put --provider tcp --peer-device 3
	[[ ! -e fifo-trace.json ]] || show "no file should remain"
}

# child_of PID: wait up to ten seconds until the process has a child, and print its number.  Reads /proc, because ps and
# pgrep may not be installed.
child_of() {
	local found
	for _ in $(seq 1000); do
		found=$(grep -lsE "^PPid:[[:blank:]]*$1$" /proc/[0-9]*/status | head -1)
		if [[ -n $found ]]; then
			found=${found#/proc/}
			echo "${found%/status}"
			return
		fi
		sleep 0.01
	done
	false
}

@test "the end of the other process, or a signal, ends it with one line and no file" {
	for who in child parent; do
		gpuload fifo trace --put --provider tcp --triggers 20000 >out 2>err 3>&- &
		parent=$!
		child=$(child_of $parent)
		sleep 2
		[[ $who == child ]] && kill -KILL "$child" || kill -TERM $parent
		code=0
		wait $parent || code=$?
		[[ $code == 1 && $(wc -l <err) == 1 && $(cat err) == gpuload* ]] || show "exit code $code: $(cat err)"
		[[ $who == child || $(cat err) == *"ended by SIGTERM"* ]] || show "$(cat err)"
		[[ ! -e fifo-trace.json ]] || show "no file should remain"
		! kill -0 "$child" 2>/dev/null || show "the child should have ended"
	done
}
