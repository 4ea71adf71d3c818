#!/usr/bin/env python3
"""Fail unless libcuda-soft.so exports exactly the calls that calls_internal.h lists.

cuGetProcAddress could not find a call that is exported but not listed.  Prints one line for each difference.
"""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.environ.get("GPULOAD_BUILD", os.path.join(ROOT, "build"))
EXTRA = {"gpuloadSoftLastFault", "gpuloadSoftNameImages", "gpuloadSoftPrintFaults"}   # gpuload's additions


def exported():
    so = os.path.join(BUILD, "softcuda", "libcuda-soft.so")
    out = subprocess.run(["nm", "-D", "--defined-only", so], capture_output=True, text=True, check=True).stdout
    return {f[-1] for f in map(str.split, out.splitlines()) if f[-2] in "TW"}


def listed():
    with open(os.path.join(ROOT, "softcuda/api/calls_internal.h"), encoding="utf-8") as f:
        text = f.read().split("#define SOFT_CALLS", 1)[1]
    calls = set()
    text = text.split("\n", 1)[1].replace("\\\n", " ")
    for row in re.findall(r"(?:CALL|PTDS)\(([^)]*)\)", text):
        calls.update(map(str.strip, row.split(",")[2:]))
    return calls


have, want = exported(), listed() | EXTRA
bad = [f"{s} is exported, but calls_internal.h does not list it" for s in sorted(have - want)]
bad += [f"{s} is listed in calls_internal.h, but not exported" for s in sorted(want - have)]
if len(want) < 150:
    bad.append(f"calls_internal.h was read wrongly: {len(want)} calls")
print("\n".join(bad), file=sys.stderr) if bad else None
sys.exit(bool(bad))
