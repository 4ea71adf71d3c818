"""spin.py — check a Promela model with many sets of parameters (shapes), and check that each deliberate error in it is found.

Used by the test_model.py of each folder with models: `sys.exit(spin.main(...))`.

spin translates a model into a C program, pan, that visits every state that any order of threads and memory accesses
can reach.  A shape is correct if pan has visited all states, no assertion failed, and no thread waits for ever.
"""
import argparse, collections, concurrent.futures, os, re, shutil, subprocess, tempfile

# Macro definitions for a model.  right, large: {name: definitions}; wrong: {name: (definitions, part of pan's expected error message)}
Model = collections.namedtuple("Model", "path right large wrong")
Job = collections.namedtuple("Job", "path name definitions wanted")


class Pan:
    """The program pan for one shape of a model, compiled in a separate folder."""

    def __init__(self, folder, job, compiler):
        self.folder, self.path = folder, job.path
        self.definitions = [f"-D{d}" for d in job.definitions.split()]
        self.call("spin", *self.definitions, "-a", self.path)
        self.call(*compiler, "-w", "-DSAFETY", "-DCOLLAPSE", "-DVECTORSZ=2048", "-o", "pan", "pan.c")

    def call(self, *command):
        r = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if r.returncode:
            raise RuntimeError(f"{' '.join(command)}: {r.stdout}{r.stderr}")
        return r.stdout

    def search(self):
        """Run the search; return (error message or "", number of states).  An incomplete search is also an error."""
        out = self.call("./pan", "-m2000000", "-w20")
        errors, states = re.search(r"errors: (\d+)", out), re.search(r"(\d+) states, stored", out)
        complaint = re.search(r"^pan:1: (.*)", out, re.M)
        if not errors or not states or "max search depth too small" in out or "out of memory" in out.lower():
            return f"the search was cut short: {out}", 0
        return (complaint[1] if complaint else "" if errors[1] == "0" else out), int(states[1])

    def trail(self):
        return self.call("spin", *self.definitions, "-k", f"{os.path.basename(self.path)}.trail", "-p", "-g", "-l", self.path)


def check(job, compiler, trail=False):
    """Check one shape; return (passed, text to print).  job.wanted: part of the expected error message; "": no error is expected."""
    with tempfile.TemporaryDirectory(prefix="gpuload-model-") as folder:
        try:
            pan = Pan(folder, job, compiler)
            said, states = pan.search()
            shown = pan.trail() if trail and said else ""
        except RuntimeError as e:
            said, states, shown = str(e), 0, ""
    good = job.wanted in said if job.wanted else not said
    found = f", found: {said}" if job.wanted and good else ""
    line = f"{'ok' if good else 'FAIL':<5}{job.name}: {states} states{found}"
    return good, shown + line + ("" if good else f"\n    {job.definitions}\n    {said or 'nothing was found'}")


def untested_errors(model):
    """Return the deliberate errors (macros WRONG_...) in a model that no shape of model.wrong turns on."""
    with open(model.path, encoding="utf-8") as f:
        errors = set(re.findall(r"\bWRONG_[A-Z0-9_]+", f.read()))
    return sorted(errors - {d for definitions, _ in model.wrong.values() for d in definitions.split()})


def main(description, models):
    a = argparse.ArgumentParser(description=description)
    a.add_argument("--full", action="store_true", help="larger shapes, too")
    a.add_argument("--only", default="", help="part of the name")
    a.add_argument("--trail", action="store_true", help="print the steps that led to the error")
    a.add_argument("-j", type=int, default=1, help="at a time (default: 1)")
    args = a.parse_args()
    missing = [tool for tool in ("spin", "cc") if not shutil.which(tool)]
    if missing:
        print(f"skipped: no {' and no '.join(missing)}")
        return 77
    results = []
    for m in models:
        for error in untested_errors(m):
            print(f"FAIL {m.path}: no shape contains {error}")
            results.append(False)
    jobs = [Job(m.path, *j) for m in models for j in [
        *((n, d, "") for n, d in (m.right | m.large if args.full else m.right).items()),
        *((n, *w) for n, w in m.wrong.items())]]
    jobs = [j for j in jobs if args.only in j.name]
    # for small shapes, gcc -O2 takes longer to compile pan than pan to search; tcc compiles 100 times as fast
    compiler = ["cc", "-O2"] if args.full else ["tcc"] if shutil.which("tcc") else ["cc", "-O0"]
    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        for good, line in pool.map(lambda j: check(j, compiler, args.trail), jobs):
            print(line, flush=True)
            results.append(good)
    print(f"{results.count(True)} passed, {results.count(False)} failed, 0 skipped")
    return 1 if False in results or not jobs else 0
