#!/usr/bin/env python3
"""Fail if a file other than those of KNOW contains the name of a collective.  A new collective changes only these files, and adds kernels.

All other files use the table of properties in comm/calls.h.  The test searches only for reduce-scatter, as an example of a collective,
because its name has no other meaning.
"""
import os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
os.chdir(ROOT)
from scripts.modules import files

KNOW = {
    "include/comm/calls.def": "its row",
    "include/comm/comm.h": "the contract of its function",
    "comm/collective.c": "its function",
    "include/comm/kernels/kernels.def": "the rows of its kernels",
    "comm/kernels/persistent.cu": "the headers of the kernels that a persistent kernel has",
    "cli/comm/comm_call.c": "calls its function",
}
NAME = re.compile("reducescatter", re.I)
OWN = re.compile(r"^comm/kernels/\w+_reducescatter\.cuh$")


def knows(path):
    with open(path, encoding="utf-8") as f:
        return NAME.search(f.read())


found = {path for m in ("comm", "cli", "lab") for end in (".c", ".h", ".cuh", ".cu", ".def", ".py") for path in files(m, end)
         if not OWN.match(path) and knows(path)}
bad = [f"{path}: names a collective: ask for a property of the call instead (comm/calls.h), or add the file to KNOW" for path in sorted(found - set(KNOW))]
bad += [f"{path}: does not name the collective any more: remove it from KNOW" for path in sorted(set(KNOW) - found)]
print("\n".join(bad), file=sys.stderr) if bad else None
sys.exit(bool(bad))
