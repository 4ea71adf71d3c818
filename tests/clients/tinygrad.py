#!/usr/bin/env python3
"""tinygrad.py — tinygrad's tests on the software driver, compared with its own CPU back end.

    python3 tests/clients/tinygrad.py --checkout DIR [--renderer PTX]

A small network is trained on both, and the losses have to agree.  Then tinygrad's tests run on both (--short: those that need no
PyTorch); a test that also fails on the CPU is not counted.  With --renderer PTX tinygrad writes PTX itself; else it writes CUDA C++,
which NVRTC compiles.
"""
import os, sys

import client  # in this folder

PACKAGES = ["numpy==2.4.6", "pytest==9.2.0", "hypothesis"]
NVRTC = ["nvidia-cuda-nvrtc==13.5.37", "nvidia-cuda-runtime==13.5.37"]
TORCH = ["torch==2.15.0"]
FILES = ["test_ops.py", "test_tensor.py", "test_nn.py"]
SHORT = ["test_jit.py", "test_symbolic_jit.py"]
STEPS, TOLERANCE = 40, 1e-4


class OnCpu:
    """Collects the outcomes on the CPU back end: the tests that failed, and the number that passed."""

    def __init__(self):
        self.failed, self.passed = set(), 0

    def add(self, test, outcome, why=""):
        del why
        self.passed += outcome == "passed"
        if outcome == "failed":
            self.failed.add(test)


class Compared:
    """Passes outcomes on to `results`, except failures of tests that also failed on the CPU."""

    def __init__(self, results, on_cpu):
        self.results, self.on_cpu, self.n = results, on_cpu, 0

    def add(self, test, outcome, why=""):
        if outcome == "failed" and test in self.on_cpu.failed:
            self.n += 1
        else:
            self.results.add(test, outcome, why)


def losses(args, python, device, env):
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs/tinygrad_network.py")
    status, text = client.run([*client.soft(args), python, program, str(STEPS)], args.limit * 5, env={**os.environ, **env, "DEV": device})
    values = [float(line.split()[1]) for line in text.splitlines() if line.startswith("loss ")]
    return values if status == 0 and len(values) == STEPS else None, text


def train(args, results, python, device, env):
    """Train on the CPU and on the device; compare the losses."""
    (cpu, text), (gpu, other) = (losses(args, python, d, env) for d in ("CPU", device))
    if not cpu or not gpu:
        results.add("network", "failed", f"the training did not end: {(text if not cpu else other)[-200:]}")
        return
    worst = max(abs(a - b) / abs(a) for a, b in zip(cpu, gpu))
    fell = gpu[-1] < gpu[0] / 2
    print(f"network: {STEPS} steps, loss {gpu[0]:.6f} to {gpu[-1]:.6f}, at most {worst:.1e} of it from that of the CPU")
    results.add("network", "passed" if worst <= TOLERANCE and fell else "failed", f"{worst:.1e} from the CPU, {gpu[0]} to {gpu[-1]}")


def main():
    a = client.parser(__doc__, "github.com/tinygrad/tinygrad")
    a.add_argument("--renderer", default="", metavar="NAME", help="PTX or NVCC instead of NVRTC")
    a.set_defaults(limit=600)
    args = client.begin(a, "test/backend/test_ops.py")
    python = client.environment(args, PACKAGES + NVRTC + ([] if args.short else TORCH))
    device = "CUDA" + (f":{args.renderer}" if args.renderer else "")
    env = {"PYTHONPATH": args.checkout, "PYTHONDONTWRITEBYTECODE": "1", "XDG_CACHE_HOME": f"{args.work}/cache", "RUN_SLOW": "1"}
    results, on_cpu = client.Results(), OnCpu()
    train(args, results, python, device, env)
    names = [f"test/backend/{name}" for name in args.only or (SHORT if args.short else FILES)]
    print("on the CPU:")
    client.run_pytest(args, on_cpu, python, names, args.checkout, env={**env, "DEV": "CPU"})
    print(f"on {device}:")
    compared = Compared(results, on_cpu)
    client.run_pytest(args, compared, python, names, args.checkout, env={**env, "DEV": device}, soft_options=("--gpus", "4"))
    print(f"the CPU: {on_cpu.passed} passed, {len(on_cpu.failed)} failed, of which {compared.n} fail on {device}, too")
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
