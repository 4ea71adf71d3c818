"""fifo.py — the steps of tests/gpu/run for the FIFO from GPU threads to a CPU thread.

The parameter s of each step is the Suite of tests/gpu/run."""
import json, os, re, shutil, sys, tempfile


def millions(per_s):
    return f"{per_s['median'] / 1e6:.3g}"


def fifo_bench(s):
    """Runs `gpuload fifo bench`, which fails if an item is lost; adds its measured rates and latencies to s.figures."""
    status, out, err = s.run(s.tool("gpuload"), "fifo", "bench", "--json", "--driver", s.args.driver)
    s.check("gpuload fifo bench", status == 0, f"exit status {status}: {err}")
    if status:
        return
    report = json.loads(out)
    for r in report["rows"]:
        p, latency = r["per_s"], r["latency"]
        s.figures.append((
            f"`fifo bench`: {r['mode']}, {r['size']} slots, {r['parallel']} threads",
            f"push {millions(p['push'])}, release {millions(p['push_release'])}; + sync {millions(p['push_sync'])}, "
            f"release {millions(p['push_release_sync'])} M/s; median to pop {latency['push_to_pop_ns']['p50'] / 1000:.2f} us, "
            f"to sync {latency['push_to_sync_ns']['p50'] / 1000:.2f} us"))
    for r in report["warp_push"]:
        s.figures.append((f"`fifo bench`: warp push, {r['mode']}, {r['warps']} warps", f"{millions(r['per_s'])} M slots/s"))


def fifo_programs(s):
    """Runs the tests of proxy/ that accept any driver on this driver."""
    for program in ("test_device", "test_proxy_kernel", "test_two_processes"):
        if not os.path.exists(s.tool(f"tests/proxy/{program}")):
            s.result("skip", f"proxy/{program}", "not built")
            continue
        status, out, err = s.run(s.tool(f"tests/proxy/{program}"))
        failed = re.findall(r"\[  FAILED  \] (\w+)", out + err)
        s.check(f"tests/proxy/{program}", status == 0, f"exit status {status}: {' '.join(dict.fromkeys(failed))} {err[-1000:]}")


def fifo_soak(s):
    """Runs the soak test, which checks many items in every mode; then it must detect each kind of deliberate damage."""
    soak = s.tool("tests/proxy/soak/soak")
    if not os.path.exists(soak):
        return s.result("skip", "soak", "not built")
    n = s.args.triggers or (10 ** 9 if s.args.driver == "nvidia" else 10 ** 6)
    r = s.run(soak, "--driver", s.args.driver, "--triggers", str(n), timeout=560)
    s.counted("soak", r)
    s.figures += [("soak", line) for line in r[1].splitlines() if "triggers in" in line]
    s.counted("soak --break all", s.run(soak, "--driver", s.args.driver, "--triggers", "100000", "--break", "all"))


def fifo_trace(s):
    """Checks that the output of `gpuload fifo trace` is consistent (tests/cli/fifo/check_trace.py); adds the time of each step to
    s.figures."""
    modes = {"lanes": ["--sync"], "shared": ["--sync", "--mode", "shared", "--parallel", "64", "--size", "128"],
             "a full ring": ["--mode", "shared", "--size", "4"]}
    for name, options in modes.items():
        with tempfile.TemporaryDirectory() as d:
            status, out, err = s.run(s.tool("gpuload"), "fifo", "trace", "-o", f"{d}/t.json", *options, "--driver", s.args.driver)
            if status == 0:
                status, _, err = s.run(sys.executable, "tests/cli/fifo/check_trace.py", f"{d}/t.json")
        s.check(f"gpuload fifo trace, {name}", status == 0, f"exit status {status}: {err}")
        for line in out.splitlines():
            cells = re.split(r"  +", line.strip())
            if len(cells) >= 5 and cells[1][0].isdigit():
                s.figures.append((f"`fifo trace {' '.join(options)}`: {cells[0]}", f"{cells[1]} us, 99 of 100 within {cells[3]} us"))
            if line.startswith("the GPU's times"):
                s.figures.append((f"`fifo trace {' '.join(options)}`: clocks", line))


def fifo_bus(s):
    """Measures the limits of the bus, and the cost of the CPU side alone; checks only that the benchmarks run."""
    for program, more in (("bench_fifo_bus", ["--driver", s.args.driver]), ("bench_fifo", []), ("bench_proxy", [])):
        if not os.path.exists(s.tool(f"bench/fifo/{program}")):
            s.result("skip", program, "not built: run ninja bench-programs")
            continue
        status, out, err = s.run(s.tool(f"bench/fifo/{program}"), *more)
        s.check(program, status == 0, err)
        print(out)


def fifo_sanitizer(s):
    """Checks that compute-sanitizer reports no errors in the kernels that push to the FIFO."""
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if s.args.driver != "nvidia" or not os.path.exists(tool):
        return s.result("skip", "compute-sanitizer of the FIFO", "it is not installed, or the driver is not NVIDIA's")
    for check in ("memcheck", "racecheck", "initcheck"):
        status, out, err = s.run(tool, "--tool", check, "--error-exitcode", "9", s.tool("gpuload"), "fifo", "bench", "--sizes", "128",
                                 "--parallel", "1,8", "--triggers", "50", "--repeat", "1", "--driver", "nvidia")
        if "Device not supported" in out + err:
            return s.result("skip", "compute-sanitizer of the FIFO", "it does not support this device")
        s.check(f"compute-sanitizer --tool {check} gpuload fifo bench", status == 0, (out + err)[-2000:])


STEPS = [fifo_programs, fifo_soak, fifo_trace, fifo_bench, fifo_bus, fifo_sanitizer]
