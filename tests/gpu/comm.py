"""comm.py — the steps of tests/gpu/run for communication kernels.

Ranks are processes, one for each GPU and at least two.  Sizes are small if processes share a GPU, because their kernels then take turns,
which is slow.  In comm_threads the ranks are threads, whose kernels run on one GPU at the same time.
The parameter s of each step is the Suite of tests/gpu/run."""
import json, os

CALLS = ("sendrecv", "alltoall", "allreduce", "reducescatter", "allgather", "broadcast")


def n_gpus(s):
    status, out, _ = s.run(s.tool("gpuload"), "devices", "--driver", s.args.driver, "--json")
    return len(json.loads(out)["devices"]) if status == 0 else 1


def comm_collectives(s):
    """Checks every collective with several algorithms, protocols and transports; measures its speed if there are several GPUs."""
    gpus = n_gpus(s)
    ranks, own_gpus = max(2, min(gpus, 8)), gpus > 1
    size = "8:16M:64" if own_gpus else "8:64K:16"
    common = ["--driver", s.args.driver, "-n", str(ranks), "--iters", "2", "--warmup", "1", "--json"]
    for call in CALLS:
        for choice in ([], ["--transport", "host"], ["--no-register"], ["--graph"], ["--algo", "ring", "--proto", "ll"],
                       ["--algo", "ring", "--proto", "ll128"], ["--algo", "ring", "--proto", "simple"]):
            name = f"comm {call} {' '.join(choice)}".strip()
            status, out, err = s.run(s.tool("gpuload"), "comm", call, "--bytes", size, *choice, *common)
            try:
                rows = json.loads(out)["rows"]
            except (ValueError, KeyError):
                rows = []
            s.check(f"{name}: {len(rows)} sizes", status == 0 and rows, f"exit status {status}: {err[-1000:]}")
    status, out, err = s.run(s.tool("gpuload"), "comm", "tune", "--driver", s.args.driver, "-n", str(ranks), "--iters", "1", "--bytes",
                             "64:1M:128" if own_gpus else "64")
    s.check(f"comm tune: {len(out.splitlines())} lines", status == 0 and len(out.splitlines()) > len(CALLS), f"exit status {status}: {err[-1000:]}")
    for apart in ("0", "3"):
        status, out, err = s.run(s.tool("gpuload"), "run", s.tool("kernels/tests/comm/split_warp.ptx"), "--driver", s.args.driver, "--grid", "2",
                                 "--block", "32", "out:u32[32]", "u32=100000" if s.args.driver == "nvidia" else "u32=1000", f"u32={apart}",
                                 "--expect", "0=0")
        s.check(f"LL128 from a warp that has diverged, threads {2 * int(apart)} and {2 * int(apart) + 1} apart", status == 0, out + err)
    if own_gpus and s.args.driver == "nvidia":
        for call in CALLS:
            status, out, err = s.run(s.tool("gpuload"), "comm", call, "-n", str(ranks), "--bytes", "8:256M:8")
            s.check(f"comm {call}: speed", status == 0, err)
            print(out)


def comm_random(s):
    """Runs random calls of all collectives, and compares every result with a reference."""
    soak = s.tool("tests/comm/soak/comm_random")
    if not os.path.exists(soak):
        return s.result("skip", "comm/soak", "not built")
    gpus = n_gpus(s)
    if gpus > 1:
        options = ["--cases", "1000", "--ranks", f"2:{min(gpus, 8)}"]
    else:
        options = ["--cases", "60", "--ranks", "2:2", "--bytes", "65536"]
    status, out, err = s.run(soak, *options, timeout=560)
    s.check(f"comm: {(out.strip().splitlines() or ['no output'])[-1]}", status == 0, f"exit status {status}: {out[-800:]} {err[-800:]}")


def comm_threads(s):
    """Runs two ranks as threads, on two GPUs if there are two: measures every collective over memory and network, then random calls."""
    where = "on one GPU" if n_gpus(s) < 2 else "on two GPUs"
    common = ["--driver", s.args.driver, "-n", "2", "--threads", "--timeout", "20", "--json"]
    most = {"nvidia": "16M", "soft": "64K"}[s.args.driver]
    for call in CALLS:
        for choice in ([], ["--transport", "host"], ["--transport", "net", "--provider", "tcp"]):
            name = f"comm {call} --threads {' '.join(choice)}".strip()
            status, out, err = s.run(s.tool("gpuload"), "comm", call, "--bytes", f"8:{most}:8", *choice, *common)
            try:
                rows = json.loads(out)["rows"]
            except (ValueError, KeyError):
                rows = []
            s.check(f"{name}: {len(rows)} sizes", status == 0 and rows, f"exit status {status}: {err[-1000:]}")
            if rows:
                times = ", ".join(f"{r['bytes']} {r['out_of_place']['time_us']:.1f}" for r in rows)
                s.figures.append((f"`{name}`, 2 ranks {where}: us of a size", times))
                s.figures.append((f"`{name}`: bus bandwidth of the largest", f"{rows[-1]['out_of_place']['busbw_gb_per_s']:.2f} GB/s"))
    for mode, sizes in (("bi", "256K:16M:4"), ("tpt", "256K:16M:4"), ("lat", "8:4K:8")):
        status, out, err = s.run(s.tool("gpuload"), "rdma", "bench", "--provider", "tcp", "--driver", s.args.driver, "--mode", mode, "--sizes",
                                 sizes, "--time", "1")
        s.check(f"rdma bench --mode {mode}", status == 0, err)
        print(out)
    soak = s.tool("tests/comm/soak/comm_random")
    if not os.path.exists(soak):
        return s.result("skip", "comm/soak --threads", "not built")
    n = "500" if s.args.driver == "nvidia" else "100"
    ll128 = ["--call", "allreduce", "--algo", "ring", "--proto", "ll128", "--transport", "device"]
    for options in (["--ranks", "2:4"], ["--ranks", "2:4", "--transport", "net"], ["--ranks", "2:2", *ll128]):
        status, out, err = s.run(soak, "--threads", "--cases", n, *options, timeout=120)
        s.check(f"comm --threads {' '.join(options)}: {(out.strip().splitlines() or ['no output'])[-1]}", status == 0,
                f"exit status {status}: {out[-800:]} {err[-800:]}")


def comm_faults(s):
    """Kills ranks at random moments: the other ranks must end in time, and name the killed rank."""
    fault = s.tool("tests/comm/fault/fault")
    if not os.path.exists(fault):
        return s.result("skip", "comm/fault", "not built")
    status, out, err = s.run(fault, "--only", "kill", "--rounds", "50", "--ranks", "2-4", timeout=400)
    s.check("comm: 50 ranks killed", status == 0, f"exit status {status}: {out[-1500:]} {err[-800:]}")
    print(out)


def comm_netqueue(s):
    """Checks netqueue: streams that a kernel unpacks, random entries and invalid entries; then measures it against plain copies."""
    driver = ["--driver", s.args.driver]
    for options in ([], ["--align", "1"], ["--align", "16", "--source", "memory"], ["--corrupt", "0.01"], ["--pieces", "1:100", "--bytes", "1M"]):
        status, out, err = s.run(s.tool("gpuload"), "comm", "netqueue", "--check", "--bytes", "16M", *options, *driver)
        s.check(f"comm netqueue {' '.join(options)}".strip(), status == 0, f"exit status {status}: {out[-800:]} {err[-800:]}")
    for program, options in (("test_unpack", []), ("campaign", ["--pieces", "20000", "--hostile", "120000"])):
        path = s.tool(f"tests/lab/netqueue/{program}")
        if not os.path.exists(path):
            s.result("skip", f"lab/netqueue/{program}", "not built")
            continue
        status, out, err = s.run(path, *options, timeout=400)
        s.check(f"lab/netqueue/{program}: {(out.strip().splitlines() or [''])[-1]}", status == 0, f"exit status {status}: {out[-800:]} {err[-800:]}")
    if not os.path.exists(s.tool("bench/bench_netqueue")):
        return s.result("skip", "bench_netqueue", "not built: run ninja bench-programs")
    status, out, err = s.run(s.tool("bench/bench_netqueue"), *driver, timeout=400)
    s.check("bench_netqueue", status == 0, err)
    print(out)


STEPS = [comm_collectives, comm_random, comm_threads, comm_faults, comm_netqueue]
