#!/usr/bin/env python3
"""cuobjdump.py — compares `gpuload ls` with NVIDIA's cuobjdump, kernel by kernel.

    tests/gpu/cuobjdump.py LIBRARY...

Compares the registered machine code: for each kernel its architecture, name, registers, stack (local_bytes in
gpuload) and static shared memory.  cuobjdump does not search for embedded images.  Use it for libraries of
whole-program code: for linked relocatable code (NCCL) cuobjdump also lists device functions, and adds the stack
of all callees.  Needs no GPU; exits with status 77 if cuobjdump is not installed.
"""
import collections, json, os, re, shutil, subprocess, sys

BUILD = os.environ.get("GPULOAD_BUILD", "build")
ARCH = re.compile(r"arch = (sm_\w+)")
USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)")


def theirs(path):
    """A multiset of (arch, kernel, registers, stack, shared), read from cuobjdump's output."""
    bag, arch, name = collections.Counter(), None, None
    with subprocess.Popen(["cuobjdump", "-res-usage", path], stdout=subprocess.PIPE, text=True) as p:
        for line in p.stdout:
            if m := ARCH.search(line):
                arch = m[1]
            elif line.strip().startswith("Function "):
                name = line.strip()[len("Function "):].rstrip(":")
            elif (m := USAGE.search(line)) and name:
                reg, stack, shared = map(int, m.groups())
                if int(re.search(r"\d+", arch)[0]) >= 90 and shared >= 1024:
                    shared -= 1024  # reserved by the system; ptxas -v does not include it
                bag[(arch, name, reg, stack, shared)] += 1
                name = None
    return bag


def ours(path):
    bag = collections.Counter()
    out = subprocess.run([f"{BUILD}/gpuload", "ls", "--json", path], stdout=subprocess.PIPE, check=True).stdout
    for image in json.loads(out)["images"]:
        if image["kind"] == "cubin" and image["origin"] == "registered":
            for k in image["kernels"]:
                bag[(image["arch"], k["name"], k["registers"], k["local_bytes"], k["shared_bytes"])] += 1
    return bag


def compare(path):
    a, b = theirs(path), ours(path)
    missing, invented = a - b, b - a
    print(f"{os.path.basename(path)}: cuobjdump {sum(a.values())} kernels, gpuload {sum(b.values())}, "
          f"{sum(missing.values())} missing, {sum(invented.values())} invented")
    for what, bag in ("missing", missing), ("invented", invented):
        for row in list(bag)[:5]:
            print(f"  {what}: {' '.join(map(str, row))}")
    return not missing and not invented


if __name__ == "__main__":
    if not shutil.which("cuobjdump"):
        print("skipped: cuobjdump is not installed")
        sys.exit(77)
    sys.exit(0 if all([compare(p) for p in sys.argv[1:]]) else 1)
