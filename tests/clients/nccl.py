#!/usr/bin/env python3
"""nccl.py — NVIDIA's NCCL from PyPI: programs/nccl_walk.c, which checks every result, and NVIDIA/nccl-tests with -c 1, if there is a copy.

The long form runs each program of nccl-tests with 1, 2, 4 and 8 GPUs, which one thread drives by group calls or one thread each, for all
types and operations.  It runs nccl_walk.c in one thread, in threads and in processes, with each algorithm and protocol forced by variables.
Initialising NCCL takes 2 to 4 s of CPU time, or 8 to 10 s if gpuload's cache does not have the linked PTX (GPULOAD_CACHE=off), and 0.5 to
1.5 GB of memory plus 0.15 GB for each GPU.
"""
import glob, os, re, shutil, subprocess, sys

import client  # in this folder

NCCL = "nvidia-nccl-cu13==2.32.3"
PROGRAMS = ("all_reduce", "all_gather", "broadcast", "reduce_scatter", "reduce", "alltoall", "alltoallv", "scatter", "gather", "sendrecv", "hypercube")
# NVLS has algorithms for three functions only, and none for the maximum and average of floats.  The average of symmetric windows fails
# because of an error of NCCL 2.32.3: it searches for a kernel that it does not have ("unknown red op 4").
NVLS = "allreduce:nvls;reducescatter:nvls;allgather:nvls"
# Name: (number of GPUs, then arguments of nccl_walk.c: how ranks run, extra tests; environment variables)
WALK = {
    "group of 2": (2, "group", ("split", "graph", "register"), {}),
    "2 processes": (2, "processes", ("split",), {}),
    "2 processes, NVLS": (2, "processes", ("sums",), {"NCCL_ALGO": NVLS}),
    "2 threads": (2, "threads", ("split", "graph"), {}),
    "group of 1": (1, "group", ("graph",), {}),
    "group of 4": (4, "group", ("split", "graph", "register"), {}),
    "4 threads": (4, "threads", ("split", "graph"), {}),
    "4 processes": (4, "processes", ("split", "graph", "register"), {}),
    "group of 2, abort": (2, "group", ("abort",), {}),
    "4 processes, one is killed": (4, "processes", ("killed",), {}),
    "2 processes, windows": (2, "processes", ("sums", "window"), {}),
    "group of 4, windows": (4, "group", ("sums", "window"), {}),
    "group of 4, NVLS": (4, "group", ("sums",), {"NCCL_ALGO": NVLS}),
    "group of 4, Tree": (4, "group", (), {"NCCL_ALGO": "allreduce:tree"}),
    "group of 4, Ring": (4, "group", (), {"NCCL_ALGO": "Ring"}),
    **{f"group of 4, {p}": (4, "group", (), {"NCCL_PROTO": p}) for p in ("LL", "LL128", "Simple")},
    "2 processes on 2 hosts": (2, "processes", ("hosts",), {}),
    "2 processes on 2 hosts, PAT": (2, "processes", ("hosts", "sums"), {"NCCL_ALGO": "allgather:pat;reducescatter:pat"}),
}
N_SHORT = 3
ROW = re.compile(r"^ +\d+ +\d+ +(\w+) +([a-z]\w*|) *-?\d+ +[\d.]+ +[\d.]+ +[\d.]+ +(\S+)(?: +[\d.]+ +[\d.]+ +[\d.]+ +(\S+))?", re.M)


def find_nccl(args):
    """Return (folder of NCCL from PyPI, folder of the CUDA toolkit)."""
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    if not os.path.exists(f"{cuda}/include/cuda_runtime.h") or not shutil.which("gcc"):
        client.skip("no gcc, or no CUDA toolkit with the headers of its runtime")
    return f"{client.site_packages(client.environment(args, [NCCL]))}/nvidia/nccl", cuda


def environment(nccl, cuda):
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [f"{nccl}/lib", f"{cuda}/lib64", os.environ.get("LD_LIBRARY_PATH")]))}


def build_program(args, name, nccl, cuda):
    """Compile programs/NAME.c; return the path of the program."""
    program = f"{args.work}/{name}"
    command = ["gcc", "-O2", "-Wall", "-Wextra", f"{client.HERE}/programs/{name}.c", "-o", program, f"-I{nccl}/include", f"-I{cuda}/include",
               f"{nccl}/lib/libnccl.so.2", f"-L{cuda}/lib64", "-lcudart", "-lpthread"]
    status, text = client.run(command, args.limit)
    if status:
        sys.exit(f"nccl: gcc: {text}")
    return program


def build_tests(args, nccl, cuda):
    """Build a copy of nccl-tests, unless an earlier run has built it; return the folder of its programs."""
    source = f"{args.work}/nccl-tests"
    if not os.path.exists(f"{source}/built"):
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(args.checkout, source, ignore=shutil.ignore_patterns(".git", "build"))
        lib = f"{args.work}/lib"   # the Makefile's CUDA_LIB, where the linker searches first for libnccl.so
        os.makedirs(lib, exist_ok=True)
        for file in glob.glob(f"{cuda}/lib64/libcudart*"):
            shutil.copy(file, lib)
        if not os.path.exists(f"{lib}/libnccl.so"):
            os.symlink(f"{nccl}/lib/libnccl.so.2", f"{lib}/libnccl.so")
        command = ["make", "-C", source, f"-j{args.jobs}", f"CUDA_HOME={cuda}", f"CUDA_LIB={lib}", f"NCCL_HOME={nccl}",
                   "NVCC_GENCODE=-gencode=arch=compute_90,code=compute_90"]
        status, text = client.run(command, 3600)
        if status:
            sys.exit(f"nccl: make: {text[-2000:]}")
        open(f"{source}/built", "w", encoding="utf-8").close()
    return f"{source}/build"


def last_line(text):
    return (text.strip().splitlines() or ["no output"])[-1]


def run_first(args, results, program, env):
    """Run nccl_first, the first program of docs/nccl-on-a-laptop.md, and check its output."""
    status, text = client.run([*client.soft(args, "--gpus", "2"), program], args.limit, env=env, cwd=args.work)
    right = status == 0 and "rank 0: 3 6 3069\nrank 1: 3 6 3069\n" in text
    results.add("first program", "passed" if right else "failed", "" if right else f"exit status {status}: {last_line(text)}")


def run_walk(args, results, program, env):
    for name, (n, how, extras, more) in list(WALK.items())[:N_SHORT if args.short else None]:
        if args.only and name not in args.only:
            continue
        command = [*client.soft(args, "--gpus", str(n)), program, how, str(n), *extras]
        status, text = client.run(command, args.limit, env={**env, **more}, cwd=args.work)
        failures = re.findall(r"^FAILED (.*)$", text, re.M)
        why = "" if status == 0 else f"did not end in {args.limit:g} s" if status is None else (failures or [f"exit status {status}: {last_line(text)}"])[0]
        results.add(f"walk: {name}", "failed" if why else "passed", why)
        print(f"walk: {name}: {last_line(text)}", flush=True)


def run_program(args, results, folder, name, options, env, label):
    """Run one program of nccl-tests; each type and operation in its output counts as a test."""
    n_bytes = ("-b", "8", "-e", "256K", "-f", "32")
    status, text = client.run([*client.soft(args, "--gpus", str(label[1])), f"{folder}/{name}_perf", *n_bytes, "-c", "1", "-n", "1", "-w", "0", *options],
                              args.limit, env=env, cwd=args.work)
    wrong = {}
    for kind, operation, *counts in ROW.findall(text):
        wrong.setdefault((kind, operation), []).extend(c for c in counts if c)
    where = f"{name} {label[0]} {label[1]}{label[2]}"
    if status == 3 and label[1] == 1 and ("f8e4m3", "min") in wrong and ("f8e4m3", "avg") not in wrong:
        status = 0   # NCCL refuses the average over one rank of 8-bit floats ("invalid argument"), which ends the program
    for (kind, operation), counts in wrong.items():
        bad = sum(c not in ("0", "N/A") for c in counts)
        results.add(f"{where} {kind} {operation}", "failed" if bad else "passed", f"{bad} of {len(counts)} results are wrong")
    if status != 0 or not wrong:
        results.add(f"{where} (process)", "failed", f"did not end in {args.limit:g} s" if status is None else f"exit status {status}: {last_line(text)}")
    print(f"{where}: {sum(map(len, wrong.values()))} results", flush=True)


def run_tests(args, results, folder, env):
    cases = [("all_reduce", "g", 2)] if args.short else [(p, how, n) for n in args.gpus for p in PROGRAMS for how in ("g", "t") if n > 1 or how == "g"]
    for p, how, n in cases:
        if args.only and p not in args.only:
            continue
        options = [f"-{how}", str(n), *(("-g", "1") if how == "t" else ()), "-d", "float" if args.short else "all", "-o", "sum" if args.short else "all"]
        run_program(args, results, folder, p, options, env, ("group of" if how == "g" else "threads:", n, ""))
    for algorithm, programs in (() if args.short or args.only else (("NVLS", ("all_reduce", "all_gather", "reduce_scatter")), ("Tree", ("all_reduce",)), ("Ring", PROGRAMS[:5]))):
        for p in programs:
            for protocol in ("Simple",) if algorithm == "NVLS" else ("LL", "LL128", "Simple"):
                run_program(args, results, folder, p, ["-g", "4", "-d", "float", "-o", "sum"], {**env, "NCCL_ALGO": algorithm, "NCCL_PROTO": protocol},
                            ("group of", 4, f" {algorithm} {protocol}"))


def main():
    a = client.parser(__doc__)
    a.add_argument("--checkout", metavar="DIR", help="a copy of NVIDIA/nccl-tests, tag v2.19.6 (default: $GPULOAD_CHECKOUTS/nccl-tests)")
    a.add_argument("--gpus", type=int, nargs="+", default=(1, 2, 4, 8), metavar="N", help="numbers of GPUs for nccl-tests (default: 1 2 4 8)")
    a.set_defaults(limit=600)
    args = client.begin(a)
    nccl, cuda = find_nccl(args)
    env = environment(nccl, cuda)
    results = client.Results()
    run_first(args, results, build_program(args, "nccl_first", nccl, cuda), env)
    run_walk(args, results, build_program(args, "nccl_walk", nccl, cuda), env)
    args.checkout = args.checkout or f"{os.environ.get('GPULOAD_CHECKOUTS', '')}/nccl-tests"
    if not os.path.exists(f"{args.checkout}/src/all_reduce.cu") or not shutil.which("nvcc", path=f"{cuda}/bin:{os.environ['PATH']}"):
        print("nccl-tests was not run: it needs nvcc, and a copy of NVIDIA/nccl-tests: --checkout DIR")
    else:
        run_tests(args, results, build_tests(args, nccl, cuda), env)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
