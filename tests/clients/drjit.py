#!/usr/bin/env python3
"""drjit.py — programs in Dr.Jit on the software driver: programs/programs_in_drjit.py, compared with NumPy.

Dr.Jit writes PTX itself and gives it to the driver: loops, calls by index, local arrays, textures and derivatives become kernels.  Its wheel has no
tests, so the programs were written for gpuload; features that need OptiX (ray tracing) are left out.
"""
import sys

import client  # in this folder

PACKAGES = ["drjit==1.5.0", "numpy==2.4.6", "pytest==9.2.0"]


def main():
    args = client.begin(client.parser(__doc__))
    python, results = client.environment(args, PACKAGES), client.Results()
    client.run_pytest(args, results, python, args.only or ["programs_in_drjit.py"], f"{client.HERE}/programs")
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
