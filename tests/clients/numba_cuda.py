#!/usr/bin/env python3
"""numba_cuda.py — run numba-cuda's own tests, which its wheel contains, on the software driver."""
import glob, os, sys

import client  # in this folder

PINNED = ["numba-cuda==0.30.4", "numba==0.68.1", "cuda-bindings==13.5.0", "cuda-core==1.2.2", "nvidia-cuda-nvcc==13.5.37", "nvidia-cuda-nvrtc==13.5.37",
          "nvidia-cuda-runtime==13.5.37", "nvidia-nvjitlink==13.5.37", "nvidia-nvvm==13.5.37", "nvidia-cuda-crt==13.5.37",
          "nvidia-cuda-cccl==13.3.5.0.6", "cffi==2.1.1", "ml_dtypes==0.6.0", "psutil==7.2.2", "pytest==9.2.0", "filecheck==1.0.6"]
SHORT = ("cudadrv.test_cuda_memory", "cudadrv.test_streams", "cudapy.test_array", "cudapy.test_atomics", "cudapy.test_blackscholes",
         "cudapy.test_casting", "cudapy.test_math", "cudapy.test_matmul", "cudapy.test_sm", "cudapy.test_warp_ops")


def main():
    args = client.begin(client.parser(__doc__))
    python, results = client.environment(args, PINNED), client.Results()
    tests = f"{client.site_packages(python)}/numba_cuda/numba/cuda/tests"
    found = sorted(os.path.relpath(f, tests)[:-3].replace("/", ".") for f in glob.glob(f"{tests}/**/test_*.py", recursive=True))
    names = args.only or (SHORT if args.short else found)
    client.run_unittest(args, results, python, [f"numba.cuda.tests.{n}" for n in names], args.work)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
