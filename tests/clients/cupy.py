#!/usr/bin/env python3
"""cupy.py — CuPy's own tests of elementwise operations, ufuncs, reductions and raw kernels on the software driver.

The wheel has no tests: the checkout is a copy of github.com/cupy/cupy at the tag of the pinned version.  CuPy compiles its kernels with
NVRTC while the tests run, which takes more than an hour in the first run; the compiled kernels are kept in --work.  Tests of several GPUs
and those that CuPy marks as slow are left out.
"""
import os, sys

import client  # in this folder

VERSION = "14.2.0"
PINNED = [f"cupy-cuda13x=={VERSION}", "cuda-toolkit[cudart,nvrtc,cublas]==13.5.0", "numpy==2.4.6", "scipy==1.17.1", "pytest==9.2.0", "hypothesis"]
CORE = ["elementwise", "userkernel", "raw", "reduction", "carray", "core", "scan", "ufunc_methods", "ndarray_ufunc", "ndarray_unary_op", "ndarray_math",
        "ndarray_reduction", "ndarray_complex_ops", "ndarray_copy_and_view", "ndarray_indexing", "ndarray_adv_indexing", "ndarray_elementwise_op"]
MATH = ["arithmetic", "explog", "floating", "hyperbolic", "misc", "rational", "rounding", "special", "sumprod", "trigonometric"]
FILES = [f"core_tests/test_{name}.py" for name in CORE] + [f"math_tests/test_{name}.py" for name in MATH] + ["binary_tests/test_elementwise.py", "logic_tests/test_ops.py"]
SHORT = [f"core_tests/test_{name}.py" for name in ("elementwise", "userkernel", "reduction", "ndarray_ufunc", "ndarray_math")]


def main():
    a = client.parser(__doc__, "github.com/cupy/cupy")
    a.set_defaults(limit=900)
    args = client.begin(a, "tests/cupy_tests/core_tests/test_raw.py")
    python, results = client.environment(args, PINNED), client.Results()
    names = [f"cupy_tests/{name}" for name in args.only or (SHORT if args.short else FILES)]
    client.run_pytest(args, results, python, names, f"{args.checkout}/tests", ("-m", "not multi_gpu and not slow"), {"CUPY_CACHE_DIR": f"{args.work}/cache"})
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
