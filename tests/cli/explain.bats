#!/usr/bin/env bats
# explain.bats — gpuload explain: what is behind the messages of compilers and linkers.
load helper

@test "shows the messages that are known, with what to do" {
	printf '%s\n' "gcc: some note" "ptxas error   : Undefined reference to '_Z7VecAdd2Pf' in '<input>'" "make: ***" >log
	works explain log
	says "ptxas error   : Undefined reference to '_Z7VecAdd2Pf' in '<input>'
    VecAdd2(float*) is only declared here: define it in this file"
	says_not "some note"
	says_not "make"
}

@test "reads what is piped in, and says the same thing once" {
	printf 'ld: a.o: undefined reference to `__cudaRegisterLinkedBinary_1_a_cu_%s'"'"'\n' x y >log
	run --separate-stderr bash -c 'gpuload explain <log'
	[[ $status == 0 ]] || show status
	[[ $(grep -c "nvcc -dlink OBJECTS" <<<"$output") == 1 ]] || show once
}

@test "says when nothing is known" {
	echo "all is well" >log
	fails 1 "log: no message in it that is known here" explain log
	fails 1 "no such file" explain missing.log
	fails 2 "one log at a time" explain log log
}
