#!/usr/bin/env bats
# run_profile.bats — gpuload run --profile: the table, JSON and the page.
load ../helper

@test "run --profile - prints a table of the kernel" {
	works run "$vecadd" --profile -
	says "kernel vecadd: 1 launch, grid"
	says "occupancy          100 % (64 of 64 warps) on sm_90 with 16 registers, an estimate"
	says "PTX instructions are counted, once for each warp"
	says "kernel    vecadd"
}

@test "run --profile FILE.json writes what the counters know" {
	works run "$vecadd" --profile p.json
	python3 - <<-'END' || show "should describe the kernel: $(head -c 400 p.json)"
		import json
		p = json.load(open("p.json"))
		[k] = p["kernels"]
		m = k["metrics"]
		[shape] = k["shapes"]
		warps = shape["grid"][0] * shape["block"][0] // 32
		assert m["launch__block_size"] == shape["block"][0]
		adds = [i for i in k["functions"][0]["instructions"] if i["ptx"].startswith("add.f64")]
		assert len(adds) == 1 and 0 < adds[0]["executed"] <= warps, adds
		assert m["l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"] == 2 * adds[0]["executed"], m
		assert m["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"] == 8, m
		assert sum(k["opcodes"].values()) == m["smsp__inst_executed.sum"]
		assert sum(l["executed"] for l in k["lines"]) == m["smsp__inst_executed.sum"]
	END
}

@test "run --profile FILE.html writes a page that needs nothing else" {
	works run "$vecadd" --profile p.html
	python3 - <<-'END' || show "should be a page: $(head -c 300 p.html)"
		from html.parser import HTMLParser
		open_tags, tags, void = [], set(), {"meta", "br", "link", "img"}
		class Page(HTMLParser):
		    def handle_starttag(self, tag, attributes):
		        tags.add(tag)
		        assert not any(k in ("src", "href") for k, v in attributes), attributes
		        if tag not in void:
		            open_tags.append(tag)
		    def handle_endtag(self, tag):
		        assert open_tags.pop() == tag, tag
		text = open("p.html").read()
		Page().feed(text)
		assert not open_tags and {"table", "style", "details"} <= tags
		assert "prefers-color-scheme: dark" in text and "add.f64" in text
	END
}

@test "a program of the driver is profiled by GPULOAD_SOFT_TOOLS" {
	GPULOAD_SOFT_TOOLS=profile:file=p.txt works run "$vecadd"
	grep -q "kernel vecadd: 1 launch" p.txt || show "should write a table"
	GPULOAD_SOFT_TOOLS=profile:file=p.txt:format=json works run "$vecadd"
	python3 -m json.tool p.txt > /dev/null || show "should write JSON"
}

@test "the occupancy follows the architecture and the registers" {
	works run "$vecadd" --profile - --profile-sm 86 --profile-registers 128
	says "33 % (16 of 48 warps) on sm_86 with 128 registers; limited by registers"
}

@test "wrong options of the profile are one clear line" {
	fails 2 "--profile-sm has no effect without --profile" run "$vecadd" --profile-sm 90
	fails 2 "unknown limits of sm_30" run "$vecadd" --profile - --profile-sm 30
	fails 2 "a thread has at most 255 registers, not 256" run "$vecadd" --profile - --profile-registers 256
	fails 1 "cannot write no/folder/p.json: No such file or directory" run "$vecadd" --profile no/folder/p.json
	GPULOAD_SOFT_TOOLS=profile:format=xml fails 2 "unknown format 'xml': expected table, json or html" run "$vecadd"
}

@test "run --profile-most fails if a kernel costs more than it may" {
	works run "$vecadd" --profile-most bank-conflicts=0,excess-sectors=0,diverged=0
	[[ $stderr == *"the counters are within their limits"* ]] || show "should say so"
	run --separate-stderr gpuload run "$vecadd" --profile-most smsp__inst_executed.sum=100000,sectors=5
	[[ $status == 1 ]] || show "should fail"
	[[ $stderr == *"kernel vecadd: sectors is 768, more than 5"*" of them at vecadd.ptx:"* ]] || show "should name the counter and the line"
	[[ $stderr != *inst_executed* ]] || show "should not name a limit that is kept"
}

@test "the line of a file can limit what its kernel costs" {
	{ echo "// gpuload run: f64[64]=ones f64[64]=ones out:f64[64] i32=64 --profile-most sectors=0"; cat "$vecadd"; } > limited.ptx
	run --separate-stderr gpuload run limited.ptx
	[[ $status == 1 && $stderr == *"kernel vecadd: sectors is 48, more than 0"* ]] || show "should fail"
	GPULOAD_DRIVER=soft works run limited.ptx --profile-most sectors=48
}

@test "wrong limits are one clear line" {
	fails 2 "unknown counter 'conflicts': expected instructions, branches" run "$vecadd" --profile-most conflicts=0
	fails 2 "a limit must be COUNTER=NUMBER, such as bank-conflicts=0, not 'sectors'" run "$vecadd" --profile-most sectors
	fails 2 "a limit must be COUNTER=NUMBER" run "$vecadd" --profile-most sectors=few
	fails 2 "--profile - and --json both print on stdout" run "$vecadd" --profile - --json
}

@test "the page of a long file shows the lines around those that were executed" {
	gpuload version | grep -q "^NVRTC  *[0-9]" || skip "no libnvrtc"
	{ seq -f "// before %g" 100; echo 'extern "C" __global__ void k(float *o) { o[threadIdx.x] = 1; }'; seq -f "// after %g" 100; } > long.cu
	works run long.cu 'out:f32[64]' --grid 1 --block 64 --profile long.html
	grep -q '>// before 99<' long.html && grep -q '>// after 10<' long.html || show "should show the lines nearby"
	! grep -q '>// before 50<\|>// after 90<' long.html || show "should leave out the others"
	grep -q '>\.\.\. 88 lines<' long.html || show "should say how many lines are left out: $(grep -o '\.\.\. .* lines' long.html)"
}
