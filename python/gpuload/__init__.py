"""gpuload — run GPU kernels from Python, on an NVIDIA GPU or on any CPU.

    import gpuload, numpy as np
    a, out = np.arange(1024.0), np.zeros(1024)
    gpuload.run("vecadd.ptx", a, a, out, 1024)
"""
from gpuload._command import Kernels, Page, Picture, ls, picture, prefix, profile, program, trace
from gpuload._library import Error
from gpuload._run import Result, run

__all__ = ["Error", "Kernels", "Page", "Picture", "Result", "ls", "picture", "prefix", "profile", "program", "run", "trace"]
