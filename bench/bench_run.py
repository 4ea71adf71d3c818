#!/usr/bin/env python3
"""bench_run.py — measures the time of a whole process: `gpuload run` of a 1024-element vecadd, and a bare driver-API program.

Two comparisons: both programs load the same PTX file; gpuload loads the kernel by name from a shared library of nvcc's,
and the bare program loads the same code from a separate file.

    bench/bench_run.py [--driver soft|nvidia] [--pairs N] [--build DIR]

The programs run alternately, so that other load on the machine affects both.  The bare program
(tests/gpu/plain/plain.c) calls cuInit, creates a context, loads the module, copies, launches and copies back.
"""
import argparse, os, statistics, subprocess, sys, time

PTX = "tests/corpus/ptx/vecadd.sm_90.ptx"


def commands_of_library(args):
    """Return the commands, or None if the library is missing because nvcc was not found."""
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
    if args.driver == "soft":  # the bare program loads libcuda.so.1
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
    for c in both:  # a warm-up run: fills the page cache and the driver's cache
        wall_ms(c, env)
    pairs = [[wall_ms(c, env) for c in both] for _ in range(args.pairs)]
    ours, bare = zip(*pairs)
    row = lambda ms: f"{min(ms):.1f} ms min, {statistics.median(ms):.1f} ms median"
    print(f"| {title} | wall |\n|---|---|")
    print(f"| {name} | {row(ours)} |\n| bare driver-API program | {row(bare)} |")
    print(f"| {name} minus bare, paired | {statistics.median(x - y for x, y in pairs):+.1f} ms median of {args.pairs} |")


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
        compare("kernel of a shared library", "gpuload run libvec.so", library, args, env)


if __name__ == "__main__":
    main()
