#!/usr/bin/env bats
# shares.bats — gpuload shares: lists live, silent and dead owners.
load ../sharing

@test "prints nothing if nothing is shared" {
	works shares
	[[ -z $output ]]
	rmdir run
	works shares
	[[ -z $output ]]
	works shares --json
	[[ $output == '{"shares":[]}' ]]
}

@test "lists owner, kind, size, type and peers" {
	share beta --kind memfd --bytes 1M
	local first=$owner
	share alpha --kind device --fill f32=ones --shape 16,16
	hold peer.out alpha
	works shares
	[[ ${lines[0]} == "NAME "*"OWNER"*"KIND"*"SIZE"*"TYPE"*"ATTACHED" ]]
	[[ ${lines[1]} == "alpha "*"$owner gpuload"*"device"*"1 KiB"*"f32 16x16"*"1: $peer" ]]
	[[ ${lines[2]} == "beta  "*"$first gpuload"*"memfd"*"1 MiB"*"bytes"*"0" ]]
	works shares --json
	[[ $(json '[(s["name"], s["state"], s["pid"], len(s["peers"])) for s in j["shares"]]') == "[('alpha', 'live', $owner, 1), ('beta', 'live', $first, 0)]" ]]
	[[ $(json 'j["shares"][0]["peers"][0]["pid"]') == "$peer" ]]
	works shares --names
	[[ ${lines[*]} == "alpha beta" ]]
}

@test "removes sockets of dead owners" {
	share w --kind memfd --bytes 4K
	kill -KILL "$owner"
	wait "$owner" || true
	[[ -e run/w.sock ]]
	run --separate-stderr gpuload shares --verbose
	[[ $status == 0 && -z $output ]]
	[[ $stderr == "gpuload shares: removed w.sock: the process that shared it has ended" ]]
	[[ -z $(ls -A run) ]]
}

@test "stopped owners do not hide a live owner" {
	local names=() pids=()
	for i in {1..8}; do
		background "s$i.out" share "s$i" --kind memfd --bytes 4K
		pids+=("$pid")
	done
	for i in {1..8}; do
		wait_for_line "s$i.out" READY
	done
	share lively --kind memfd --bytes 4K
	kill -STOP "${pids[@]}"
	works shares
	[[ $(grep -c "^s[1-8] .*pid .* did not answer within 200 ms: stopped, or busy" <<<"$output") == 8 ]] || show "eight owners should be marked as stopped"
	says "lively"
	works shares --json
	[[ $(json '[s["state"] for s in j["shares"] if s["name"] != "lively"].count("silent")') == 8 ]]
	kill -CONT "${pids[@]}"
	for _ in {1..50}; do  # on a busy machine an owner may answer late
		works shares
		[[ $output == *"did not answer"* ]] || return 0
	done
	show "all owners should answer after SIGCONT"
}

@test "completion offers names of shares" {
	share weights --kind memfd --bytes 4K
	works completion bash
	eval "$output"
	COMP_WORDS=(gpuload attach we) COMP_CWORD=2
	_gpuload
	[[ ${COMPREPLY[*]} == weights ]]
	COMP_WORDS=(gpuload share x --kind d) COMP_CWORD=4
	_gpuload
	[[ ${COMPREPLY[*]} == "device device-ipc" ]]
}

@test "wrong command lines are refused with a reason" {
	fails 2 "unexpected operand" shares w
}
