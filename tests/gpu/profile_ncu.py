#!/usr/bin/env python3
"""profile_ncu.py — compares the counters of `gpuload run --profile` with those of Nsight Compute, for the same kernels.

    tests/gpu/profile_ncu.py [--build build] [FILE.cu|FILE.ptx:KERNEL ...]

Without files: the kernels of examples/14 to 16, of tests/gpu/profile_access.cu, and of bench/kernels.  Each runs on the software
driver with --profile, and on the GPU under ncu.  Prints a table; fails if a counter differs that does not depend on how ptxas translates
the kernel: requests, sectors and conflict-free wavefronts must be equal, but not instructions and branches.
Exit status: 0 equal, 1 a counter differs, 77 no GPU or no ncu (or no permission to read its counters).
"""
import argparse, csv, io, json, os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SAME = [f"l1tex__t_{what}_pipe_lsu_mem_{where}.sum" for what in ("requests", "sectors")
        for where in ("global_op_ld", "global_op_st", "global_op_red")]
SAME += ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"]
NEAR = ["smsp__inst_executed.sum", "smsp__thread_inst_executed_per_inst_executed.ratio", "smsp__sass_branch_targets.sum",
        "smsp__sass_branch_targets_threads_divergent.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum",
        "launch__registers_per_thread", "sm__maximum_warps_per_active_cycle_pct"]
KERNELS = ["examples/14-divergence/divergence.cu:wrong", "examples/14-divergence/divergence.cu:right",
           "examples/15-coalescing/coalescing.cu:wrong", "examples/15-coalescing/coalescing.cu:right",
           "examples/16-bank-conflicts/conflicts.cu:wrong", "examples/16-bank-conflicts/conflicts.cu:right",
           "examples/14-divergence/solution.cu:block_sum", "examples/15-coalescing/exercise.cu:twice",
           "examples/16-bank-conflicts/exercise.cu:sums", "examples/16-bank-conflicts/solution.cu:sums"]
ACCESS = "tests/gpu/profile_access.cu"


def access_kernels():
    with open(f"{ROOT}/{ACCESS}", encoding="utf-8") as f:
        return [f"{ACCESS}:{name}" for name in re.findall(r"^(?:GLOBAL|SHARED)\((\w+),", f.read(), re.M)]


def soft(args, file, kernel, sm):
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/profile.json"
        # The exit status is not checked: kernels of exercises exceed the limits of their `// gpuload run:` lines on purpose.
        subprocess.run([f"{args.build}/gpuload", "run", file, "--kernel", kernel, "--driver", "soft", "--profile", out, "--profile-sm", sm],
                       capture_output=True, text=True, cwd=ROOT)
        with open(out, encoding="utf-8") as f:
            return json.load(f)["kernels"][0]["metrics"]


def gpu(args, file, kernel):
    r = subprocess.run(["ncu", "--csv", "--page", "raw", "--print-units", "base", "--metrics", ",".join(SAME + NEAR), "--launch-count", "1",
                        f"{args.build}/gpuload", "run", file, "--kernel", kernel, "--driver", "nvidia"], capture_output=True, text=True, cwd=ROOT)
    if "ERR_NVGPUCTRPERM" in r.stdout + r.stderr:
        print("ncu has no permission to read the GPU's counters")
        sys.exit(77)
    text = r.stdout[r.stdout.find('"ID"'):]
    rows = list(csv.DictReader(io.StringIO(text)))
    if not text or len(rows) < 2:
        sys.exit(f"ncu: no counters for {file}:{kernel}\n{r.stdout}{r.stderr}")
    return {k: float(v.replace(",", "")) for k, v in rows[1].items() if k in SAME + NEAR and v and v != "n/a"}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--build", default="build")
    p.add_argument("--sm", default="90", help="architecture of the GPU, for the occupancy")
    p.add_argument("kernels", nargs="*", metavar="FILE:KERNEL")
    args = p.parse_args()
    args.build = os.path.abspath(args.build)
    if not shutil.which("ncu") or not os.path.exists("/dev/nvidiactl"):
        print("no GPU, or no ncu")
        return 77
    wrong = 0
    for name in args.kernels or KERNELS + access_kernels():
        file, kernel = name.rsplit(":", 1)
        ours, theirs = soft(args, file, kernel, args.sm), gpu(args, file, kernel)
        print(f"\n{name}\n{'':66} {'gpuload':>12} {'ncu':>12}")
        for metric in SAME + NEAR:
            a, b = ours.get(metric, 0), theirs.get(metric)
            if b is None or (a == 0 and b == 0):
                continue
            differs = metric in SAME and a != b
            wrong += differs
            print(f"{metric:66} {a:12g} {b:12g}{'  DIFFERS' if differs else ''}")
    print(f"\n{wrong} counters differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
