#!/usr/bin/env python3
"""bench_comm.py — compares gpuload's collectives with NCCL's, as C programs, in one run: time
per call and the ratio of the rates.

    bench/bench_comm.py [-n 2] [--calls allreduce,...] [--large 1M:256M:4] [--small 8:64K:8] [--pairs 3] [--build build]

`gpuload comm` and `bench_nccl` measure in the same way: after warm-up calls, they queue calls back to back, wait for all of them, and
report the wall time of the slowest rank.  The two programs alternate; a figure is the median of the pairs.  Needs GPUs and libnccl.so.2.
"""
import argparse, json, os, re, statistics, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
with open(f"{ROOT}/include/comm/calls.def", encoding="utf-8") as rows:
    CALLS = re.findall(r"^GPUL_COMM_CALL\(\w+, (\w+),", rows.read(), re.M)


def lines(command, env=None):
    r = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, **(env or {})))
    if r.returncode:
        sys.exit(f"bench_comm.py: {' '.join(command)}: exit status {r.returncode}: {(r.stderr or r.stdout)[-1500:]}")
    return r.stdout


def ours(a, call, sizes, small, graph):
    """Return {bytes: us} of gpuload's collective, and the plan of each size."""
    command = [f"{a.build}/gpuload", "comm", call, "-n", str(a.n), "--bytes", sizes, "--out-of-place", "--json", "--check", "on",
               *(["--iters", "500", "--warmup", "20000"] if small else ["--iters", "20", "--warmup", "5"]), *(["--graph"] if graph else [])]
    rows = json.loads(lines(command))["rows"]
    if any(row["out_of_place"]["wrong"] for row in rows):
        sys.exit(f"bench_comm.py: {' '.join(command)}: wrong data")
    return {row["bytes"]: (row["out_of_place"]["time_us"], "{algorithm}/{protocol}, {blocks} x {threads}".format(**row["plan"])) for row in rows}


def nccl(a, call, sizes, graph):
    command = [f"{a.build}/bench/nccl/bench_nccl", "--ranks", str(a.n), "--op", call, "--bytes", sizes, "--mode", "graph" if graph else "plain",
               "--json", *(["--library", a.library] if a.library else [])]
    rows = [json.loads(line) for line in lines(command).splitlines() if line.startswith("{")]
    return {row["bytes"]: row["us"] for row in rows if not row["in_place"]}


def compare(a, call, sizes, small, graph):
    pairs = [(ours(a, call, sizes, small, graph), nccl(a, call, sizes, graph)) for _ in range(a.pairs)]
    print(f"\n{call}, {a.n} ranks, f32, {'in a CUDA graph' if graph else 'calls on a stream'}\n\n"
          "| bytes | gpuload us | NCCL us | time / NCCL's | rate / NCCL's | gpuload's choice |\n|---|---|---|---|---|---|")
    for size in sorted(set(pairs[0][0]) & set(pairs[0][1])):
        us, other = (statistics.median(p) for p in zip(*((o[size][0], n[size]) for o, n in pairs)))
        print(f"| {size} | {us:.2f} | {other:.2f} | {us / other:.2f} | {other / us:.2f} | {pairs[0][0][size][1]} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("-n", type=int, default=2, help="ranks, each with a GPU (default: 2)")
    p.add_argument("--calls", default=",".join(CALLS), help="comma-separated (default: all)")
    p.add_argument("--large", default="1M:256M:4", help="sizes measured on a stream (default: 1M:256M:4)")
    p.add_argument("--small", default="8:64K:8", help="sizes measured on a stream and in a graph (default: 8:64K:8)")
    p.add_argument("--pairs", type=int, default=3, help="runs of each (default: 3)")
    p.add_argument("--build", default="build", help="build folder (default: build)")
    p.add_argument("--library", help="path of libnccl.so.2 (default: bench_nccl's)")
    a = p.parse_args()
    for call in a.calls.split(","):
        if a.small:
            compare(a, call, a.small, True, False)
            compare(a, call, a.small, True, True)
        if a.large:
            compare(a, call, a.large, False, False)


if __name__ == "__main__":
    main()
