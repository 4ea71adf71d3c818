"""rdma.py — the steps of tests/gpu/run for sending GPU memory to other machines (rdma/).

The parameter s of each step is the Suite of tests/gpu/run."""
import os, re, sys, tempfile


def rdma_programs(s):
    """Runs the tests of rdma/ that accept any driver; reports what this GPU does not support as skipped, with the reason."""
    for program in ("rdma/gpu/test_gpu_memory", "rdma/gpu/test_gpu_copies"):
        if not os.path.exists(s.tool(f"tests/{program}")):
            s.result("skip", program, "not built")
            continue
        status, out, err = s.run(s.tool(f"tests/{program}"))
        both = out + err
        failed, reasons = re.findall(r"\[  FAILED  \] (\w+)", both), re.findall(r"^skipped: (.*)", both, re.M)
        s.check(f"tests/{program}", status == 0, f"exit status {status}: {' '.join(dict.fromkeys(failed))} {both[-1500:]}")
        for name, why in zip(dict.fromkeys(re.findall(r"\[  SKIPPED \] (\w+)", both)), reasons):
            s.result("skip", f"{program}: {name}", why)
        s.figures += [tuple(line.split(": ", 1)) for line in both.splitlines()
                      if line.startswith(("staging copies by", "device 0 of the", "one dma-buf", "mapping by PCIe")) and ": " in line]


def rdma_puts(s):
    """Tests RDMA writes (puts) that a kernel of one process makes to memory of a kernel in another, and errors at both ends; measures
    each step."""
    way = s.tool("tests/rdma/put/whole_way")
    if not os.path.exists(way):
        return s.result("skip", "rdma/put/whole_way", "not built")
    options = [way, "--driver", s.args.driver, "--backend", "libfabric", "--window", "64"]
    r = s.run(*options, "--puts", str(s.args.puts or (2 * 10 ** 6 if s.args.driver == "nvidia" else 20000)), "--timeout", "120", timeout=560)
    if r[0] == 77:
        return s.result("skip", "rdma/put/whole_way", r[2].strip())
    s.counted("whole way of puts", r)
    s.figures += [("whole way of puts", line) for line in r[1].splitlines() if "puts/s" in line]
    for what in ("data", "sender", "receiver"):
        s.counted(f"whole way of puts --break {what}", s.run(*options, "--puts", "100000", "--break", what))
    with tempfile.TemporaryDirectory() as d:
        status, out, err = s.run(s.tool("gpuload"), "fifo", "trace", "--put", "--provider", "tcp", "--parallel", "1", "--triggers", "500",
                                 "-o", f"{d}/t.json", "--driver", s.args.driver)
        if status == 0:
            status, _, err = s.run(sys.executable, "tests/cli/fifo/check_trace.py", f"{d}/t.json")
    s.check("gpuload fifo trace --put", status == 0, f"exit status {status}: {err}")
    for line in out.splitlines():
        cells = re.split(r"  +", line.strip())
        if len(cells) >= 5 and cells[1][0].isdigit():
            s.figures.append((f"`fifo trace --put`: {cells[0]}", f"{cells[1]} us, 99 of 100 within {cells[3]} us"))


STEPS = [rdma_programs, rdma_puts]
