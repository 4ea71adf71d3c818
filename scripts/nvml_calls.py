#!/usr/bin/env python3
"""nvml_calls.py — write the list of the calls of nvml.h that libnvidia-ml.so.1 refuses.

    scripts/nvml_calls.py nvml.h ... > nvidia/nvml/refused_internal.h

Give it the headers of all supported CUDA versions: NVIDIA's wheels nvidia-nvml-dev and nvidia-nvml-dev-cu12 have them.
"""
import glob, os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = "nvidia/nvml"
DECLARED = re.compile(r"^[ \t]*(?:nvmlReturn_t|const char\s*\*)[ \t]+(?:DECLDIR[ \t]+)?(nvml\w+)\s*\(", re.M)
DONE = re.compile(r"^(?:CALL|NUMBER|PROCESSES|NO_PROCESSES|NO_FEATURES|FORBIDDEN)\((nvml\w+)|\*(nvml\w+)\(int result\)", re.M)
HEAD = """\
/* refused_internal.h — lists the calls of nvml.h that return NVML_ERROR_NOT_SUPPORTED.  Written by scripts/nvml_calls.py. */
#ifndef GPULOAD_NVIDIA_NVML_REFUSED_INTERNAL_H
#define GPULOAD_NVIDIA_NVML_REFUSED_INTERNAL_H

/* clang-format off */
#define NVML_REFUSED(X) \\
"""


def main(headers):
    declared = set()
    for path in headers:
        with open(path, encoding="utf-8") as f:
            declared |= set(DECLARED.findall(f.read()))
    done = set()
    for path in glob.glob(os.path.join(ROOT, FOLDER, "*.c")):
        with open(path, encoding="utf-8") as f:
            done |= {a or b for a, b in DONE.findall(f.read())}
    names = sorted(declared - done)
    if len(names) < 100:
        sys.exit(f"nvml_calls.py: only {len(names)} calls were found: give the paths of nvml.h")
    print(HEAD + " \\\n".join(f"\tX({name})" for name in names) + "\n/* clang-format on */\n\n#endif")


if __name__ == "__main__":
    main(sys.argv[1:])
