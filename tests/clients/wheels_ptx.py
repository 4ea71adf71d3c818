#!/usr/bin/env python3
"""wheels_ptx.py FOLDER — load the PTX of public packages on the software driver, and count what it refuses.

FOLDER has a folder for each package, with the PTX files that `gpuload extract --kind ptx` wrote there; this program fetches nothing.  Each
file is loaded in a process of its own (cuModuleLoadData), and each of its kernels is looked up.  Relocatable PTX (.rdc.ptx) that
has undefined references cannot be loaded by itself on any driver; it is counted separately.

    loaded       cuModuleLoadData succeeded
    refused      it failed, with the reason
    unresolved   an undefined reference of a relocatable module
    crashed      the process ended by a signal
    slow         it did not end within --limit
"""
import argparse, collections, ctypes, glob, json, os, re, resource, select, signal, sys, time

ENTRY = re.compile(rb"^[ \t]*(?:\.(?:visible|weak)[ \t]+)*\.entry[ \t\n]+([\w$]+)", re.M)
REASON = re.compile(r"^[^:]*:\d+: (.*?)(?:; kernel .*)?$", re.S)

UNDEFINED = re.compile(r"undefined reference|declared extern but not defined")
PAGE = """# PTX of public packages that is refused

Written by `tests/clients/wheels_ptx.py FOLDER --page FILE`. Each PTX file in the packages of PyPI below was loaded in a process of its own,
and each kernel of a loaded module was looked up; no kernel was launched. A kernel that is refused does not prevent the other kernels of its
module. *Unresolved* modules are relocatable and refer to variables or functions of other modules: they have to be linked before they are
loaded, as with any driver (NVIDIA's `ptxas` of CUDA 13.0 refuses 187 of the 189, too; no kernel of the other 2 reaches such a name).
"""


def arguments():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("folder", help="folder with a folder of PTX files for each package")
    a.add_argument("--build", default="build", help="build folder of gpuload (default: build)")
    a.add_argument("--limit", type=float, default=60, metavar="S", help="seconds for one module (default: 60)")
    a.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth file of a package (default: 1)")
    a.add_argument("--json", help="file for the results")
    a.add_argument("--page", metavar="FILE", help="write the counts as a page of docs/")
    return a.parse_args()


def load(lib, path, out):
    """The work of the child process: load the module, look up its kernels, write the result as one line of JSON."""
    with open(path, "rb") as f:
        text = f.read()
    names = sorted(set(ENTRY.findall(text)))
    start, log, n, handle = time.time(), ctypes.create_string_buffer(4096), 2, ctypes.c_void_p()
    options = (ctypes.c_int * n)(5, 6)   # CU_JIT_ERROR_LOG_BUFFER and its size
    values = (ctypes.c_void_p * n)(ctypes.cast(log, ctypes.c_void_p), ctypes.c_void_p(len(log)))
    r = lib.cuModuleLoadDataEx(ctypes.byref(handle), text, n, options, values)
    refused = []
    function = ctypes.c_void_p()
    lib.gpuloadSoftLastFault.restype = ctypes.c_char_p
    for name in names if not r else ():
        if lib.cuModuleGetFunction(ctypes.byref(function), handle, name):
            refused.append((name.decode(), (lib.gpuloadSoftLastFault() or b"?").decode(errors="replace")))
    out.write(json.dumps({"result": r, "log": log.value.decode(errors="replace"), "kernels": len(names), "refused": refused,
                          "seconds": round(time.time() - start, 3), "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}))


def child(library, path, fd):
    lib = ctypes.CDLL(library)
    lib.gpuloadSoftPrintFaults(0)
    context, device = ctypes.c_void_p(), ctypes.c_int()
    if lib.cuInit(0) or lib.cuDeviceGet(ctypes.byref(device), 0) or lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) \
            or lib.cuCtxSetCurrent(context):
        os._exit(3)
    with os.fdopen(fd, "w", encoding="utf-8") as out:
        load(lib, path, out)
    os._exit(0)


def one(library, path, limit):
    """The result of one file, from a forked process."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        child(library, path, write)
    os.close(write)
    data, end = b"", time.time() + limit
    while True:
        ready, _, _ = select.select([read], [], [], max(0, end - time.time()))
        more = os.read(read, 1 << 16) if ready else b""
        data += more
        if not more:
            break
    if not ready:
        os.kill(pid, signal.SIGKILL)
    os.close(read)
    _, status = os.waitpid(pid, 0)
    if not ready:
        return {"state": "slow", "why": f"not loaded in {limit:g} s"}
    if status or not data:
        return {"state": "crashed", "why": f"wait status {status}"}
    r = json.loads(data)
    undefined = UNDEFINED.search(r["log"]) and path.endswith(".rdc.ptx")
    r["state"] = "loaded" if not r["result"] else "unresolved" if undefined else "refused"
    r["why"] = r["log"]
    return r


def reasons(results):
    """How many kernels of loaded modules are refused, by instruction."""
    found = [REASON.match(text) for r in results for _, text in r.get("refused", [])]
    return collections.Counter(m[1] if m else "unknown" for m in found)


def kernels(results):
    """(kernels of loaded modules, those of them that are refused)"""
    return sum(r.get("kernels", 0) for r in results if r["state"] == "loaded"), sum(len(r.get("refused", [])) for r in results)


def report(results):
    states = collections.Counter(r["state"] for r in results)
    print(f"{len(results)} modules: " + ", ".join(f"{n} {state}" for state, n in states.most_common()))
    print("%d kernels in loaded modules, %d refused" % kernels(results))
    for text, n in reasons(results).most_common():
        print(f"{n:8} kernels  {text}")
    for r in results:
        if r["state"] in ("refused", "crashed", "slow"):
            print(f"{r['state']}  {r['file']}: {r['why']}")
    for r in sorted((r for r in results if "seconds" in r), key=lambda r: -r["seconds"])[:5]:
        print(f"{r['seconds']:8.2f} s {r['mib']:6} MiB  {r['file']}")


def write_page(results, path):
    states = ("loaded", "unresolved", "refused", "crashed", "slow")
    of_package = {}
    for r in results:
        of_package.setdefault(r["file"].split("/")[0], []).append(r)
    with open(path, "w", encoding="utf-8") as f:
        f.write(PAGE + "\n| instruction that is not interpreted | kernels |\n|---|--:|\n")
        f.writelines(f"| `{text}` | {n:,} |\n" for text, n in reasons(results).most_common())
        f.write("\n| package | modules | " + " | ".join(states) + " | kernels | of these refused |\n|---" + "|--:" * 8 + "|\n")
        for name, some in [*sorted(of_package.items()), ("all", results)]:
            n = collections.Counter(r["state"] for r in some)
            row = [len(some), *(n[s] for s in states), *kernels(some)]
            f.write(f"| {name} | " + " | ".join(f"{v:,}" for v in row) + " |\n")


def main():
    args = arguments()
    library = os.path.abspath(f"{args.build}/softcuda/libcuda-soft.so")
    if not os.path.exists(library):
        sys.exit(f"wheels_ptx.py: {library} not found: run ninja {args.build}/softcuda/libcuda-soft.so")
    packages = sorted(glob.glob(f"{args.folder}/*/"))
    if not packages:
        sys.exit(f"wheels_ptx.py: {args.folder} has no folders: write the PTX of each package into a folder with gpuload extract")
    os.environ.pop("GPULOAD_SOFT_TOOLS", None)
    results = []
    for package in packages:
        files = sorted(glob.glob(f"{package}*"))[:: args.every]
        mine = [{**one(library, path, args.limit), "file": os.path.relpath(path, args.folder)} for path in files]
        results += mine
        print(f"{os.path.basename(package[:-1])}: {len(mine)} modules, {sum(r['state'] == 'loaded' for r in mine)} loaded", flush=True)
        if args.json:
            with open(args.json, "w", encoding="utf-8") as f:
                json.dump(results, f)
    report(results)
    if args.page:
        write_page(results, args.page)
    return 1 if any(r["state"] == "crashed" for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
