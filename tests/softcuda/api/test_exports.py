#!/usr/bin/env python3
"""Fail unless libcuda-soft.so exports every call of the driver API, and each of its lists agrees with it.

- It exports exactly the calls of cu_calls_internal.h (implemented) and cu_refused_internal.h, where cuGetProcAddress finds them.
- scripts/driver_calls.py, run on the CUDA headers here, would change neither cu_refused_internal.h nor docs/driver-calls.md: so the
  driver exports what the headers declare, and the table in docs/ is correct.
- Its thread-local variables fit into what the loader keeps for libraries that a program opens, beside those of other libraries (cu_thread.c).
- Each call of cudaTypedefs.h has the interfaces of the same CUDA versions for cuGetProcAddress.

Prints one line for each difference.
"""
import filecmp, os, re, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", os.path.join(ROOT, "build")))
# the functions that gpuload adds to the driver API
EXTRA = {"gpuloadSoftLastFault", "gpuloadSoftLastFaultLine", "gpuloadSoftNameImages", "gpuloadSoftPrintFaults", "gpuloadSoftFinishTools",
         "gpuloadSoftForgetMemory", "gpuloadSoftDescribeDevice", "gpuloadSoftCheckTools"}
MOST_THREAD_LOCAL_BYTES = 256
GENERATED = ["softcuda/api/cu_refused_internal.h", "docs/driver-calls.md"]


def exported():
    so = os.path.join(BUILD, "softcuda", "libcuda-soft.so")
    out = subprocess.run(["nm", "-D", "--defined-only", so], capture_output=True, text=True, check=True).stdout
    return {f[-1] for f in map(str.split, out.splitlines()) if f[-2] in "TW"}


def thread_local_bytes():
    out = subprocess.run(["readelf", "-lW", os.path.join(BUILD, "softcuda", "libcuda-soft.so")], capture_output=True, text=True, check=True).stdout
    return int(re.search(r"^ +TLS +(?:0x\w+ +){4}(0x\w+)", out, re.M)[1], 16)


def listed(name, n_columns_behind):
    with open(os.path.join(ROOT, "softcuda/api", name), encoding="utf-8") as f:
        text = f.read().replace("\\\n", " ")
    calls = set()
    for row in re.findall(r"\b(?:CALL|PTDS)\((\w+, \d+, [^)]*)\)", text):
        columns = [c.strip() for c in row.split(",")]
        calls.update(columns[2:len(columns) - n_columns_behind])
    return calls


def versions_of_lists():
    """Return {(call, True for the variant of per-thread default streams): the CUDA versions for which cuGetProcAddress has interfaces}."""
    versions = {}
    for name in "cu_calls_internal.h", "cu_refused_internal.h":
        with open(os.path.join(ROOT, "softcuda/api", name), encoding="utf-8") as f:
            text = f.read().replace("\\\n", " ")
        for kind, call, since in re.findall(r"\b(CALL|PTDS)\(\s*(cu\w+),\s*(\d+),", text):
            versions.setdefault((call, False), set()).add(int(since))
            if kind == "PTDS":
                versions.setdefault((call, True), set()).add(int(since))
    return versions


def different_versions(include):
    """Compare with cudaTypedefs.h, whose function pointer types have names such as PFN_cuMemAlloc_v3020 and PFN_cuMemcpy_v7000_ptds."""
    ours, theirs = versions_of_lists(), {}
    with open(f"{include}/cudaTypedefs.h", encoding="utf-8") as f:
        for call, since, thread in re.findall(r"\*PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\)", f.read()):
            theirs.setdefault((call, bool(thread)), set()).add(int(since))
    if len(theirs) < 300:
        yield f"{include}/cudaTypedefs.h was read wrongly: {len(theirs)} calls"
    newest = max(since for versions in theirs.values() for since in versions)  # an older header lacks the newer interfaces
    for call, thread in sorted(theirs):
        known = {since for since in ours.get((call, thread), ()) if since <= newest}
        if thread and known:
            continue  # the header gives the version of the symbol with _ptsz, not that of the interface
        if known != theirs[call, thread]:
            yield (f"{call}{' for per-thread streams' if thread else ''}: cuGetProcAddress has versions {sorted(known)}, "
                   f"cudaTypedefs.h {sorted(theirs[call, thread])}")


def include_folder():
    """Return the folder of the cuda.h that this build uses; the build rules pass it to the compiler, unless it is /usr/include."""
    rules = ROOT if BUILD == os.path.join(ROOT, "build") else BUILD
    with open(os.path.join(rules, "build.ninja"), encoding="utf-8") as f:
        found = re.search(r"^cflags = .*-isystem ('[^']+'|\S+)", f.read(), re.M)
    return found[1].strip("'").replace("$ ", " ").replace("$$", "$") if found else "/usr/include"


def differences():
    have, done, refused = exported(), listed("cu_calls_internal.h", 0), listed("cu_refused_internal.h", 1)
    want = done | refused | EXTRA
    yield from (f"{s} is exported, but neither cu_calls_internal.h nor cu_refused_internal.h lists it" for s in sorted(have - want))
    yield from (f"{s} is listed, but not exported" for s in sorted(want - have))
    yield from (f"{s} is both implemented and refused" for s in sorted(done & refused))
    if len(done) < 150 or len(refused) < 150:
        yield f"a list was read wrongly: {len(done)} and {len(refused)} calls"
    if thread_local_bytes() > MOST_THREAD_LOCAL_BYTES:
        yield f"libcuda-soft.so has {thread_local_bytes()} bytes of thread-local variables, more than {MOST_THREAD_LOCAL_BYTES}"
    include = include_folder()
    if not os.path.exists(f"{include}/cudaTypedefs.h"):
        return print(f"skipped the comparison with the headers: {include} has no cudaTypedefs.h")
    yield from different_versions(include)
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.executable, os.path.join(ROOT, "scripts/driver_calls.py"), include, out], check=True)
        yield from (f"{f} is not what scripts/driver_calls.py {include} writes: run it" for f in GENERATED
                    if not filecmp.cmp(os.path.join(ROOT, f), os.path.join(out, f), shallow=False))


bad = list(differences())
print("\n".join(bad), file=sys.stderr) if bad else None
sys.exit(bool(bad))
