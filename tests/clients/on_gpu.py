"""on_gpu.py — runs cuda-core's and cuda-bindings' own tests on a GPU and on the software
driver, and compares them test by test.

    python3 tests/clients/on_gpu.py pack FILE.tar.xz --checkout DIR     here: packs the files for a GPU machine without network
    python3 on_gpu/on_gpu.py run OUTDIR --guard                         there, where FILE.tar.xz is unpacked
    python3 on_gpu/on_gpu.py run OUTDIR --soft BUILD                    the same on the software driver
    python3 on_gpu/on_gpu.py compare GPU/core.txt SOFT/core.txt

run writes OUTDIR/core.txt and OUTDIR/bindings.txt, a line `OUTCOME FILE::TEST` for each test.  The outcome is passed, failed, skipped,
blocked (programs/guard.c refused a call of the test) or, for a file, notrun (the time was up).  The CUDA toolkit is the one in $CUDA_HOME.
"""
import argparse, collections, os, shutil, subprocess, sys, tarfile, tempfile, time, venv

import client, cuda_bindings, cuda_core  # in this folder

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = "github.com/NVIDIA/cuda-python"
SUITES = {"core": cuda_core, "bindings": cuda_bindings}
COMMON = [*cuda_core.PYTEST, "setuptools==80.9.0", "cuda-pathfinder==1.9.1"]
NVFATBIN = "nvidia-nvfatbin==13.0.85"   # the only library of the toolkit that may be missing on the GPU machine
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux_2_24_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
LEFT_OUT = ("blocked", "notrun")        # outcomes that compare() does not report
# Most of cuda-core's tests with several processes compare data through a helper buffer in managed memory, which --guard refuses.  The
# helper is changed to allocate pinned memory, on both drivers; nine tests of managed memory itself use it as well, and fail with pinned
# memory.
MANAGED_BUFFER = "class DummyUnifiedMemoryResource"
PINNED_INSTEAD = {"driver.cuMemAllocManaged(size, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value)": "driver.cuMemHostAlloc(size, driver.CU_MEMHOSTALLOC_PORTABLE)",
                  "driver.cuMemFree(ptr)": "driver.cuMemFreeHost(int(ptr))"}
THIS_PYTHON = "{}.{}".format(*sys.version_info)


# ---- pack -------------------------------------------------------------------------------------------------------


def install(folder, requirements, python, *options):
    """Install wheels from PyPI for Python version `python` into the folder."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "--only-binary=:all:", "--python-version", python,
               *(f"--platform={p}" for p in PLATFORMS), "--target", folder, *options, *requirements]
    r = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, stdin=subprocess.DEVNULL)
    if r.returncode:
        sys.exit(f"on_gpu: pip failed: {(r.stderr.strip().splitlines() or ['no message'])[-1]}")


def install_packages(folder, python):
    """Fill common/, core/ and bindings/ with their packages, except those of the CUDA toolkit.  cuda-bindings contains NVIDIA's static
    runtime; gpuload soft finds its functions with the help of a libcudart_static.a of the same version, which is copied next to it."""
    install(f"{folder}/common/site-packages", COMMON, python)
    for name, suite in SUITES.items():
        packages = f"{folder}/{name}/site-packages"
        install(packages, [p for p in suite.PINNED if p.startswith("cuda-")], python, "--no-deps")
        keep_one(packages, [p for p in suite.PINNED if p.startswith("nvidia-cuda-runtime")], python, "libcudart_static.a")
    keep_one(f"{folder}/common/site-packages", [NVFATBIN], python, "libnvfatbin.so.13")


def keep_one(packages, requirements, python, library):
    with tempfile.TemporaryDirectory() as folder:
        install(folder, requirements, python, "--no-deps")
        os.makedirs(f"{packages}/nvidia/cu13/lib")
        shutil.copy(f"{folder}/nvidia/cu13/lib/{library}", f"{packages}/nvidia/cu13/lib")


def use_pinned_memory(path):
    with open(path, encoding="utf-8") as f:
        before, name, buffer = f.read().partition(MANAGED_BUFFER)
    for managed, pinned in PINNED_INSTEAD.items():
        if managed not in buffer:
            sys.exit(f"on_gpu: {path}: {MANAGED_BUFFER} has no {managed}: the checkout is of another version")
        buffer = buffer.replace(managed, pinned, 1)
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + name + buffer)


def pack(args):
    checkout = client.find_checkout(args.checkout, REPOSITORY, "cuda_core/tests/conftest.py")
    with tempfile.TemporaryDirectory() as folder:
        install_packages(f"{folder}/python{args.python}", args.python)
        for name, suite in SUITES.items():
            suite.copy_tests(checkout, f"{folder}/{name}", f"{folder}/python{args.python}/{name}/site-packages")
        use_pinned_memory(f"{folder}/core/{cuda_core.TESTS}/helpers/buffers.py")
        for script in ("on_gpu.py", "client.py", "cuda_core.py", "cuda_bindings.py"):
            shutil.copy(f"{HERE}/{script}", folder)
        shutil.copytree(client.PLUGIN, f"{folder}/plugin", ignore=shutil.ignore_patterns("__pycache__"))
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-shared", "-fPIC", "-o", f"{folder}/guard.so", f"{HERE}/programs/guard.c"], check=True)
        with tarfile.open(args.file, "w:xz") as tar:
            tar.add(folder, "on_gpu")
    print(f"{args.file}: {os.path.getsize(args.file) / 2**20:.1f} MiB for Python {args.python}")
    return 0


# ---- run --------------------------------------------------------------------------------------------------------


def environment(work, suite):
    """Return the path of Python in a new virtual environment that has the packages of FILE.tar.xz, and none of the machine's."""
    venv.create(f"{work}/v", clear=True, symlinks=True)
    python = f"{work}/v/bin/python"
    with open(f"{client.site_packages(python)}/pack.pth", "w", encoding="utf-8") as f:
        f.writelines(f"{HERE}/python{THIS_PYTHON}/{part}/site-packages\n" for part in (suite, "common"))
    return python


def variables(work, guard):
    """Return the environment variables that the tests get in addition to those of this process."""
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    libraries = [os.environ.get("LD_LIBRARY_PATH"), f"{cuda}/lib64", f"{cuda}/nvvm/lib64", f"{HERE}/python{THIS_PYTHON}/common/site-packages/nvidia/cu13/lib"]
    env = {"CUDA_HOME": cuda, "CUDA_PATH": cuda, "PATH": f"{cuda}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
           "OPENBLAS_NUM_THREADS": "2"}   # the default is a thread for each CPU in each process
    if guard:
        env["LD_PRELOAD"] = ":".join(filter(None, [f"{HERE}/guard.so", os.environ.get("LD_PRELOAD")]))
        env["GPULOAD_GUARD_LOG"] = f"{work}/guard.log"
    return env


def check_guard(args, python, env):
    """Exit if the guard does not refuse a call that it should.  Without the guard the call has no effect, because CUDA is not
    initialised."""
    program = "from cuda.bindings import driver; print(int(driver.cuMulticastUnbind(0, 0, 0, 0)[0]))"
    status, text = client.run([*client.soft(args), python, "-c", program], args.limit, env={**os.environ, **env})
    if status or text.split()[-1:] != ["801"]:   # CUDA_ERROR_NOT_SUPPORTED
        sys.exit(f"on_gpu: the guard does not work: {(text.strip().splitlines() or ['no output'])[-1]}")


def blocked_tests(path):
    """Read the guard's log, lines of reason, tab, `FILE::TEST (call)`; return the tests in which it refused a call."""
    try:
        with open(path, encoding="utf-8") as f:
            return {line.rstrip("\n").split("\t", 1)[1].rpartition(" (")[0] for line in f}
    except FileNotFoundError:
        return set()


class Outcomes(dict):
    """{test: (outcome, reason)} of a suite; client.run_pytest() calls add()."""

    def add(self, test, outcome, why=""):
        self[test] = (outcome, why)


def run_suite(args, name):
    """Run a suite and write the outcome of each test to OUTDIR/NAME.txt; return {outcome: number of tests}."""
    args = argparse.Namespace(**{**vars(args), "work": f"{args.outdir}/{name}"})
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    python, env, tests = environment(args.work, name), variables(args.work, args.guard), f"{HERE}/{name}/{SUITES[name].TESTS}"
    if args.guard:
        check_guard(args, python, env)
    files = [f for f in client.test_files(tests, SUITES[name].LEFT_OUT) if not args.only or f"{name}/{f}" in args.only]
    outcomes, results = Outcomes(), client.Results()
    client.run_pytest(args, outcomes, python, files, tests, ["-c", "/dev/null", "--rootdir=."], env)
    blocked = blocked_tests(f"{args.work}/guard.log")
    with open(f"{args.outdir}/{name}.txt", "w", encoding="utf-8") as f:
        for test, (outcome, why) in sorted(outcomes.items()):
            outcome = "blocked" if test in blocked else outcome
            results.add(test, outcome, why)
            f.write(f"{outcome} {test}\n")
    return results.n


def run(args):
    if not os.path.isdir(f"{HERE}/python{THIS_PYTHON}"):
        sys.exit(f"on_gpu: {HERE} has no packages for Python {THIS_PYTHON}: unpack a file that `on_gpu.py pack --python {THIS_PYTHON}` made, and run its on_gpu.py")
    args.outdir, args.until = os.path.abspath(args.outdir), time.monotonic() + args.seconds
    args.gpuload = os.path.abspath(f"{args.soft}/gpuload") if args.soft else ""
    total = collections.Counter()
    for name in SUITES:
        n = run_suite(args, name)
        total += n
        print(f"{name}: {', '.join(f'{n[k]} {k}' for k in ('passed', 'failed', 'skipped', 'blocked'))}, {n['notrun']} files not finished", flush=True)
    return int(not total["passed"])


# ---- compare ----------------------------------------------------------------------------------------------------


def read_list(path):
    with open(path, encoding="utf-8") as f:
        return dict(reversed(line.rstrip("\n").split(" ", 1)) for line in f)


def show(title, tests, gpu, soft):
    print(f"\n{title}: {len(tests)}")
    for t in sorted(tests):
        print(f"  {gpu.get(t, '-')} / {soft.get(t, '-')}  {t}")


def compare(args):
    """Compare two lists of outcomes.  A test that is missing or LEFT_OUT in one list is counted in neither."""
    gpu, soft = read_list(args.gpu), read_list(args.soft)
    for name, outcomes in (("GPU", gpu), ("SOFT", soft)):
        print(f"{name}: {len(outcomes)} tests: " + ", ".join(f"{n} {outcome}" for outcome, n in collections.Counter(outcomes.values()).most_common()))
    both = {t for t in gpu if t in soft and gpu[t] not in LEFT_OUT and soft[t] not in LEFT_OUT}
    gpu_passed, soft_passed = ({t for t in both if outcomes[t] == "passed"} for outcomes in (gpu, soft))
    show("passed on the GPU, failed on SOFT", {t for t in gpu_passed if soft[t] == "failed"}, gpu, soft)
    show("passed on the GPU, skipped on SOFT", {t for t in gpu_passed if soft[t] == "skipped"}, gpu, soft)
    show("passed on SOFT, not on the GPU", soft_passed - gpu_passed, gpu, soft)
    show("failed on both", {t for t in both if gpu[t] == soft[t] == "failed"}, gpu, soft)
    show("in one list only, or left out", (gpu.keys() | soft.keys()) - both, gpu, soft)
    print(f"\nof {len(both)} tests on both: {len(gpu_passed)} pass on the GPU, {len(soft_passed)} on SOFT")
    if not gpu_passed:
        return 1
    n = len(gpu_passed & soft_passed)
    print(f"SOFT passes {100 * n / len(gpu_passed):.2f} % of what the GPU passes ({n} of {len(gpu_passed)})")
    return 0


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = a.add_subparsers(required=True, metavar="pack|run|compare")
    p = commands.add_parser("pack", help="write the packages, the tests and this script into one archive")
    p.add_argument("file", metavar="FILE.tar.xz")
    p.add_argument("--checkout", metavar="DIR", help=f"a copy of {REPOSITORY} (default: $GPULOAD_CHECKOUTS/cuda-python)")
    p.add_argument("--python", default=THIS_PYTHON, metavar="X.Y", help=f"version of the GPU machine's Python (default: {THIS_PYTHON})")
    p.set_defaults(command=pack)
    p = commands.add_parser("run", help="run the tests of an unpacked archive")
    p.add_argument("outdir", metavar="OUTDIR")
    p.add_argument("--guard", action="store_true", help="refuse multicast, managed memory and settings of the GPU: for a GPU that others use as well")
    p.add_argument("--soft", metavar="BUILD", help="run on the software driver of this build folder")
    p.add_argument("--only", nargs="+", metavar="SUITE/FILE", help="only these files, such as core/test_device.py")
    p.add_argument("--seconds", type=float, default=3600, metavar="S", help="time for the whole run (default: 3600)")
    p.add_argument("--limit", type=float, default=120, metavar="S", help="seconds for one test (default: 120)")
    p.add_argument("--jobs", "-j", type=int, default=len(os.sched_getaffinity(0)), help="files at a time (default: one for each CPU)")
    p.set_defaults(command=run)
    p = commands.add_parser("compare", help="compare a list of a GPU with one of the software driver")
    p.add_argument("gpu", metavar="GPU.txt")
    p.add_argument("soft", metavar="SOFT.txt")
    p.set_defaults(command=compare)
    args = a.parse_args()
    return args.command(args)


if __name__ == "__main__":
    sys.exit(main())
