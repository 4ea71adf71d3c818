#!/usr/bin/env bats
# rdma_bench.bats — gpuload rdma bench and gpuload rdma serve over libfabric's tcp provider; the figures are not checked.
load ../sharing

eval "$(declare -f setup | sed '1s/setup/sharing_setup/')"
setup() {
	sharing_setup
	gpuload rdma bench --provider tcp --mode basic --sizes 1 >probe.out 2>&1 || skip "no libfabric: $(<probe.out)"
}

# bench ARG...: a short measurement over tcp.
bench() {
	works rdma bench --provider tcp --iterations 20 "$@"
}

# serve FILE ARG...: start a server in the background on a free port; its pid in $owner, its port in $port.
serve() {
	local file=$1
	shift
	for port in $((20000 + RANDOM % 20000)) $((20000 + RANDOM % 20000)) $((20000 + RANDOM % 20000)); do
		background "$file" rdma serve --provider tcp --listen 127.0.0.1 --port "$port" "$@"
		owner=$pid
		wait_for_line "$file" 'READY\|in use'
		grep -q READY "$file" && return
	done
	return 1
}

# ended PID CODE TEXT FILE: wait for the end of a process; check its exit status and its one line of output.
ended() {
	local code=0
	wait "$1" || code=$?
	[[ $code == "$2" && $(<"$4") == *"$3"* && $(wc -l <"$4") == 1 ]] || { echo "$code"; cat "$4"; return 1; }
}

# long_bench FILE ARG...: start a long measurement in the background, and wait until its peer process runs; sets $client to its pid
# and $peer to the pid of the peer.
long_bench() {
	background "$1" rdma bench --provider tcp --sizes 1M --time 60 "${@:2}"
	client=$pid
	until [[ $(readlink "/proc/$client/exe") == */gpuload ]]; do sleep 0.02; done
	# Wait until the command handles SIGHUP (bit 0), not SIGTERM, which libfabric's psm provider also handles for a moment.
	until (( 0x$(sed -n 's/^SigCgt:\t.*\(....\)$/\1/p' "/proc/$client/status") & 1 )); do sleep 0.02; done
	peer=$(tr -d ' ' <"/proc/$client/task/$client/children")
}

# gone PID: wait until a process has ended.
gone() {
	for _ in {1..500}; do
		[[ -d /proc/$1 ]] || return 0
		sleep 0.02
	done
	echo "process $1 still runs"
	return 1
}

@test "each mode has a row for each size" {
	for mode in tpt bi lat put put-lat; do
		bench --mode $mode --sizes 0,8,4097,1M
		says "mode $mode, 1 flow of 1 QP"
		says "a dead peer is detected within"
		for size in 0 8 4097 1048576; do
			(($(grep -cE "^ +$size +[0-9]+ +[0-9.]+ " <<<"$output") == 1)) || show "$mode: a row for $size"
		done
	done
}

@test "mode basic checks all bytes" {
	bench --mode basic --sizes 0,1,4095:4097,1M --nreq 3 --json
	[[ $(json 'j["mode"], [(r["bytes"], r["checked_bytes"]) for r in j["rows"]]') == \
		"('basic', [(0, 0), (1, 6), (4095, 24570), (4097, 24582), (1048576, 6291456)])" ]] || show "checked bytes"
	bench --mode basic --sizes 1,4097 --nmsg 3 --nflow 2 --qps 2
	says "2 flows of 2 QPs, 8 requests in flight, 3 messages per receive"
	says "All bytes are as expected."
}

@test "--json has the figures of both ends" {
	bench --sizes 256,64K --nflow 2 --nmsg 2 --nreq 4 --json
	[[ $(json 'j["end"], j["mode"], j["flows"], j["messages_per_receive"], j["requests"]') == "('client', 'tpt', 2, 2, 4)" ]] || show "shape"
	[[ $(json 'j["here"]["backend"], j["there"]["backend"], j["here"]["pid"] != j["there"]["pid"]') == \
		"('libfabric', 'libfabric', True)" ]] || show "ends"
	[[ $(json 'j["connection"]["notice_ms"] > 0 and j["connection"]["segment_bytes"]') == 1048576 ]] || show "connection"
	[[ $(json '[(r["bytes"], r["iterations"], r["here"]["messages"], r["checked_bytes"]) for r in j["rows"]]') == \
		"[(256, 20, 80, 4096), (65536, 20, 80, 1048576)]" ]] || show "rows"
	[[ $(json 'all(0 < e["gbit_per_s"] and 0 < e["p50_us"] <= e["p99_us"] and e["seconds"] > 0
		for r in j["rows"] for e in (r["here"], r["there"]))') == True ]] || show "figures"
}

@test "messages longer than a segment are received one by one" {
	bench --sizes 4K,8K,64K --nmsg 4 --segment 8K --json
	[[ $(json '[(r["bytes"], r["messages_per_receive"]) for r in j["rows"]]') == "[(4096, 4), (8192, 4), (65536, 1)]" ]]
}

@test "several threads, flows and QPs, with both ways of striping" {
	for stripe in split round-robin; do
		bench --mode bi --sizes 7,300K --nflow 3 --threads 2 --qps 4 --stripe $stripe --flush
		says "3 flows of 4 QPs, 8 requests in flight, flushed, 2 threads"
	done
	bench --mode put --sizes 7,64K --nflow 3 --threads 3 --qps 3 --nreq 5
	bench --mode lat --sizes 7,64K --nflow 3 --threads 2 --flush
}

@test "the plot is well-formed XML with curves for both ends" {
	bench --sizes 1K,4K --plot p.svg
	python3 - <<-'END'
		import xml.etree.ElementTree as tree
		paths = [p.get("class") for p in tree.parse("p.svg").getroot().iter("{http://www.w3.org/2000/svg}path")]
		assert paths.count("here") == paths.count("there") == 1 + 2, paths  # legend, rate, p50
		assert paths.count("here p99") == 2 and paths.count("there p99") == 1, paths
	END
	fails 1 "already exists" rdma bench --plot p.svg
	bench --mode put --sizes 8 --plot - --force
	[[ $output == "<svg "* ]]
}

@test "GPU memory, by way of staging buffers where the fabric cannot access it" {
	for memory in host-numa device; do
		bench --mode basic --sizes 1,4097,2M --nmsg 2 --memory $memory --driver soft
		says "$memory memory; server"
		says "All bytes are as expected."
	done
	bench --sizes 64K --memory device --driver soft --flush
	says "flushed, staged"
	fails 1 "GPU memory that the NIC cannot access" rdma bench --provider tcp --mode put --sizes 8 --memory device --driver soft
}

@test "serve serves clients one after the other, and prints a table for each" {
	serve s.out
	bench 127.0.0.1 --port "$port" --sizes 8
	says "host memory; server "
	bench 127.0.0.1:"$port" --sizes 4K,8K --mode lat --nflow 2
	wait_for_line s.out "mode lat, 2 flows"
	ends "$owner"
	wait_for_line s.out "^ENDED *SIGTERM"
	[[ $(grep -c "^CLIENT" s.out) == 2 ]]
	grep -qE "^ +8192 +[0-9]+ " s.out
}

@test "serve serves several clients at once" {
	serve s.out --json
	for i in 1 2 3; do
		gpuload rdma bench 127.0.0.1:"$port" --provider tcp --sizes 4K --iterations 200 --nflow 2 --json >c$i.out 2>&1 3>&- &
		clients[i]=$!
	done
	for i in 1 2 3; do
		wait "${clients[i]}" || { cat c$i.out; false; }
	done
	ends "$owner"
	[[ $(python3 -c 'import json; j = [json.loads(line) for line in open("s.out")]
print([sum(e.get("event") == w for e in j) for w in ("READY", "SERVING", "ENDED")], [len(e["rows"]) for e in j if "end" in e], len(j))') == \
		"[1, 3, 1] [1, 1, 1] 8" ]] || { cat s.out; false; }
}

@test "serve --once ends after its client, with the client's error" {
	serve s.out --once
	bench 127.0.0.1:"$port" --sizes 8
	wait "$owner"
	wait_for_line s.out "^ENDED *the client has ended"
	serve s.out --once
	long_bench c.out 127.0.0.1:"$port"
	wait_for_line s.out "^SERVING"
	kill -KILL "$client"
	code=0
	wait "$owner" || code=$?
	[[ $code == 1 ]] || { echo "$code"; cat s.out; false; }
	wait_for_line s.out "^gpuload rdma serve: client .*pid $client: "
}

@test "strangers do not stop a server" {
	serve s.out
	exec 7<>"/dev/tcp/127.0.0.1/$port" 8<>"/dev/tcp/127.0.0.1/$port"  # the first sends nothing
	printf 'GET / HTTP/1.0\r\n\r\n' >&8
	bench 127.0.0.1:"$port" --sizes 8
	exec 7>&- 8>&-
	bench 127.0.0.1:"$port" --sizes 8
	ends "$owner"
}

@test "if the server is killed, bench prints one line" {
	serve s.out
	long_bench c.out 127.0.0.1:"$port"
	wait_for_line s.out "^SERVING"
	kill -KILL "$owner"
	ended "$client" 1 "gpuload rdma bench: 127.0.0.1:$port: " c.out
}

@test "if the server ends in order, bench prints one line" {
	serve s.out
	long_bench c.out 127.0.0.1:"$port" --mode lat --sizes 8
	wait_for_line s.out "^SERVING"
	ends "$owner"
	ended "$client" 1 "gpuload rdma bench: 127.0.0.1:$port: " c.out
}

@test "bench and its own peer end together" {
	for signal in TERM KILL; do
		long_bench c.out
		[[ -n $peer ]]
		kill -$signal "$client"
		if [[ $signal == TERM ]]; then
			ended "$client" 1 "gpuload rdma bench: stopped: SIGTERM" c.out
		else
			wait "$client" || true
		fi
		gone "$peer"
	done
	long_bench c.out
	kill -KILL "$peer"
	ended "$client" 1 "gpuload rdma bench: the peer process $peer was killed by signal 9" c.out
}

@test "no server, no such host, other provider: one line" {
	fails 1 "Connection refused" rdma bench 127.0.0.1:1 --provider tcp --wait 0.1
	fails 1 "host name 'no-such-host.invalid'" rdma bench no-such-host.invalid --provider tcp --wait 0.1
	fails 1 "has no provider 'nonsense'" rdma bench --provider nonsense
	serve s.out
	fails 1 "127.0.0.1:$port reports: " rdma bench 127.0.0.1:"$port" --provider shm
	bench 127.0.0.1:"$port" --sizes 8
	ends "$owner"
}

@test "wrong command lines are refused with a reason" {
	fails 2 "expected at most one HOST" rdma bench a b
	fails 2 "rdma serve has only options" rdma serve a
	fails 2 "--mode must be tpt, bi, lat, put, put-lat or basic" rdma bench --mode x
	fails 2 "--sizes: expected FROM:TO" rdma bench --sizes 8:4
	fails 2 "--sizes: expected FROM:TO" rdma bench --sizes 0:4
	fails 2 "too many colons" rdma bench --sizes 1:2:3:4
	fails 2 "more than 64 sizes" rdma bench --sizes 1:1G,1:1G,1:1G
	fails 2 "exceed the limit of 1073741824 bytes" rdma bench --sizes 2G
	fails 2 "--nmsg must be a number from 1 to 8" rdma bench --nmsg 9
	fails 2 "exceeds the limit of 512 messages in flight" rdma bench --nmsg 8 --nreq 65
	fails 2 "--nmsg needs" rdma bench --nmsg 2 --mode lat
	fails 2 "--flush needs" rdma bench --flush --mode put
	fails 2 "--nflow must be" rdma bench --nflow 65
	fails 2 "--qps must be" rdma bench --qps 17
	fails 2 "--segment must be a multiple of 128" rdma bench --segment 5000
	fails 2 "--stripe must be split or round-robin" rdma bench --stripe x
	fails 2 "--backend must be auto, verbs, libfabric, reliable-udp or reliable-verbs" rdma bench --backend x
	fails 2 "--qp must be rc, uc or ud" rdma bench --qp x
	fails 2 "--reliable is for --qp uc and ud" rdma bench --qp rc --reliable
	fails 2 "--reliable is for verbs, but the backend is libfabric" rdma bench --provider tcp --reliable
	fails 2 "--flush-by must be auto, none, read, atomic or cuda" rdma bench --flush-by x
	fails 2 "--provider tcp selects libfabric, but --backend is verbs" rdma serve --backend verbs --provider tcp
	fails 2 "--memory must be host, host-numa or device" rdma serve --memory pinned
	fails 2 "--gpu must be one number" rdma bench --gpu 0,1
	fails 2 "--time must be more than 0" rdma bench --time 0
	fails 2 "--retry must be a number from 1 to 6" rdma bench --retry 7
	fails 2 "--port must be" rdma serve --port 0
	fails 2 "both write to stdout" rdma bench --json --plot -
	fails 2 "of buffers, more than a quarter of this machine's memory" rdma bench --sizes 1G --nflow 64
}
