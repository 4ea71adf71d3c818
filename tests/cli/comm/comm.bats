#!/usr/bin/env bats
# comm.bats — gpuload comm: collectives of several processes on the software driver; the figures are not checked.
load ../helper

# collective VERB ARG...: run a collective with 4 ranks; no element may be wrong.
collective() {
	works comm "$1" -n 4 "${@:2}"
	says "# gpuload comm $1: 4 ranks (gpuload), soft driver"
	says "# wrong elements: 0 OK"
	says "# average bus bandwidth:"
}

# rows: the number of rows of the table in the output.
rows() {
	grep -cE '^ +[0-9]+ +[0-9]+ +(f16|bf16|f32|f64|i32|u8) ' <<<"$output"
}

@test "each collective is right on 4 ranks, in and out of place" {
	for verb in allreduce reducescatter allgather broadcast; do
		collective $verb --bytes 8:1M:32
		(($(rows) == 4)) || show "$verb should have 4 rows"
		(($(grep -cE ' 0  +[0-9.]+ +[0-9.]+ +[0-9.]+ +0  (ring|oneshot|direct)/' <<<"$output") == 4)) || show "$verb in place"
	done
	for verb in sendrecv alltoall; do
		collective $verb --bytes 8:1M:32
		(($(grep -cE ' 0 +- +- +- +-  (ring|oneshot|direct)/' <<<"$output") == 4)) || show "$verb out of place only"
	done
}

@test "buffers that the other ranks do not map are right, too" {
	for verb in allreduce reducescatter allgather broadcast alltoall; do
		works comm $verb -n 3 --bytes 8:256K:32 --no-register --iters 1
		says "memory that is not registered"
		says "# wrong elements: 0 OK"
	done
}

@test "every type and operation is right" {
	for dtype in f16 bf16 f32 f64 i32 u8; do
		for op in sum prod min max avg; do
			works comm allreduce -n 3 --bytes 4000 --dtype $dtype --op $op --iters 1 --warmup 0
			grep -qE "4000 .* $dtype +$op " <<<"$output" || show "$dtype $op"
			says "# wrong elements: 0 OK"
		done
	done
}

@test "--json is complete" {
	works comm allreduce -n 2 --bytes 8:2K:256 --op max --dtype i32 --json
	[[ $(json 'j["collective"], j["n_ranks"], j["launcher"], j["driver"], j["dtype"], j["op"], j["root"], j["ok"], j["graph"]') == \
"('allreduce', 2, 'gpuload', 'soft', 'i32', 'max', None, True, False)" ]] || show "settings"
	[[ $(json '[r["bytes"] for r in j["rows"]], [r["count"] for r in j["rows"]]') == "([8, 2048], [2, 512])" ]] || show "sizes"
	[[ $(json 'all(0 < f["time_us_min"] <= f["time_us_mean"] <= f["time_us"] and f["wrong"] == 0 and f["same_on_all_ranks"]
		for r in j["rows"] for f in (r["out_of_place"], r["in_place"]))') == True ]] || show "figures"
	[[ $(json 'all(abs(f["algbw_gb_per_s"] - r["bytes"] / f["time_us"] / 1e3) < 1e-6 for r in j["rows"] for f in (r["out_of_place"],))') == True ]]
	[[ $(json '[sorted(r["plan"]) for r in j["rows"]][0]') == "['algorithm', 'blocks', 'protocol', 'threads', 'why']" ]]
	[[ $(json '[(r["rank"], [p["rank"] for p in r["paths"]], r["trace"]) for r in j["ranks"]]') == "[(0, [1], None), (1, [0], None)]" ]]
	works comm broadcast -n 3 --bytes 12 --root 2 --check off --out-of-place --json
	[[ $(json 'j["op"], j["root"], j["checked"], j["rows"][0]["out_of_place"]["wrong"], j["rows"][0]["in_place"]') == \
"(None, 2, False, None, None)" ]] || show "broadcast"
	[[ $(json 'j["rows"][0]["out_of_place"]["busbw_gb_per_s"] == j["rows"][0]["out_of_place"]["algbw_gb_per_s"]') == True ]]
}

@test "--gpu-direct puts the slots of channels into device memory, and --explain shows it" {
	works comm allreduce -n 2 --bytes 20K --iters 2 --transport net --provider tcp --gpu-direct yes
	says "# wrong elements: 0 OK"
	says ", GPU-direct)"
	works comm alltoall -n 2 --bytes 20K --transport net --provider tcp --gpu-direct yes --explain
	says ", GPU-direct)"
	works comm alltoall -n 2 --bytes 20K --transport net --provider tcp --gpu-direct no --explain
	says ", staged in host memory: requested)"
	works comm alltoall -n 2 --bytes 20K --transport net --provider tcp --explain --json
	[[ $(json 'all("staged in host memory" in p["reason"] for r in j["ranks"] for p in r["paths"])') == True ]] || show "reason"
}

@test "every call runs over the network; its options are checked" {
	for call in sendrecv alltoall allreduce reducescatter allgather broadcast; do
		works comm $call -n 2 --bytes 20K --iters 2 --transport net --provider tcp --qps 2
		says "# wrong elements: 0 OK"
		says "to rank 1: net (requested; libfabric, tcp"
		says "transport: the network between all ranks"
		says "simple, 1 x "
	done
	fails 1 "protocol ll is not possible over the network, where only protocol simple works: use options.proto simple or auto" comm allreduce -n 2 --transport net --provider tcp --proto ll
	fails 1 "algorithm oneshot is not possible" comm allreduce -n 2 --transport net --provider tcp --algo oneshot
	fails 1 "libfabric has no provider 'carrier-pigeon'" comm allreduce -n 2 --transport net --provider carrier-pigeon
	fails 2 "--backend must be auto, verbs, libfabric, reliable-udp or reliable-verbs, not 'tcp'" comm allreduce -n 2 --transport net --backend tcp
	fails 2 "apply only to the network, but --transport is host" comm allreduce -n 2 --transport host --qps 2
	fails 2 "--qps must be a number from 1 to 16" comm allreduce -n 2 --qps 17
	fails 2 "--gpu-direct must be auto, yes or no, not 'maybe'" comm allreduce -n 2 --gpu-direct maybe
	fails 2 "--window must be a size, such as 512K, or off, not '0'" comm alltoall -n 2 --window 0
	fails 2 "--window applies only to the network, but --transport is host" comm alltoall -n 2 --transport host --window 1M
}

@test "bus bandwidth has the factors of nccl-tests" {
	for expected in "allreduce 1.5" "reducescatter 0.75" "allgather 0.75" "alltoall 0.75" "sendrecv 1.0"; do
		works comm ${expected% *} -n 4 --bytes 64K --iters 1 --warmup 0 --check off --out-of-place --json
		[[ $(json 'round(j["rows"][0]["out_of_place"]["busbw_gb_per_s"] / j["rows"][0]["out_of_place"]["algbw_gb_per_s"], 6)') == \
"${expected#* }" ]] || show "$expected"
	done
}

@test "algorithms, protocols and transports can be forced; --graph works" {
	for algo in ring oneshot direct; do
		for proto in ll ll128 simple; do
			for transport in device host; do
				works comm allreduce -n 2 --bytes 4K --algo $algo --proto $proto --transport $transport --iters 1
				says "# wrong elements: 0 OK"
				says "transport: $transport memory between all ranks"
			done
		done
	done
	works comm allreduce -n 2 --bytes 4K --algo ring --proto ll
	says "  ring/ll, 1 x "
	works comm allreduce -n 3 --bytes 64K --algo tree --transport host --iters 1
	says "  tree/simple, 2 x "
	works comm allreduce -n 4 --bytes 64K --algo twolevel --ranks-per-host 2 --iters 1
	says "  twolevel/simple, 2 x "
	says "# wrong elements: 0 OK"
	works comm allreduce -n 2 --bytes 8:64K:32 --graph
	says "timed calls in a graph"
	says "# wrong elements: 0 OK"
}

@test "--explain names the source of each choice" {
	works comm allreduce -n 2 --bytes 8:1M:131072 --explain
	says "  the built-in table"
	works comm allreduce -n 2 --bytes 8:1M:131072 --algo ring --explain
	says "  the caller's options select the algorithm"
	works comm allreduce -n 4 --bytes 64:1M:16384 --ranks-per-host 2 --explain
	says "  the built-in table: a tree needs fewer successive messages than a ring"
	says "  the built-in table: all ranks of a host send to other hosts at the same time"
	works comm allreduce -n 3 --bytes 64 --ranks-per-host 2 --algo twolevel --explain
	says "  ring "
	says "  algorithm twolevel needs the same number of ranks on each host"
	works comm allreduce -n 2 --bytes 8 --proto ll128 --algo oneshot --explain
	says "gpuload has no kernel for this call with this algorithm and protocol"
	works comm sendrecv -n 2 --bytes 8 --proto ll128 --transport host --explain
	says "protocol ll128 needs device memory that all ranks can access"
	works comm allgather -n 2 --bytes 1M --algo oneshot --explain --json
	[[ $(json 'j["rows"][0]["plan"]["why"], j["rows"][0]["in_place"]') == "('the data is larger than the buffer of algorithm oneshot', None)" ]]
}

@test "tune writes a table that is used" {
	works comm tune -n 2 --bytes 64:16K:256 --iters 1 -o table.csv
	says "table.csv: "
	for verb in sendrecv alltoall allreduce reducescatter allgather broadcast; do
		grep -q "^gpuload software GPU,2,device,$verb,16384," table.csv || show "a row for $verb"
	done
	rows=$(wc -l <table.csv)
	works comm allreduce -n 2 --bytes 64 --table table.csv --explain
	says "measured on "
	says "(table.csv)"
	GPULOAD_COMM_TABLE=table.csv works comm allreduce -n 2 --bytes 64
	fails 1 "has no row for 'gpuload software GPU', 3 ranks, transport device" comm allreduce -n 3 --bytes 64 --table table.csv
	works comm tune -n 2 --bytes 64:16K:256 --iters 1 --transport host -o table.csv
	grep -q ",device,allreduce,16384," table.csv && grep -q ",host,allreduce,16384," table.csv || show "rows of both transports"
	works comm tune -n 2 --bytes 64 --iters 1
	[[ ${lines[0]} == device,ranks,transport,call,up_to_bytes,* ]] || show "a table on stdout"
	# more threads than the kernels are compiled for
	printf '%s\n' "${lines[0]}" "gpuload software GPU,2,device,allreduce,64,oneshot,ll,1,1024,1,x,y" >threads.csv
	works comm allreduce -n 2 --bytes 64 --table threads.csv
	says "oneshot/ll, 1 x 512"
	echo "gpuload software GPU,2,device,allreduce,8,oneshot,ll,1,32,x,y,z" >>table.csv
	fails 1 "table.csv:$(wc -l <table.csv): us 'x'" comm allreduce -n 2 --table table.csv
	fails 1 "table.csv:$(wc -l <table.csv): us 'x'" comm tune -n 2 -o table.csv
	fails 1 "nothing.csv" comm allreduce -n 2 --table nothing.csv
}

@test "the plot is well-formed XML with a point for each figure" {
	works comm allreduce -n 2 --bytes 8:128K:128 --plot p.svg
	python3 - <<-'END'
		import xml.etree.ElementTree as tree
		svg = "{http://www.w3.org/2000/svg}"
		root = tree.parse("p.svg").getroot()
		titles = [t.text for t in root.iter(svg + "title")][1:]
		assert len(titles) == 2 * 2 * 3 and sum("in place" in t for t in titles) == 6, titles
		assert all("blocks of" in t for t in titles), titles
		assert sum("line" in (p.get("class") or "") for p in root.iter(svg + "path")) == 2 + 4
	END
	fails 1 "p.svg already exists; --force replaces it" comm allreduce -n 2 --plot p.svg
}

@test "the trace has the calls of all ranks on one clock" {
	works comm allreduce -n 3 --bytes 4K --iters 2 --trace t.json
	says "# trace: "
	python3 - <<-'END'
		import json
		t = json.load(open("t.json"))
		assert t["otherData"]["ranks"] == 3 and t["otherData"]["clock_bound_ns"] > 0, t["otherData"]
		names = {e["pid"]: e["args"]["name"] for e in t["traceEvents"] if e["name"] == "process_name"}
		assert [names[p][:7] for p in sorted(names)] == ["rank 0:", "rank 1:", "rank 2:"], names
		calls = [e for e in t["traceEvents"] if e["name"].startswith("2 calls of allreduce")]
		assert len(calls) == 6 and {e["pid"] for e in calls} == {1, 2, 3}, calls
		for kind in ("kernel", "wait for"):
		    assert {e["pid"] for e in t["traceEvents"] if e["name"].startswith(kind)} == {1, 2, 3}, kind
		assert max(e["ts"] for e in calls[::2]) < min(e["ts"] + e["dur"] for e in calls[::2]), "at the same time"
	END
	fails 1 "t.json already exists" comm allreduce -n 2 --trace t.json
}

@test "a rank that is killed is named, and ends the others" {
	gpuload comm allreduce -n 3 --bytes 1M --iters 1000000 >out.txt 2>err.txt &
	launcher=$!
	until [[ -s out.txt ]]; do sleep 0.02; done
	victim=$(sed -n 's/.*rank  1  pid *\([0-9]*\) .*/\1/p' out.txt)
	ranks=$(sed -n 's/.*rank  [0-9]  pid *\([0-9]*\) .*/\1/p' out.txt)
	kill -KILL "$victim"
	code=0
	wait $launcher || code=$?
	[[ $code == 1 ]] || { cat err.txt; echo "exit code $code"; return 1; }
	grep -q "gpuload comm allreduce: rank 1 (pid $victim) was killed by signal 9" err.txt || { cat err.txt; return 1; }
	grep -q "gpuload comm allreduce: rank 0: .*rank 1 (pid $victim)" err.txt || { cat err.txt; return 1; }
	for pid in $ranks; do
		! kill -0 "$pid" 2>/dev/null || { echo "rank $pid still runs"; return 1; }
	done
}

@test "launch starts a program as ranks, and reports the first failure" {
	run --separate-stderr gpuload comm launch -n 3 -- sh -c 'echo "$GPULOAD_COMM_RANK of $GPULOAD_COMM_SIZE"'
	[[ $status == 0 && $(sort <<<"$output") == $'0 of 3\n1 of 3\n2 of 3' ]] || show "launch"
	run --separate-stderr gpuload comm launch -n 2 -- sh -c 'exit $((3 * GPULOAD_COMM_RANK))'
	[[ $status == 3 && $stderr == *"rank 1 (pid "*") ended with status 3"* ]] || show "status of rank 1"
	fails 2 "-n, the number of ranks" comm launch -- true
	fails 2 "a program is missing" comm launch -n 2
	fails 2 "-n is 3, but --hosts lists 2 ranks" comm launch -n 3 --hosts localhost:2 -- true
	fails 2 "invalid number of ranks '0' for host a: expected 1 to 32" comm launch --hosts a:0 -- true
	fails 1 "/nowhere: No such file or directory" comm launch --hostfile /nowhere -- true
	fails 2 "--agent and --start-timeout need --hosts or --hostfile, but neither is given" comm launch -n 2 --agent ssh -- true
	fails 2 "--agent needs --hosts, which is missing" comm allreduce -n 2 --agent ssh
	run --separate-stderr gpuload comm launch -n 2 --tag-output -- sh -c 'echo "of $GPULOAD_COMM_SIZE"'
	[[ $status == 0 && $(sort <<<"$output") == $'[0] of 2\n[1] of 2' ]] || show "launch --tag-output"
	works comm launch -n 2 -- gpuload comm allreduce --bytes 64
	says "2 ranks (gpuload)"
}

@test "ranks are found in torchrun's variables" {
	export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM)) LOCAL_WORLD_SIZE=2
	RANK=1 LOCAL_RANK=1 gpuload comm allreduce --bytes 64 >one.txt 2>&1 &
	other=$!
	RANK=0 LOCAL_RANK=0 works comm allreduce --bytes 64
	says "2 ranks (torchrun)"
	says "# wrong elements: 0 OK"
	wait $other
	[[ ! -s one.txt ]] || { cat one.txt; return 1; }
	RANK=0 LOCAL_RANK=0 fails 2 "-n 3 contradicts the launcher (torchrun), which has started 2 ranks" comm allreduce -n 3
}

@test "ranks are found under mpirun" {
	command -v mpirun >/dev/null || skip "no mpirun"
	echo leak:libpmix.so >leaks  # for builds with AddressSanitizer
	export LSAN_OPTIONS=suppressions=$PWD/leaks:print_suppressions=0
	run --separate-stderr mpirun --allow-run-as-root --oversubscribe -n 4 gpuload comm allreduce --bytes 64
	[[ $status == 0 ]] || show "mpirun"
	says "4 ranks (pmix)"
	says "# wrong elements: 0 OK"
}

@test "a wrong command line is one line and exit code 2" {
	fails 2 "a subcommand is missing" comm
	fails 2 "unknown command 'comm allreduc'; did you mean allreduce?" comm allreduc
	fails 2 "-n, the number of ranks" comm allreduce
	fails 2 "-n must be a number from 1 to 32, not '33'" comm allreduce -n 33
	fails 2 "-n must be a number from 1 to 32, not 'two'" comm allreduce -n two
	fails 2 "--bytes: expected MIN:MAX:FACTOR" comm allreduce -n 2 --bytes 16:8
	fails 2 "--bytes: '8:16:2:2' has too many colons" comm allreduce -n 2 --bytes 8:16:2:2
	fails 2 "--dtype must be f16, bf16, f32, f64, i32 or u8, not 'int'" comm allreduce -n 2 --dtype int
	fails 2 "--op must be sum, prod, min, max or avg, not 'xor'" comm allreduce -n 2 --op xor
	fails 2 "--op cannot be used with allgather" comm allgather -n 2 --op sum
	fails 2 "--root cannot be used with allreduce" comm allreduce -n 2 --root 0
	fails 2 "--root must be a number from 0 to 1, not '2'" comm broadcast -n 2 --root 2
	fails 2 "--in-place: the buffers of alltoall must not overlap" comm alltoall -n 2 --in-place
	fails 2 "--devices must be device numbers" comm allreduce -n 2 --devices 0,x
	fails 2 "--transport must be auto, device, host or net, not 'tcp'" comm allreduce -n 2 --transport tcp
	fails 2 "--algo must be auto, ring, oneshot, direct, tree or twolevel, not 'star'" comm allreduce -n 2 --algo star
	fails 2 "--proto must be auto, ll, ll128 or simple, not 'LL'" comm allreduce -n 2 --proto LL
	fails 2 "--blocks must be a number from 1 to 64" comm allreduce -n 2 --blocks 65
	fails 2 "--check must be on or off" comm allreduce -n 2 --check maybe
	fails 2 "--explain measures nothing" comm allreduce -n 2 --explain --plot x.svg
	fails 2 "unexpected argument '4'" comm allreduce 4
	fails 2 "comm tune needs at least 2 ranks" comm tune -n 1
}

# waits_in_a_circle PATTERN ARG...: gpuload ARG... must end by its time-out; each rank may print a line.
waits_in_a_circle() {
	run --separate-stderr gpuload "${@:2}" --ungrouped --timeout 2
	[[ $status == 1 ]] || show "gpuload ${*:2} should fail"
	[[ $stderr == *"waited 2000 ms for $1 from rank "* ]] || show "stderr should say what the ranks wait for: $1"
	# If an interpreted kernel gets no CPU for some time, it cannot report in time that it waits.
	[[ $stderr == *"put such calls into one group"* || $stderr == *"not made the same call, or "*" busy"* ]] ||
		show "stderr should say what to do"
}

@test "ranks as threads of one process: every collective is right, over the network, too" {
	for verb in allreduce reducescatter allgather broadcast sendrecv alltoall; do
		works comm $verb -n 3 --threads --bytes 8:64K:64
		says "# gpuload comm $verb: 3 ranks (threads), soft driver"
		says "# wrong elements: 0 OK"
	done
	works comm allreduce -n 2 --threads --transport net --provider tcp --bytes 4K --json
	[[ $(json 'j["launcher"], j["ok"], len({r["pid"] for r in j["ranks"]})') == "('threads', True, 1)" ]] || show "one process"
	fails 2 "--threads needs -n with at least 2 ranks" comm allreduce -n 1 --threads
	fails 2 "--threads needs -n with at least 2 ranks" comm allreduce -n 2 --threads --hosts localhost:2
	fails 2 "device 7 does not exist" comm allreduce -n 2 --threads --devices 7
}

@test "sends without a group: small messages pass, large ones end by the time-out with a message that says what to do" {
	for verb in sendrecv alltoall; do
		collective $verb --bytes 1K --proto ll --ungrouped
		says "without groups"
		collective $verb --bytes 64K --transport host --ungrouped
		waits_in_a_circle "the address of a receive buffer" comm $verb -n 3 --bytes 256K
		waits_in_a_circle "a credit" comm $verb -n 3 --bytes 3M --transport host
	done
	fails 2 "--ungrouped cannot be used with allreduce" comm allreduce -n 2 --ungrouped
}

@test "--trace FILE.svg draws the last call" {
	for algo in ring direct oneshot; do
		works comm allreduce -n 2 --bytes 1K --algo $algo --trace "$BATS_TEST_TMPDIR/$algo.svg"
		python3 -c "import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])" "$BATS_TEST_TMPDIR/$algo.svg"
		grep -q "algorithm $algo" "$BATS_TEST_TMPDIR/$algo.svg"
		grep -q '<path class="reduce"' "$BATS_TEST_TMPDIR/$algo.svg"
	done
}
