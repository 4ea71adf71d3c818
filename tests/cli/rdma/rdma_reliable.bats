#!/usr/bin/env bats
# rdma_reliable.bats — what gpuload rdma bench and serve print of reliable-udp: counters, lines while it runs, and the trace of a message.
load ../sharing

# bench ARG...: a short measurement over reliable-udp.
bench() {
	works rdma bench --provider reliable-udp --paths 3 --iterations 20 "$@"
}

@test "a table has the counters of each connection and its paths, and JSON the same" {
	bench --sizes 64K --nflow 2
	(($(grep -cE "^ +[01] +[1-9][0-9]*( +[0-9]+){7} +-$" <<<"$output") == 2)) || show "a row for each connection"
	(($(grep -cE "^ +[01] +[0-2] +yes +[0-9.-]+ +[0-9.-]+ +[0-9.]+$" <<<"$output") == 6)) || show "a row for each path"
	bench --sizes 64K --nflow 2 --json
	[[ $(json 'all(c["chunks_sent"] > 40 and c["retransmissions"] >= c["losses"] and c["credit"] is None for c in j["reliable"])') == True ]] || show "counters"
	[[ $(json 'all(p["alive"] and p["window"] >= 1 and (p["rtt_p50_us"] or 0) <= (p["rtt_p99_us"] or 0) for c in j["reliable"] for p in c["paths"])') == True ]] || show "paths"
	[[ $(json '[len(c["paths"]) for c in j["reliable"]]') == "[3, 3]" ]] || show "number of paths"
}

@test "many paths: the table has 64 of them, and JSON all" {
	works rdma bench --provider reliable-udp --paths 80 --iterations 5 --sizes 64K --mode basic
	says "... and 16 more paths, which --json shows"
}

@test "another backend has no counters" {
	gpuload rdma bench --provider tcp --mode basic --sizes 1 >probe.out 2>&1 || skip "no libfabric: $(<probe.out)"
	works rdma bench --provider tcp --sizes 8 --iterations 5 --json
	[[ $(json 'j["reliable"]') == None ]] || show "reliable"
}

@test "serve prints the counters of its end" {
	background s.out rdma serve --provider reliable-udp --listen 127.0.0.1 --port $((port = 20000 + RANDOM % 20000)) --once
	wait_for_line s.out READY
	bench 127.0.0.1 --port "$port" --sizes 64K
	wait_for_line s.out ENDED
	grep -qE "^ +0 +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[1-9][0-9]* " s.out || { cat s.out; false; }
}

@test "--stats prints lines while it runs, with all connections" {
	works rdma bench --provider reliable-udp --paths 3 --sizes 64K --nflow 3 --threads 2 --iterations 3000 --stats 0.1
	(($(grep -cE "^[0-9.]+ s: [0-9]+ chunks sent in [0-9.]+ s, [0-9]+ of them again .* of 9 paths alive, RTT " <<<"$stderr") >= 1)) || show "lines"
}

@test "--trace has a line, a slice and a bar for each datagram of the message" {
	bench --sizes 64K,8 --trace t.txt --trace-message 3
	grep -qE "^message 3, 65536 bytes: [0-9]+ chunks in [0-9]+ datagrams; " t.txt
	bench --sizes 64K --trace t.json
	bench --sizes 64K --trace t.svg --mode put
	python3 - <<-'END'
		import json, re, xml.etree.ElementTree as tree
		head, *lines = [line for line in open("t.txt") if line.strip()]
		chunks, datagrams = map(int, re.search(r"(\d+) chunks in (\d+) datagrams", head).groups())
		rows = [line.split() for line in lines[1:]]
		assert len(rows) == datagrams >= chunks and {int(r[1]) for r in rows} == set(range(chunks)), rows
		assert all(int(r[2]) < 3 and float(r[0]) >= 0 for r in rows), rows
		slices = [e for e in json.load(open("t.json"))["traceEvents"] if e["ph"] == "X"]
		assert len(slices) >= chunks and all(e["dur"] >= 0 for e in slices), slices
		bars = [b for b in tree.parse("t.svg").getroot().iter("{http://www.w3.org/2000/svg}rect") if b.get("class") in ("acked", "lost", "unknown")]
		assert len(bars) >= chunks, bars
	END
	fails 1 "already exists" rdma bench --provider reliable-udp --trace t.txt
	for mode in bi lat put-lat basic; do
		bench --mode $mode --sizes 64K --trace -
		says "message 0, 65536 bytes: $(sed -nE 's/^message.*: ([0-9]+ chunks).*/\1/p' t.txt) in "
	done
	fails 2 "--trace-message 20: connection 0 has sent fewer messages" rdma bench --provider reliable-udp --iterations 20 --sizes 8 --trace n.txt --trace-message 20
}

@test "wrong command lines are refused with a reason" {
	fails 2 "need a reliable transport" rdma bench --provider tcp --stats 1
	fails 2 "need a reliable transport" rdma bench --trace -
	fails 2 "--stats must be at least 0.1 seconds" rdma bench --provider reliable-udp --stats 0.05
	fails 2 "--trace-message needs --trace" rdma bench --provider reliable-udp --trace-message 1
	fails 2 "leave --buffers out" rdma bench --provider reliable-udp --trace - --buffers 1
	fails 2 "--trace needs --memory host" rdma bench --provider reliable-udp --trace - --memory device --driver soft
	fails 2 "--trace - writes to stdout" rdma bench --provider reliable-udp --trace - --json
}
