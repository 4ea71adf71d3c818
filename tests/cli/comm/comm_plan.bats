#!/usr/bin/env bats
# comm_plan.bats — gpuload comm plan: predicted times, where the best algorithm changes, parameters that are measured.
load ../helper

# json EXPRESSION: a Python expression over the output's object j.
json() {
	python3 -c "import json, sys; j = json.loads(sys.argv[1]); print(($1))" "$output"
}

@test "plan prints a time for each algorithm, and where the best one changes" {
	works comm plan --ranks 64 --gpus-per-host 8 --link ndr --bytes 1K:64M:256
	says "# gpuload comm plan: allreduce, 64 ranks, 8 a host"
	says "# between simple: overhead 3, latency 2.5, gap 1 us, 45 GB/s"
	says "tree/simple below "
	says "twolevel/simple from "
	says "# a ring is never the best for these sizes"
	says "# twolevel is faster than a ring for all of these sizes"
	works comm plan --ranks 4 --call broadcast --inside 1:10 --bytes 1M
	says "ring/ll128"
	says_not "tree"
}

@test "65536 ranks are predicted; --json has the rows, the ranges and the parameters" {
	works comm plan --ranks 65536 --gpus-per-host 8 --link 2.5:45 --bytes 1K:1G:1024 --json
	[[ $(json 'j["n_ranks"], j["ranks_per_host"], j["between"]["simple"]["gb_per_s"], [r["bytes"] for r in j["rows"]]') == \
"(65536, 8, 45, [1024, 1048576, 1073741824])" ]] || show "the machine and the sizes"
	[[ $(json 'all(r["best"] == {k: min(r["times"], key=lambda t: t["us"])[k] for k in ("algorithm", "protocol")} for r in j["rows"])') == True ]] ||
		show "the best has the least time"
	[[ $(json 'j["ranges"][0]["from_bytes"], j["ranges"][-1]["to_bytes"]') == "(1024, 1073741824)" ]] || show "ranges"
	[[ $(json '[(a["to_bytes"] - b["from_bytes"]) for a, b in zip(j["ranges"], j["ranges"][1:])] == [0] * (len(j["ranges"]) - 1)') == True ]] ||
		show "ranges side by side"
}

@test "the plot has a line for each algorithm, and one where the best changes" {
	works comm plan --ranks 64 --gpus-per-host 8 --link ndr --plot p.svg
	python3 - <<-'EOF'
		import xml.etree.ElementTree as tree
		paths = [p.get("class") for p in tree.parse("p.svg").getroot().iter("{http://www.w3.org/2000/svg}path")]
		assert [paths.count(c) for c in ("ring", "tree", "twolevel", "oneshot", "change")] == [2, 2, 2, 0, 1], paths
	EOF
	fails 1 "p.svg already exists; --force replaces it" comm plan --ranks 4 --plot p.svg
	works comm plan --ranks 4 --plot p.svg --force
}

@test "--check measures, predicts and writes parameters, which --params reads" {
	works comm plan --check -n 4 --ranks-per-host 2 --iters 1 --bytes 4K -o p.csv
	says "# measured on 4 ranks here"
	for name in ring/ll ring/simple tree/ll128 twolevel/simple; do
		says " 4096  $name"
	done
	says "# typical error: a factor of "
	[[ $(cut -d, -f1-3 p.csv | tail -n 3 | tr '\n' ' ') == "gpuload software GPU,device,ll gpuload software GPU,device,ll128 gpuload software GPU,device,simple " ]] ||
		show "three rows"
	works comm plan --ranks 8 --params p.csv --bytes 1M --json
	[[ $(json 'j["parameters"], len(j["inside"]), j["cores"] > 0') == "('p.csv', 3, True)" ]] || show "parameters of the file"
	works comm plan --measure -n 2 --transport host --iters 1 -o p.csv --ranks 1024 --gpus-per-host 2 --link ndr --bytes 1M --json
	[[ $(json 'j["parameters"], j["n_ranks"]') == "('measured here', 1024)" ]] || show "measured, and predicted for more ranks"
	[[ $(cut -d, -f2-3 p.csv | tail -n +2 | tr '\n' ' ') == "device,ll device,ll128 device,simple host,ll host,simple " ]] || show "rows of both transports"
	echo "G,device,ll,2,x,3,1,0.5,1,4096,node,d" >>p.csv
	fails 1 "p.csv:7: overhead_us 'x'" comm plan --ranks 8 --params p.csv
}

@test "a wrong command line is one line and exit code 2" {
	fails 2 "--ranks is missing" comm plan
	fails 2 "--ranks must be a number from 2 to 65536, not '1'" comm plan --ranks 1
	fails 2 "--ranks must be a number from 2 to 65536, not '65537'" comm plan --ranks 65537
	fails 2 "16 ranks with 8 per host need a network between hosts: give --link" comm plan --ranks 16 --gpus-per-host 8
	fails 2 "'warp' is not a link: expected one of nvlink4, " comm plan --ranks 16 --gpus-per-host 8 --link warp
	fails 2 "--call must be allreduce, " comm plan --ranks 4 --call reduce
	fails 2 "-n starts ranks for --measure or --check" comm plan -n 2
	fails 2 "--measure and --check need the option -n N with at least 2 ranks" comm plan --check
	fails 2 "-n is 1, but at least 2 ranks" comm plan --check -n 1
	fails 2 "--check predicts for the ranks that it starts" comm plan --check -n 2 --ranks 4
	fails 2 "--params cannot be combined with" comm plan --measure -n 2 --params x.csv
	fails 2 "-o writes measured parameters" comm plan --ranks 4 -o x.csv
	fails 2 "unexpected argument '4'" comm plan 4
	fails 1 "nothing.csv" comm plan --ranks 4 --params nothing.csv
}
