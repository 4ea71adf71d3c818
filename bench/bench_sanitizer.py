#!/usr/bin/env python3
"""bench_sanitizer.py — compares the checks of the software driver with compute-sanitizer: the
same faulty kernels, the errors that each found, and the time.

    bench/bench_sanitizer.py [--gpuload build/gpuload] [--only TEXT] [--tools memcheck,racecheck,synccheck] [--sanitizer PATH]
                             [--timeout SECONDS] [--json] [FOLDER]

FOLDER (default: build/kernels/tests/softcuda/tools/faults, which the build writes) has a folder for each tool, with kernels whose first lines are

    // gpuload run: ARGUMENTS
    // expect: TEXT, a part of the tool's report; or: no errors

Each kernel runs once as `gpuload run --TOOL` on the software driver, and, where there is a GPU and compute-sanitizer, once under each of
SANITIZERS[TOOL] as `gpuload run --driver nvidia`. A cell is "found" with the number of errors and the first of them, "nothing", or
"time-out". Times are of whole processes, in seconds, with the start of the driver.

If gpuload fills the outputs of a kernel, the kernel has no unwritten global memory on a GPU,
because the fill is a write."""

import argparse
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SANITIZERS = {
    "memcheck": [["memcheck", "--leak-check", "full"], ["initcheck"]],
    "racecheck": [["racecheck"]],
    "synccheck": [["synccheck"]],
}
PLACES = ("compute-sanitizer", "/usr/local/cuda/bin/compute-sanitizer", "/usr/local/cuda/compute-sanitizer/compute-sanitizer")


def line_of(path, key):
    """Return the text after `// KEY: ` in a kernel's file; None: no such line."""
    with open(path, encoding="utf-8") as f:
        found = re.search(rf"^// {key}: (.*)$", f.read(), re.M)
    return found[1] if found else None


def kernels(folder, only):
    """Return the files in the folder that have a line "// expect:" and a line "// gpuload run:"; a .ptx replaces a .cu of the same name."""
    by_name = {}
    for path in sorted(glob.glob(f"{folder}/*.cu")) + sorted(glob.glob(f"{folder}/*.ptx")):
        if line_of(path, "expect") is not None and line_of(path, "gpuload run") is not None and (only or "") in path:
            by_name[os.path.splitext(os.path.basename(path))[0]] = path
    return [by_name[name] for name in sorted(by_name)]


def run(words, folder, timeout_s):
    """Run a command; return (stdout and stderr, seconds).  After a time-out the output is None.  Kills the command's children, too."""
    start = time.monotonic()
    with subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", start_new_session=True) as process:
        try:
            text = process.communicate(timeout=timeout_s)[0]
        except subprocess.TimeoutExpired:
            text = None
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the process group has ended
    return text, time.monotonic() - start


def ours(gpuload, tool, path, timeout_s):
    text, seconds = run([gpuload, "run", os.path.basename(path), f"--{tool}"], os.path.dirname(path), timeout_s)
    want = line_of(path, "expect")
    if text is None:
        return {"found": None, "ok": False, "first": "time-out", "seconds": seconds}
    count = re.search(rf"^gpuload {tool}: (\d+) errors?$", text, re.M)
    first = re.search(rf"^gpuload {tool}: (?!\d+ error|no errors)(.*)$", text, re.M)
    silent = f"gpuload {tool}: no errors" in text
    if not count and not silent:
        return {"found": None, "ok": False, "first": text.strip()[-200:], "seconds": seconds}
    return {"found": 0 if silent else int(count[1]), "ok": want in text, "first": first[1] if first else "", "seconds": seconds}


def theirs(sanitizer, options, gpuload, path, timeout_s):
    words = [sanitizer, "--tool", *options, gpuload, "run", os.path.basename(path), "--driver", "nvidia", "--timeout", f"{max(1, timeout_s / 2):g}"]
    text, seconds = run(words, os.path.dirname(path), timeout_s)
    if text is None:
        return {"found": None, "first": "time-out", "seconds": seconds}
    counts = [int(n) for n in re.findall(r"(?:ERROR SUMMARY|RACECHECK SUMMARY): (\d+)", text)]
    lines = [l.split("=========", 1)[1].strip() for l in text.splitlines() if l.startswith("=========")]
    first = next((l for l in lines if l and not re.match(r"COMPUTE-SANITIZER|(ERROR|LEAK|RACECHECK) SUMMARY|Program hit", l)), "")
    if not counts:
        return {"found": None, "first": text.strip()[-200:], "seconds": seconds}
    return {"found": sum(counts), "first": first, "seconds": seconds}


def cell(result):
    if result["found"] is None:
        return "time-out" if result["first"] == "time-out" else "failed"
    return f"found ({result['found']})" if result["found"] else "nothing"


def measure(args, tool, path):
    row = {"tool": tool, "kernel": os.path.splitext(os.path.basename(path))[0], "faulty": line_of(path, "expect") != "no errors",
           "ours": ours(args.gpuload, tool, path, args.timeout), "sanitizer": {}}
    for options in SANITIZERS[tool] if args.sanitizer else []:
        row["sanitizer"][options[0]] = theirs(args.sanitizer, options, args.gpuload, path, args.timeout)
    return row


def print_table(rows, tool):
    names = [o[0] for o in SANITIZERS[tool] if any(o[0] in r["sanitizer"] for r in rows)]
    heads = ["kernel", "fault", f"gpuload run --{tool}", "s", *(h for n in names for h in (f"compute-sanitizer {n}", "s"))]
    print(f"\n| {' | '.join(heads)} |\n|{'|'.join('--:' if h == 's' else '---' for h in heads)}|")
    for r in rows:
        wrong = "" if r["ours"]["ok"] else " (unexpected)"
        cells = [r["kernel"], "yes" if r["faulty"] else "no", cell(r["ours"]) + wrong, f"{r['ours']['seconds']:.2f}"]
        for n in names:
            cells += [cell(r["sanitizer"][n]), f"{r['sanitizer'][n]['seconds']:.2f}"]
        print(f"| {' | '.join(cells)} |")
    faulty, right = [r for r in rows if r["faulty"]], [r for r in rows if not r["faulty"]]
    print(f"\n{tool}: {sum(r['ours']['ok'] for r in faulty)} of {len(faulty)} faults found, {sum(not r['ours']['ok'] for r in right)} of {len(right)} right kernels "
          f"reported, {sum(r['ours']['seconds'] for r in rows):.1f} s")
    for n in names:
        each = [r["sanitizer"][n] for r in rows]
        print(f"compute-sanitizer {n}: {sum(bool(r['sanitizer'][n]['found']) for r in faulty)} of {len(faulty)} found, "
              f"{sum(bool(r['sanitizer'][n]['found']) for r in right)} of {len(right)} right kernels reported, {sum(e['seconds'] for e in each):.1f} s")
    if len(names) > 1:
        print(f"compute-sanitizer, any of them: {sum(any(s['found'] for s in r['sanitizer'].values()) for r in faulty)} of {len(faulty)} found")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--gpuload", default=os.path.join(ROOT, "build", "gpuload"))
    p.add_argument("--only", help="kernels whose path contains this text")
    p.add_argument("--tools", default=",".join(SANITIZERS), help="default: all")
    p.add_argument("--sanitizer", default=next(filter(None, map(shutil.which, PLACES)), None), help="compute-sanitizer; '' leaves it out")
    p.add_argument("--timeout", type=float, default=120, help="seconds for one process (default: 120)")
    p.add_argument("--json", action="store_true", help="print all results as JSON")
    p.add_argument("folder", nargs="?", default=os.path.join(ROOT, "build/kernels/tests/softcuda/tools/faults"))
    args = p.parse_args()
    args.gpuload = os.path.abspath(args.gpuload)
    unknown = set(args.tools.split(",")) - set(SANITIZERS)
    if unknown:
        p.error(f"unknown tool: {', '.join(sorted(unknown))}; there are {', '.join(SANITIZERS)}")
    if not args.sanitizer:
        print("compute-sanitizer was not found or is left out: only the software driver is measured", file=sys.stderr)
    rows = []
    for tool in args.tools.split(","):
        part = [measure(args, tool, path) for path in kernels(os.path.join(args.folder, tool), args.only)]
        if not args.json and part:
            print_table(part, tool)
        rows += part
    if args.json:
        json.dump(rows, sys.stdout, indent=1)
    if not rows:
        sys.exit(f"no kernels in {args.folder}")
    sys.exit(any(not r["ours"]["ok"] for r in rows))


if __name__ == "__main__":
    main()
