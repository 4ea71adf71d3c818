#!/usr/bin/env bats
# map.bats — gpuload map: a picture of the processes that map a shared memory.
load ../sharing

@test "a locale without UTF-8 gets a picture in ASCII" {
	share numbers --kind memfd --bytes 4K
	LC_ALL=C works map numbers
	! LC_ALL=C grep -qP '[^\x00-\x7F]' <<< "$output" || show "not ASCII"
	says "+- "
	says "-->"
	LC_ALL=C.UTF-8 works map numbers
	says "┌─ "
	LC_ALL=C works help run
	says "gpuload run - run a kernel"
	LC_ALL=C.UTF-8 works help run
	says "gpuload run — run a kernel"
}

@test "the picture shows every process, its addresses and the memory" {
	share w --kind memfd --fill f32=ones --shape 32,32
	hold one.out w
	local first=$peer
	hold two.out w --read-only
	works map w
	says "w: memfd, 4 KiB of f32 32x32, 2 attached, soft driver"
	for pid in "$owner" "$first" "$peer"; do
		says "─ pid $pid gpuload ─"
	done
	says "control page 4 KiB"
	says "data 4 KiB"
	says "read-only"
	local at
	at=$(sed 's/.*CPU and GPU \(0x[0-9a-f]*\).*/\1/' one.out)
	says "│ CPU $at "
	says "│ GPU $at "
	local widest
	widest=$(python3 -c 'import sys; print(max(map(len, sys.argv[1].split("\n"))))' "$output")
	((widest <= 80)) || show "no line should be wider than 80 columns"
}

@test "device memory has no CPU range and no CPU arrow" {
	share d --kind device --bytes 4K
	works map d
	says "CPU: no access         │   │"
	says "in the owner's GPU"
}

@test "the SVG is well-formed XML and shows every process" {
	share w --kind memfd --bytes 4K
	hold one.out w
	works map w --svg w.svg
	[[ -z $output ]]
	python3 - "$owner" "$peer" <<-'END'
		import sys, xml.etree.ElementTree as tree
		text = "".join(tree.parse("w.svg").getroot().itertext())
		assert all(f"pid {pid} gpuload" in text for pid in sys.argv[1:]), text
		raw = open("w.svg").read()
		assert "<script" not in raw and "href" not in raw and "prefers-color-scheme: dark" in raw
	END
	fails 1 "already exists" map w --svg w.svg
	works map w --svg w.svg --force
	works map w --svg -
	[[ $output == "<svg "* ]]
}

@test "with many peers the last ones are listed below the picture" {
	share w --kind memfd --bytes 4K
	local pids=()
	for i in {1..14}; do
		background "p$i.out" attach w --hold
		pids+=("$pid")
	done
	for i in {1..14}; do
		wait_for_line "p$i.out" ATTACHED
	done
	works map w
	for pid in "${pids[@]}"; do
		says "pid $pid gpuload"
	done
	works map w --json
	[[ $(json 'sorted(p["pid"] for p in j["peers"])') == "$(python3 -c 'import sys; print(sorted(map(int, sys.argv[1:])))' "${pids[@]}")" ]]
}

@test "wrong command lines are refused with a reason" {
	fails 2 "expected one NAME" map
	fails 1 "nothing is shared as 'w'" map w
}

@test "a process of another pid namespace is shown without a pid" {
	unshare -pf true 2>/dev/null || skip "pid namespaces cannot be created"
	share w --kind memfd --bytes 4K
	run --separate-stderr unshare -pf gpuload map w
	says "w: memfd, 4 KiB, 0 attached"
	says "─ other pid namespace ─"
	run --separate-stderr unshare -pf gpuload shares
	[[ ${lines[1]} == "w "*" - "*"memfd"* ]] || show "the owner should have no pid"
	run --separate-stderr unshare -pf gpuload attach w
	[[ $status == 0 ]] || show "attach should work"
	wait_for_line w.out "ATTACHED *w: pid [0-9]*, 1 attached"  # the parent namespace shows pids of its children
}
