#!/usr/bin/env python3
"""bench_inference.py — counts the kernels in PTX files that gpuload run can start without arguments.

For each kernel, gpuload ls infers the parameters from the code.  The inference is complete, or it gives the first
fact that the code does not show.  This program counts both, and the reasons by frequency, with numbers left out.

    bench/bench_inference.py [--gpuload build/gpuload] [--json] [--list FILE] [--run SECONDS] PTX-FILE-OR-FOLDER...

--list FILE writes one line per kernel: PTX file, kernel, "complete" or the reason, and the signature.  --run starts
each complete kernel on the software driver, and counts those that fail: an address outside of every buffer means
that a guess was wrong.  PTX of libraries is written by gpuload extract --kind ptx LIBRARY -o FOLDER."""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys


def ptx_files(paths):
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        for folder, _, names in sorted(os.walk(path)):
            yield from (os.path.join(folder, n) for n in sorted(names) if n.endswith(".ptx"))


def kernels_of(gpuload, path):
    """Return the kernels of one file as (name, signature, reason); reason is None for a complete inference."""
    done = subprocess.run([gpuload, "ls", "--json", path], capture_output=True, check=False)
    if done.returncode:
        return None
    return [(k["name"], k["signature"], k.get("why_not"))
            for image in json.loads(done.stdout)["images"] for k in image["kernels"]]


def without_numbers(reason):
    reason = re.sub(r"\bby [a-z]\w*(?=,)", "by INSTRUCTION", reason)
    return re.sub(r"\b\d+\b", "N", reason)


def run_kernel(gpuload, path, name, seconds):
    """Run a kernel with inferred arguments; return 'ok', 'time-out', or the error message."""
    env = dict(os.environ, GPULOAD_DRIVER="soft")
    try:
        done = subprocess.run([gpuload, "run", path, "--kernel", name, "--timeout", str(seconds), "--json"],
                              capture_output=True, check=False, env=env, timeout=4 * seconds + 30)
    except subprocess.TimeoutExpired:
        return "time-out"
    if done.returncode == 0:
        return "ok"
    text = done.stderr.decode(errors="replace").strip().splitlines()
    text = text[-1] if text else f"exit status {done.returncode}"
    return "time-out" if "still running" in text else text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpuload", default="build/gpuload")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", metavar="FILE")
    parser.add_argument("--run", type=int, metavar="SECONDS")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("paths", nargs="+")
    options = parser.parse_args()

    files = list(ptx_files(options.paths))
    reasons, results, unread = collections.Counter(), collections.Counter(), 0
    failures, complete, total = [], [], 0
    rows = open(options.list, "w", encoding="utf-8") if options.list else None
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, kernels in zip(files, pool.map(lambda p: kernels_of(options.gpuload, p), files)):
            unread += kernels is None
            for name, signature, reason in kernels or []:
                total += 1
                if reason:
                    reasons[without_numbers(reason)] += 1
                else:
                    complete.append((path, name))
                if rows:
                    print(path, name, reason or "complete", signature, sep="\t", file=rows)
        if options.run:
            done = pool.map(lambda k: run_kernel(options.gpuload, *k, options.run), complete)
            for (path, name), result in zip(complete, done):
                results[result if result in ("ok", "time-out") else "failed"] += 1
                if result not in ("ok", "time-out"):
                    failures.append({"file": path, "kernel": name, "message": result})
    if rows:
        rows.close()
    share = 100 * len(complete) / total if total else 0
    if options.json:
        json.dump({"files": len(files), "unreadable": unread, "kernels": total, "complete": len(complete),
                   "reasons": dict(reasons.most_common()), "runs": dict(results), "failures": failures},
                  sys.stdout, indent=1)
        print()
        return
    print(f"{len(files)} files, {unread} unreadable; {total} kernels, {len(complete)} complete ({share:.1f} %)")
    for reason, n in reasons.most_common():
        print(f"{n:8} {100 * n / total:5.1f} %  {reason}")
    for failure in failures:
        print(f"failed: {failure['file']} {failure['kernel']}\n    {failure['message']}")
    if options.run:
        print("runs:", ", ".join(f"{n} {what}" for what, n in results.most_common()))


if __name__ == "__main__":
    main()
