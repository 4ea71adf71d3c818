#!/usr/bin/env bats
# explain.bats — gpuload explain: advice on messages of compilers and linkers.
load helper

@test "prints each known message with advice" {
	printf '%s\n' "gcc: some note" "ptxas error   : Undefined reference to '_Z7VecAdd2Pf' in '<input>'" "make: ***" >log
	works explain log
	says "ptxas error   : Undefined reference to '_Z7VecAdd2Pf' in '<input>'
    VecAdd2(float*) is declared but not defined: define it in this file"
	says_not "some note"
	says_not "make"
}

@test "reads a log from stdin and prints repeated advice once" {
	printf 'ld: a.o: undefined reference to `__cudaRegisterLinkedBinary_1_a_cu_%s'"'"'\n' x y >log
	run --separate-stderr bash -c 'gpuload explain <log'
	[[ $status == 0 ]] || show status
	[[ $(grep -c "nvcc -dlink OBJECTS" <<<"$output") == 1 ]] || show once
}

@test "fails if the log contains no known message" {
	echo "all is well" >log
	fails 1 "log: contains no known error message" explain log
	fails 1 "no such file" explain missing.log
	fails 2 "accepts one LOG" explain log log
}

# The logs are the output of nvcc, ptxas, nvlink, NVRTC, nvJitLink and host linkers for small mistakes.  Each begins with
# "# expect:" lines: the advice on it.
@test "explains the errors in real logs of compilers and linkers" {
	count=0
	for log in "$cli_tests"/logs/*.log; do
		grep -v '^# expect: ' "$log" >log
		works explain log
		while read -r advice; do
			says "    $advice"
		done < <(sed -n 's/^# expect: //p' "$log")
		count=$((count + 1))
	done
	((count >= 50)) || show "only $count logs"
}
