#!/usr/bin/env bats
# calls.bats — gpuload calls, and gpuload soft --calls: the formats, the filter, the summary, the exit status.
load helper

run_vecadd=(gpuload run "$BATS_TEST_DIRNAME/ptx/vecadd.ptx")

@test "calls prints a line for each call, with names of arguments and results" {
	works calls --driver soft -- "${run_vecadd[@]}"
	[[ $stderr == *"cuInit(Flags=0) = CUDA_SUCCESS <"*" us>"* ]] || show "should print cuInit"
	[[ $stderr == *"cuLaunchKernel(f=0x"*"<vecadd"*">, gridDimX="* ]] || show "should print the kernel's name"
	[[ $stderr =~ [0-9]+\ 0\.[0-9]{9}\ cuMemAlloc_v2\(\*dptr=0x[0-9a-f]+,\ bytesize=[0-9]+\) ]] || show "should print what cuMemAlloc returned"
	works calls --driver soft --filter 'cuModuleGetFunction,cuLibraryGetKernel' -- "${run_vecadd[@]}"
	[[ $stderr == *'name="'* ]] || show "texts should be quoted"
}

@test "an error has its name and its text" {
	run --separate-stderr gpuload calls --driver soft --filter module -- gpuload run "$BATS_TEST_DIRNAME/../../README.md"
	[[ $status == 1 || $status == 2 ]] || show "should have the exit status of the command"
	works calls --driver soft --filter memory -- python3 -c 'import ctypes; c = ctypes.CDLL("libcuda.so.1"); c.cuMemFree_v2(ctypes.c_uint64(64))'
	[[ $stderr == *"cuMemFree_v2(dptr=0x40) = CUDA_ERROR_NOT_INITIALIZED (initialization error) <"* ]] || show "should print the error"
}

@test "the filter takes names, patterns and classes, and removes with !" {
	works calls --driver soft --filter launch -- "${run_vecadd[@]}"
	[[ $(grep -vc "cuLaunchKernel(" <<<"$stderr") == 0 ]] || show "should have launches only"
	works calls --driver soft --filter 'cuMemAlloc,cuEvent*' -- "${run_vecadd[@]}"
	[[ $stderr == *cuMemAlloc_v2* && $stderr == *cuEventRecord* && $stderr != *cuInit* ]] || show "should have both"
	works calls --driver soft --filter '!device,!cuMem*' -- "${run_vecadd[@]}"
	[[ $stderr == *cuLaunchKernel* && $stderr != *cuDeviceGet* && $stderr != *cuMemAlloc* ]] || show "should not have them"
	works calls --driver soft --filter 'memory,!cuMemAlloc' -- "${run_vecadd[@]}"
	[[ $stderr != *cuMemAlloc_v2* && $stderr == *cuMemFree* ]] || show "should remove a name of a class"
}

@test "json has an object in each line" {
	works calls --driver soft --format json --output log -- "${run_vecadd[@]}"
	[[ -z $stderr ]] || show "should print nothing on stderr"
	python3 - <<-'END' || show "should be JSON"
		import json
		calls = [json.loads(line) for line in open("log")]
		launch = [c for c in calls if c["class"] == "launch"][0]
		assert launch["result"] == "CUDA_SUCCESS" and launch["kernel"].startswith("vecadd") and launch["args"]["blockDimX"] >= 1, launch
		assert all(c["duration_ns"] >= 0 and c["api"] == "driver" and c["pid"] > 0 for c in calls)
		assert [c["start_ns"] for c in calls] == sorted(c["start_ns"] for c in calls)
	END
}

@test "perfetto has a track for each thread" {
	works calls --driver soft --format perfetto --output trace.json -- "${run_vecadd[@]}"
	python3 - <<-'END' || show "should be a trace"
		import json
		events = json.load(open("trace.json"))["traceEvents"]
		assert any(e["ph"] == "X" and e["name"].startswith("cuLaunchKernel vecadd") and e["cat"] == "launch" for e in events)
		assert any(e["ph"] == "M" and e["name"] == "thread_name" for e in events)
	END
	works calls --driver soft --format perfetto --output empty.json -- true
	python3 -c 'import json; assert json.load(open("empty.json"))["traceEvents"] == []' || show "should be a trace without events"
}

@test "the summary counts calls, time and errors" {
	works calls --driver soft --summary -- "${run_vecadd[@]}"
	[[ $stderr == "% time       total us      mean us     calls  errors  call"* ]] || show "should have a head"
	[[ $stderr =~ \ 1\ +0\ \ cuInit ]] || show "should count cuInit once"
	works calls --driver soft --summary --format json --output - --filter cuInit -- gpuload run "$vecadd"
	grep -Eq '"call":"cuInit","calls":1,"total_ns":[0-9]+,"errors":0' <<<"$output" || show "should be JSON"
}

@test "soft --calls is the short form" {
	works soft --quiet --calls=launch -- "${run_vecadd[@]}"
	[[ $stderr == *cuLaunchKernel* && $stderr != *cuInit* ]] || show "should log launches"
	works soft --quiet --calls --calls-format json --calls-output log -- "${run_vecadd[@]}"
	grep -q '"call":"cuInit"' log || show "should log all calls"
	fails 2 "need --calls" soft --calls-output x -- true
	fails 2 "cannot be combined with --env" soft --calls --env
	fails 2 "did you mean launch?" soft --calls=lanch -- true
}

@test "the exit status and the signals are those of the command" {
	run gpuload calls --driver soft -- sh -c 'exit 37'
	[[ $status == 37 ]] || show "should exit with 37"
	run gpuload calls --driver soft -- sh -c 'kill -KILL $$'
	[[ $status == 137 ]] || show "should be killed"
	run gpuload soft --quiet --calls -- sh -c 'exit 5'
	[[ $status == 5 ]] || show "should exit with 5"
	gpuload calls --driver soft -- sh -c 'trap "exit 9" TERM; touch ready; while :; do sleep 0.05; done' &
	local own=$! i
	for ((i = 0; i < 600; i++)); do [[ -e ready ]] && break; sleep 0.05; done
	kill -TERM "$own"
	wait "$own" || status=$?
	[[ $status == 9 ]] || show "the command should receive the signal"
}

@test "wrong options are usage errors" {
	fails 2 "a command is missing" calls
	fails 2 "no call or class 'cuMemAloc'; did you mean cuMemAlloc?" calls --filter cuMemAloc -- true
	fails 2 "'x*' matches no call; the classes are memory" calls --filter 'x*' -- true
	fails 2 "unknown format 'xml'; it must be text, json or perfetto" calls --format xml -- true
	fails 2 "--summary cannot be combined with the format perfetto" calls --summary --format perfetto -- true
	fails 2 "--driver must be auto, nvidia or soft" calls --driver x -- true
	fails 1 "cannot run no-such-command: No such file or directory" calls --driver soft -- no-such-command
	fails 1 "cannot write no/such/file" calls --driver soft --output no/such/file -- true
}

@test "a log that cannot be written does not stop the command" {
	[[ -w /dev/full ]] || skip "no /dev/full"
	run --separate-stderr gpuload calls --driver soft --output /dev/full -- gpuload run "$vecadd"
	[[ $status == 1 && $stderr == *"cannot write the log: No space left on device"* && $output == *vecadd* ]] || show "should say so at the end"
}
