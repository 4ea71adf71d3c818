#!/usr/bin/env python3
"""pycuda.py — PyCUDA's own tests on the software driver, as published on PyPI.

PyCUDA is compiled when it is installed, which takes some minutes the first time; it and its tests need nvcc, a C++ compiler and libcurand.
The device has 4 GB, so that tests with arrays of 4 GB and more skip themselves, as on such a GPU: 2^31 random numbers take hours on a CPU.
"""
import glob, os, shutil, subprocess, sys

import client  # in this folder

VERSION = "2026.1"
PACKAGES = [f"pycuda=={VERSION}", "numpy==2.4.6", "pytest==9.2.0"]
FILES, SHORT = ["test_cumath.py", "test_driver.py", "test_gpuarray.py"], ["test_driver.py"]


def fetch_tests(args, python):
    """Download the source distribution and unpack its tests; return their folder."""
    archive = f"{args.work}/pycuda-{VERSION}.tar.gz"
    if not os.path.exists(archive):
        r = subprocess.run([python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "pycuda", "-d", args.work, f"pycuda=={VERSION}"],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if r.returncode or not os.path.exists(archive):
            client.skip(f"pip cannot download the tests: {(r.stderr.strip().splitlines() or ['no message'])[-1]}")
    shutil.unpack_archive(archive, args.work)
    folder = f"{args.work}/tests"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(f"{args.work}/pycuda-{VERSION}/test", folder)  # away from the sources, which Python would import
    return folder


def main():
    a = client.parser(__doc__)
    a.set_defaults(limit=600)
    args = client.begin(a)
    for program in ("nvcc", "c++"):
        if not shutil.which(program):
            client.skip(f"{program} not found")
    if not glob.glob(f"{os.path.dirname(os.path.realpath(shutil.which('nvcc')))}/../lib*/libcurand.so*"):
        client.skip("libcurand not found beside nvcc")
    python = client.environment(args, PACKAGES)
    folder = fetch_tests(args, python)
    results = client.Results()
    client.run_pytest(args, results, python, args.only or (SHORT if args.short else FILES), folder, env={"XDG_CACHE_HOME": f"{args.work}/cache"},
                      soft_options=("--memory", "4G"))
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
