#!/usr/bin/env bats
# devices_memory.bats — gpuload devices --memory: which kinds of memory work, and why others do not.
load helper

setup_file() {
	unset GPULOAD_PROBE  # so that the command uses gpuload-probe of its own folder
}

# row KIND: print the line of the table for KIND.
row() {
	grep "^$1 " <<< "$output"
}

@test "devices --memory tests every kind with another process" {
	works devices --memory
	says "memory of device 0"
	[[ $(row host-numa) =~ ^host-numa\ +yes\ +yes\ +2\ MiB$ ]] || show "host-numa"
	[[ $(row device) =~ ^device\ +yes\ +yes\ +2\ MiB$ ]] || show "device"
	[[ $(row memfd) =~ ^memfd\ +yes\ +yes\ +4\ KiB$ ]] || show "memfd"
	[[ $(row shm) =~ ^shm\ +yes\ +yes\ +4\ KiB$ ]] || show "shm"
	[[ $(row pinned) =~ ^pinned\ +yes\ +no\ .*"cannot be shared" ]] || show "pinned"
	[[ $(row device-ipc) =~ ^device-ipc\ +yes\ +yes\ +2\ MiB$ ]] || show "device-ipc"
	[[ $(row fabric) =~ ^fabric\ +no\ +no ]] || show "fabric"
	[[ $(row auto) =~ is\ host-numa$ ]] || show "auto"
	says_not "not tested"
	works devices
	says_not "memory of"
}

@test "devices --memory --json prints the same results" {
	works devices --memory --json
	[[ $(json 'j["devices"][0]["memory"]["auto"]') == host-numa ]]
	[[ $(json '[k["kind"] for k in j["devices"][0]["memory"]["kinds"]]') == "['host-numa', 'device', 'memfd', 'shm', 'pinned', 'device-ipc', 'fabric']" ]]
	[[ $(json '[k for k in j["devices"][0]["memory"]["kinds"] if k["kind"] == "memfd"]') == "[{'kind': 'memfd', 'works': True, 'shares': True, 'asked_another_process': True, 'granularity_bytes': 4096, 'why': ''}]" ]]
	works devices --json
	[[ $(json '"memory" in j["devices"][0]') == False ]]
}

@test "each of several devices is probed" {
	GPULOAD_SOFT_DEVICES=2 works devices --json
	[[ $(json 'len(j["devices"])') == 2 ]] || skip "one device"
	GPULOAD_SOFT_DEVICES=2 works devices --memory
	says "memory of device 0"
	says "memory of device 1"
}

@test "a crash of the probe's child is reported, and is not a failure of the command" {
	printf '#!/bin/sh\nkill -SEGV $$\n' > dies
	chmod +x dies
	GPULOAD_PROBE=$PWD/dies works devices --memory
	[[ $(row memfd) =~ ^memfd\ +yes\ +no\ .*"in another process: the process gpuload-probe, which tests a kind of memory, was killed by SIGSEGV" ]] || show "memfd"
	[[ $(row pinned) == *"cannot be shared"* ]] || show "pinned: the crash of the other process changes nothing"
	[[ $(row auto) =~ is\ host-numa$ ]] || show "auto: host-numa still works in this process"
}

@test "without gpuload-probe the import is tried in the same process" {
	GPULOAD_PROBE=/nonexistent works devices --memory
	[[ $(row memfd) =~ ^memfd\ +yes\ +not\ tested ]] || show "memfd"
	[[ $(row device-ipc) =~ ^device-ipc\ +yes\ +no\ .*"this kind was not tested" ]] || show "device-ipc"
	says "not tested: gpuload-probe was not found beside gpuload"
	GPULOAD_PROBE=/nonexistent works devices --memory --json
	[[ $(json '{k["asked_another_process"] for k in j["devices"][0]["memory"]["kinds"]}') == "{False}" ]]
}

@test "with a file size limit auto chooses another kind" {
	run --separate-stderr bash -c 'trap "" XFSZ; ulimit -f 1024; gpuload devices --memory'
	[[ $status == 0 ]] || show "should work"
	[[ $(row host-numa) =~ ^host-numa\ +no\ +no\ + ]] || show "host-numa"
	[[ $(row memfd) =~ ^memfd\ +yes\ +yes ]] || show "memfd"
	[[ $(row auto) =~ is\ memfd$ ]] || show "auto"
}

@test "a read-only /dev/shm is reported with a hint" {
	unshare -m true 2> /dev/null || skip "mount namespaces cannot be created"
	run --separate-stderr unshare -m sh -c 'mount -t tmpfs -o ro none /dev/shm && gpuload devices --memory'
	[[ $status == 0 ]] || show "should work"
	[[ $(row shm) =~ ^shm\ +no\ +no\ .*"Read-only" ]] || show "shm"
	[[ $(row memfd) =~ ^memfd\ +yes\ +yes ]] || show "memfd"
}

@test "a program without standard input can probe" {
	run --separate-stderr bash -c 'gpuload devices --memory <&- 3>&-'
	[[ $status == 0 ]] || show "should work"
	[[ $(row memfd) =~ ^memfd\ +yes\ +yes ]] || show "memfd"
}

@test "gpuload-probe started by hand prints its purpose" {
	run --separate-stderr "$(dirname "$(command -v gpuload)")/gpuload-probe" 3>&-
	[[ $status == 2 && $stderr == *"gpuload devices --memory"* ]] || show "should print its purpose"
}
