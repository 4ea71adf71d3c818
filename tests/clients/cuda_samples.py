#!/usr/bin/env python3
"""cuda_samples.py — build and run NVIDIA's CUDA samples on the software driver.

The checkout is a copy of github.com/NVIDIA/cuda-samples, tag v13.0; this program fetches nothing.  Samples that need a graphics API or a library
of NVIDIA (cuBLAS ...; not NVRTC) are left out.  Each of the others is compiled for compute_90 with `nvcc -cudart none`, linked with
libgpuload-rt.a (or --dynamic: with libcudart.so) and run in its folder; objects are kept in --work, so that a second run only links.

    verified  exit 0, and the sample reports that its results are right: passed
    ran       exit 0, without such a report: passed
    waived    exit 2: the sample says that the device lacks something: skipped
    failed, slow (--limit), not built: failed
"""
import concurrent.futures, glob, json, os, re, shutil, subprocess, sys, time

import client  # in this folder

GROUPS = ("0_Introduction", "1_Utilities", "2_Concepts_and_Techniques", "3_CUDA_Features", "4_CUDA_Libraries", "5_Domain_Specific", "6_Performance")
NEEDS_MORE = re.compile(r"CUDA::(cublas|cufft|curand|cusolver|cusparse|npp|nvjpeg)|find_package\((OpenGL|GLUT|Vulkan|EGL|MPI)|GLUT|Vulkan|"
                        r"d3d1|EGL_|libEGL|nvscibuf|FreeImage|nvJitLink|SCREEN_LIB|NVSCI")
# Samples with options that reduce the work for a CPU, and these options.  Results are verified as with the default sizes.
ARGUMENTS = {"FDTD3d": ["--dimx=96", "--dimy=96", "--dimz=96", "--radius=4", "--timesteps=3"], "UnifiedMemoryPerf": ["-kernel-iterations=1"]}
# The source of other samples is edited to reduce the work: (file, text, replacement).  CPU_DEBUG makes a sample verify its result.
TILES = [("#define CPU_DEBUG 0", "#define CPU_DEBUG 1"), *((rf"#define {d}_TILES \d+", f"#define {d}_TILES 16") for d in "MNK")]
EDITS = {**{f"{kind}TensorCoreGemm": [(f"{kind}TensorCoreGemm.cu", *edit) for edit in TILES] for kind in ("cuda", "bf16", "dmma", "tf32", "imma")},
         "BlackScholes": [("BlackScholes.cu", r"NUM_ITERATIONS = 512", "NUM_ITERATIONS = 4")],
         "BlackScholes_nvrtc": [("BlackScholes.cpp", r"NUM_ITERATIONS = 512", "NUM_ITERATIONS = 4")],
         "scan": [("main.cpp", "iCycles = 100", "iCycles = 2")],
         "simpleStreams": [("simpleStreams.cu", r"nreps +(= 10)(?=;)", "nreps = 1")],
         "UnifiedMemoryPerf": [("matrixMultiplyPerf.cu", r"maxSampleSizeInMb += \d+", "maxSampleSizeInMb = 1")],
         "simplePitchLinearTexture": [("simplePitchLinearTexture.cu", "NUM_REPS 100", "NUM_REPS 1")],
         "convolutionTexture": [("main.cpp", "iterations = 10", "iterations = 1")],
         "NV12toBGRandResize": [("resize_convert_main.cpp", "TEST_LOOP 20", "TEST_LOOP 1")],
         "matrixMul_nvrtc": [("matrixMul.cpp", "nIter = 300", "nIter = 3")],
         "HSOpticalFlow": [("main.cpp", "nSolverIters = 500", "nSolverIters = 20")],
         "globalToShmemAsyncCopy": [("globalToShmemAsyncCopy.cu", "nIter = 100", "nIter = 2")]}
SAYS_RIGHT = re.compile(r"pass(ed)?\b|\bsuccess|\bOK\b|Result = PASS|Errors?: 0|correct|verified", re.I)
SAYS_WRONG = re.compile(r"\bFAIL(ED|URE)?\b|Test failed|CUDA error at|mismatch at", re.M)


SHORT = ("vectorAdd", "matrixMul", "simpleAtomicIntrinsics", "simpleTexture", "simpleCooperativeGroups", "clock", "asyncAPI", "simpleStreams",
         "cudaTensorCoreGemm", "simpleCudaGraphs", "streamOrderedAllocation", "reduction", "vectorAddDrv", "simpleSurfaceWrite")
COUNTED = {"verified": "passed", "ran": "passed", "waived": "skipped"}


def arguments():
    a = client.parser(__doc__, "github.com/NVIDIA/cuda-samples")
    a.add_argument("--dynamic", action="store_true", help="link with libcudart.so.N of the build folder instead of libgpuload-rt.a")
    a.add_argument("--gpus", type=int, default=1, help="number of devices (default: 1); a sample that is waived is run again with 2")
    a.add_argument("--no-run", action="store_true", help="only compile")
    a.add_argument("--json", help="file for the results")
    return client.begin(a, "test_args.json")


def samples(checkout):
    for group in GROUPS:
        for cmake in sorted(glob.glob(f"{checkout}/Samples/{group}/*/CMakeLists.txt")):
            with open(cmake, encoding="utf-8") as f:
                text = f.read()
            if not NEEDS_MORE.search(text):
                yield os.path.dirname(cmake), text


def sh(command, cwd, limit=600):
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, errors="replace", timeout=limit, stdin=subprocess.DEVNULL)


class Sample:
    def __init__(self, folder, cmake, args, toolkit):
        self.folder, self.cmake, self.args, self.toolkit = folder, cmake, args, toolkit
        self.name = os.path.basename(folder)
        self.at = f"{args.work}/Samples/{os.path.basename(os.path.dirname(folder))}/{self.name}"
        m = re.search(r"add_executable\(\s*\S+\s+([^)]*)\)", cmake)
        self.sources = m[1].split() if m else []

    def prepare(self):
        """Copy the folder, so that a sample does not write into the checkout."""
        if not os.path.isdir(self.at):
            shutil.copytree(self.folder, self.at)
            if "cooperative_groups.h" in self.cmake:   # NVRTC searches the program's folder for these headers
                for header in ("cooperative_groups.h", "cooperative_groups", "cccl/nv", "cccl/cuda"):
                    os.symlink(f"{self.toolkit}/include/{header}", f"{self.at}/{os.path.basename(header)}")
            for name, text, new in EDITS.get(self.name, []):
                with open(f"{self.at}/{name}", encoding="utf-8") as f:
                    old = f.read()
                if not re.search(text, old):
                    sys.exit(f"cuda_samples.py: {self.folder}/{name} has no {text}: give a copy of tag v13.0")
                with open(f"{self.at}/{name}", "w", encoding="utf-8") as f:
                    f.write(re.sub(text, new, old))

    def flags(self, rdc):
        code = ["-gencode", "arch=compute_90,code=compute_90"]
        extra = ["-Xcompiler", "-fopenmp"] if "OpenMP" in self.cmake else []
        return ["-std=c++17", "-O2", "-w", "-cudart", "none", "--extended-lambda", "--threads", "1", *code, *(["-dc"] if rdc else ["-c"]), *extra,
                "-I", f"{self.args.checkout}/Common", "-I", ".", "-I", "inc", "-I", f"{self.toolkit}/include"]

    def compile(self, rdc):
        suffix = ".rdc.o" if rdc else ".o"
        objects, log = [], ""
        for s in self.sources:
            if s.endswith((".h", ".cuh", ".hpp")):
                continue
            o = f"{os.path.basename(s)}{suffix}"
            objects.append(o)
            if os.path.exists(f"{self.at}/{o}"):
                continue
            r = sh(["nvcc", *self.flags(rdc), s, "-o", o], self.at)
            log += r.stdout + r.stderr
            if r.returncode:
                return None, log
        if rdc:
            r = sh(["nvcc", "-gencode", "arch=compute_90,code=compute_90", "-dlink", *objects, "-o", "dlink.o", "-lcudadevrt"], self.at)
            if r.returncode:
                return None, log + r.stderr
            objects.append("dlink.o")
        return objects, log

    def link(self, objects):
        build = self.args.build
        runtime = [f"{build}/softcuda/libcudart.so.13", f"-Wl,-rpath,{build}/softcuda"] if self.args.dynamic else [f"{build}/libgpuload-rt.a"]
        if "dlink.o" in objects:
            runtime.append(f"{self.toolkit}/lib64/libcudadevrt.a")
        extra = ["-fopenmp"] if "OpenMP" in self.cmake else []
        r = sh(["c++", *objects, "-o", self.name, *extra, *runtime, f"{build}/softcuda/libcuda.so", f"-L{self.toolkit}/lib64", "-lnvrtc",
                "-ldl", "-lpthread", "-lrt"], self.at)
        return r.returncode == 0, r.stdout + r.stderr

    def kernels(self):
        """Compile the fat binary or PTX file that a program of the driver API loads."""
        for kind in ("FATBIN", "PTX"):
            out = re.search(r"set\(CUDA_%s_FILE \"\$\{CMAKE_CURRENT_BINARY_DIR\}/(.*?)\"" % kind, self.cmake)
            source = re.search(r"set\(CUDA_KERNEL_SOURCE \"\$\{CMAKE_CURRENT_SOURCE_DIR\}/(.*?)\"", self.cmake)
            if out and source and not os.path.exists(f"{self.at}/{out[1]}"):
                code = ["-gencode", "arch=compute_90,code=compute_90", "-fatbin"] if kind == "FATBIN" else ["-arch=compute_75", "-ptx"]
                sh(["nvcc", *code, "-I", f"{self.args.checkout}/Common", source[1], "-o", out[1]], self.at)

    def make(self):
        self.prepare()
        self.kernels()
        if not self.sources:
            return False, "no add_executable() in CMakeLists.txt"
        log = ""
        for rdc in (False, True):
            objects, more = self.compile(rdc)
            log = log + more
            if objects:
                done, more = self.link(objects)
                log += more
                if done:
                    return True, log
        return False, log

    def run(self, args, n_gpus):
        build = self.args.build
        env = {**os.environ, "GPULOAD_DRIVER": "soft", "GPULOAD_SOFT_DRIVER": f"{build}/softcuda/libcuda-soft.so", "GPULOAD_LOG": "info",
               "GPULOAD_SOFT_DEVICES": str(n_gpus), "CUDA_PATH": self.toolkit,
               "LD_LIBRARY_PATH": f"{build}/softcuda:{self.toolkit}/lib64"}
        start = time.time()
        try:
            r = subprocess.run([f"./{self.name}", *args], cwd=self.at, env=env, timeout=self.args.limit, text=True, errors="replace",
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            code, text = r.returncode, r.stdout
        except subprocess.TimeoutExpired as e:
            code, text = None, (e.stdout or b"").decode(errors="replace")
        with open(f"{self.at}/output.txt", "w", encoding="utf-8") as f:
            f.write(text)
        said = "\n".join(line for line in text.splitlines() if not line.startswith("gpuload"))
        if code is None:
            state = "slow"
        elif code == 2 or (code == 0 and re.search(r"waiv", said, re.I)):
            state = "waived"
        elif code or SAYS_WRONG.search(said):
            state = "failed"
        else:
            state = "verified" if SAYS_RIGHT.search(said) else "ran"
        reason = [line for line in text.splitlines() if re.search(r"runtime: |not supported|error|Error|FAIL|driver: cu", line)]
        return state, time.time() - start, (reason or text.splitlines() or [""])[-1][:200] if state not in ("verified", "ran") else ""


def one(sample, given):
    try:
        made, log = sample.make()
    except subprocess.TimeoutExpired:
        made, log = False, "the compiler took too long"
    if not made:
        lines = [line for line in log.splitlines() if re.search("undefined|fatal|error:", line)] or log.splitlines() or [""]
        return "not built", 0, lines[0][:200]
    if sample.args.no_run:
        return "ran", 0, ""
    args = ARGUMENTS.get(sample.name) or given.get(sample.name, {}).get("args", [])
    result = sample.run(args, sample.args.gpus)
    return result if result[0] != "waived" else sample.run(args, 2)


def main():
    args = arguments()
    nvcc = shutil.which("nvcc")
    if not nvcc:
        client.skip("nvcc not found: add the folder of the CUDA compiler to PATH")
    toolkit = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    with open(f"{args.checkout}/test_args.json", encoding="utf-8") as f:
        given = json.load(f)
    if not os.path.lexists(f"{args.work}/Common"):   # sources include ../../../Common
        os.symlink(f"{args.checkout}/Common", f"{args.work}/Common")
    names = args.only or (SHORT if args.short else None)
    todo = [s for s in (Sample(folder, cmake, args, toolkit) for folder, cmake in samples(args.checkout)) if not names or s.name in names]
    states, counted = {}, client.Results()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = {pool.submit(one, s, given): s for s in todo}
        for f in concurrent.futures.as_completed(futures):
            name, (state, seconds, reason) = futures[f].name, f.result()
            states[name] = state, round(seconds, 1), reason
            print(f"{name:32} {state:10} {seconds:6.1f} s  {reason}", flush=True)
            counted.add(name, COUNTED.get(state, "failed"), f"{state}: {reason}")
    counts = {state: sum(r[0] == state for r in states.values()) for state in ("verified", "ran", "waived", "failed", "slow", "not built")}
    print(f"{len(states)} samples: " + ", ".join(f"{n} {state}" for state, n in counts.items()))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(states, f, indent=1)
    return counted.end()


if __name__ == "__main__":
    sys.exit(main())
