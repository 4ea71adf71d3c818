# sharing.bash — for the .bats files of share, attach, shares and map: names of their own, owners in the background.
source "$BATS_TEST_DIRNAME/helper.bash"

eval "$(declare -f setup | sed '1s/setup/helper_setup/')"
setup() {
	helper_setup
	GPULOAD_RUNTIME_DIR=$BATS_TEST_TMPDIR/run
	export GPULOAD_RUNTIME_DIR
	mkdir -m 700 "$GPULOAD_RUNTIME_DIR"
	started=()
}

# Whoever a failed test left running.
teardown() {
	local pid
	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
}

# background FILE ARG...: gpuload ARG... in the background, what it says in FILE, its pid in $pid.
background() {
	local file=$1
	shift
	gpuload "$@" >"$file" 2>&1 3>&- &
	pid=$!
	started+=("$pid")
}

# until_says FILE PATTERN: waits for a line.
until_says() {
	for _ in {1..500}; do
		grep -q -- "$2" "$1" 2>/dev/null && return 0
		sleep 0.02
	done
	echo "no '$2' in $1:"
	cat "$1"
	return 1
}

# share NAME ARG...: an owner in the background, ready; what it says in NAME.out, its pid in $owner.
share() {
	background "$1.out" share "$@"
	owner=$pid
	until_says "$1.out" READY
}

# hold FILE NAME ARG...: a peer in the background, attached until it is told; its pid in $peer.
hold() {
	local file=$1
	shift
	background "$file" attach "$@" --hold
	peer=$pid
	until_says "$file" ATTACHED
}

# ends PID: it ends in order when it is asked to.
ends() {
	kill -TERM "$1"
	wait "$1"
}
