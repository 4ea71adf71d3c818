#!/usr/bin/env python3
"""cuda_bindings.py — run cuda-bindings' own tests on the software driver.

The checkout is a copy of github.com/NVIDIA/cuda-python whose tests fit the pinned version (July 2026).  The packages come from PyPI; the wheel
contains NVIDIA's static runtime, whose calls gpuload soft redirects (docs/clients.md).
"""
import sys

import client  # in this folder
from cuda_core import PYTEST, copy_suite

PINNED = ["cuda-bindings[all]==13.4.1", "cuda-toolkit==13.4.1.0", "nvidia-cuda-runtime==13.4.49", "nvidia-cuda-nvcc==13.4.92",
          "nvidia-cuda-crt==13.4.92", "nvidia-cuda-cccl==13.3.5.0.6", "nvidia-nvjitlink==13.5.37", *PYTEST]

SHORT = ("test_basics.py", "test_cuda.py", "test_nvrtc.py", "test_nvjitlink.py", "test_version_check.py", "test_nvfatbin.py")
LEFT_OUT = ("cython", "cudla", "test_cufile.py", "test_graphics_apis.py", "test_examples.py")   # these need compiled extensions, other devices or more packages
TESTS = "cuda_bindings/tests"   # in the checkout


def copy_tests(checkout, work, packages):
    return copy_suite(checkout, TESTS, work, packages)


def main():
    args = client.begin(client.parser(__doc__, "github.com/NVIDIA/cuda-python"), "cuda_bindings/tests/conftest.py")
    python, results = client.environment(args, PINNED), client.Results()
    tests = copy_tests(args.checkout, args.work, client.site_packages(python))
    names = args.only or (SHORT if args.short else client.test_files(tests, LEFT_OUT))
    client.run_pytest(args, results, python, names, tests)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
