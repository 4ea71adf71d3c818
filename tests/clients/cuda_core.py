#!/usr/bin/env python3
"""cuda_core.py — run cuda-core's own tests on the software driver.

PyPI has no tests of cuda-core: the checkout is a copy of github.com/NVIDIA/cuda-python whose tests fit the pinned versions (July 2026,
between 1.1.0 and 1.1.1).  The packages come from PyPI, into a virtual environment in --work.  The script copies the tests there, with a
file that one of them reads, and changes only one import, of a class that 1.1.1 has in another module.  It also copies a helper module of
the checkout, which the wheel of cuda-bindings lacks, into the environment.
"""
import shutil, sys

import client  # in this folder

# pytest and its plug-ins as in the checkout's pyproject.toml
PYTEST = ["numpy==2.4.6", "cython==3.2.9", "pytest==9.1.0", "pytest-benchmark==5.2.3", "pytest-mock==3.17.0", "pytest-repeat==0.9.4",
          "pytest-rerunfailures==16.3", "pytest-timeout==2.4.0", "psutil==7.2.2", "cloudpickle==3.1.2", "ml_dtypes==0.6.0", "cffi==2.1.1"]
PINNED = ["cuda-core==1.1.1", "cuda-bindings[all]==13.3.1", "cuda-toolkit==13.3.1", "nvidia-cuda-runtime==13.3.29", "nvidia-cuda-nvcc==13.3.73",
          "nvidia-cuda-crt==13.3.73", "nvidia-cuda-cccl==13.3.5.0.6", "nvidia-nvjitlink==13.5.37", *PYTEST]
SHORT = ("test_device.py", "test_context.py", "test_stream.py", "test_event.py", "graph/test_graph_definition.py")
LEFT_OUT = ("cython", "example_tests")   # they need a compiled extension, and packages such as PyTorch
TESTS = "cuda_core/tests"                # in the checkout


def copy_suite(checkout, tests, work, packages):
    """Copy a folder of tests below work, and the helper module to the packages.  Returns the copy of the tests."""
    shutil.copytree(f"{checkout}/cuda_bindings/cuda/bindings/_test_helpers", f"{packages}/cuda/bindings/_test_helpers", dirs_exist_ok=True)
    for part in (tests, "cuda_python_test_helpers"):
        shutil.rmtree(f"{work}/{part}", ignore_errors=True)
        shutil.copytree(f"{checkout}/{part}", f"{work}/{part}", symlinks=True)
    return f"{work}/{tests}"


def copy_tests(checkout, work, packages):
    tests = copy_suite(checkout, TESTS, work, packages)
    shutil.copy(f"{checkout}/cuda_core/build_hooks.py", f"{work}/cuda_core")
    for name in ("test_memory.py", "memory_ipc/test_errors.py"):
        move_import(f"{tests}/{name}")
    return tests


def move_import(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(text.replace("from cuda.core._memory import IPCBufferDescriptor", "from cuda.core._memory._ipc import IPCBufferDescriptor"))


def main():
    args = client.begin(client.parser(__doc__, "github.com/NVIDIA/cuda-python"), "cuda_core/tests/conftest.py")
    python, results = client.environment(args, PINNED), client.Results()
    tests = copy_tests(args.checkout, args.work, client.site_packages(python))
    names = args.only or (SHORT if args.short else client.test_files(tests, LEFT_OUT))
    client.run_pytest(args, results, python, names, tests)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
