#!/usr/bin/env bats
# rdma_simulate.bats — gpuload rdma simulate: each scenario in a small network, its outputs, and wrong usage.
load ../helper

# runs EXPRESSION: print the value of an expression in which r is the list of runs of the last command's JSON.
runs() {
	json "(lambda r: ($1))(j['runs'])"
}

# measures ARG...: run gpuload ARG... --json, and leave the samples out, so that a failed check shows little.
measures() {
	works "$@" --json
	[[ $(runs 'all(len(x["samples"]) > 10 for x in r)') == True ]] || show "samples"
	output=$(python3 -c 'import json, sys; j = json.loads(sys.argv[1]); [r.pop("samples") for r in j["runs"]]; print(json.dumps(j))' "$output")
}

incast=(rdma simulate incast --leaves 3 --hosts 4 --spines 4 --flows 7 --bytes 256K)

@test "incast: with credit the queue stays below its bound, and nothing is dropped" {
	measures "${incast[@]}"
	[[ $(runs '[x["value"] for x in r]') == "['on', 'off']" ]] || show "both"
	[[ $(runs 'all(x["arrived_flows"] == x["flows"] == 7 for x in r)') == True ]] || show "arrived"
	[[ $(runs 'r[0]["dropped"] == 0 and 0 < r[0]["queue_bytes"] <= r[0]["limit_bytes"]') == True ]] || show "bound"
	[[ $(runs 'r[0]["max_us"] < 1.2 * r[0]["ideal_us"]') == True ]] || show "ideal"
	[[ $(runs 'r[0]["victim_us"] < 1.1 * r[0]["victim_alone_us"]') == True ]] || show "victim"
	[[ $(json 'j["options"]["flows"], j["options"]["spread"]') == "(7, 'round-robin')" ]] || show "options"
	works "${incast[@]}" --credit off
	[[ $output == *$'\noff '*"credit off: the victim took "* && $output != *$'\non '* ]] || show "one run"
}

@test "permutation: several paths are faster than one, and everything arrives" {
	measures rdma simulate permutation --leaves 8 --hosts 8 --spines 8 --bytes 128K
	[[ $(runs '[x["value"] for x in r]') == "['pinned', 'round-robin', 'two-choices']" ]] || show "spreads"
	[[ $(runs 'all(x["arrived_flows"] == 64 for x in r)') == True ]] || show "arrived"
	[[ $(runs 'all(1.5 * x["p99_us"] < r[0]["p99_us"] for x in r[1:])') == True ]] || show "faster"
}

@test "path-death: every flow that is hit recovers" {
	measures rdma simulate path-death --leaves 2 --hosts 2 --spines 2 --messages 16
	[[ $(runs '[x["value"] for x in r]') == "['1', '2', '3']" ]] || show "runs"
	[[ $(runs 'all(x["flows_hit"] > 0 and x["flows_recovered"] == x["flows_hit"] and x["paths_died"] > 0 for x in r)') == True ]] || show "recovered"
	[[ $(runs 'all(x["arrived_flows"] == 4 for x in r)') == True ]] || show "arrived"
}

@test "a simulation that ends too early says so" {
	works "${incast[@]}" --time-us 10
	[[ $output =~ on\ +7\ +-\ +-\ .*"7 flows have not arrived" ]] || show "not arrived"
	works rdma simulate path-death --leaves 2 --hosts 2 --spines 2 --messages 16 --time-us 2500
	says "and not all returned"
}

@test "timely: rates and fairness, beside the published length of the queue" {
	works rdma simulate timely --time-us 20000 --flows 2
	says "published KB"
	measures rdma simulate timely --time-us 20000 --flows 2
	[[ $(runs '0 < r[0]["slowest_gbit_per_s"] <= r[0]["fastest_gbit_per_s"] < 10 and 0.5 <= r[0]["jain"] <= 1') == True ]] || show "rates"
	[[ $(runs 'r[0]["p50_us"], r[0]["victim_us"]') == "(None, None)" ]] || show "not measured"
}

@test "loss: a flow arrives in spite of every fault, and what was lost is sent again" {
	measures rdma simulate loss --messages 2 --lost 20000 --late 100000 --twice 20000 --corrupt 20000 --receive-ns 500 --control fixed
	[[ $(runs 'len(r), r[0]["arrived_flows"], r[0]["again"] > 0') == "(1, 1, True)" ]] || show "again"
}

@test "the same seed gives the same output, and another one does not" {
	measures "${incast[@]}" --lost 10000
	first=$output
	measures "${incast[@]}" --lost 10000
	[[ $output == "$first" ]] || show "same"
	measures "${incast[@]}" --lost 10000 --seed 2
	[[ $output != "${first/\"seed\": 1/\"seed\": 2}" ]] || show "other"
}

@test "--svg writes a picture, and replaces a file only with --force" {
	works "${incast[@]}" --svg a.svg
	python3 -c 'import sys, xml.dom.minidom as x; x.parse("a.svg")' || show "XML"
	[[ $(grep -c 'path class="r[01]' a.svg) -ge 8 && $(< a.svg) == *"the victim"* ]] || show "curves"
	fails 1 "exists" "${incast[@]}" --svg a.svg
	works "${incast[@]}" --svg a.svg --force
}

@test "wrong usage is one clear line" {
	fails 2 "a scenario is missing: expected incast" rdma simulate
	fails 2 "unknown scenario 'outcast'" rdma simulate outcast
	fails 2 "more than one scenario" rdma simulate incast loss
	fails 2 "--spread must be one of: round-robin two-choices pinned; not 'ecmp'" rdma simulate loss --spread ecmp
	fails 2 "--queue must be a size from 4096" rdma simulate loss --queue 1
	fails 2 "--paths" rdma simulate loss --paths 257
	fails 2 "--lost" rdma simulate loss --lost 1000000
	fails 2 "unknown option" rdma simulate loss --colour
	fails 2 "1000 senders: expected at most 79" rdma simulate incast --flows 1000
	fails 2 "1 host" rdma simulate permutation --leaves 1 --hosts 1
	fails 2 "--flows does not fit" rdma simulate permutation --flows 4
	fails 2 "40 flows need 41 hosts" rdma simulate timely --flows 40
	fails 2 "4096 hosts in all" rdma simulate permutation --leaves 1024
	fails 2 "a chunk of 32898 bytes does not fit" rdma simulate loss --chunk 32768 --queue 8K
	fails 2 "expected at least 1, of at most" rdma simulate loss --chunk 64 --bytes 64M
}
