#!/usr/bin/env python3
"""bench_ls.py — measures the time of `gpuload ls` on NVIDIA's libraries, compared with cuobjdump if it is installed.

    bench/bench_ls.py [--runs N] [--build DIR] [--folder DIR]... [LIBRARY...]

Each figure is the time of a whole process that writes to /dev/null, with its files in the page cache.  Compared programs run
alternately, so that other load on the machine affects both: `ls` and `cuobjdump -res-usage` print the resources of each
kernel, `ls --images` and `cuobjdump -lelf` list the images.
"""
import argparse, glob, os, shutil, statistics, sys, time

NAMES = ["nccl", "cublas", "cublasLt", "cusparse", "cufft", "cusolver", "curand", "cupti", "cudnn_adv", "cudnn_cnn",
         "cudnn_engines_precompiled", "cudnn_engines_runtime_compiled", "cudnn_graph", "cudnn_heuristic", "cudnn_ops"]
IN_FULL = ["nccl", "cublas"]
COMPARED = [("nccl", [], ["-res-usage"]), ("cublas", ["--images"], ["-lelf"])]
FOLDERS = ["/usr/local/cuda/lib64", "/usr/local/cuda/extras/CUPTI/lib64", "/usr/lib/x86_64-linux-gnu",
           "/usr/lib/aarch64-linux-gnu"]


def library(name, folders):
    """Return the newest lib<name>.so in the folders, or None."""
    hits = [f for d in folders for f in sorted(glob.glob(f"{d}/lib{name}.so*"))]
    return os.path.realpath(hits[-1]) if hits else None


def run(command):
    """Run a process that writes to /dev/null; return (wall ms, CPU ms, peak MB, exit status)."""
    null = os.open(os.devnull, os.O_RDWR)
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)])
    _, status, usage = os.wait4(pid, 0)
    os.close(null)
    wall, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    return wall * 1e3, cpu * 1e3, usage.ru_maxrss / 1024, os.waitstatus_to_exitcode(status)


def measure(commands, runs):
    """Run the commands alternately; return [(least ms, median ms, median CPU ms, peak MB)].  The first round is a warm-up."""
    rounds = [[run(c) for c in commands] for _ in range(runs + 1)]
    for command, (*_, status) in zip(commands, rounds[0]):
        if status:  # 1 also means that the library has no device code
            print(f"bench_ls.py: {' '.join(command)}: exit status {status}", file=sys.stderr)
    columns = zip(*rounds[1:])
    median = lambda c, i: statistics.median(r[i] for r in c)
    return [(min(r[0] for r in c), median(c, 0), median(c, 1), max(r[2] for r in c)) for c in columns]


def ours(args, runs):
    print("| command | least | median | CPU time | peak memory |\n|---|---|---|---|---|")
    for name in args.names:
        path = args.library[name]
        for options in [["--images"], *([[], ["--json"]] if name in IN_FULL else [])]:
            least, median, cpu, peak = measure([[args.gpuload, "ls", *options, path]], runs)[0]
            print(f"| `ls {' '.join([*options, os.path.basename(path)])}` | {least:.1f} ms | {median:.1f} ms | {cpu:.1f} ms | "
                  f"{peak:.0f} MB |", flush=True)


def beside(args, runs):
    tool = shutil.which("cuobjdump") or "/usr/local/cuda/bin/cuobjdump"
    if not os.path.exists(tool):
        print("\nno cuobjdump here: nothing to compare with")
        return
    print("\n| same information | gpuload, median | cuobjdump, median | times faster |\n|---|---|---|---|")
    for name, options, theirs in COMPARED:
        if name not in args.names:
            continue
        path = args.library[name]
        rows = measure([[args.gpuload, "ls", *options, path], [tool, *theirs, path]], max(runs // 3, 3))
        what = " ".join(["ls", *options, os.path.basename(path)])
        print(f"| `{what}`, `cuobjdump {' '.join(theirs)}` | {rows[0][1]:.1f} ms | {rows[1][1]:.1f} ms | {rows[1][1] / rows[0][1]:.1f} |",
              flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--runs", type=int, default=15)
    a.add_argument("--build", default=os.environ.get("GPULOAD_BUILD", "build"))
    a.add_argument("--folder", action="append", default=[], help="also search this folder for libraries (repeatable)")
    a.add_argument("names", nargs="*", metavar="LIBRARY", help=f"of {', '.join(NAMES)} (default: all)")
    args = a.parse_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    args.gpuload = os.path.abspath(f"{args.build}/gpuload")
    # A build copied to a GPU machine may contain libraries, which are searched last.
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [os.environ.get("LD_LIBRARY_PATH"),
                                                                  os.path.abspath(f"{args.build}/lib")]))
    folders = [*FOLDERS, *args.folder]
    args.library = {n: library(n, folders) for n in args.names or NAMES}
    args.names = [n for n, path in args.library.items() if path]
    if not args.names:
        sys.exit(f"bench_ls.py: none of the libraries is in {', '.join(folders)}")
    ours(args, args.runs)
    beside(args, args.runs)


if __name__ == "__main__":
    main()
