#!/usr/bin/env python3
"""Run the test suites of gpuload's own programs on the software driver while a tool watches their kernels.

    tests/softcuda/tools/watch_suites.py [--tool synccheck ...] [--suite comm ...] [--match TEXT] [--limit SECONDS]

The programs and their kernels are right, except those of EXPECTED: any other report of a tool is a false report, or an error that
nobody has found yet.
Each test runs without a tool first, which separates a test that fails anyway, or that is too slow with a tool, from one
that a tool breaks.  Prints a line for each test with a report, with another result, or that took more than 10 seconds, then a table.
Run it in the top folder after `ninja`; it takes about 30 minutes on 2 cores, and is not part of `ninja check`.
"""
import argparse, collections, os, re, shlex, signal, subprocess, sys, tempfile, time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from run import OWN_GROUP, environment

TOOLS = ["synccheck", "memcheck", "racecheck"]
SUITES = ["comm", "rdma", "ipc", "memalloc", "proxy", "examples", "demo", "nvidia-cudart"]
# not run: tests with deliberate faults and tests that start tools themselves; test_device_fresh only builds
SKIPPED = re.compile(r"^(1[4-8]-|proxy/test_device_fresh|.*model/|proxy/test_ptx_quotes)")
# correct reports: (tool, the start of the test's name): the reason
EXPECTED = {
    ("memcheck", "nvidia/cudart/test_soft"): "leaks at a reset and an exit, and a NULL pointer, on purpose",
    ("synccheck", "nvidia/cudart/test_soft"): "ends while a kernel waits for ever",
    ("memcheck", "nvidia/cudart/errors"): "stores to a NULL pointer",
    ("memcheck", "nvidia/cudart/devices"): "a reset frees its memory",
    ("memcheck", "nvidia/cudart/streams"): "takes a registration back twice",
    ("memcheck", "ipc/test_turns"): "its processes are killed, or leave their kernel's memory to the end",
    ("racecheck", "lab/netqueue/test_hostile"): "messages whose parts overlap",
}
REPORT = re.compile(r"^\d+: gpuload (\w+): (?!no errors|\d+ errors?$|.*: \d+ times$|.*, of which one is reported above$)(.*)((?:\n    .*)*)", re.M)
SLOW_S = 10

Run = collections.namedtuple("Run", "status seconds text reports")


def run(command, build, tool, limit_s):
    """Return the exit status (None: ended at the time limit), the time, the output, and the tool's reports."""
    with tempfile.NamedTemporaryFile("r", prefix="gpuload-watch-", errors="replace") as log:
        more = {"GPULOAD_SOFT_TOOLS": tool, "GPULOAD_SOFT_TOOLS_LOG": log.name} if tool else {}
        start = time.monotonic()
        p = subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**environment(build), **more}, **OWN_GROUP)
        try:
            text, status = p.communicate(timeout=limit_s)[0], p.returncode
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            text, status = p.communicate()[0], None
        return Run(status, time.monotonic() - start, text.decode(errors="replace"), [m[2] + m[3] for m in REPORT.finditer(log.read())])


def word(r):
    return {0: "passed", 77: "skipped", None: "ended by the limit"}.get(r.status, "failed")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--tool", action="append", help=f"default: {', '.join(TOOLS)}, one after another")
    p.add_argument("--suite", action="append", help=f"default: {', '.join(SUITES)}")
    p.add_argument("--match", default="", help="only tests whose name contains it")
    p.add_argument("--limit", type=int, default=300, metavar="SECONDS", help="end a test after this time (default 300)")
    p.add_argument("--build", default="build")
    args = p.parse_args()
    os.chdir(ROOT)
    with open(f"{args.build}/tests.list", encoding="utf-8") as f:
        tests = [line.rstrip("\n").split("\t") for line in f]
    tests = [t for t in tests if t[0] in (args.suite or SUITES) and args.match in t[1] and not SKIPPED.match(t[1].removeprefix("examples/"))]
    missing = [t[2].split()[0] for t in tests if t[2].startswith(args.build) and not os.path.exists(t[2].split()[0])]
    if missing:
        sys.exit(f"{missing[0]} is missing: build everything first, by ninja")
    rows, bad = {}, 0
    for group, name, command in tests:
        plain = run(command, args.build, None, args.limit)
        for tool in args.tool or TOOLS:
            r = run(command, args.build, tool, args.limit)
            row = rows.setdefault((tool, group), collections.Counter())
            why = next((why for (t, begin), why in EXPECTED.items() if t == tool and name.startswith(begin)), None) if r.reports else None
            row.update({word(r): 1, "expected" if why else "reports": len(r.reports), "watched": r.seconds, "plain": plain.seconds})
            if r.reports or word(r) != word(plain) or r.seconds > SLOW_S:
                print(f"{tool} {name}: {word(r)} ({word(plain)} without it), {r.seconds:.1f} s ({plain.seconds:.1f} s), "
                      f"{len(r.reports)} reports{', expected: ' if why else ''}{why or ''}", flush=True)
            for report in [] if why else r.reports[:8]:
                print("   ", report, flush=True)
            if word(r) == "failed" != word(plain):
                print("    ...\n" + "\n".join(f"    {line}" for line in r.text.splitlines()[-8:]), flush=True)
            bad += (bool(r.reports) and not why) or word(r) != word(plain)
    print(f"\n{'tool':10} {'suite':16} passed  skipped  failed  limit  reports  expected  seconds  without")
    for (tool, group), n in rows.items():
        print(f"{tool:10} {group:16} {n['passed']:6}  {n['skipped']:7}  {n['failed']:6}  {n['ended by the limit']:5}  {n['reports']:7}  "
              f"{n['expected']:8}  {n['watched']:7.1f}  {n['plain']:7.1f}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
