"""client.py — code that the scripts of this folder share.  Each runs the published tests or
programs of one client of CUDA on the software driver:

    python3 tests/clients/NAME.py --build build --work DIR [--checkout DIR] [--short]

The last line is `N passed, N failed, N skipped`.  Exit 0: no test failed except those in known/NAME.txt, which are counted in a separate
line; 1: another test failed; 77: a requirement of the client is missing, and a line names it.
"""
import argparse, collections, concurrent.futures, glob, json, math, os, re, shutil, signal, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
PLUGIN = f"{HERE}/plugin"  # not HERE, where a script such as cupy.py would hide the package of that name
NAME = os.path.basename(sys.argv[0]).removesuffix(".py")
LOOK_S = 0.1


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def parser(doc, repository=""):
    """Return a parser with the command-line options that all scripts here have; a script adds its own."""
    a = argparse.ArgumentParser(description=doc.splitlines()[0])
    a.add_argument("--build", default="build", help="build folder of gpuload (default: build)")
    a.add_argument("--work", metavar="DIR", help=f"folder for what is downloaded, built and written (default: BUILD/clients/{NAME})")
    a.add_argument("--short", action="store_true", help="a part of the tests, some minutes")
    a.add_argument("--only", nargs="+", metavar="NAME", help="only these")
    a.add_argument("--limit", type=float, default=120, metavar="S", help="seconds for one test or program (default: 120)")
    a.add_argument("--jobs", "-j", type=int, default=len(os.sched_getaffinity(0)), help="processes at a time (default: one for each CPU)")
    if repository:
        name = os.path.basename(repository)
        a.add_argument("--checkout", metavar="DIR", help=f"a copy of {repository} (default: $GPULOAD_CHECKOUTS/{name})")
        a.set_defaults(repository=repository)
    return a


def begin(a, needs=""):
    """Parse the command line.  needs: a path that must exist in the checkout, or the script ends with an error."""
    args = a.parse_args()
    args.build = os.path.abspath(args.build)
    args.work = os.path.abspath(args.work or f"{args.build}/clients/{NAME}")
    args.gpuload = f"{args.build}/gpuload"
    if not os.access(args.gpuload, os.X_OK):
        sys.exit(f"{NAME}: {args.gpuload} not found: run ninja first, or give --build")
    if getattr(args, "repository", ""):
        args.checkout = find_checkout(args.checkout, args.repository, needs)
    os.makedirs(args.work, exist_ok=True)
    return args


def find_checkout(checkout, repository, needs):
    """Return the path of a copy of the repository: the argument `checkout`, or else a folder in $GPULOAD_CHECKOUTS."""
    given = checkout or f"{os.environ.get('GPULOAD_CHECKOUTS', '')}/{os.path.basename(repository)}"
    if checkout and not os.path.exists(f"{given}/{needs}"):
        sys.exit(f"{NAME}: {given} has no {needs}: give the path of a copy of {repository}")
    if not os.path.exists(f"{given}/{needs}"):
        skip(f"no copy of {repository}: give --checkout DIR, or GPULOAD_CHECKOUTS, a folder that contains {os.path.basename(repository)}")
    return os.path.abspath(given)


def environment(args, requirements, name="v"):
    """Return the path of Python in a virtual environment with these packages of PyPI; reuse an environment that has the same packages."""
    folder, wanted = f"{args.work}/{name}", "\n".join(requirements)
    python, done = f"{folder}/bin/python", f"{folder}/installed"
    if os.path.exists(done):
        with open(done, encoding="utf-8") as f:
            if f.read() == wanted:
                return python
    shutil.rmtree(folder, ignore_errors=True)
    for command in ([sys.executable, "-m", "venv", folder], [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements]):
        r = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        if r.returncode:
            skip(f"{' '.join(command[1:4])} failed: {(r.stderr.strip().splitlines() or ['no message'])[-1]}")
    with open(done, "w", encoding="utf-8") as f:
        f.write(wanted)
    return python


def debian_packages(args, packages):
    """Download Debian packages with apt-get, unpack them without installing them, and return the folder; reuse one with the same
    packages."""
    folder, wanted = f"{args.work}/package", "\n".join(packages)
    if os.path.exists(f"{folder}/unpacked"):
        with open(f"{folder}/unpacked", encoding="utf-8") as f:
            if f.read() == wanted:
                return folder
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        skip(f"no apt-get to download Debian's {packages[0]}")
    r = subprocess.run(["apt-get", "download", "-q", *packages], cwd=args.work, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if r.returncode:
        skip(f"apt-get cannot download {packages[0]}: {(r.stderr.strip().splitlines() or ['no message'])[-1]}")
    shutil.rmtree(folder, ignore_errors=True)
    for package in packages:
        subprocess.run(["dpkg-deb", "-x", max(glob.glob(f"{args.work}/{package}_*.deb"), key=os.path.getmtime), folder], check=True)
    with open(f"{folder}/unpacked", "w", encoding="utf-8") as f:
        f.write(wanted)
    return folder


def site_packages(python):
    """The folder of a virtual environment's packages."""
    return subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True, check=True).stdout.strip()


def soft(args, *options):
    """Return the words that, before a command, run it on the software driver; none if args.gpuload is empty, for the machine's GPU."""
    return [args.gpuload, "soft", "--quiet", *options, "--"] if args.gpuload else []


def known_failures(name):
    """Return a regular expression for the names in known/NAME.txt: one test in a line, * matches any text, # begins a comment."""
    try:
        with open(f"{HERE}/known/{name}.txt", encoding="utf-8") as f:
            lines = [line.strip() for line in f]
    except FileNotFoundError:
        return None
    patterns = [re.escape(line).replace(r"\*", ".*") for line in lines if line and not line.startswith("#")]
    return re.compile("|".join(patterns)) if patterns else None


class Results:
    """Counts the outcomes of tests, and prints each failure immediately."""

    def __init__(self, name=NAME):
        self.name, self.known, self.n, self.as_known = name, known_failures(name), collections.Counter(), 0

    def add(self, test, outcome, why=""):
        """outcome: passed, failed or skipped; end() does not print other outcomes, such as notrun."""
        if outcome == "failed" and self.known and self.known.fullmatch(test):
            self.as_known += 1
            return
        self.n[outcome] += 1
        if outcome == "failed":
            print(f"FAILED {test}: {' '.join(why.split())[:200]}", flush=True)

    def end(self):
        """Print the counts; returns the exit status."""
        if self.as_known:
            print(f"{self.as_known} known failures (tests/clients/known/{self.name}.txt)")
        print("{} passed, {} failed, {} skipped".format(*(self.n[k] for k in ("passed", "failed", "skipped"))), flush=True)
        return int(bool(self.n["failed"]) or not self.n["passed"])


# ---- programs and files of tests ---------------------------------------------------------------------------


def test_files(tests, left_out):
    """Return the files test_*.py below the folder `tests`, except those whose names begin with one of left_out."""
    names = sorted(os.path.relpath(f, tests) for f in glob.glob(f"{tests}/**/test_*.py", recursive=True))
    return [n for n in names if not n.startswith(left_out)]


def run(command, limit, busy=None, until=math.inf, **how):
    """Run a command; return (exit status, output).  The command is killed, and the status is None, `limit` seconds after its start or after
    the file `busy` last grew, and when time.monotonic() reaches `until`."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, **how) as p:
        end, size = time.monotonic() + limit, -1
        while True:
            try:
                text = p.communicate(timeout=LOOK_S)[0]
                return p.returncode, text.decode(errors="replace")
            except subprocess.TimeoutExpired:
                grown = os.path.getsize(busy) if busy else size
                if grown != size:
                    size, end = grown, time.monotonic() + limit
                if time.monotonic() > min(end, until):
                    os.killpg(p.pid, signal.SIGKILL)
                    return None, p.communicate()[0].decode(errors="replace")


def read_log(path):
    """Parse the file that outcomes.py writes; return ({test: outcome}, the test that has started and not ended or None)."""
    ended, begun = {}, None
    with open(path, encoding="utf-8") as f:
        for line in f:
            r = json.loads(line)
            if r["outcome"] == "begun":
                begun = r["test"]
            else:
                ended[r["test"]], begun = (r["outcome"], r["why"]), None
    return ended, begun


def one_file(args, command, name, cwd, env):
    """Run one file of tests; return {test: outcome}.  A test that crashes or hangs fails, and the tests after it run in a new process.
    At the time args.until, if there is one, the tests that have not ended are left out, and the file gets the outcome notrun."""
    log = os.path.join(args.work, "logs", re.sub(r"[^\w.-]", "_", name))
    open(f"{log}.json", "w", encoding="utf-8").close()
    env = {**os.environ, **env, "GPULOAD_OUTCOMES": f"{log}.json", "PYTHONPATH": os.pathsep.join(filter(None, [PLUGIN, env.get("PYTHONPATH")]))}
    n_done, ended, until = -1, {}, getattr(args, "until", math.inf)
    while time.monotonic() < until:
        status, text = run([*command, name], args.limit, f"{log}.json", until, cwd=cwd, env=env)
        with open(f"{log}.txt", "w", encoding="utf-8") as f:
            f.write(text)
        ended, begun = read_log(f"{log}.json")
        if not begun and (status in (0, 5) or status == 1 and any(outcome == "failed" for outcome, _ in ended.values())):
            return ended
        if status is None and time.monotonic() >= until:
            break
        why = f"did not end in {args.limit:g} s" if status is None else f"the process ended with {status}"
        if not begun or len(ended) == n_done:
            last = (text.strip().splitlines() or ["no output"])[-1]
            return {**ended, f"{name} (process)": ("failed", f"{why}: {last}")}
        with open(f"{log}.json", "a", encoding="utf-8") as f:
            f.write(json.dumps({"test": begun, "outcome": "failed", "why": why}) + "\n")
        n_done = len(ended)
    return {**ended, f"{name} (process)": ("notrun", "the time was up")}


def run_files(args, results, command, names, cwd, env):
    os.makedirs(f"{args.work}/logs", exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = {pool.submit(one_file, args, command, name, cwd, env or {}): name for name in names}
        for f in concurrent.futures.as_completed(futures):
            outcomes = f.result()
            for test, (outcome, why) in outcomes.items():
                results.add(test, outcome, why)
            n = collections.Counter(outcome for outcome, _ in outcomes.values())
            print(f"{futures[f]}: {', '.join(f'{n[k]} {k}' for k in ('passed', 'failed', 'skipped') if n[k]) or 'no tests'}", flush=True)


def run_pytest(args, results, python, names, cwd, options=(), env=None, soft_options=()):
    """Run files of tests with pytest, each in a separate process, args.jobs at a time."""
    run_files(args, results, [*soft(args, *soft_options), python, "-X", "faulthandler", "-m", "pytest", "-q", "--tb=short", "-W", "ignore",
                              "-p", "no:cacheprovider", "-p", "outcomes", *options], names, cwd, env)


def run_unittest(args, results, python, names, cwd, env=None, soft_options=()):
    """Run modules of tests with unittest, each in a separate process, args.jobs at a time."""
    run_files(args, results, [*soft(args, *soft_options), python, "-X", "faulthandler", f"{PLUGIN}/outcomes.py"], names, cwd, env)
