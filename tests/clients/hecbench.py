#!/usr/bin/env python3
"""hecbench.py — build and run programs of HeCBench on the software driver.

The checkout is a copy of github.com/zjin-lcf/HeCBench; this program fetches nothing.  It draws --count of the programs src/*-cuda at random
(--seed), compiles each by its Makefile with nvcc for compute_90 and `-cudart none`, links libgpuload-rt.a, and runs what `make run` would.
A program that takes more CPU time than --limit, or more wall-clock time than ten times as much, is run again with a smaller last number, in
most programs the number of repetitions: 1, then a hundredth of the number (a 128th of a multiple of 128).  A failure with a smaller number
does not count, because not every program is defined for it.

    verified      exit 0, and the program reports that its results are right: passed
    ran           exit 0, without such a report: passed
    failed, slow  (--limit): failed
    not testable  it needs a library (cuBLAS, MPI ...), or a file that is not in the checkout; or the compiler refuses it: skipped

--short is --count 12 --limit 10 --quick.
"""
import concurrent.futures, glob, json, os, random, re, shutil, signal, stat, subprocess, sys, time

import client  # in this folder

LIBRARIES = re.compile(r"-l(cublas|cusparse|cusolver|curand|cufft|cudnn|nccl|mpi|parmetis|metis|gsl|gfortran|gdal|boost)\w*|mpicc|mpicxx|mpirun|nvshmem")
OUT_OF_TIME = {-signal.SIGXCPU, 128 + signal.SIGXCPU}
SAYS_RIGHT = re.compile(r"\bPASS(ED)?\b|\bsuccess|\bcorrect\b|verified", re.I)
SAYS_WRONG = re.compile(r"\bFAIL(ED|URE)?\b|mismatch|incorrect", re.I)
NO_FILE = re.compile(r"(cannot|could not|can't|unable to|failed to|error) (open|opening|read|find|load)|no such file|not found|file opening failed|"
                     r"fail(ed)? to open|could not stat|invalid infile|load_csv", re.I)

# nvcc with our options.  -cudart none leaves out the link of relocatable device code, so a program that needs it is linked with our libcudart.so.
WRAPPER = """#!/usr/bin/env python3
import subprocess, sys
out, skip = [], False
for a in sys.argv[1:]:
    if skip:
        skip = False
    elif a in ("-gencode", "-arch", "--gpu-architecture", "-code", "--generate-code", "-cudart", "--cudart"):
        skip = True
    elif not a.startswith(("-arch=", "-gencode=", "--gpu-architecture=", "-code=", "--generate-code=", "-cudart=", "--cudart=", "-lcudart")):
        out.append(a)
nvcc = ["@nvcc@", "-gencode", "arch=compute_90,code=compute_90", "-w", *out]
if {"-c", "-dc", "-ptx", "-cubin", "--device-c", "-E", "-M", "-MM", "-lib"} & set(out):
    sys.exit(subprocess.call([*nvcc, "-cudart", "none"]))
if "-dlink" in out:
    sys.exit(subprocess.call(nvcc))
system = ["-ldl", "-lpthread", "-lrt", "-L@softcuda@", "-lcuda"]
r = subprocess.run([*nvcc, "-cudart", "none", "@runtime@", *system], capture_output=True, text=True)
if r.returncode and "__cudaRegisterLinkedBinary" in r.stderr:
    sys.exit(subprocess.call([*nvcc, "-cudart", "shared", *system]))
sys.stderr.write(r.stderr)
sys.exit(r.returncode)
"""


COUNTED = {"verified": "passed", "ran": "passed", "not testable": "skipped"}


def arguments():
    a = client.parser(__doc__, "github.com/zjin-lcf/HeCBench")
    a.set_defaults(limit=60)
    a.add_argument("--count", type=int, default=170)
    a.add_argument("--seed", type=int, default=17)
    a.add_argument("--quick", action="store_true", help="begin with the smaller numbers, and take the program's own one if it fails with them")
    a.add_argument("--no-run", action="store_true", help="only compile")
    a.add_argument("--json", help="file for the results")
    args = client.begin(a, "src")
    if args.short:
        args.count, args.limit, args.quick = 12, 10, True
    return args


def sh(command, cwd, env=None, limit=900):
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, errors="replace", timeout=limit, stdin=subprocess.DEVNULL)


class Program:
    def __init__(self, name, args):
        self.name, self.args = name, args
        self.source = f"{args.checkout}/src/{name}-cuda"
        self.at = f"{args.work}/src/{name}-cuda"

    def make(self):
        """(True, "") or (False, reason); a reason that begins with 'needs' makes the program not testable."""
        make = next((m for m in ("Makefile", "makefile") if os.path.exists(f"{self.source}/{m}")), None)
        if not make:
            return False, "needs a Makefile"
        with open(f"{self.source}/{make}", encoding="utf-8", errors="replace") as f:
            text = f.read()
        found = LIBRARIES.search("\n".join(line.split("#")[0] for line in text.splitlines()))
        if found:
            return False, f"needs {found[0]}"
        wrapper = f"{self.args.work}/nvcc"
        r = sh(["make", f"CC={wrapper}", f"NVCC={wrapper}", f"CXX={wrapper}", "ARCH=sm_90"], self.at,
               {**os.environ, "PATH": f"{self.args.work}:{os.environ['PATH']}"})
        with open(f"{self.at}/make.log", "w", encoding="utf-8") as f:
            f.write(r.stdout + r.stderr)
        if r.returncode == 0:
            return True, ""
        lines = re.findall(r".*(?:undefined reference|fatal error|error:|error ).*", r.stdout + r.stderr) or r.stderr.splitlines() or [""]
        missing = re.search(r"fatal error: (\S+): No such file", r.stdout + r.stderr)
        return False, f"needs {missing[1]}" if missing else lines[0].strip()[:160]

    def command(self):
        """What `make run` would run: its last command."""
        wrapper = f"{self.args.work}/nvcc"
        r = sh(["make", "-n", f"CC={wrapper}", f"NVCC={wrapper}", f"CXX={wrapper}", "ARCH=sm_90", "run"], self.at)
        lines = [line.strip() for line in r.stdout.replace("\\\n", " ").splitlines() if line.strip().startswith(("./", "cd ")) or " ./" in line]
        return lines[0] if lines else None

    def execute(self, command):
        build = self.args.build
        env = {**os.environ, "GPULOAD_DRIVER": "soft", "GPULOAD_SOFT_DRIVER": f"{build}/softcuda/libcuda-soft.so", "GPULOAD_LOG": "info",
               "LD_LIBRARY_PATH": f"{build}/softcuda"}
        limited = f"ulimit -S -t {self.args.limit:.0f}; {command}"   # CPU time, so that a busy machine makes no program slow
        with subprocess.Popen(["bash", "-c", limited], cwd=self.at, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True) as p:
            try:
                text, code = p.communicate(timeout=10 * self.args.limit)[0], p.returncode
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, 9)
                text, code = p.communicate()[0], None
        if code in OUT_OF_TIME:
            code = None
        text = text.decode(errors="replace")
        with open(f"{self.at}/output.txt", "w", encoding="utf-8") as f:
            f.write(f"{command}\n{text}")
        return code, text

    def run(self):
        command = self.command()
        if not command:
            return "not testable", 0, "needs a command: make run has none"
        numbers = [m for m in re.finditer(r"(?<=\s)\d+(?=\s|$)", command) if int(m[0]) > 1]
        attempts = [(command, "")]
        if numbers:
            m = numbers[-1]
            whole = int(m[0])
            smaller = sorted({1, max(1, whole // (128 if whole % 128 == 0 else 100))})   # sizes stay multiples of a block
            changed = [(f"{command[:m.start()]}{n}{command[m.end():]}", f"with {n} for {m[0]}: ") for n in smaller]
            attempts = changed + attempts if self.args.quick else attempts + changed
        results = []
        for attempt, note in attempts:
            results.append(self.attempt(attempt, note))
            if results[-1][0] not in ("failed", "slow", "not testable"):
                return results[-1]
            if results[-1][0] != "slow" and attempt == command:   # what the program does with its own numbers counts
                return results[-1]
        return results[[a for a, _ in attempts].index(command)]   # a failure with a number that we chose says nothing

    def attempt(self, command, note):
        start = time.time()
        code, text = self.execute(command)
        seconds = time.time() - start
        said = "\n".join(line for line in text.splitlines() if not line.startswith("gpuload"))
        own = [line for line in text.splitlines() if re.search(r"^gpuload (runtime|soft)|soft driver: ", line)]
        last = (own or text.strip().splitlines() or [""])[-1][:160]
        if code is None:
            return "slow", seconds, note + " ".join(command.split())[:120]
        if code and NO_FILE.search(said) and not own:
            return "not testable", seconds, f"needs a file: {last}"
        if code or SAYS_WRONG.search(said):
            return "failed", seconds, f"{note}exit {code}: {last}"
        return ("verified" if SAYS_RIGHT.search(said) else "ran"), seconds, note


def one(program):
    try:
        made, reason = program.make()
    except subprocess.TimeoutExpired:
        made, reason = False, "the compiler took too long"
    if not made:
        return ("not built" if "undefined" in reason or "too long" in reason else "not testable"), 0, reason
    return ("ran", 0, "") if program.args.no_run else program.run()


def write_wrapper(args, nvcc):
    build = args.build
    path = f"{args.work}/nvcc"
    with open(path, "w", encoding="utf-8") as f:
        f.write(WRAPPER.replace("@nvcc@", nvcc).replace("@runtime@", f"{build}/libgpuload-rt.a").replace("@softcuda@", f"{build}/softcuda"))
    os.chmod(path, stat.S_IRWXU)


def main():
    args = arguments()
    nvcc = shutil.which("nvcc")
    if not nvcc:
        client.skip("nvcc not found: add the folder of the CUDA compiler to PATH")
    names = sorted(os.path.basename(d)[:-5] for d in glob.glob(f"{args.checkout}/src/*-cuda"))
    names = args.only or sorted(random.Random(args.seed).sample(names, min(args.count, len(names))))
    os.makedirs(f"{args.work}/src", exist_ok=True)
    for d in glob.glob(f"{args.checkout}/src/*"):   # programs read files of their neighbours: ../x-sycl, ../data
        link = f"{args.work}/src/{os.path.basename(d)}"
        if not os.path.lexists(link) and os.path.basename(d) not in {f'{name}-cuda' for name in names}:
            os.symlink(d, link)
    for name in names:
        if os.path.islink(f"{args.work}/src/{name}-cuda"):   # of another draw
            os.remove(f"{args.work}/src/{name}-cuda")
        if not os.path.isdir(f"{args.work}/src/{name}-cuda"):
            shutil.copytree(f"{args.checkout}/src/{name}-cuda", f"{args.work}/src/{name}-cuda")
    write_wrapper(args, nvcc)
    states, counted = {}, client.Results()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = {pool.submit(one, Program(name, args)): name for name in names}
        for f in concurrent.futures.as_completed(futures):
            name, (state, seconds, reason) = futures[f], f.result()
            states[name] = state, round(seconds, 1), reason
            print(f"{name:28} {state:12} {seconds:6.1f} s  {reason}", flush=True)
            counted.add(name, COUNTED.get(state, "failed"), f"{state}: {reason}")
    counts = {s: sum(r[0] == s for r in states.values()) for s in ("verified", "ran", "failed", "slow", "not built", "not testable")}
    print(f"{len(states)} programs (seed {args.seed}): " + ", ".join(f"{n} {s}" for s, n in counts.items()))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(states, f, indent=1)
    return counted.end()


if __name__ == "__main__":
    sys.exit(main())
