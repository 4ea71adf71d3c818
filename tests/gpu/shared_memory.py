"""shared_memory.py — the steps of tests/gpu/run for memory that GPUs and processes share.

The parameter s of each step is the Suite of tests/gpu/run.  With --driver soft there are two software devices, so that every check runs.
"""
import json, os, re, signal, subprocess, tempfile

KINDS = ["auto", "host-numa", "device", "memfd", "shm", "device-ipc"]


def environment(s, folder):
    """Return environment variables: a separate folder for the sockets, and two devices on the software driver."""
    return dict(s.env, GPULOAD_RUNTIME_DIR=folder, **({"GPULOAD_SOFT_DEVICES": "2"} if s.args.driver == "soft" else {}))


def devices(s, env):
    status, out, _ = s.run(s.tool("gpuload"), "devices", "--json", "--driver", s.args.driver, env=env)
    return len(json.loads(out)["devices"]) if status == 0 else 0


def memory_kinds(s):
    """Checks that every kind of memory works in one process and shared with another; fabric memory is skipped if the driver lacks it."""
    with tempfile.TemporaryDirectory() as d:
        status, out, err = s.run(s.tool("gpuload"), "devices", "--memory", "--json", "--driver", s.args.driver, env=environment(s, d))
    if status:
        return s.check("gpuload devices --memory", False, err)
    for device in json.loads(out)["devices"]:
        for k in device["memory"]["kinds"]:
            name = f"device {device['ordinal']}: {k['kind']} memory"
            if k["kind"] == "pinned":
                s.check(name, k["works"] and not k["shares"], k["why"])
            elif k["kind"] == "fabric" and not k["works"]:
                s.result("skip", name, k["why"])
            else:
                s.check(f"{name}, shared with another process", k["works"] and k["shares"] and k["asked_another_process"],
                        k["why"] or "gpuload-probe was not found, so no other process tried it")


def sums_agree(out, n):
    sums = [line.rsplit(": ", 1)[1] for line in out.splitlines() if line.startswith("total sum [")]
    return len(sums) == n and len(set(sums)) == 1


def mmap_sum(s):
    """Checks that the GPUs and CPUs of several processes compute the same sum of shared memory, for every kind of memory and all GPUs."""
    with tempfile.TemporaryDirectory() as d:
        env = environment(s, d)
        n_devices = devices(s, env)
        lists = ["0"] if n_devices < 2 else ["0", ",".join(map(str, range(min(n_devices, 8))))]
        for which in lists:
            for kind in KINDS:
                status, out, err = s.run(s.tool("gpuload"), "mmap-sum", "-n", "3", "--kind", kind, "--devices", which,
                                         "--driver", s.args.driver, env=env)
                s.check(f"mmap-sum of {kind} memory, devices {which}", status == 0 and sums_agree(out, 3), f"{status}: {out}{err}")
        for fill, size in (("f32=rand", "1000003"), ("u8=iota", "4K"), ("i32=iota", "3M"), ("f16=rand", "100")):
            size = str(int(size) // 4 * 4) if size.isdigit() else size
            status, out, err = s.run(s.tool("gpuload"), "mmap-sum", "-n", "8", "--fill", fill, "--bytes", size, "--devices", lists[-1],
                                     "--driver", s.args.driver, env=env)
            s.check(f"mmap-sum of {size} bytes, {fill}, 8 processes", status == 0 and sums_agree(out, 8), f"{status}: {out}{err}")
        status, _, err = s.run(s.tool("gpuload"), "mmap-sum", "--kind", "pinned", "--driver", s.args.driver, env=env)
        s.check("mmap-sum refuses pinned memory", status == 2 and "no other process can map it" in err, f"{status}: {err}")


def owner(s, env, name, kind, *more):
    """Start a process that shares 16 MiB under a name; return it and the line that it prints when it is ready."""
    p = subprocess.Popen([s.tool("gpuload"), "share", name, "--kind", kind, "--bytes", "16M", "--fill", "f32=iota", "--driver",
                          s.args.driver, *more], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True)
    return p, p.stdout.readline()


def leases(s):
    """Tests `gpuload share` and `gpuload attach`: a sum, a peer that numbers the same GPU differently, and an owner that is killed."""
    with tempfile.TemporaryDirectory() as d:
        env = environment(s, d)
        for kind in KINDS[1:]:
            for title, theirs in (("", {}), (", its GPU under another number", {"CUDA_VISIBLE_DEVICES": "1,0"}))[:devices(s, env)]:
                p, ready = owner(s, env, "buffer", kind, "--until-detached")
                status, out, err = s.run(s.tool("gpuload"), "attach", "buffer", "--sum", "--wait", "5", "--driver", s.args.driver,
                                         env=dict(env, **theirs))
                s.check(f"attach to {kind} memory{title}", ready.startswith("READY") and status == 0 and "SUM" in out,
                        f"{status}: {ready}{out}{err}")
                s.check(f"the owner of {kind} memory ends after its last attacher{title}", ended(p) == 0, "it did not end by itself")
            p, _ = owner(s, env, "buffer", kind)
            peer = subprocess.Popen([s.tool("gpuload"), "attach", "buffer", "--hold", "--driver", s.args.driver], env=env,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
            first = peer.stdout.readline()
            p.send_signal(signal.SIGKILL)
            ended(p)
            code, rest = ended(peer), peer.stdout.read()
            s.check(f"an attacher of {kind} memory reports the death of the owner", "ATTACHED" in first and "OWNER_DIED" in rest and
                    code is not None, f"{code}: {first}{rest}")
        left = [f for f in os.listdir(d) if not re.fullmatch(r"buffer\.(sock|lock)", f)]
        s.check("only the killed owner's socket and lock remain", not left, " ".join(left))


def ended(p, timeout=30):
    """Wait for a process; return its exit status, or None if it had to be killed after a time-out."""
    try:
        return p.wait(timeout)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()
        return None


def memory_programs(s):
    """Runs the tests of memalloc/ and ipc/ that accept any driver on this driver."""
    env = dict(s.env, GPULOAD_TEST_CONTROL_PTX=f"{s.build}/kernels/tests/ipc/control.ptx")
    for program in ("memalloc/test_mem", "memalloc/test_numa", "memalloc/test_regcache_threads", "ipc/test_control"):
        if not os.path.exists(s.tool(f"tests/{program}")):
            s.result("skip", program, "not built")
            continue
        status, out, err = s.run(s.tool(f"tests/{program}"), env=env)
        failed = re.findall(r"\[  FAILED  \] (\w+)", out + err)
        s.check(f"tests/{program}", status == 0, f"exit status {status}: {' '.join(dict.fromkeys(failed))} {err[-1000:]}")


def faults(s):
    """Runs tests/fault: processes that are killed or stopped, or send wrong messages."""
    if not os.path.exists(s.tool("tests/fault/fault")):
        return s.result("skip", "faults", "not built")
    r = s.run(s.tool("tests/fault/fault"), "--driver", s.args.driver, "--jobs", str(max(1, min(os.cpu_count() - 2, 8))), timeout=520)
    s.counted("faults", r)
    s.figures += [("time until a proxy notices its peer's SIGKILL", text) for text in re.findall(r"(\d+ kills were noticed .*)", r[1])]


def memory_timing(s):
    """Measures the cost of sharing memory, compared with the driver's own calls; checks only that the benchmarks run."""
    for program, more in (("memory/bench_memory", []), ("bench_sum", ["--bytes", "1G" if s.args.driver == "nvidia" else "16M"])):
        if not os.path.exists(s.tool(f"bench/{program}")):
            s.result("skip", program, "not built: run ninja bench-programs")
            continue
        status, out, err = s.run(s.tool(f"bench/{program}"), "--driver", s.args.driver, *more, timeout=300)
        program = os.path.basename(program)
        s.check(program, status == 0, err)
        title, *rows = [[c.strip() for c in line.strip("| ").split("|")] for line in out.splitlines() if line.startswith("|")] or [[]]
        for row in rows[1:]:
            cells = [f"{t} {c}" for t, c in zip(title[1:], row[1:]) if c]
            s.figures.append((f"{program}: {row[0]}", ", ".join(cells)))


STEPS = [memory_kinds, mmap_sum, leases, memory_programs, faults, memory_timing]
