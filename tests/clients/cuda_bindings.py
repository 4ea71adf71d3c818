#!/usr/bin/env python3
"""cuda_bindings.py — run cuda-bindings' own tests on the software driver.

The checkout is a copy of github.com/NVIDIA/cuda-python whose tests fit the pinned version (July 2026).  The packages come from PyPI; the wheel
contains NVIDIA's static runtime, whose calls gpuload soft redirects (docs/clients.md).
"""
import glob, os, shutil, sys

import client  # in this folder
from cuda_core import PYTEST

PINNED = ["cuda-bindings[all]==13.4.1", "cuda-toolkit==13.4.1.0", "nvidia-cuda-runtime==13.4.49", "nvidia-cuda-nvcc==13.4.92",
          "nvidia-cuda-crt==13.4.92", "nvidia-cuda-cccl==13.3.5.0.6", "nvidia-nvjitlink==13.5.37", *PYTEST]

SHORT = ("test_basics.py", "test_cuda.py", "test_nvrtc.py", "test_nvjitlink.py", "test_version_check.py", "test_nvfatbin.py")
LEFT_OUT = ("cython", "cudla", "test_cufile.py", "test_graphics_apis.py", "test_examples.py")   # extensions, devices or packages that are not here


def main():
    args = client.begin(client.parser(__doc__, "github.com/NVIDIA/cuda-python"), "cuda_bindings/tests/conftest.py")
    python, results = client.environment(args, PINNED), client.Results()
    helpers = f"{client.site_packages(python)}/cuda/bindings/_test_helpers"
    shutil.copytree(f"{args.checkout}/cuda_bindings/cuda/bindings/_test_helpers", helpers, dirs_exist_ok=True)
    for part in ("cuda_bindings/tests", "cuda_python_test_helpers"):
        shutil.rmtree(f"{args.work}/{part}", ignore_errors=True)
        shutil.copytree(f"{args.checkout}/{part}", f"{args.work}/{part}", symlinks=True)
    tests = f"{args.work}/cuda_bindings/tests"
    names = sorted(os.path.relpath(f, tests) for f in glob.glob(f"{tests}/**/test_*.py", recursive=True))
    names = args.only or (SHORT if args.short else [n for n in names if not n.startswith(LEFT_OUT)])
    client.run_pytest(args, results, python, names, tests)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
