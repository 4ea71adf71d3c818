#!/usr/bin/env bats
# fifo_bench.bats — the output of gpuload fifo bench; the figures are not checked.
load ../helper

@test "every mode, size and number of threads has a row of each table" {
	works fifo bench --sizes 1,8 --parallel 1,8 --triggers 4 --repeat 2
	says "soft driver"
	says "the median of 2 runs"
	says "Left out: 1 pair of --sizes and --parallel with more threads than slots."
	for mode in shared lanes; do
		says "$mode: "
		says "$mode, latency of push release + sync each, us"
	done
	(($(grep -cE '^ +8 +8 +4 ' <<<"$output") == 2)) || show "throughput of 8 slots and 8 threads, in both modes"
	(($(grep -cE '^ +8 +8 +32 ' <<<"$output") == 2)) || show "latency of 8 slots and 8 threads, in both modes"
	(($(grep -cE '^ +(shared|lanes) +(1|8|64) +[0-9]+ +[0-9.]+$' <<<"$output") == 6)) || show "warps"
	says_not mscclpp
}

@test "--json has the default configurations" {
	works fifo bench --triggers 2 --repeat 1 --json
	[[ $(json 'sorted({(r["size"], r["parallel"]) for r in j["rows"]})') == "[(1, 1), (128, 1), (128, 8), (128, 64), \
(128, 128), (512, 1), (512, 8), (512, 64), (512, 256), (512, 512)]" ]] || show "configurations"
	[[ $(json 'len(j["rows"]), len(j["warp_push"]), {r["mode"] for r in j["rows"]} == {"lanes", "shared"}') == "(20, 6, True)" ]]
	[[ $(json 'list(j["rows"][0]["per_s"])') == "['push', 'push_release', 'push_sync', 'push_release_sync']" ]]
	[[ $(json 'all(p["least"] == p["median"] == p["most"] > 0 for r in j["rows"] for p in r["per_s"].values())') == True ]] ||
		show "with one run, least, median and most are equal"
	[[ $(json 'all(r["lanes"] == (1 if r["mode"] == "shared" else r["parallel"]) for r in j["rows"])') == True ]]
	# In spite of clock errors: percentiles are sorted, and no sync is before its push.
	[[ $(json 'all(list(v.values()) == sorted(v.values()) for r in j["rows"] for k, v in r["latency"].items() if k in
		("push_to_pop_ns", "push_to_sync_ns"))') == True ]] || show "percentiles"
	[[ $(json 'all(r["latency"]["push_to_sync_ns"]["p50"] >= 0 and r["latency"]["triggers"] == 2 * r["parallel"] and
		r["latency"]["push_to_pop_ns"]["p50"] >= -r["latency"]["push_to_pop_wrong_by_ns_at_most"] for r in j["rows"])') == True ]] ||
		show "latencies"
	[[ $(json 'j["measured_elsewhere"], j["pinned"]') == "(None, False)" ]] || show "should have no figures of the peer"
}

@test "works with every kind of host memory" {
	for kind in auto host-numa memfd shm pinned; do
		works fifo bench --sizes 4 --parallel 3 --triggers 9 --repeat 1 --mode lanes --kind $kind --json
		[[ $kind == auto || $(json 'j["kind"]') == "$kind" ]] || show "$kind"
		[[ $(json '[(r["mode"], r["parallel"], r["lanes"], r["triggers_each"]) for r in j["rows"]]') == "[('lanes', 3, 4, 9)]" ]]
	done
}

@test "the plot is well-formed XML with a curve for each mode" {
	works fifo bench --sizes 1,4 --parallel 1,2,4 --triggers 2 --repeat 1 --plot p.svg
	says "push + sync each"
	python3 - <<-'END'
		import xml.etree.ElementTree as tree
		raw = open("p.svg").read()
		root = tree.fromstring(raw)
		paths = [p.get("class") for p in root.iter("{http://www.w3.org/2000/svg}path")]
		for curve in ("shared", "shared relaxed", "lanes", "lanes relaxed"):
		    assert paths.count(curve) == 1 + 2 * (2 if 'relaxed' in curve else 3), (curve, paths)  # legend; two sizes
		titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
		assert sum("4 slots, 4 threads" in t for t in titles) == 10, titles
		assert "peer" not in paths and "<script" not in raw and "prefers-color-scheme: dark" in raw
	END
	works fifo bench --sizes 1,2,4,8,16 --parallel 1 --triggers 2 --repeat 2 --plot wide.svg
	python3 - <<-'END'
		import xml.etree.ElementTree as E
		svg = "{http://www.w3.org/2000/svg}"
		root = E.parse("wide.svg").getroot()
		assert int(root.get("width")) < 1300, "more than four panels side by side"
		texts = [t.text for t in root.iter(svg + "text")]
		for size in (1, 2, 4, 8, 16):
		    for kind in ("push", "push + sync each", "latency, push to sync"):
		        assert f"{kind}, {size} slot{'s' * (size > 1)}" in texts, (kind, size)
		marks = {(e.tag[len(svg):], e.get("class")) for e in root.iter() if "dot" in (e.get("class") or "").split()}
		assert marks == {("rect", "dot shared"), ("rect", "dot shared relaxed"), ("circle", "dot lanes"), ("circle", "dot lanes relaxed")}, marks
		assert any("spread" in (p.get("class") or "") for p in root.iter(svg + "path"))
	END
	fails 1 "already exists" fifo bench --plot p.svg
	works fifo bench --sizes 1 --parallel 1 --triggers 2 --repeat 1 --plot p.svg --force --json
	[[ $(json 'len(j["rows"])') == 2 && $(<p.svg) == "<svg "* ]] || show "--json and --plot together"
	works fifo bench --sizes 1 --parallel 1 --triggers 2 --repeat 1 --mode shared --plot -
	[[ $output == "<svg "* ]]
}

@test "works with batches of 1 trigger and of more triggers than slots" {
	for batch in 1 1024; do
		works fifo bench --sizes 4 --parallel 2 --triggers 9 --repeat 1 --batch $batch
		says "; batches of $batch;"
	done
}

@test "--cpu pins the thread" {
	cpu=$(python3 -c 'import os; print(min(os.sched_getaffinity(0)))')
	works fifo bench --sizes 1 --parallel 1 --triggers 2 --repeat 1 --cpu "$cpu"
	says "; CPU $cpu;"
	fails 2 "--cpu 1023: cannot run on this CPU" fifo bench --sizes 1 --parallel 1 --triggers 2 --cpu 1023
}

@test "a time-out on either side prints one line" {
	run --separate-stderr timeout 60 gpuload fifo bench --sizes 512 --parallel 512 --timeout 0.001
	[[ $status == 0 && -z $stderr ]] && return  # this machine was fast enough
	[[ $status == 1 && -z $output && ${#stderr_lines[@]} == 1 ]] || show "should fail with one line"
	[[ $stderr =~ "triggers: a kernel waited longer than its time-out"$|"no trigger arrived for 1 ms" ]] || show "should name the side that timed out"
}

@test "a signal ends the command with one line and status 1" {
	gpuload fifo bench --sizes 512 --parallel 512 --triggers 10000 >out 2>err 3>&- &
	sleep 0.3
	kill -TERM $!
	status=0
	wait $! || status=$?
	[[ $status == 1 && $(<err) == *"fifo bench: stopped: SIGTERM" && ! -s out ]] || { cat err && false; }
}

@test "refuses wrong command lines" {
	fails 2 "a subcommand is missing" fifo
	fails 2 "unknown command 'fifo bunch'; did you mean bench?" fifo bunch
	fails 2 "unknown command 'fifo xyzzy'; gpuload help fifo lists the commands" fifo xyzzy
	fails 2 "unknown option --json" fifo --json
	fails 2 "has only options" fifo bench 3
	fails 2 "did you mean --sizes" fifo bench --size 1
	fails 2 "--sizes: 100 is not a power of two" fifo bench --sizes 100
	fails 2 "--sizes must be numbers from 1 to 16777216" fifo bench --sizes 0
	fails 2 "--sizes must be numbers" fifo bench --sizes 1,
	fails 2 "--parallel must be numbers from 1 to 4096" fifo bench --parallel 4097
	fails 2 "more than 16 numbers" fifo bench --parallel 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
	fails 2 "more threads than slots" fifo bench --sizes 8 --parallel 9
	fails 2 "--mode must be shared, lanes or both" fifo bench --mode lane
	fails 2 "--repeat must be a number from 1 to 99" fifo bench --repeat 0
	fails 2 "--batch must be a number from 1 to 1024" fifo bench --batch 1025
	fails 2 "--triggers must be a number from 1" fifo bench --triggers x
	fails 2 "which the CPU can access" fifo bench --kind device
	fails 2 "--device must be one number" fifo bench --device 0,1
	fails 2 "device 99 does not exist" fifo bench --device 99
	fails 2 "--timeout must be more than 0" fifo bench --timeout 0
	fails 2 "--driver must be auto, nvidia or soft" fifo bench --driver hard
	fails 2 "both write to stdout" fifo bench --json --plot -
}
