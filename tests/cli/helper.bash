# helper.bash — for the .bats files here: run gpuload, look at its exit code and its words.
bats_require_minimum_version 1.5.0

setup() {
	# By hand, `bats tests/cli` takes what was built last; the test runner names another build.
	PATH="$(cd "$BATS_TEST_DIRNAME/../.." && cd "${GPULOAD_BUILD:-build}" && pwd):$PATH"
	export GPULOAD_DRIVER=${GPULOAD_DRIVER:-soft}
	ptx="$BATS_TEST_DIRNAME/ptx"
	vecadd="$ptx/vecadd.ptx"
	faults="$ptx/faults.ptx"
	cd "$BATS_TEST_TMPDIR" || return 1
}

# show TEXT: the output of a failed expectation.
show() {
	echo "$1"
	echo "exit code $status"
	echo "stdout: $output"
	echo "stderr: $stderr"
	return 1
}

# works ARG...: gpuload ARG... ends with 0.
works() {
	run --separate-stderr gpuload "$@"
	[[ $status == 0 ]] || show "gpuload $* should work"
}

# fails CODE PATTERN ARG...: it ends with CODE, and stderr is one line that begins with
# "gpuload" and contains PATTERN.
fails() {
	local code=$1 pattern=$2
	shift 2
	run --separate-stderr gpuload "$@"
	[[ $status == "$code" ]] || show "gpuload $* should end with $code"
	[[ $stderr == gpuload*"$pattern"* ]] || show "gpuload $* should say: $pattern"
	[[ ${#stderr_lines[@]} == 1 ]] || show "gpuload $* should say it in one line"
}

# says PATTERN, says_not PATTERN: stdout of the last command.
says() {
	[[ $output == *"$1"* ]] || show "stdout should contain: $1"
}

says_not() {
	[[ $output != *"$1"* ]] || show "stdout should not contain: $1"
}

# Values of the last command's JSON: json EXPRESSION, with j as the object.
json() {
	python3 -c 'import json, sys; j = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$output" "$1"
}
