#!/usr/bin/env python3
"""Run the tests listed in <build>/tests.list and end with `N passed, N failed, N skipped`.

    tests/run.py --match racecheck    the tests whose name contains this regular expression
    tests/run.py --failed             those that failed in the last run

Each line of that file is: group, name, command.  A test is a process: exit status 0 means passed, 77 means skipped.  If its output lists
single cases (cmocka, unittest, TAP, or a last line `N passed, N failed, N skipped`), these are counted; else the process counts as one
test.  The output of a failed test is printed, and the other tests continue.
"""
import argparse, collections, concurrent.futures, os, re, shlex, signal, subprocess, sys, time

LIMIT_S = 900  # several times as long as the longest test on a slow machine, so that only a test that hangs is killed
ONE_AT_A_TIME = {"vm"}  # groups of which only one test runs at a time, next to tests of other groups
TOTAL_LINE = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)
CMOCKA = {k: re.compile(rf"^\[  {word} \] (\d+) test", re.M)
          for k, word in (("passed", "PASSED "), ("failed", "FAILED "), ("skipped", "SKIPPED"))}

Result = collections.namedtuple("Result", "group name status text seconds")


def count_cases(r):
    """Return (passed, failed, skipped) of one process; a bad exit status counts as a failure, whatever the output."""
    if r.status == 77:
        return 0, 0, 1
    n = None
    if totals := TOTAL_LINE.findall(r.text):
        n = [int(x) for x in totals[-1]]
    elif any(p.search(r.text) for p in CMOCKA.values()):
        n = [sum(map(int, CMOCKA[k].findall(r.text))) for k in ("passed", "failed", "skipped")]
    elif ran := re.search(r"^Ran (\d+) tests? in ", r.text, re.M):  # Python's unittest
        bad, skipped = (sum(map(int, re.findall(rf"(?:{words})=(\d+)", r.text[ran.end():])))
                        for words in ("failures|errors", "skipped"))
        n = [max(int(ran[1]) - bad - skipped, 0), bad, skipped]
    elif re.search(r"^1\.\.\d+$", r.text, re.M):
        skipped = len(re.findall(r"^ok .*# skip", r.text, re.M | re.I))
        n = [len(re.findall(r"^ok ", r.text, re.M)) - skipped, len(re.findall(r"^not ok ", r.text, re.M)), skipped]
    if n is None:
        n = [int(r.status == 0), 0, 0]
    if r.status != 0 and n[1] == 0:
        n[1] = 1
    return tuple(n)


def toolkit_programs(build):
    """Return the folder of the nvcc and ptxas that configure.py found; "": none."""
    try:
        with open(f"{build}/tests.path", encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def environment(build):
    """Return the environment of a test: it selects the command and the software driver of this build and the toolkit's programs, and turns
    off the cache in the user's home."""
    soft = os.path.abspath(f"{build}/softcuda/libcuda-soft.so")
    for_sanitizers = {f"{tool.upper()}_OPTIONS": f"suppressions={os.path.abspath('tests')}/{tool}.supp:print_suppressions=0" for tool in ("tsan", "lsan")}
    for_sanitizers["TSAN_OPTIONS"] += ":die_after_fork=0:atexit_sleep_ms=0"  # tests fork processes with threads, and measure how long some run
    probe = os.path.abspath(f"{build}/gpuload-probe")
    return dict(for_sanitizers | os.environ, GPULOAD_BUILD=build, GPULOAD_SOFT_DRIVER=soft, GPULOAD_PROBE=probe, GPULOAD_DRIVER="soft", GPULOAD_CACHE="off",
                PATH=os.pathsep.join(filter(None, [os.path.abspath(build), os.environ["PATH"], toolkit_programs(build)])))


# A test and its children get a process group, so that they can be killed together.  They stay in the session of this process, because the
# schedulers of some kernels give a session no CPU time for half a minute while processes of another session poll.
OWN_GROUP = {"process_group": 0} if sys.version_info >= (3, 11) else {"preexec_fn": os.setpgrp}


def run_test(test, build, limit_s):
    group, name, command = test
    start = time.monotonic()
    p = subprocess.Popen(shlex.split(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         env=environment(build), **OWN_GROUP)
    try:
        text, status = p.communicate(timeout=limit_s)[0], p.returncode
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)  # also kills its child processes
        text, status = p.communicate()[0] + f"\nstopped: time limit of {limit_s} s exceeded\n".encode(), 1
    if status < 0:
        text += f"\nended by signal {-status} ({signal.Signals(-status).name})\n".encode()
    return Result(group, name, status, text.decode(errors="replace"), time.monotonic() - start)


def report_result(r):
    passed, failed, skipped = count_cases(r)
    word = "FAIL" if failed else "skip" if skipped and not passed else "ok"
    print(f"{word:<5}{r.name}: {passed} passed" + f", {failed} failed" * bool(failed)
          + f", {skipped} skipped" * bool(skipped) + f" ({r.seconds:.1f} s)", flush=True)
    if failed or word == "skip":
        lines = r.text.rstrip().splitlines()
        print("\n".join(f"    {l}" for l in (lines if failed else lines[-1:])), flush=True)
    return passed, failed, skipped


def run_all(tests, args):
    """Yield the tests' futures as they complete.  The tests start in reverse order, because the short ones are first in the list: a long
    test that starts last would run alone."""
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool, concurrent.futures.ThreadPoolExecutor(1) as one:
        lane = one if args.j > 1 else pool
        yield from concurrent.futures.as_completed([(lane if t[0] in ONE_AT_A_TIME else pool).submit(run_test, t, args.build, args.limit)
                                                    for t in reversed(tests)])


def failed_list(args):
    return f"{args.build}/{args.list.removesuffix('.list')}.failed"


def selected(tests, args):
    """Return the tests that the options select; exit if --match is not a valid regular expression, or --failed has no last run."""
    names = None
    if args.failed:
        try:
            with open(failed_list(args), encoding="utf-8") as f:
                names = set(f.read().splitlines())
        except FileNotFoundError:
            sys.exit("run.py: --failed: there was no run before in this build folder")
        if not names:
            print("no test failed in the last run")
    try:
        match = re.compile(args.match or "")
    except re.error as e:
        sys.exit(f"run.py: --match: '{args.match}' is not a regular expression: {e}")
    return [t for t in tests if args.only in (None, t[0]) and (names is None or t[1] in names) and match.search(t[1])]


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--build", default="build")
    a.add_argument("--list", default="tests.list", help="file in the build folder with the tests (default: tests.list)")
    a.add_argument("--only", help="run only this group of tests")
    a.add_argument("--match", metavar="REGEX", help="run only the tests whose name contains this regular expression")
    a.add_argument("--failed", action="store_true", help="run only the tests that failed in the last run")
    a.add_argument("--limit", type=int, default=LIMIT_S, help="time limit for each test in seconds")
    a.add_argument("-j", type=int, default=len(os.sched_getaffinity(0)))
    args = a.parse_args()
    with open(f"{args.build}/{args.list}", encoding="utf-8") as f:
        tests = [tuple(l.rstrip("\n").split("\t")) for l in f]
    tests = selected(tests, args)
    total, failed = [0, 0, 0], []
    for done in run_all(tests, args):
        r = done.result()
        counts = report_result(r)
        total = [x + y for x, y in zip(total, counts)]
        failed += [r.name] if counts[1] else []
    with open(failed_list(args), "w", encoding="utf-8") as f:
        f.writelines(f"{name}\n" for name in failed)
    for name in failed:
        print(f"failed: {name}")
    print("{} passed, {} failed, {} skipped".format(*total), flush=True)
    return 1 if total[1] or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
