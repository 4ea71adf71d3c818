#!/usr/bin/env python3
"""wheels_ptx.py — load the PTX of public packages on the software driver, and count the modules and kernels that it refuses.

The wheels come from PyPI, one at a time; `gpuload extract --kind ptx` writes their PTX into --work/ptx, a folder for each package, and the wheel
is deleted.  Each file is loaded in a process of its own (cuModuleLoadData), and each of its kernels is looked up.  Relocatable PTX (.rdc.ptx)
that has undefined references cannot be loaded by itself on any driver; it is counted separately.

    loaded       cuModuleLoadData succeeded: passed
    refused      it failed, with the reason: failed
    unresolved   an undefined reference of a relocatable module: skipped
    crashed      the process ended by a signal: failed
    slow         it did not end within --limit: failed
"""
import collections, ctypes, glob, hashlib, json, os, re, resource, select, shutil, signal, subprocess, sys, tempfile, time, zipfile

import client  # in this folder

PACKAGES = ("bitsandbytes catboost ctranslate2 cuequivariance-ops-cu12 cumm-cu120 cupoch cupy-cuda12x cutensor-cu12 jax-cuda12-plugin libcudf-cu12 "
            "libcugraph-cu12 libcuml-cu12 libcuvs-cu12 libraft-cu12 numba-cuda nvidia-cublas-cu12 nvidia-cufft-cu12 nvidia-curand-cu12 "
            "nvidia-cusolver-cu12 nvidia-cusparse-cu12 nvidia-cusparselt-cu12 nvidia-dali-cuda120 nvidia-nccl-cu12 nvidia-npp-cu12 "
            "nvidia-nvimgcodec-cu12 nvidia-nvjpeg-cu12 nvidia-nvshmem-cu12 open3d pycolmap-cuda12 sgl-kernel tensorflow vllm warp-lang xformers "
            "xgboost").split()
SHORT = ("nvidia-curand-cu12", "nvidia-nvjpeg-cu12", "libraft-cu12")
HAVE_CODE = re.compile(r"\.so(\.|$)|\.(a|fatbin|ptx|o|cubin)$")
COUNTED = {"loaded": "passed", "unresolved": "skipped"}
ENTRY = re.compile(rb"^[ \t]*(?:\.(?:visible|weak)[ \t]+)*\.entry[ \t\n]+([\w$]+)", re.M)
REASON = re.compile(r"^[^:]*:\d+: (.*?)(?:; kernel .*)?$", re.S)

UNDEFINED = re.compile(r"undefined reference|declared extern but not defined")
PAGE = """# PTX of public packages that is refused

Written by `tests/clients/wheels_ptx.py --page FILE`. Each PTX file in the packages of PyPI below was loaded in a process of its own,
and each kernel of a loaded module was looked up; no kernel was launched. A kernel that is refused does not prevent the other kernels of its
module. *Unresolved* modules are relocatable and refer to variables or functions of other modules: they have to be linked before they are
loaded, as with any driver (NVIDIA's `ptxas` of CUDA 13.0 refuses 187 of the 189, too; no kernel of the other 2 reaches such a name).
"""


def arguments():
    a = client.parser(__doc__)
    a.set_defaults(limit=60)
    a.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth file of a package (default: 1)")
    a.add_argument("--json", help="file for the results")
    a.add_argument("--page", metavar="FILE", help="write the counts as a page of docs/")
    return client.begin(a)


def extract(args, wheel, folder):
    """Write the PTX of a wheel's files into the folder, each text once."""
    seen = set()
    with zipfile.ZipFile(wheel) as z, tempfile.TemporaryDirectory(dir=args.work) as there:
        for item in z.infolist():
            name = os.path.basename(item.filename)
            if not item.file_size or not HAVE_CODE.search(name):
                continue
            with z.open(item) as f, open(f"{there}/{name}", "wb") as to:
                shutil.copyfileobj(f, to)
            os.makedirs(f"{there}/ptx")
            if name.endswith(".ptx"):
                os.rename(f"{there}/{name}", f"{there}/ptx/{name}")
            else:   # extract fails for most files, because they have no PTX
                subprocess.run([args.gpuload, "extract", f"{there}/{name}", "-o", f"{there}/ptx", "--kind", "ptx"], capture_output=True)
                os.remove(f"{there}/{name}")
            for path in sorted(glob.glob(f"{glob.escape(there)}/ptx/*")):
                with open(path, "rb") as f:
                    digest = hashlib.sha256(f.read()).hexdigest()
                if digest not in seen:
                    to = f"{folder}/{os.path.basename(path)}"
                    shutil.move(path, to if not os.path.exists(to) else f"{folder}/{digest[:8]}.{os.path.basename(path)}")
                seen.add(digest)
            shutil.rmtree(f"{there}/ptx")


def fetch(args, package):
    """Download a package and extract its PTX, unless an earlier run has done so; return the folder of the PTX."""
    folder = f"{args.work}/ptx/{package}"
    if os.path.isdir(folder):
        return folder
    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in range(36, 16, -1)] + ["--platform=manylinux2014_x86_64", "--platform=any"]
    with tempfile.TemporaryDirectory(dir=args.work) as there:
        r = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version=3.12", *platforms, "-d", there,
                            package], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        wheels = glob.glob(f"{there}/*.whl")
        if not wheels:
            client.skip(f"pip cannot download {package}: {(r.stderr.strip().splitlines() or ['no message'])[-1]}")
        os.makedirs(f"{folder}.new", exist_ok=True)
        extract(args, wheels[0], f"{folder}.new")
    os.rename(f"{folder}.new", folder)
    return folder


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
    """Load one file in a forked process; return its result."""
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
    """Count the refused kernels of loaded modules by the instruction that is not supported."""
    found = [REASON.match(text) for r in results for _, text in r.get("refused", [])]
    return collections.Counter(m[1] if m else "unknown" for m in found)


def kernels(results):
    """Return (number of kernels in loaded modules, number of them that are refused)."""
    return sum(r.get("kernels", 0) for r in results if r["state"] == "loaded"), sum(len(r.get("refused", [])) for r in results)


def report(results):
    states = collections.Counter(r["state"] for r in results)
    print(f"{len(results)} modules: " + ", ".join(f"{n} {state}" for state, n in states.most_common()))
    print("%d kernels in loaded modules, %d refused" % kernels(results))
    for text, n in reasons(results).most_common():
        print(f"{n:8} kernels  {text}")
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
    library = f"{args.build}/softcuda/libcuda-soft.so"
    if not os.path.exists(library):
        sys.exit(f"wheels_ptx: {library} not found: run ninja first, or give --build")
    os.environ.pop("GPULOAD_SOFT_TOOLS", None)
    results, counted = [], client.Results()
    for package in args.only or (SHORT if args.short else PACKAGES):
        folder = fetch(args, package)
        mine = [{**one(library, path, args.limit), "file": os.path.relpath(path, f"{args.work}/ptx")}
                for path in sorted(glob.glob(f"{folder}/*"))[:: args.every]]
        results += mine
        print(f"{package}: {len(mine)} modules, {sum(r['state'] == 'loaded' for r in mine)} loaded", flush=True)
        for r in mine:
            counted.add(r["file"], COUNTED.get(r["state"], "failed"), f"{r['state']}: {r['why']}")
        if args.json:
            with open(args.json, "w", encoding="utf-8") as f:
                json.dump(results, f)
    report(results)
    if args.page:
        write_page(results, args.page)
    return counted.end()


if __name__ == "__main__":
    sys.exit(main())
