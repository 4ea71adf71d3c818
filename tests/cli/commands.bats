#!/usr/bin/env bats
# commands.bats — help, completion, the manual page, and the commands version, devices and compile.
load helper

@test "help lists the commands and describes each" {
	works help
	says "gpuload run kernel.ptx"
	for command in run ls extract devices share attach shares map mmap-sum fifo rdma compile cache completion help version; do
		works help $command
		says "usage: gpuload $command"
		works $command --help
		says "usage: gpuload $command"
	done
	works --help
	says "usage: gpuload COMMAND"
	works help fifo
	says "fifo bench"
	works help fifo bench
	says "usage: gpuload fifo bench [OPTION...]"
	says "--sizes LIST"
	works fifo bench --help
	says "--sizes LIST"
}

@test "gpuload without a command prints the usage and exits with 2" {
	run --separate-stderr gpuload
	[[ $status == 2 ]] || show "exit code"
	says "usage: gpuload COMMAND"
}

@test "version prints the versions of gpuload and of the drivers and libraries" {
	works --version
	[[ ${lines[0]} == "gpuload "[0-9]* ]] || show "first line"
	says "built with CUDA"
	says "software driver"
}

@test "devices prints UUIDs that CUDA_VISIBLE_DEVICES accepts" {
	export GPULOAD_SOFT_DEVICES=2
	works devices --driver soft --json
	[[ $(json '[d["uuid"][:6] for d in j["devices"]]') == "['GPU-01', 'GPU-02']" ]]
	second=$(json 'j["devices"][1]["uuid"]')
	CUDA_VISIBLE_DEVICES=$second works devices --driver soft
	[[ $output == *"$second"* && $output != *GPU-01* ]]
}

@test "devices prints the driver and why it was chosen" {
	works devices
	says "driver  soft, CUDA "
	says "why     GPULOAD_DRIVER=soft"
	works devices --driver soft --json
	[[ $(json 'j["driver"]["name"], j["driver"]["why"], len(j["devices"]), j["devices"][0]["warp"]') == "('soft', '--driver soft', 1, 32)" ]]
}

@test "the completion script completes commands, options and values" {
	works completion bash
	eval "$output"
	COMP_WORDS=(gpuload ru) COMP_CWORD=1
	_gpuload
	[[ ${COMPREPLY[*]} == run ]]
	COMP_WORDS=(gpuload run --gr) COMP_CWORD=2
	_gpuload
	[[ ${COMPREPLY[*]} == --grid ]]
	COMP_WORDS=(gpuload run --driver s) COMP_CWORD=3
	_gpuload
	[[ ${COMPREPLY[*]} == soft ]]
	COMP_WORDS=(gpuload run --driver = n) COMP_CWORD=4
	_gpuload
	[[ ${COMPREPLY[*]} == nvidia ]]
	COMP_WORDS=(gpuload fifo b) COMP_CWORD=2
	_gpuload
	[[ ${COMPREPLY[*]} == bench ]]
	COMP_WORDS=(gpuload fifo bench --mode l) COMP_CWORD=4
	_gpuload
	[[ ${COMPREPLY[*]} == lanes ]]
	touch kernel.ptx
	compopt() { :; }  # the real one works only inside a completion
	COMP_WORDS=(gpuload run ker) COMP_CWORD=2
	_gpuload
	[[ ${COMPREPLY[*]} == kernel.ptx ]]
	fails 2 "the shell must be bash, zsh or fish" completion tcsh
}

@test "fish completes commands, verbs, options, values and files" {
	command -v fish || skip "no fish"
	touch kernel.ptx
	gpuload completion fish > gpuload.fish
	complete_in_fish() { fish -c "source gpuload.fish; complete -C '$1'" 2>&1 | cut -f1; }
	complete_in_fish 'gpuload ru' | grep -qx run
	complete_in_fish 'gpuload fifo b' | grep -qx bench
	complete_in_fish 'gpuload run --gr' | grep -qx -- --grid
	[[ $(complete_in_fish 'gpuload run --driver s') == soft ]]
	complete_in_fish 'gpuload fifo bench --mode l' | grep -qx lanes
	complete_in_fish 'gpuload run ker' | grep -qx kernel.ptx
	[[ -z $(complete_in_fish 'gpuload fifo bench --dtype') ]]
}

@test "zsh completes commands, verbs, options, values and files" {
	command -v zsh || skip "no zsh"
	touch kernel.ptx
	gpuload completion zsh > _gpuload
	cat > session.zsh <<-'END'
		zmodload zsh/zpty
		zpty shell zsh -f -i
		zpty -w shell 'PS1=; autoload -Uz compinit; compinit -u -d dump; source ./_gpuload; print READY$((1+1))'
		zpty -r shell out '*READY2*'
		zpty -w shell 'gpuload() { print -r -- GOT "$@" END }; print READY$((2+1))'
		zpty -r shell out '*READY3*'
		for line in 'ru' 'fifo ben' 'run --gri' 'run --driver sof' 'fifo bench --mode lan' 'run kern'; do
			zpty -w -n shell "gpuload $line"$'\t\C-m'
			zpty -r shell out '*GOT*END*'
			print -r -- "$out"
		done
	END
	timeout 60 zsh -f session.zsh > out.txt 2>&1 || true
	grep -aq 'GOT run END' out.txt
	grep -aq 'GOT fifo bench END' out.txt
	grep -aq 'GOT run --grid *=* *END' out.txt
	grep -aq 'GOT run --driver soft END' out.txt
	grep -aq 'GOT fifo bench --mode lanes END' out.txt
	grep -aq 'GOT run kernel.ptx END' out.txt
}

@test "no line of help is longer than 79 columns" {
	for command in $(gpuload help --names) "" environment "fifo bench" "fifo trace" "fifo serve" "fifo push" "rdma devices" "rdma serve" "rdma bench" "rdma simulate"; do
		LC_ALL=C.UTF-8 gpuload help $command > help.txt
		[[ -s help.txt ]]
		! LC_ALL=C.UTF-8 grep -nE '^.{80}' help.txt || show "too long: help $command"
	done
}

@test "the manual pages are complete and groff accepts them" {
	works help --man
	says ".TH GPULOAD 1"
	says '.BR gpuload\-fifo (1)'
	says '.B GPULOAD_SOFT_DEVICES'
	works help --man fifo
	says '.TH GPULOAD\-FIFO 1'
	says '.SH "GPULOAD fifo bench"'
	works help --man run
	says '.B \-\-expect ARG=WHAT'
	command -v groff || skip "no groff"
	for command in "" $(gpuload help --names); do
		gpuload help --man $command > gpuload.1
		run groff -man -Tutf8 -ww -z gpuload.1
		[[ $status == 0 && -z $output ]] || show "groff reports errors: $command"
	done
}

@test "compile turns CUDA C++ into PTX or machine code" {
	echo 'extern "C" __global__ void fill(int *p) { p[threadIdx.x] = VALUE; }' > fill.cu
	run --separate-stderr gpuload compile fill.cu -D VALUE=42
	[[ $stderr != *"no libnvrtc"* ]] || skip "no NVRTC here"
	[[ $status == 0 && -z $stderr ]] || show "should work"
	works ls fill.ptx
	says "for sm_75, 1 kernel"
	works compile fill.cu -DVALUE=42 --arch sm_90 -o -
	says ".target sm_90"
	works compile fill.cu -DVALUE=42 --cubin --arch=sm_90 -o made.cubin
	[[ $(head -c 4 made.cubin) == $'\x7fELF' ]]
	works run fill.cu -D VALUE=42 "out:i32[8]" --block 8 --expect 0=42
	works run fill.cu -D VALUE=43 --block 1024 --grid 1 --expect 0=43
	says "assumed   gpuload run fill.cu -DVALUE=43 --grid 1 --block 1024 'out:i32[1024]'"
}

@test "compile prints the errors of the compiler and refuses bad options" {
	echo '__global__ void f() { int x = y; }' > bad.cu
	run --separate-stderr gpuload compile bad.cu
	[[ $stderr != *"no libnvrtc"* ]] || skip "no NVRTC here"
	[[ $status == 1 && $stderr == *'bad.cu(1)'*'"y" is undefined'* ]] || show "should quote the error"
	[[ ${stderr_lines[-1]} == "gpuload compile: "* ]] || show "the last line should come from gpuload"
	run --separate-stderr gpuload run bad.cu
	[[ $status == 1 && ${stderr_lines[0]} == 'bad.cu(1): error: identifier "y" is undefined' ]] || show "should quote the error"
	fails 2 "--arch needs sm_ or compute_" compile bad.cu --arch 90
	fails 2 "--ptx and --cubin cannot be combined" compile bad.cu --ptx --cubin
	fails 2 "needs one FILE.cu" compile
	fails 1 "no such file" compile nothing.cu
	echo "__global__ void f() {}" > fine.cu
	fails 1 "cannot be written" compile fine.cu -o /nonexistent/x.ptx
}

@test "compile copies PTX, and refuses what is not source code" {
	works compile "$vecadd" -o -
	[[ $output == "$(< "$vecadd")" ]] || show "should be the PTX"
	works compile <(cat "$vecadd") -o copy.ptx
	cmp copy.ptx "$vecadd"
	fails 2 "is already PTX" compile "$vecadd"
	fails 1 "--cubin needs CUDA C++" compile "$vecadd" --cubin -o -
	fails 1 "compile needs CUDA C++" compile "$(command -v gpuload)" -o -
	fails 2 "-o needs a folder" extract "$vecadd" -o -
}

@test "CUDA C++ from stdin is compiled to stdout" {
	gpuload version | grep -q "^NVRTC  *[0-9]" || skip "no libnvrtc"
	run --separate-stderr gpuload compile - -o - <<< '__global__ void k(int *p) { *p = 1; }'
	[[ $status == 0 && $output == *".entry _Z1kPi"* ]] || show "should print PTX"
	[[ ! -e - ]] || show "should not create a file"
}
