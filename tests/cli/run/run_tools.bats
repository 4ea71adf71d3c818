#!/usr/bin/env bats
# run_tools.bats — options of gpuload run that run the kernel under a tool of the software driver, such as memcheck.
load ../helper

@test "run --trace writes the instructions of the kernel to a file" {
	works run "$vecadd" --trace out.txt
	says "kernel    vecadd"
	[[ $(grep -c "add.f64" out.txt) -gt 0 ]] || show "should contain the addition: $(head -3 out.txt)"
}

@test "run --trace - writes to stdout, before the result" {
	works run "$vecadd" --trace -
	says "add.f64"
	[[ ${output##*add.f64} == *"kernel    vecadd"* ]] || show "the result should follow"
}

@test "a tool of GPULOAD_SOFT_TOOLS is started, too" {
	GPULOAD_SOFT_TOOLS=trace:file=a.txt works run "$vecadd"
	[[ -s a.txt ]] || show "should write a trace"
}

@test "run --trace says when the limit is reached" {
	works run "$vecadd" --trace out.txt --trace-limit 7
	[[ $(grep -c "^#" out.txt) == 7 ]] || show "should contain 7 instructions"
	[[ $stderr == *"the limit is reached: instructions 0 to 6 were recorded"* ]] || show "should say so"
}

@test "run --trace writes what was recorded when --timeout ends the run" {
	sed "s/bra again;/nanosleep.u32 1000000; bra again;/" "$faults" > faults.ptx  # so that the trace is short
	run --separate-stderr gpuload run faults.ptx --kernel endless --block 1 --timeout 0.2 --trace page.html,out.txt,out.json --trace-limit 1000000000
	[[ $status == 1 && $stderr == *"while the kernel is still running"*"endless is still running after 0.2 s"* ]] || show "should say so"
	[[ $(tail -1 out.txt) == "the trace ends here: the kernel is still running" ]] || show "should say so: $(tail -1 out.txt)"
	python3 - <<-'END'
		import json
		page = open("page.html").read()
		record = json.loads(page.split('id="record">')[1].split("</script>")[0])
		trace = json.load(open("out.json"))
		assert record["running"] and trace["otherData"]["still running"]
		n = sum(line.startswith("#") for line in open("out.txt"))
		assert 0 < n == record["n"] == sum(e["ph"] == "X" for e in trace["traceEvents"])
	END
}

@test "run --trace-only, --blocks and --from choose what is recorded" {
	works run "$vecadd" --trace all.txt
	works run "$vecadd" --trace out.txt --trace-only op=ld.global,warp=3,5-6 --blocks 1,3
	[[ $(grep "^#" out.txt | sed 's/^#[0-9]* //; s/  reads.*//') == "$(grep -E "^#.*block (1|3),0,0 warp [356] .* ld\.global" all.txt | sed 's/^#[0-9]* //; s/  reads.*//')" ]] ||
		show "should be a part of the whole trace"
	[[ $(grep -c "^#" out.txt) == 12 ]] || show "2 loads of 3 warps in 2 blocks"
	works run "$vecadd" --trace out.txt --from 100 --trace-limit 10
	[[ $(grep "^#" out.txt | sed 's/  .*//') == "$(grep "^#" all.txt | sed -n 101,110p | sed 's/  .*//')" ]] || show "should begin at number 100"
	works run "$vecadd" --trace out.txt --trace-only kernel=other
	[[ $stderr == *"no instruction was recorded"* ]] || show "should say so"
}

@test "run --trace FILE.json writes events for Perfetto" {
	works run "$vecadd" --trace out.json --trace-only warp=2 --blocks 2
	python3 - <<-'END'
		import json
		events = json.load(open("out.json"))["traceEvents"]
		assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["launch 0, block 2,0,0"]
		done = [e for e in events if e["ph"] == "X"]
		assert [e["ts"] for e in done] == list(range(22)) and {e["tid"] for e in done} == {2}
		assert done[-3]["name"] == "add.f64" and done[-3]["args"]["%fd3"].startswith("1152 1154 1156 "), done[-3]
	END
}

@test "run --trace FILE.html,FILE.json writes both about the same run, and the page names the kernel" {
	works run "$vecadd" --trace page.html,all.json
	python3 - <<-'END'
		import json
		page = open("page.html").read()
		record = json.loads(page.split('id="record">')[1].split("</script>")[0])
		assert record["n"] == sum(e["ph"] == "X" for e in json.load(open("all.json"))["traceEvents"]) == 704
		assert record["launches"][0]["kernel"] == "vecadd" and record["launches"][0]["grid"] == [4, 1, 1]
		assert "add.f64" in record["functions"][0]["rows"][19]["text"]
		assert "http" not in page, "it must work without a network"
	END
	fails 2 "two files of the same kind" run "$vecadd" --trace a.html,b.html
}

@test "a file name with characters that GPULOAD_SOFT_TOOLS uses is possible" {
	works run "$vecadd" --trace 'a:b,c=d\e.txt'
	[[ -s 'a:b,c=d\e.txt' ]] || show "should write this file"
}

@test "a kernel is watched on the software driver only" {
	fails 2 "leave out --driver nvidia" run "$vecadd" --trace out.txt --driver nvidia
	GPULOAD_DRIVER=nvidia works run "$vecadd" --trace out.txt
	says "(soft driver)"
}

@test "options of tools are refused in one line if they are wrong" {
	fails 2 "--trace-limit has no effect without --trace" run "$vecadd" --trace-limit 3
	fails 2 "limit needs a number of at least 1, not 'x'" run "$vecadd" --trace out.txt --trace-limit x
	fails 2 "must end in .txt" run "$vecadd" --trace out.pdf
	fails 2 "line needs a number or a range such as 4-7, not '9-4'" run "$vecadd" --trace out.txt --trace-only line=9-4
	fails 2 "not by 'colour'" run "$vecadd" --trace out.txt --trace-only colour=red
	fails 2 "a filter must begin with KEY=" run "$vecadd" --trace out.txt --trace-only 7
	fails 2 "block needs a number" run "$vecadd" --trace out.txt --blocks all
	fails 2 "--trace - and --json both print on stdout" run "$vecadd" --trace - --json
	fails 1 "cannot write the trace to no/folder.txt" run "$vecadd" --trace no/folder.txt
}

@test "a wrong GPULOAD_SOFT_TOOLS is one clear line" {
	GPULOAD_SOFT_TOOLS=vecadd fails 2 "there is no tool 'vecadd': GPULOAD_SOFT_TOOLS=help lists them" run "$vecadd"
	GPULOAD_SOFT_TOOLS=trace:file=x.txt:colour=red fails 2 "trace has no option 'colour'" run "$vecadd"
	GPULOAD_SOFT_TOOLS=trace fails 2 "trace needs a file" run "$vecadd"
	GPULOAD_SOFT_TOOLS=trace:file=x.txt fails 2 "the tool trace is given twice" run "$vecadd" --trace y.txt
	[[ ! -e y.txt ]] || show "should write nothing"
}

@test "the tools of a program are those of the options" {
	[[ -x ${GPULOAD_NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)} ]] || skip "no nvcc"
	! grep -qaE '__(asan|ubsan|tsan|gcov)_' "$(dirname "$(command -v gpuload)")/libgpuload-rt.a" || skip "the program would need the sanitizer's library"
	cat > program.cu <<-'END'
		__global__ void k(float *p) { p[threadIdx.x] *= 2; }
		int main() { float *p; cudaMalloc(&p, 256); k<<<1, 64>>>(p); return cudaDeviceSynchronize() ? 1 : 7; }
	END
	GPULOAD_CACHE=$PWD/cache run --separate-stderr gpuload run program.cu --trace out.txt
	[[ $status == 7 ]] || show "should run the program"
	grep -q "warp 1 .*mul.*f32\|warp 1 .*add.*f32" out.txt || show "should trace it: $(head -3 out.txt)"
}

@test "run --synccheck reports wrong barriers, and ends a deadlock" {
	planted="$cli_tests/../softcuda/tools/faults/synccheck"
	cp "$planted"/two_barriers.ptx "$planted"/spin_on_shared_flag.ptx .
	run --separate-stderr gpuload run two_barriers.ptx --synccheck
	[[ $status == 1 && $stderr == *"two_barriers.ptx:21: bar.sync: divergent barrier"* ]] || show "should find the barrier"
	run --separate-stderr gpuload run spin_on_shared_flag.ptx --synccheck
	[[ $status == 1 && $stderr == *"polls 4 bytes at offset 0 of shared memory"* ]] || show "should find the flag"
	works run "$vecadd" --synccheck
	[[ $stderr == *"gpuload synccheck: no errors"* ]] || show "should find nothing"
	fails 2 "--synccheck-timeout has no effect without --synccheck" run "$vecadd" --synccheck-timeout 3
	fails 2 "timeout needs a number of at least 1, not '0'" run "$vecadd" --synccheck --synccheck-timeout 0
}

@test "run --racecheck reports data races with both places" {
	tools="$cli_tests/../softcuda/tools"
	built=$(cd "$cli_tests/../.." && cd "${GPULOAD_BUILD:-build}" && pwd)/kernels/tests/softcuda/tools/faults/racecheck
	cp "$built"/{reduction,reduction_right}.ptx "$tools/racecheck/same_value.ptx" .
	run --separate-stderr gpuload run reduction.ptx --racecheck
	[[ $status == 1 && $stderr == *"race: 4 bytes of shared memory"*"write by thread"*"(reduction.cu:"*"read by thread"*"(reduction.cu:"* ]] ||
		show "should find the race"
	works run reduction_right.ptx --racecheck
	[[ $stderr == *"gpuload racecheck: no errors"* ]] || show "should find nothing"
	works run same_value.ptx --racecheck
	run --separate-stderr gpuload run same_value.ptx --racecheck --racecheck-same
	[[ $status == 1 && $stderr == *"race: 4 bytes of global memory"* ]] || show "should report writes of equal values"
	fails 2 "--racecheck-same has no effect without --racecheck" run "$vecadd" --racecheck-same
}

@test "run --memcheck finds a wrong access, and names the allocation" {
	cp "$cli_tests"/../softcuda/tools/faults/memcheck/global_{past_end,unwritten}.ptx .
	works run "$vecadd" --memcheck
	[[ $stderr == *"gpuload memcheck: no errors"* ]] || show "should find nothing: $stderr"
	run --separate-stderr gpuload run global_past_end.ptx --memcheck
	[[ $status == 1 && $stderr == *"gpuload memcheck: global_past_end.ptx:"*"4-byte global store"*"allocated by"* ]] || show "should name the instruction and the allocation"
	run --separate-stderr gpuload run global_unwritten.ptx --memcheck
	[[ $status == 1 && $stderr == *"4-byte global read"*"not written (uninitialised)"* ]] || show "an output is not written before the kernel"
	works run global_unwritten.ptx inout:u32[64]=0 --block 64 --memcheck
}

@test "run --schedule finds a result that depends on the order, and replays it" {
	cp "$cli_tests"/../softcuda/tools/faults/schedule/lost_update*.ptx .
	run --separate-stderr gpuload run lost_update.ptx --schedule all
	[[ $status == 1 && $stderr == *"the result depends on the order"* ]] || show "should find the order"
	works run lost_update.ptx --schedule "$(sed -n 's/.*--schedule \(replay:.*\)/\1/p' <<< "$stderr")"
	says "inout:u32[64]=0: 2 0 0"
	works run lost_update_right.ptx --schedule all
	[[ $stderr == *"all 6 schedules give the same result; complete"* ]] || show "should prove it"
	works run lost_update_right.ptx --schedule 7
	fails 2 "schedule needs a seed (a number), all, or replay:STRING, not 'x'" run "$vecadd" --schedule x
	fails 2 "'replay:1/' is not a replay string" run "$vecadd" --schedule replay:1/
	fails 2 "--max has no effect without --schedule" run "$vecadd" --max 3
}

@test "a misspelt tool is a usage error with a suggestion, whoever starts the tools" {
	GPULOAD_SOFT_TOOLS=memchek fails 2 "there is no tool 'memchek': did you mean memcheck?" run "$vecadd"
	GPULOAD_SOFT_TOOLS=profile,synchcheck:timeout=2 fails 2 "did you mean synccheck?" soft -- true
	fails 2 "did you mean racecheck?" soft --tools "memcheck:leaks=no,racechek" -- true
	fails 2 "memcheck has no option 'leak'" soft --tools "racecheck,memcheck:leak=no" -- true
	grep -qaE '__(asan|tsan)_init' "$(command -v gpuload)" && return 0  # its library would have to be preloaded first
	env $(gpuload soft --env | grep -v NVCC) GPULOAD_SOFT_TOOLS=memchek gpuload devices > out 2>&1 && show "should fail"
	[[ $(< out) == *"did you mean memcheck?"* ]] || show "should suggest memcheck: $(< out)"
}

@test "a tool that has seen no kernel does not say that there are no errors" {
	for tool in memcheck racecheck synccheck; do
		run --separate-stderr gpuload run "$vecadd" --block 4096 --$tool
		[[ $status == 2 && $stderr == *"gpuload $tool: no kernel ran, so nothing was checked"* && $stderr != *"no errors"* ]] || show "should say so"
	done
}
