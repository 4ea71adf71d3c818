#!/usr/bin/env python3
"""driver_calls.py CUDA_INCLUDE [OUT] — list the calls of the driver API that the software driver refuses.

Reads the declarations of cuda.h and its companions (cudaGL.h ...), the CUDA version of each interface (cudaTypedefs.h ...)
and softcuda/api/cu_calls_internal.h, which lists the calls that are implemented.  Writes, below the folder OUT (default: .):

    softcuda/api/cu_refused_internal.h   the other calls, each with the reason: the driver exports them, too
    docs/driver-calls.md              all calls, implemented or refused

An older header lacks some calls: rows of cu_refused_internal.h that it does not declare are kept, so every header of CUDA 12 and 13
gives the same files.  Calls that are newer than the driver's version are left out.
"""
import os, re, sys

DRIVER_VERSION = 13000                  # as in softcuda/api/base/cu_state_internal.h
HEADERS = ["cuda", "cudaGL", "cudaEGL", "cudaVDPAU", "cudaProfiler"]
CALLS, REFUSED, TABLE = "softcuda/api/cu_calls_internal.h", "softcuda/api/cu_refused_internal.h", "docs/driver-calls.md"

# The reason of a refusal is the first row whose pattern matches the symbol; its text completes the message "cuX: not supported: ...".
OLD_ADDRESSES = ("OLD_ADDRESSES", "the interface of CUDA 3.1, with 32-bit addresses and sizes")
REASONS = [(re.compile(pattern), key, text) for pattern, key, text in (
    ("cuGL|cuWGL|cuEGL|cuVDPAU|EGLSync|cuGraphics", "GRAPHICS", "graphics APIs"),
    ("cuGraph|GraphMem|Capture|cuUserObject", "GRAPHS", "this part of CUDA graphs"),
    ("cuTensorMap", "TENSOR_MAPS", "tensor maps of sm_100"),
    ("cuTex|cuSurf|cuArray|cuMipmapped|TexRef|SurfRef|Texture|Memcpy[ADH]to[ADH](Async)?(_v2)?(_|$)(?<!DtoH)(?<!HtoD)(?<!DtoD)|ArrayAsync",
     "TEXTURES", "CUDA arrays, textures and surfaces"),
    ("MemAllocManaged|MemAdvise|Prefetch|Discard|MemRange|AttachMem|GetManaged", "MANAGED", "managed memory"),
    ("MemPool", "POOLS", "memory pools other than the default pool of a device"),
    ("StreamWaitValue|StreamWriteValue|BatchMemOp", "STREAM_VALUES", "waiting for and writing values in stream order"),
    ("External", "EXTERNAL", "memory and semaphores of other APIs"),
    ("Green|DevResource|DevSm", "GREEN_CONTEXTS", "green contexts"),
    ("ExecAffinity", "AFFINITY", "execution affinity"),
    ("Cluster", "CLUSTERS", "clusters of blocks"),
    ("Checkpoint", "CHECKPOINTS", "checkpoints of a process"),
    ("Coredump", "CORE_DUMPS", "core dumps of a GPU"),
    ("cuLogs", "LOGS", "the log of NVIDIA's driver; set GPULOAD_LOG=info"),
    ("cuLink", "OLD_LINKER", "the interface of CUDA 5.5"),
    ("CooperativeKernelMultiDevice", "MULTI_DEVICE", "launches on several devices"),
    ("AtomicCapabilities|NvSci|Luid", "HARDWARE", "a property of hardware that a CPU does not have"),
    ("GPUDirectRDMA", "GPU_DIRECT", "GPUDirect RDMA"),
    ("Decompress", "DECOMPRESSION", "decompression by the GPU"),
    ("Batch", "BATCHES", "batches of copies"),
    ("AsyncNotification", "NOTIFICATIONS", "notifications of the driver"),
    ("StreamSetAttribute|StreamGetAttribute|StreamCopyAttributes", "STREAM_ATTRIBUTES", "attributes of streams"),
    ("UnifiedFunction", "UNIFIED_FUNCTIONS", "unified function pointers"),
    ("Profiler", "PROFILER", "configuration files of NVIDIA's profiler"))]


def base_of(symbol):
    """Split a symbol into (call, version, per-thread suffix): cuMemcpyHtoD_v2_ptds is ("cuMemcpyHtoD", 2, "_ptds")."""
    m = re.fullmatch(r"(cu\w+?)(?:_v(\d+))?(_pt[ds][sz])?", symbol)
    return m[1], int(m[2] or 1), m[3] or ""


def declared(path):
    """Return the symbols that a header declares, and those to which its #defines rename a declaration."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    symbols = set(re.findall(r"\bCUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\(", text))
    for to in re.findall(r"^\s*#\s*define\s+cu[A-Z]\w*\s+(\S+)", text, re.M):
        m = re.fullmatch(r"__CUDA_API_(PT[DS][SZ])\((\w+)\)", to)
        symbols |= {m[2], f"{m[2]}_{m[1].lower()}"} if m else {to}
    return symbols


def interface_versions(path):
    """Return {call: the CUDA versions that introduced its versions, such as cuMemAlloc and cuMemAlloc_v2, oldest first}."""
    versions = {}
    with open(path, encoding="utf-8", errors="replace") as f:
        for call, version in re.findall(r"\*PFN_(cu\w+?)_v(\d+)\)", f.read()):
            versions.setdefault(call, set()).add(int(version))
    return {call: sorted(v) for call, v in versions.items()}


def read_header(include):
    """Read cuda.h and its companions: {symbol: (call, CUDA version that introduced it, per-thread symbol or None)}."""
    found, rows = {}, {}
    for name in HEADERS:
        paths = [f"{include}/{name}{part}.h" for part in ("", "Typedefs")]
        if not all(map(os.path.exists, paths)):
            continue   # only some toolkits have the headers of graphics APIs
        symbols, versions = declared(paths[0]), interface_versions(paths[1])
        for s in symbols:
            call, number, suffix = base_of(s)
            found.setdefault(call, {}).setdefault(number, {})[suffix] = s
        for call in {base_of(s)[0] for s in symbols}:
            since = versions.get(call, [])
            for k, number in enumerate(sorted(n for n in found[call] if "" in found[call][n])):
                names = found[call][number]
                thread = next((names[p] for p in ("_ptsz", "_ptds") if p in names), None)
                rows[names[""]] = call, since[k] if k < len(since) else 2000, thread
    return rows


def read_rows(path):
    """Read the rows CALL() and PTDS() of a list of calls; returns the same as read_header()."""
    rows = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            text = f.read().replace("\\\n", " ")
        for kind, arguments in re.findall(r"\b(CALL|PTDS)\((\w+, \d+, [^)]*)\)", text):
            a = [x.strip() for x in arguments.split(",")]
            rows[a[2]] = a[0], int(a[1]), a[3] if kind == "PTDS" else None
    return rows


def reason(symbol, since, newer):
    if "_v2" not in symbol and since < 3020 and newer == 3020 and "Array" not in symbol and "Tex" not in symbol:
        return OLD_ADDRESSES
    for pattern, key, text in REASONS:
        if pattern.search(symbol):
            return key, text
    sys.exit(f"driver_calls.py: no reason is given for refusing {symbol}: add the call to REASONS or to {CALLS}")


def reasons_of(rows):
    """Return {refused symbol: (key, text) of the reason}; symbols that CUDA 3.2 replaced with a _v2 have the reason OLD_ADDRESSES."""
    v2 = {call: since for call, since, _ in rows["all"].values() if since == 3020}
    return {s: reason(s, since, v2.get(call)) for s, (call, since, _) in rows["refused"].items()}


def write_refused(path, rows, why):
    lines = ["/* cu_refused_internal.h — every call of the driver API that this driver exports but does not implement.",
             " *", " * Generated by scripts/driver_calls.py from cuda.h; do not edit.  The columns are those of cu_calls_internal.h; the last",
             " * one is the reason, a row of SOFT_REASONS. */",
             "#ifndef GPULOAD_SOFTCUDA_API_CU_REFUSED_INTERNAL_H", "#define GPULOAD_SOFTCUDA_API_CU_REFUSED_INTERNAL_H", "",
             "#define SOFT_REASONS(REASON) \\"]
    texts = dict([OLD_ADDRESSES, *((key, text) for _, key, text in REASONS)])
    used = sorted({key for key, _ in why.values()})
    lines += [f'\tREASON({key}, "{texts[key]}") \\' for key in used]
    lines[-1] = lines[-1].removesuffix(" \\")
    lines += ["", "#define SOFT_REFUSED(CALL, PTDS) \\"]
    for s, (call, since, thread) in sorted(rows.items()):
        key = why[s][0]
        one = f"\tPTDS({call}, {since}, {s}, {thread}, {key})" if thread else f"\tCALL({call}, {since}, {s}, {key})"
        lines.append(one + " \\")
    lines[-1] = lines[-1].removesuffix(" \\")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join([*lines, "", "#endif", ""]))


def write_table(path, done, refused, why):
    text = """# Which calls of the driver API does the software driver implement?

`libcuda-soft.so` exports every call that the headers of CUDA 13.0 declare, in every version of its interface. A call that is not
implemented returns `CUDA_ERROR_NOT_SUPPORTED` (before `cuInit`: `CUDA_ERROR_NOT_INITIALIZED`), and with `GPULOAD_LOG=info` its name is
logged once. `cuGetProcAddress` finds all of them. `softcuda/api/README.md` lists how the implemented calls differ from NVIDIA's driver.

This table is generated by `scripts/driver_calls.py`. A call with several interfaces has one row; the interfaces that are refused are
named. The calls for per-thread default streams (`_ptsz`, `_ptds`) are as the calls without the suffix.

"""
    calls = {}
    for rows, state in ((done, "done"), (refused, "refused")):
        for s, (call, _, _) in rows.items():
            calls.setdefault(call, {"done": [], "refused": []})[state].append(s)
    n_done = sum(bool(c["done"]) for c in calls.values())
    text += f"{n_done} calls are implemented, {len(calls) - n_done} are refused.\n\n| call | state | what is not supported |\n|---|---|---|\n"
    for call, symbols in sorted(calls.items()):
        texts = {}
        for s in sorted(symbols["refused"]):
            texts.setdefault(why[s][1], []).append(f"`{s}`")
        what = "; ".join(f"{', '.join(names)}: {t}" if symbols["done"] else t for t, names in texts.items())
        text += f"| `{call}` | {'done' if symbols['done'] else 'refused'} | {what} |\n"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def main(include, out="."):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    done = read_rows(f"{root}/{CALLS}")
    known = {**read_rows(f"{root}/{REFUSED}"), **read_header(include)}
    exported = {*done, *(thread for _, _, thread in done.values())}
    refused = {s: row for s, row in known.items() if s not in exported and row[1] <= DRIVER_VERSION}
    missing = [row[2] for s, row in known.items() if s in done and row[2] and row[2] not in exported]
    if missing:
        sys.exit(f"driver_calls.py: {CALLS} lacks {', '.join(sorted(missing))}")
    why = reasons_of({"all": {**done, **refused}, "refused": refused})
    for name in (REFUSED, TABLE):
        os.makedirs(os.path.dirname(f"{out}/{name}"), exist_ok=True)
    write_refused(f"{out}/{REFUSED}", refused, why)
    write_table(f"{out}/{TABLE}", done, refused, why)


if __name__ == "__main__":
    main(*sys.argv[1:])
