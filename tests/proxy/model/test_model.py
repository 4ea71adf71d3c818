#!/usr/bin/env python3
"""test_model.py — check fifo.pml for many shapes, and check that each deliberate error in it is found.

    tests/proxy/model/test_model.py                  small shapes: some seconds
    tests/proxy/model/test_model.py --full           larger ones too: minutes, and some GB of memory
    tests/proxy/model/test_model.py --only shared    shapes whose name contains the word
    tests/proxy/model/test_model.py --only NAME --trail    the steps to an error

spin translates the model into a C program, pan, that visits every state that any order of threads and memory accesses
can reach.  A shape is correct if pan has visited all states, no assertion failed, and no thread waits for ever.
"""
import argparse, concurrent.futures, os, re, shutil, subprocess, sys, tempfile

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fifo.pml")

RIGHT = {  # name: definitions
    "owned, 1 slot": "OWNED PRODUCERS=1 SLOTS=1 PUSHES=5",
    "owned, 2 slots": "OWNED PRODUCERS=1 SLOTS=2 PUSHES=5",
    "owned, 4 slots": "OWNED PRODUCERS=1 SLOTS=4 PUSHES=5",
    "owned, release": "OWNED PRODUCERS=1 SLOTS=2 PUSHES=5 RELEASE",
    "owned, release and sync": "OWNED PRODUCERS=1 SLOTS=2 PUSHES=4 RELEASE SYNC",
    "owned by two threads in turn": "OWNED PRODUCERS=2 SLOTS=1 PUSHES=2",
    "owned, two lanes, aborted": "OWNED PRODUCERS=2 LANES=2 SLOTS=1 PUSHES=2 ABORTS",
    "owned, two lanes, timed out": "OWNED PRODUCERS=2 LANES=2 SLOTS=1 PUSHES=2 TIMEOUTS",
    "shared, 1 slot": "PRODUCERS=2 SLOTS=1 PUSHES=2",
    "shared, 2 slots": "PRODUCERS=2 SLOTS=2 PUSHES=2",
    "shared by three": "PRODUCERS=3 SLOTS=1 PUSHES=1",
    "shared, release": "PRODUCERS=2 SLOTS=1 PUSHES=2 RELEASE",
    "shared, release and sync": "PRODUCERS=2 SLOTS=1 PUSHES=2 RELEASE SYNC",
    "shared, aborted": "PRODUCERS=2 SLOTS=1 PUSHES=2 ABORTS",
    "shared, timed out": "PRODUCERS=2 SLOTS=1 PUSHES=2 TIMEOUTS",
    "shared, a sync timed out": "PRODUCERS=2 SLOTS=1 PUSHES=2 SYNC TIMEOUTS",
    "shared, polls ahead": "PRODUCERS=2 SLOTS=1 PUSHES=2 AHEAD",
    "warp, ring smaller than the warp": "OWNED PRODUCERS=1 SLOTS=1 PUSHES=2 GROUP=2",
    "warp, ring as large as the warp": "OWNED PRODUCERS=1 SLOTS=2 PUSHES=2 GROUP=2",
    "warp, release": "OWNED PRODUCERS=1 SLOTS=4 PUSHES=2 GROUP=2 RELEASE",
    "warps that share": "PRODUCERS=2 SLOTS=2 PUSHES=1 GROUP=2",
}
LARGE = {
    "shared, release and sync, larger": "PRODUCERS=2 SLOTS=2 PUSHES=2 RELEASE SYNC",
    "owned, 4 slots, laps": "OWNED PRODUCERS=1 SLOTS=4 PUSHES=9 DEPTH=8",
    "shared, laps": "PRODUCERS=2 SLOTS=2 PUSHES=3",
    "shared, release, laps": "PRODUCERS=2 SLOTS=1 PUSHES=3 RELEASE",
    "warps that share, laps": "PRODUCERS=2 SLOTS=2 PUSHES=2 GROUP=2",
    "shared, polls ahead, larger": "PRODUCERS=2 SLOTS=2 PUSHES=2 AHEAD",
    "shared by three, polls ahead, larger": "PRODUCERS=3 SLOTS=1 PUSHES=1 AHEAD ABORTS",
    "shared by three, laps": "PRODUCERS=3 SLOTS=1 PUSHES=2",
}
WRONG = {  # name: definitions, expected complaint of pan
    "lap bit in one word only": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=3 WRONG_ONE_LAP_BIT", "w0/2)==(w1/2"),
    "lap bit of word 1 ignored": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=3 WRONG_IGNORES_WORD1", "w0/2)==(w1/2"),
    "lap bit that does not flip": ("OWNED PRODUCERS=1 SLOTS=2 PUSHES=4 WRONG_NO_FLIP", "==pushed["),
    "no fence before a push_release": ("OWNED PRODUCERS=1 SLOTS=2 PUSHES=2 RELEASE WRONG_NO_FENCE", ">=i)"),
    "no acquire by the CPU": ("OWNED PRODUCERS=1 SLOTS=2 PUSHES=2 RELEASE WRONG_EARLY_PAYLOAD", ">=i)"),
    "no acquire by the kernel": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=2 RELEASE SYNC WRONG_EARLY_ANSWER", "==(i+1)"),
    "tail released before the slot is read": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=3 WRONG_EARLY_TAIL", "w0/2)==(w1/2"),
    "tail stored without release": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=2 RELEASE SYNC WRONG_TAIL_RELAXED", "==(i+1)"),
    "free slots counted one too high": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=3 WRONG_OFF_BY_ONE", "-released["),
    "poller that leaves and stays elected": ("PRODUCERS=2 SLOTS=1 PUSHES=2 WRONG_STAYS_ELECTED", "invalid end state"),
    "poller that times out and stays elected": (
        "PRODUCERS=2 SLOTS=1 PUSHES=2 SYNC TIMEOUTS WRONG_LATE_STAYS_ELECTED", "invalid end state"),
    "poller that publishes only at the end": ("PRODUCERS=3 SLOTS=1 PUSHES=2 WRONG_SILENT_POLLER", "invalid end state"),
    "poller that publishes in two words": ("PRODUCERS=3 SLOTS=1 PUSHES=2 WRONG_SPLIT_SEEN", "invalid end state"),
    "owner cleared before the head is written": ("OWNED PRODUCERS=2 SLOTS=1 PUSHES=2 WRONG_DISOWN", "==pushed["),
    "unused ticket, no abort": ("PRODUCERS=2 SLOTS=1 PUSHES=2 TIMEOUTS WRONG_TICKET_DROPPED", "invalid end state"),
    "abort of one lane not copied to the other": (
        "OWNED PRODUCERS=2 LANES=2 SLOTS=1 PUSHES=2 TIMEOUTS WRONG_ABORTS_ONE_LANE", "invalid end state"),
}


class Pan:
    """The model of one shape as a program, in a separate folder."""

    def __init__(self, folder, definitions, optimise):
        self.folder = folder
        self.definitions = [f"-D{d}" for d in definitions.split()]
        self.call("spin", *self.definitions, "-a", MODEL)
        self.call("cc", optimise, "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", "-o", "pan", "pan.c")

    def call(self, *command):
        r = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if r.returncode:
            raise RuntimeError(f"{' '.join(command)}: {r.stdout}{r.stderr}")
        return r.stdout

    def search(self):
        """(complaint, "" if none; number of states).  An incomplete search is also a complaint."""
        out = self.call("./pan", "-m2000000")
        errors, states = re.search(r"errors: (\d+)", out), re.search(r"(\d+) states, stored", out)
        complaint = re.search(r"^pan:1: (.*)", out, re.M)
        if not errors or not states or "max search depth too small" in out or "out of memory" in out.lower():
            return f"the search was cut short: {out}", 0
        return (complaint[1] if complaint else "" if errors[1] == "0" else out), int(states[1])

    def trail(self):
        return self.call("spin", *self.definitions, "-t", "-p", "-g", "-l", MODEL)


def check(name, definitions, wanted, optimise, trail=False):
    """(passed, line).  wanted: part of the expected complaint; "" if none is expected."""
    with tempfile.TemporaryDirectory(prefix="gpuload-model-") as folder:
        try:
            pan = Pan(folder, definitions, optimise)
            said, states = pan.search()
            shown = pan.trail() if trail and said else ""
        except RuntimeError as e:
            said, states, shown = str(e), 0, ""
    good = wanted in said if wanted else not said
    found = f", found: {said}" if wanted and good else ""
    line = f"{'ok' if good else 'FAIL':<5}{name}: {states} states{found}"
    return good, shown + line + ("" if good else f"\n    {definitions}\n    {said or 'nothing was found'}")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--full", action="store_true", help="larger shapes, too")
    a.add_argument("--only", default="", help="part of the name")
    a.add_argument("--trail", action="store_true", help="print the steps that led to the error")
    a.add_argument("-j", type=int, default=1, help="at a time (default: 1)")
    args = a.parse_args()
    missing = [tool for tool in ("spin", "cc") if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {' and no '.join(missing)}")
        return 77
    jobs = [(n, d, "") for n, d in (RIGHT | LARGE if args.full else RIGHT).items()] + [(n, *w) for n, w in WRONG.items()]
    jobs = [j for j in jobs if args.only in j[0]]
    optimise = "-O2" if args.full else "-O0"  # small shapes take longer to compile than to run
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        results = []
        for good, line in pool.map(lambda j: check(*j, optimise, args.trail), jobs):
            print(line, flush=True)
            results.append(good)
    print(f"{results.count(True)} passed, {results.count(False)} failed, 0 skipped")
    return 1 if False in results or not results else 0


if __name__ == "__main__":
    sys.exit(main())
