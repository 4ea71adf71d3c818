#!/usr/bin/env python3
"""Fail unless libcuda-soft.so exports every call of the driver API, and each of its lists agrees with it.

- It exports exactly the calls of calls_internal.h (implemented) and refused_internal.h, where cuGetProcAddress finds them.
- scripts/driver_calls.py, run on the CUDA headers here, would change neither refused_internal.h nor docs/driver-calls.md: so the
  driver exports what the headers declare, and the table in docs/ is true.

Prints one line for each difference.
"""
import filecmp, os, re, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", os.path.join(ROOT, "build")))
# gpuload's additions
EXTRA = {"gpuloadSoftLastFault", "gpuloadSoftLastFaultLine", "gpuloadSoftNameImages", "gpuloadSoftPrintFaults", "gpuloadSoftFinishTools",
         "gpuloadSoftForgetMemory", "gpuloadSoftDescribeDevice"}
GENERATED = ["softcuda/api/refused_internal.h", "docs/driver-calls.md"]


def exported():
    so = os.path.join(BUILD, "softcuda", "libcuda-soft.so")
    out = subprocess.run(["nm", "-D", "--defined-only", so], capture_output=True, text=True, check=True).stdout
    return {f[-1] for f in map(str.split, out.splitlines()) if f[-2] in "TW"}


def listed(name, n_columns_behind):
    with open(os.path.join(ROOT, "softcuda/api", name), encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    calls = set()
    for row in re.findall(r"\b(?:CALL|PTDS)\((\w+, \d+, [^)]*)\)", text):
        columns = [c.strip() for c in row.split(",")]
        calls.update(columns[2:len(columns) - n_columns_behind])
    return calls


def include_folder():
    """The folder of the cuda.h that this build uses: the build rules give it to the compiler, if it is not /usr/include."""
    rules = ROOT if BUILD == os.path.join(ROOT, "build") else BUILD
    with open(os.path.join(rules, "build.ninja"), encoding="utf-8") as f:
        found = re.search(r"^cflags = .*-isystem ('[^']+'|\S+)", f.read(), re.M)
    return found[1].strip("'").replace("$ ", " ").replace("$$", "$") if found else "/usr/include"


def differences():
    have, done, refused = exported(), listed("calls_internal.h", 0), listed("refused_internal.h", 1)
    want = done | refused | EXTRA
    yield from (f"{s} is exported, but neither calls_internal.h nor refused_internal.h lists it" for s in sorted(have - want))
    yield from (f"{s} is listed, but not exported" for s in sorted(want - have))
    yield from (f"{s} is both implemented and refused" for s in sorted(done & refused))
    if len(done) < 150 or len(refused) < 150:
        yield f"a list was read wrongly: {len(done)} and {len(refused)} calls"
    include = include_folder()
    if not os.path.exists(f"{include}/cudaTypedefs.h"):
        return print(f"skipped the comparison with the headers: {include} has no cudaTypedefs.h")
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.executable, os.path.join(ROOT, "scripts/driver_calls.py"), include, out], check=True)
        yield from (f"{f} is not what scripts/driver_calls.py {include} writes: run it" for f in GENERATED
                    if not filecmp.cmp(os.path.join(ROOT, f), os.path.join(out, f), shallow=False))


bad = list(differences())
print("\n".join(bad), file=sys.stderr) if bad else None
sys.exit(bool(bad))
