#!/usr/bin/env python3
"""ptxas accepts every case of odd/, so the software driver must accept it, too (test_odd.c).  Skipped without ptxas."""
import glob, os, re, shutil, subprocess, sys

FOLDER = os.environ.get("GPULOAD_BUILD", "build") + "/kernels/tests/softcuda/exec/odd"
OLDEST = 75   # the oldest architecture for which ptxas 13 compiles


def main():
    ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not os.path.exists(ptxas):
        print("ptxas is not installed")
        return 77
    paths, bad = sorted(glob.glob(f"{FOLDER}/*.ptx")), 0
    for path in paths:
        with open(path, encoding="utf-8") as f:
            target = re.search(r"^\.target (\w+)", f.read(), re.M)[1]
        if re.fullmatch(r"sm_\d+", target) and int(target[3:]) < OLDEST:
            target = f"sm_{OLDEST}"
        r = subprocess.run([ptxas, f"-arch={target}", path, "-o", os.devnull], capture_output=True, text=True)
        if "is not defined for option 'gpu-name'" in r.stderr or "Unsupported .version" in r.stderr:
            print(f"{path}: this ptxas is too old for {target}")
        elif r.returncode:
            print(f"{path}: {r.stderr.strip().splitlines()[0]}")
            bad += 1
    print(f"{len(paths)} files, {bad} refused")
    return 1 if bad or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
