"""rdma.py — the steps of `run` for the send path.

The parameter s of each step is run's Suite."""
import os, re


def rdma_programs(s):
    """Runs the tests of rdma/ that accept any driver; what this GPU does not support is reported as skipped, with the reason."""
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


STEPS = [rdma_programs]
