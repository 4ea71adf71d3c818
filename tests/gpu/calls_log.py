"""calls_log.py — the steps of tests/gpu/run for `gpuload calls`: logs of programs on the selected driver, and the cost of a log."""
import glob, json, os, sys, tempfile

ODD = {   # cases of tests/nvidia/calls/odd.c that work on every driver: (argument, exit status, calls of cuDriverGetVersion)
    "threads": ("64", 0, 640), "fork": ("3", 0, 50), "exec": ("1", 0, 20), "late": ("0", 0, 10), "closed": ("0", 0, 10), "address": ("0", 0, 0),
    "crash": ("0", -6, 10)}


def log_of(s, *command, status=0):
    """Run a command under `gpuload calls`; return (the logged calls, an error text or "")."""
    with tempfile.TemporaryDirectory() as folder:
        got, _, err = s.run(s.tool("gpuload"), "calls", "--driver", s.args.driver, "--format", "json", "--output", f"{folder}/log", "--", *command)
        if got != status or "not recorded" in err:
            return [], f"exit status {got}: {err[-1000:]}"
        with open(f"{folder}/log", encoding="utf-8") as f:
            return [json.loads(line) for line in f], ""


def launched(calls, api):
    return sorted({c.get("kernel", "?") for c in calls if c["class"] == "launch" and c["api"] == api and "Kernel" in c["call"]})


def calls_log(s):
    """Checks that the log has the calls of gpuload, of programs with NVIDIA's static runtime, of Python, and of unusual programs."""
    calls, err = log_of(s, s.tool("gpuload"), "run", "demo/vecadd.ptx", "--driver", s.args.driver)
    s.check("calls: gpuload run", any(c.get("kernel", "").startswith("vecadd") and c["result"] == "CUDA_SUCCESS" for c in calls), err or "no launch of vecadd")
    for program in sorted(glob.glob(s.tool("tests/nvidia/cudart/*.cudart")))[:6]:
        calls, err = log_of(s, program)
        name = os.path.basename(program)
        s.check(f"calls: {name}", not err and calls, err or "no calls")
        print(f"     {name}: {len(calls)} calls, {sum(c['api'] == 'runtime' for c in calls)} of the runtime, kernels: {', '.join(launched(calls, 'driver')) or 'none'}")
    calls, err = log_of(s, sys.executable, "-c", "import ctypes; c = ctypes.CDLL('libcuda.so.1'); c.cuInit(0); n = ctypes.create_string_buffer(99); "
                        "c.cuDeviceGetName(n, 99, 0)")
    s.check("calls: Python", any(c["call"] == "cuDeviceGetName" and c["args"]["name"] for c in calls), err or "cuDeviceGetName is missing")
    for case, (argument, status, n) in ODD.items():
        calls, err = log_of(s, s.tool("tests/nvidia/calls/odd"), case, argument, status=status)
        count = sum(c["call"] == "cuDriverGetVersion" for c in calls)
        s.check(f"calls: {case}", not err and count == n, err or f"{count} calls of cuDriverGetVersion, expected {n}")
        if case == "address":
            names = [c["call"] for c in calls][-3:]
            s.check("calls: cuGetProcAddress", names == ["cuMemAllocPitch_v2", "cuMemFree_v2", "cuStreamSynchronize_ptsz"], " ".join(names))


def calls_cost(s):
    """Measures the time of a launch with and without a log; checks only that the benchmark runs."""
    few = ["--launches", "100000"] if s.args.driver == "soft" else ["--pairs", "5", "--launches", "300000"]
    status, out, err = s.run(sys.executable, "bench/bench_calls.py", "--driver", s.args.driver, "--build", s.build, *few, timeout=600)
    s.check("calls: the cost", status == 0, err)
    title = ""
    for line in out.splitlines():
        what, _, value = line.strip("| ").partition(" | ")
        if value.startswith("ns for each"):
            title = what
        elif not line.startswith("|---"):
            s.figures.append((f"gpuload calls, {title}: {what}", value))


STEPS = [calls_log, calls_cost]
