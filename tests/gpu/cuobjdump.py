#!/usr/bin/env python3
"""cuobjdump.py — compares `gpuload ls` with NVIDIA's cuobjdump, kernel by kernel.

    tests/gpu/cuobjdump.py [--images] FILE...

Compares the registered machine code: for each kernel its architecture, name, registers, stack and static shared memory.  cuobjdump also
lists device functions of linked relocatable code; they have no constant bank 0, and are left out.  For code that is not linked yet, it
prints a stack of 0, and gpuload prints none.  It lists neither the relocatable images in a library nor embedded images; --images therefore
extracts each image and runs cuobjdump on the extracted file.  Cubins need --images, too.

Needs no GPU; exits with status 77 if cuobjdump is not installed.
"""
import collections, json, os, re, shutil, subprocess, sys, tempfile

BUILD = os.environ.get("GPULOAD_BUILD", "build")
ARCH = re.compile(r"arch = (sm_\d+)")
USAGE = re.compile(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)")


def cuobjdump(path, arch=None):
    """Run cuobjdump; return a multiset of (arch, kernel, registers, stack, shared)."""
    bag, name = collections.Counter(), None
    with subprocess.Popen(["cuobjdump", "-res-usage", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as p:
        for line in p.stdout:
            if m := ARCH.search(line):
                arch = m[1]
            elif line.strip().startswith("Function "):
                name = line.strip()[len("Function "):].rstrip(":")
            elif (m := USAGE.search(line)) and name:
                reg, stack, shared = map(int, m.groups())
                if int(re.search(r"\d+", arch)[0]) >= 90 and shared >= 1024:
                    shared -= 1024  # the system's part, which `gpuload ls` and ptxas -v do not count
                if "CONSTANT[0]:" in line:
                    bag[(arch, name, reg, stack, shared)] += 1
                name = None
    return bag


def gpuload(path, embedded):
    """Return the same multiset from `gpuload ls`, and the number of kernels for which it lacks the registers or, in linked code, the
    stack."""
    bag, unknown = collections.Counter(), 0
    out = subprocess.run([f"{BUILD}/gpuload", "ls", "--json", path], stdout=subprocess.PIPE).stdout  # not checked: status 1 only means no device code
    for image in json.loads(out)["images"]:
        if image["kind"] == "cubin" and (
                embedded or (image["origin"] == "registered" and image["section"] != "__nv_relfatbin")):
            arch = re.match(r"sm_\d+", image["arch"])[0]
            for k in image["kernels"]:
                unknown += k["registers"] is None or (k["stack_bytes"] is None and not image["relocatable"])
                bag[(arch, k["name"], k["registers"], k["stack_bytes"] or 0, k["shared_bytes"])] += 1
    return bag, unknown


def cuobjdump_images(path):
    """Extract each image of a file into a separate file; return the kernels that cuobjdump finds in them."""
    bag = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{BUILD}/gpuload", "extract", "--kind", "cubin", path, "-o", folder], stdout=subprocess.DEVNULL)
        for name in os.listdir(folder):
            bag += cuobjdump(os.path.join(folder, name), re.search(r"\.(sm_\d+)", name)[1])
            os.unlink(os.path.join(folder, name))
    return bag


def compare(path, images):
    a = cuobjdump_images(path) if images else cuobjdump(path)
    b, unknown = gpuload(path, images)
    missing, invented = a - b, b - a
    print(f"{os.path.basename(path)}: cuobjdump {sum(a.values())} kernels, gpuload {sum(b.values())}, "
          f"{sum(missing.values())} missing, {sum(invented.values())} invented, {unknown} without a number", flush=True)
    for what, bag in ("missing", missing), ("invented", invented):
        for row in list(bag)[:5]:
            print(f"  {what}: {' '.join(map(str, row))}")
    return not missing and not invented


if __name__ == "__main__":
    if not shutil.which("cuobjdump"):
        print("skipped: cuobjdump is not installed")
        sys.exit(77)
    files = [a for a in sys.argv[1:] if a != "--images"]
    sys.exit(0 if all([compare(p, "--images" in sys.argv) for p in files]) else 1)
