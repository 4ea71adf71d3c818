#!/usr/bin/env python3
"""triton_tutorials.py — Triton's tutorials 1 (vector add), 2 (softmax), 3 (matrix product) and 6 (attention) on the software driver.

The files of the checkout run unchanged, with PyTorch for CUDA from PyPI.  PyTorch's tensors, streams, events and copies use the software
driver, and so do Triton's kernels, which Triton compiles for sm_90.  PyTorch's own operators are machine code, so the CPU computes them:
plugin/aten_on_cpu.py.  Tutorials 2 and 6 check their results by assertions; for 1 and 3 this script checks what they print.  Left out:
benchmarks after their first size, and in tutorial 6 sequences of 4,096, 48 heads and, with --short, 4 batches and sequences of 1,024.
"""
import os, re, sys

import client  # in this folder

PINNED = ["torch==2.15.0", "triton==3.9.0", "numpy==2.4.6", "pytest==9.2.0"]
PROGRAM = f"{client.HERE}/programs/triton_tutorial.py"
TUTORIALS = "python/tutorials"
ATTENTION = "06-fused-attention.py"
SIZES = {True: "64-128-2-1 or 128-128-2-1", False: "-128-2- or -1024-2-"}   # --short?: pytest -k for names test_op[...-HEAD_DIM-N_CTX-H-Z]


def sums_agree(text):
    found = re.search(r"maximum difference between torch and triton is (\S+)", text)
    return found is not None and float(found[1]) == 0


def products_agree(text):
    return text.count("✅ Triton and Torch match") == 2 and "❌" not in text   # once for f16, once for f8


JUDGED = {"01-vector-add.py": sums_agree, "02-fused-softmax.py": lambda text: True, "03-matrix-multiplication.py": products_agree}


def run_tutorial(args, results, python, name, env):
    status, text = client.run([*client.soft(args), python, PROGRAM, f"{args.checkout}/{TUTORIALS}/{name}"], args.limit, cwd=args.work, env={**os.environ, **env})
    if status is None:
        why = f"did not end in {args.limit:g} s"
    elif status:
        why = f"exit status {status}: {(text.strip().splitlines() or ['no output'])[-1]}"
    else:
        why = "" if JUDGED[name](text) else "the results of Triton and PyTorch differ"
    results.add(name, "failed" if why else "passed", why)
    print(f"{name}: {'failed' if why else 'passed'}", flush=True)


def main():
    a = client.parser(__doc__, "github.com/triton-lang/triton")
    a.set_defaults(limit=1200)
    args = client.begin(a, f"{TUTORIALS}/{ATTENTION}")
    python, results = client.environment(args, PINNED), client.Results()
    env = {"TRITON_CACHE_DIR": f"{args.work}/cache", "TRITON_DEFAULT_FP_FUSION": "1"}   # 1: the default of Triton 3.9; avoids a warning
    for name in args.only or [*JUDGED, ATTENTION]:
        if name in JUDGED:
            run_tutorial(args, results, python, name, env)
        else:
            client.run_pytest(args, results, python, [name], f"{args.checkout}/{TUTORIALS}", ("-p", "aten_on_cpu", "-k", SIZES[args.short]), env)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
