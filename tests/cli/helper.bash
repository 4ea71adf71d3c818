# helper.bash — functions for the .bats files: run gpuload and check its exit code and output.
bats_require_minimum_version 1.5.0
cli_tests="$(cd "${BASH_SOURCE[0]%/*}" && pwd)"  # this folder

setup() {
	# `bats -r tests/cli` uses build/; the test runner may set GPULOAD_BUILD to another build folder.
	PATH="$(cd "$cli_tests/../.." && cd "${GPULOAD_BUILD:-build}" && pwd):$PATH"
	export GPULOAD_DRIVER=${GPULOAD_DRIVER:-soft}
	ptx="$cli_tests/ptx"
	vecadd="$ptx/vecadd.ptx"
	faults="$ptx/faults.ptx"
	cd "$BATS_TEST_TMPDIR" || return 1
}

# show TEXT: print why a check failed, with the output of the last command, and fail.
show() {
	echo "$1"
	echo "exit code $status"
	echo "stdout: $output"
	echo "stderr: $stderr"
	return 1
}

# works ARG...: run gpuload ARG...; the exit code must be 0.
works() {
	run --separate-stderr gpuload "$@"
	[[ $status == 0 ]] || show "gpuload $* should work"
}

# fails CODE PATTERN ARG...: run gpuload ARG...; the exit code must be CODE, and stderr must be one line that begins with
# "gpuload" and contains PATTERN.
fails() {
	local code=$1 pattern=$2
	shift 2
	run --separate-stderr gpuload "$@"
	[[ $status == "$code" ]] || show "gpuload $* should exit with code $code"
	[[ $stderr == gpuload*"$pattern"* ]] || show "stderr of gpuload $* should contain: $pattern"
	[[ ${#stderr_lines[@]} == 1 ]] || show "gpuload $* should print one line on stderr"
}

# says PATTERN, says_not PATTERN: stdout of the last command must (not) contain PATTERN.
says() {
	[[ $output == *"$1"* ]] || show "stdout should contain: $1"
}

says_not() {
	[[ $output != *"$1"* ]] || show "stdout should not contain: $1"
}

# json EXPRESSION: print the value of a Python expression in which j is the JSON output of the last command.
json() {
	python3 -c 'import json, sys; j = json.loads(sys.argv[1]); print(eval(sys.argv[2]))' "$output" "$1"
}
