#!/usr/bin/env python3
"""bench_run.py — a whole process: `gpuload run` of a 1024-element vecadd beside a bare driver-API program.

Twice: both load one PTX file; gpuload takes the kernel by name out of a shared library (nvcc's), where the
bare program loads the same code from a file of its own.

    bench/bench_run.py [--driver soft|nvidia] [--pairs N] [--build DIR]

Both are started in turn, so that whatever the machine does hits both.  The bare program
(tests/gpu/plain/plain.c) does cuInit, context, cuModuleLoadData, copies, launch and copy back.
"""
import argparse, os, statistics, subprocess, sys, time

PTX = "tests/corpus/ptx/vecadd.sm_90.ptx"


def commands_of_library(args):
    """None without the library: there was no nvcc."""
    inputs = f"{args.build}/tests/inputs"
    if not os.path.exists(f"{inputs}/inputs.json"):
        return None
    run = [f"{args.build}/gpuload", "run", f"{inputs}/libvec.so", "--kernel", "vecadd", "--driver", args.driver,
           "f32[1024]=iota", "f32[1024]=iota:0:2", "out:f32[1024]", "i32=1024", "--expect", "2=iota:0:3"]
    code = "vec.sm_90.cubin" if args.driver == "nvidia" else "vec.ptx"
    return run, [f"{args.build}/tests/gpu/plain/plain", f"{inputs}/{code}", "1024", "f32"]


def commands(args):
    run = [f"{args.build}/gpuload", "run", PTX, "--driver", args.driver, "f64[1024]=iota", "f64[1024]=iota:0:2",
           "out:f64[1024]", "i32=1024", "--expect", "2=iota:0:3"]
    return run, [f"{args.build}/tests/gpu/plain/plain", PTX]


def environment(args):
    soft = os.path.abspath(f"{args.build}/softcuda")
    env = dict(os.environ, GPULOAD_SOFT_DRIVER=f"{soft}/libcuda-soft.so")
    if args.driver == "soft":  # the bare program knows only NVIDIA's name
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [soft, os.environ.get("LD_LIBRARY_PATH")]))
    return env


def wall_ms(command, env):
    start = time.perf_counter()
    p = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    err = p.communicate()[1]
    ms = (time.perf_counter() - start) * 1e3
    if p.returncode:
        sys.exit(f"bench_run.py: {' '.join(command)}: exit status {p.returncode}: {err.decode(errors='replace')}")
    return ms


def compare(title, name, both, args, env):
    for c in both:  # files into the page cache, kernels into the driver's
        wall_ms(c, env)
    pairs = [[wall_ms(c, env) for c in both] for _ in range(args.pairs)]
    ours, bare = zip(*pairs)
    row = lambda ms: f"{min(ms):.1f} ms min, {statistics.median(ms):.1f} ms median"
    print(f"| {title} | wall |\n|---|---|")
    print(f"| {name} | {row(ours)} |\n| bare driver-API program | {row(bare)} |")
    print(f"| {name} more than bare, paired | {statistics.median(x - y for x, y in pairs):+.1f} ms median of {args.pairs} |")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--driver", default="soft", choices=["soft", "nvidia"])
    a.add_argument("--pairs", type=int, default=31)
    a.add_argument("--build", default=os.environ.get("GPULOAD_BUILD", "build"))
    args = a.parse_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env = environment(args)
    compare("whole process, 1024-element vecadd", "gpuload run", commands(args), args, env)
    library = commands_of_library(args)
    if library:
        compare("the same out of a library", "gpuload run libvec.so", library, args, env)


if __name__ == "__main__":
    main()
