#!/usr/bin/env python3
"""bench_ls_folder.py — measures the CPU time of `gpuload ls` and of `cuobjdump -res-usage` for each library of a folder.

    bench/bench_ls_folder.py [--runs N] [--build DIR] [--cuobjdump FILE] [FOLDER | FILE]...

For every lib*.so.* and *.a of the folders (default: /usr/local/cuda/lib64), without symbolic links, both programs run
alternately with their output to /dev/null, and the least CPU time (user and system, all threads) of each is printed with the
ratio; at the end the geometric mean of the ratios and the smallest one.  The first round, which also reads the files into the
page cache, is not counted.
"""
import argparse, glob, math, os, shutil, sys


def cpu_ms(command):
    """Run a process that writes to /dev/null; return its CPU time in ms and its exit status."""
    null = os.open(os.devnull, os.O_RDWR)
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=[
        (os.POSIX_SPAWN_DUP2, null, fd) for fd in (0, 1, 2)])
    _, status, usage = os.wait4(pid, 0)
    os.close(null)
    return (usage.ru_utime + usage.ru_stime) * 1e3, os.waitstatus_to_exitcode(status)


def libraries(path):
    if not os.path.isdir(path):
        return [path]
    found = {*glob.glob(f"{path}/lib*.so.*"), *glob.glob(f"{path}/*.a")}
    return sorted(f for f in found if not os.path.islink(f))


def least(commands, runs):
    rounds = [[cpu_ms(c) for c in commands] for _ in range(runs + 1)]
    return [min(r[i][0] for r in rounds[1:]) for i in range(len(commands))], [r[1] for r in rounds[0]]


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--runs", type=int, default=3)
    a.add_argument("--build", default=os.environ.get("GPULOAD_BUILD", "build"))
    a.add_argument("--cuobjdump", default=shutil.which("cuobjdump") or "/usr/local/cuda/bin/cuobjdump")
    a.add_argument("paths", nargs="*", metavar="FOLDER", default=["/usr/local/cuda/lib64"])
    args = a.parse_args()
    gpuload = os.path.abspath(f"{args.build}/gpuload")
    if not os.path.exists(args.cuobjdump):
        sys.exit("bench_ls_folder.py: no cuobjdump here; name it with --cuobjdump")
    print(f"| library | MB | `gpuload ls` | `cuobjdump -res-usage` | ratio |\n|---|---|---|---|---|")
    ratios = []
    for path in [f for p in args.paths for f in libraries(p)]:
        (ours, theirs), status = least([[gpuload, "ls", path], [args.cuobjdump, "-res-usage", path]], args.runs)
        ratios.append(theirs / ours)
        note = f" (exit status {status[0]} and {status[1]})" if any(status) else ""
        print(f"| {os.path.basename(path)}{note} | {os.path.getsize(path) / 1e6:.1f} | {ours:.1f} ms | {theirs:.1f} ms | "
              f"{ratios[-1]:.2f} |", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"\n{len(ratios)} libraries: geometric mean {mean:.2f}, smallest {min(ratios):.2f}")


if __name__ == "__main__":
    main()
