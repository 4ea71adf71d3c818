#!/usr/bin/env bats
# long_paths.bats — a message about a file with a long path still names the file, the error and the remedy.
load helper

# make_folder: a folder whose path has some 400 characters in $far.
make_folder() {
	far=$PWD/$(printf 'folder%03d/' {1..30})
	mkdir -p "$far"
}

# tells CODE BEGIN END ARG...: gpuload ARG... fails with one line of at most 280 bytes that begins with BEGIN and ends with END.
tells() {
	local code=$1 begin=$2 end=$3
	shift 3
	run --separate-stderr gpuload "$@"
	[[ $status == "$code" && ${#stderr_lines[@]} == 1 ]] || show "should fail with code $code and one line"
	[[ $stderr == "gpuload $1: $begin"*...*"$end" && ${#stderr} -lt 280 ]] || show "the message should be: $begin...$end"
}

@test "a missing file with a long path is named by the ends of its path" {
	make_folder
	for command in run ls explain compile; do
		tells 1 "$PWD" "folder030/none.cu: no such file" "$command" "${far}none.cu"
	done
	tells 1 "$PWD" "folder030/none.cu: no such file" extract "${far}none.cu" -o out
}

@test "what is wrong with a file of a long path is said in full" {
	make_folder
	echo "some words" > "${far}words.txt"
	printf '\x7fELF\x02' > "${far}cut.so"
	tells 1 "$PWD" "cubin, fatbin, .o, .a, .so, program" run "${far}words.txt"
	tells 1 "$PWD" "library or program with device code" ls "${far}words.txt"
	tells 1 "$PWD" "folder030/ is a directory, not a file" run "$far"
	tells 1 "" "folder030/none.npy: no such file" run "$vecadd" "f64[]=@${far}none.npy"
	cp "$vecadd" "${far}v.ptx"
	tells 1 "$PWD" "folder030/none/x.ptx: cannot be written: No such file or directory" compile "${far}v.ptx" -o "${far}none/x.ptx"
	tells 1 "" "folder030/none/t.json: No such file or directory" run "$vecadd" --trace "${far}none/t.json"
	tells 1 "" "folder030/none/p.json: No such file or directory" run "$vecadd" --profile "${far}none/p.json"
}

@test "a word of the command line that is too long keeps the rest of the message" {
	local long
	long=$(printf 'x%.0s' {1..300})
	tells 2 "--block needs X, X,Y or X,Y,Z, each at least 1, not 'xxx" "xxx'" run "$vecadd" --block "$long"
	tells 2 "'xxx" "or fn:VARIABLE" run "$vecadd" "$long"
}
