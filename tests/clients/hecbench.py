#!/usr/bin/env python3
"""hecbench.py — build and run programs of HeCBench on the software driver.

The checkout is a copy of github.com/zjin-lcf/HeCBench; this program fetches nothing.  It draws --count of the programs src/*-cuda at
random (--seed), compiles each by its Makefile with nvcc for compute_90 and `-cudart none`, links libgpuload-rt.a, and runs what `make
run` would. A program that does not end within --limit seconds is run again with smaller arguments (smaller.py), and such runs are counted
separately.  If it is still too slow, a copy of its source with smaller constants is compiled and run.  The last attempt, with the
smallest arguments, may take --last seconds.  These limits are CPU time divided by the number of CPUs, so that other work on the machine
does not matter; a run is killed after ten times the limit.  A failure with smaller sizes does not count, because some programs are not
correct for them, but it is printed.

    verified, ran                  with the published arguments: exit 0; the program reports that its results are right, or reports nothing: passed
    verified smaller, ran smaller  the same with smaller arguments: passed
    verified changed, ran changed  the same with smaller constants in its source: passed
    failed, slow, not built        failed; slow: neither the published nor the smaller sizes ended in time
    not testable                   it needs a library (cuBLAS, MPI ...), or a file that is not in the checkout; or the compiler refuses it: skipped

--quick begins with the smaller sizes, and uses the published ones only where all smaller ones fail.  --short is --count 12 --limit 10 --quick.
"""
import concurrent.futures, copy, glob, json, os, random, re, shutil, signal, stat, subprocess, sys, time

import client, smaller  # in this folder

OUT_OF_TIME = {-signal.SIGXCPU, 128 + signal.SIGXCPU}
LIBRARIES = re.compile(r"-l(cublas|cusparse|cusolver|curand|cufft|cudnn|nccl|mpi|parmetis|metis|gsl|gfortran|gdal|boost)\w*|mpicc|mpicxx|mpirun|nvshmem")
SAYS_RIGHT = re.compile(r"\bPASS(ED)?\b|\bsuccess|\bcorrect\b|verified", re.I)
SAYS_WRONG = re.compile(r"\bFAIL(ED|URE)?\b(?! as expected)|mismatch|incorrect", re.I)
NO_FILE = re.compile(r"(cannot|could not|can't|unable to|failed to|error) (be )?(open|opening|read|find|load|import)|no such file|not found|file opening failed|file was not opened|\bfp? != NULL|"
                     r"fail(ed)? to open|file open fails|could not stat|invalid infile|load_csv", re.I)

# Calls nvcc with the options of this test.  With -cudart none, nvcc does not link relocatable device code, so a program that has such code
# is linked with gpuload's libcudart.so instead.
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


COUNTED = {"verified": "passed", "ran": "passed", "verified smaller": "passed", "ran smaller": "passed", "verified changed": "passed", "ran changed": "passed",
           "not testable": "skipped"}


def arguments():
    a = client.parser(__doc__, "github.com/zjin-lcf/HeCBench")
    a.add_argument("--count", type=int, default=170)
    a.add_argument("--seed", type=int, default=17)
    a.add_argument("--quick", action="store_true", help="begin with the smaller sizes")
    a.add_argument("--last", type=float, metavar="S", help="seconds for the last run of a program that is too slow (default: 4 times --limit; 0: no such run)")
    a.add_argument("--no-run", action="store_true", help="only compile")
    a.add_argument("--json", help="file for the results")
    args = client.begin(a, "src")
    if args.short:
        args.count, args.limit, args.quick, args.last = 12, 10, True, 0
    if args.last is None:
        args.last = 4 * args.limit
    return args


def sh(command, cwd, env=None, limit=900):
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, errors="replace", timeout=limit, stdin=subprocess.DEVNULL)


class Program:
    def __init__(self, name, args):
        self.name, self.args = name, args
        self.source = f"{args.checkout}/src/{name}-cuda"
        self.at = f"{args.work}/src/{name}-cuda"

    def make(self):
        """Run make; return (True, "") or (False, reason).  A reason that begins with 'needs' makes the program not testable."""
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
        """Return the first command that `make run` would run to start the program; None: there is none."""
        wrapper = f"{self.args.work}/nvcc"
        r = sh(["make", "-n", f"CC={wrapper}", f"NVCC={wrapper}", f"CXX={wrapper}", "ARCH=sm_90", "run"], self.at)
        lines = [line.strip() for line in r.stdout.replace("\\\n", " ").splitlines() if line.strip().startswith(("./", "cd ")) or " ./" in line]
        return lines[0] if lines else None

    def execute(self, command, limit):
        build = self.args.build
        env = {**os.environ, "GPULOAD_DRIVER": "soft", "GPULOAD_SOFT_DRIVER": f"{build}/softcuda/libcuda-soft.so", "GPULOAD_LOG": "info",
               "LD_LIBRARY_PATH": f"{build}/softcuda"}
        cpu_s = max(1, round(limit * len(os.sched_getaffinity(0))))
        code, text = client.run(["bash", "-c", f"ulimit -S -t {cpu_s}; {command}"], 10 * limit, cwd=self.at, env=env)
        if code in OUT_OF_TIME:
            code = None
        with open(f"{self.at}/output.txt", "a", encoding="utf-8") as f:
            f.write(f"$ {command}\n{text}")
        return code, text

    def run(self):
        command = self.command()
        if not command:
            return "not testable", 0, "needs a command: make run has none"
        if os.path.exists(f"{self.at}/output.txt"):
            os.remove(f"{self.at}/output.txt")
        changed = smaller.commands(command, smaller.usage_names(self.source))
        attempts = changed + [command] if self.args.quick else [command] + changed
        of_published, notes, too_slow = None, [], command
        for attempt in attempts:
            state, seconds, reason = self.attempt(attempt, self.args.limit)
            if state in ("verified", "ran"):
                return self.passed(state, seconds, attempt, command)
            if attempt == command:
                of_published = state, seconds, reason
                if state != "slow":   # failed or not testable with the published arguments: smaller ones do not change that
                    return of_published
            else:
                notes.append(f"{' '.join(attempt.split())[:80]}: {state}{' ' + reason if state != 'slow' else ''}")
                too_slow = min((too_slow, attempt), key=smaller.work_of) if state == "slow" else too_slow
        for stage in range(len(smaller.STAGES)):
            state, seconds, reason = self.with_smaller_constants(stage, too_slow)
            if state in ("verified", "ran"):
                return f"{state} changed", seconds, f"{' '.join(too_slow.split())[:80]}, {reason}"
            notes += [f"{reason}: {state}"] if reason else []
        if self.args.last:
            state, seconds, reason = self.attempt(too_slow, self.args.last)
            if state in ("verified", "ran"):
                return self.passed(state, seconds, too_slow, command)
            notes.append(f"{' '.join(too_slow.split())[:80]} in {self.args.last:g} s: {state}")
        return *of_published[:2], "; ".join([of_published[2], *notes])

    def with_smaller_constants(self, stage, command):
        """Build and run a copy with the smaller constants of a stage; return (state, seconds, what was changed or "" for nothing)."""
        other = copy.copy(self)
        other.at = f"{self.at}-{stage}"
        shutil.rmtree(other.at, ignore_errors=True)
        shutil.copytree(self.source, other.at)
        repeats_by, sizes_by = smaller.STAGES[stage]
        said = f"repetitions / {repeats_by}, sizes / {sizes_by} in the source"
        if not smaller.change_sources(other.at, stage):
            return "slow", 0, ""
        made, reason = other.make()
        if not made:
            return "not built", 0, f"{said}: {reason}"
        state, seconds, reason = other.attempt(command, self.args.limit)
        return state, seconds, said if state in ("verified", "ran", "slow") else f"{said}: {reason}"

    @staticmethod
    def passed(state, seconds, attempt, command):
        return (state, seconds, "") if attempt == command else (f"{state} smaller", seconds, " ".join(attempt.split())[:120])

    def missing_file(self, command):
        """Return an argument that names a missing file of another folder, because some programs do not report it; None: there is none."""
        return next((word for word in command.split()[1:] if word.startswith("../") and not os.path.exists(f"{self.at}/{word}")), None)

    def attempt(self, command, limit):
        start = time.time()
        code, text = self.execute(command, limit)
        seconds = time.time() - start
        said = "\n".join(line for line in text.splitlines() if not line.startswith("gpuload"))
        own = [line for line in text.splitlines() if re.search(r"^gpuload (runtime|soft)|soft driver: ", line)]
        last = (own or text.strip().splitlines() or [""])[-1][:160]
        if code is None:
            return "slow", seconds, " ".join(command.split())[:120]
        if code and not own and (NO_FILE.search(said) or self.missing_file(command)):
            return "not testable", seconds, f"needs a file: {self.missing_file(command) or last}"
        if code or SAYS_WRONG.search(said):
            return "failed", seconds, f"exit {code}: {last}"
        return ("verified" if SAYS_RIGHT.search(said) else "ran"), seconds, ""


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
    for name, target in (("libgpuload-rt.a",) * 2, ("softcuda/libcudart.so", "softcuda/libcudart.so.N")):   # without the second, nvcc would link NVIDIA's
        if not os.path.exists(f"{args.build}/{name}"):
            client.skip(f"{args.build}/{name} not found: run ninja {os.path.basename(args.build)}/{target} first")
    names = sorted(os.path.basename(d)[:-5] for d in glob.glob(f"{args.checkout}/src/*-cuda"))
    names = args.only or sorted(random.Random(args.seed).sample(names, min(args.count, len(names))))
    os.makedirs(f"{args.work}/src", exist_ok=True)
    for d in glob.glob(f"{args.checkout}/src/*"):   # programs read files of other folders: ../x-sycl, ../data
        link = f"{args.work}/src/{os.path.basename(d)}"
        if not os.path.lexists(link) and os.path.basename(d) not in {f'{name}-cuda' for name in names}:
            os.symlink(d, link)
    for name in names:
        if os.path.islink(f"{args.work}/src/{name}-cuda"):   # left by an earlier run that had drawn other programs
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
            print(f"{name:28} {state:16} {seconds:6.1f} s  {reason}", flush=True)
            counted.add(name, COUNTED.get(state, "failed"), f"{state}: {reason}")
    counts = {s: sum(r[0] == s for r in states.values()) for s in (*COUNTED, "failed", "slow", "not built")}
    print(f"{len(states)} programs (seed {args.seed}): " + ", ".join(f"{n} {s}" for s, n in counts.items()))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(states, f, indent=1)
    return counted.end()


if __name__ == "__main__":
    sys.exit(main())
