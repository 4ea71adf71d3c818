#!/usr/bin/env python3
"""cuda_core.py CHECKOUT — run cuda-core's own tests on the software driver, with `gpuload soft`.

CHECKOUT is a copy of github.com/NVIDIA/cuda-python whose tests fit the pinned version of cuda-core (July 2026, before 1.2.0): PyPI has no
tests of cuda-core.  The packages come from PyPI, into a virtual environment in --work.  The tests are copied there and stay as they are; the
helper module of the checkout that the wheel of cuda-bindings leaves out is copied into the environment.  Every file of tests runs in a
process of its own, so that a failed capture or kernel does not spoil the tests of other files.

Exit 0: all tests passed; 1: some failed; 77: the packages cannot be installed.
"""
import argparse, collections, glob, os, re, shutil, subprocess, sys

PINNED = ["cuda-core==1.1.0", "cuda-bindings[all]==13.5.0", "nvidia-cuda-runtime==13.5.37", "nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-crt==13.5.37",
          "nvidia-cuda-cccl==13.3.5.0.6", "numpy==2.4.6", "cython==3.2.9", "pytest==9.2.0", "pytest-benchmark==5.3.1", "pytest-mock==3.17.0",
          "pytest-repeat==0.9.4", "pytest-rerunfailures==16.7", "pytest-timeout==2.4.0", "psutil==7.2.2", "cloudpickle==3.1.2", "ml_dtypes==0.6.0", "cffi==2.1.1"]
SHORT = ("test_device.py", "test_context.py", "test_stream.py", "test_event.py", "graph/test_graph_definition.py")
LEFT_OUT = ("cython", "example_tests")   # they need a compiled extension, and packages such as PyTorch


def arguments():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("checkout", help="folder with cuda_core/ and cuda_python_test_helpers/")
    a.add_argument("--build", default="build", help="build folder of gpuload (default: build)")
    a.add_argument("--work", default="/tmp/gpuload-cuda-core", help="folder for the virtual environment and the copy of the tests")
    a.add_argument("--short", action="store_true", help="only a few files of tests, less than a minute")
    a.add_argument("--only", nargs="+", metavar="FILE", help="only these files of tests, as in graph/test_options.py")
    a.add_argument("--limit", type=int, default=60, metavar="S", help="seconds for one test (default: 60)")
    return a.parse_args()


def environment(work, checkout):
    """Create the virtual environment, or return the existing one."""
    python = f"{work}/v/bin/python"
    if not os.path.exists(f"{work}/v/installed"):
        subprocess.run([sys.executable, "-m", "venv", f"{work}/v"], check=True)
        r = subprocess.run([python, "-m", "pip", "install", "-q", *PINNED], stderr=subprocess.PIPE, text=True)
        if r.returncode:
            print(f"cuda_core.py: skipped, because pip cannot install the packages: {r.stderr.strip().splitlines()[-1]}")
            sys.exit(77)
        with open(f"{work}/v/installed", "w", encoding="utf-8") as f:
            f.write("\n".join(PINNED))
    bindings = glob.glob(f"{work}/v/lib/python3*/site-packages/cuda/bindings")[0]
    shutil.copytree(f"{checkout}/cuda_bindings/cuda/bindings/_test_helpers", f"{bindings}/_test_helpers", dirs_exist_ok=True)
    return python


def run_file(name, args, python):
    """Run the tests of a file; return the number of tests by outcome, and the lines that name failures."""
    command = [f"{os.path.abspath(args.build)}/gpuload", "soft", "--quiet", "--", python, "-X", "faulthandler", "-m", "pytest", "-q", "-rfE", "--tb=no",
               "-W", "ignore", "-p", "no:cacheprovider", f"--timeout={args.limit}", name]
    try:
        r = subprocess.run(command, cwd=f"{args.work}/cuda_core/tests", capture_output=True, text=True, errors="replace", timeout=1800, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return {"crashed": 1}, [f"FAILED {name}: did not end in 1,800 s"]
    lines = r.stdout.strip().splitlines()
    counts = {word.rstrip("s"): int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|xpassed|errors?)\b", lines[-1] if lines else "")}
    failures = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    if r.returncode not in (0, 1, 2, 5) or not counts and r.returncode != 5:
        counts["crashed"] = 1
        failures.append(f"FAILED {name}: pytest ended with {r.returncode}: {(r.stderr.strip().splitlines() or ['no message'])[-1][:120]}")
    return counts, failures


def main():
    args = arguments()
    args.work = os.path.abspath(args.work)
    tests = f"{args.checkout}/cuda_core/tests"
    if not os.path.isfile(f"{tests}/conftest.py"):
        sys.exit(f"cuda_core.py: {tests}/conftest.py is missing: give a copy of github.com/NVIDIA/cuda-python")
    os.makedirs(args.work, exist_ok=True)
    python = environment(args.work, args.checkout)
    for part in ("cuda_core/tests", "cuda_python_test_helpers"):
        shutil.copytree(f"{args.checkout}/{part}", f"{args.work}/{part}", symlinks=True, dirs_exist_ok=True)
    names = sorted(os.path.relpath(f, tests) for f in glob.glob(f"{tests}/**/test_*.py", recursive=True))
    names = args.only or (SHORT if args.short else [n for n in names if not n.startswith(LEFT_OUT)])
    total, failures = collections.Counter(), []
    for name in names:
        counts, failed = run_file(name, args, python)
        total.update(counts)
        failures += failed
        print(f"{name}: {', '.join(f'{n} {word}' for word, n in counts.items()) or 'no tests'}", flush=True)
    print(*failures, sep="\n")
    print(f"cuda-core: {', '.join(f'{n} {word}' for word, n in total.items())}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
