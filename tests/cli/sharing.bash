# sharing.bash — helpers for the .bats files of shared memory: a private folder for names, and owners in the background.
source "${BASH_SOURCE[0]%/*}/helper.bash"

eval "$(declare -f setup | sed '1s/setup/helper_setup/')"
setup() {
	helper_setup
	GPULOAD_RUNTIME_DIR=$BATS_TEST_TMPDIR/run
	export GPULOAD_RUNTIME_DIR
	mkdir -m 700 "$GPULOAD_RUNTIME_DIR"
	started=()
}

# End processes that a failed test left running.
teardown() {
	local pid
	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
}

# background FILE ARG...: run gpuload ARG... in the background, with output to FILE and its pid in $pid.
background() {
	local file=$1
	shift
	: >"$file"  # otherwise a wait may find a line of an earlier owner before this one opens the file
	gpuload "$@" >>"$file" 2>&1 3>&- &
	pid=$!
	started+=("$pid")
}

# wait_for_line FILE PATTERN: wait up to ten seconds until a line of FILE matches.
wait_for_line() {
	for _ in {1..500}; do
		grep -q -- "$2" "$1" 2>/dev/null && return 0
		sleep 0.02
	done
	echo "no '$2' in $1:"
	cat "$1"
	return 1
}

# share NAME ARG...: start an owner in the background and wait for READY; output in NAME.out, pid in $owner.
share() {
	background "$1.out" share "$@"
	owner=$pid
	wait_for_line "$1.out" READY
}

# hold FILE NAME ARG...: attach a peer with --hold in the background; output in FILE, pid in $peer.
hold() {
	local file=$1
	shift
	background "$file" attach "$@" --hold
	peer=$pid
	wait_for_line "$file" ATTACHED
}

# ends PID: send SIGTERM and check that the process ends in order.
ends() {
	kill -TERM "$1"
	wait "$1"
}
