"""parts.py — find the compiler and the optional libraries and tools on this machine."""
import glob, os, shutil, subprocess, tempfile


class Part:
    """A tool or library: .where is its path (None: not found), .lost is the feature that needs it."""

    def __init__(self, name, where, lost):
        self.name, self.where, self.lost = name, where, lost

    def line(self):
        return f"{self.name:<10} {self.where}" if self.where else f"{self.name:<10} not found: {self.lost}"


def cuda_home(args):
    """The first folder that has include/cuda.h: a toolkit, or NVIDIA's unpacked wheels."""
    if args.cuda:
        candidates = [args.cuda]
    else:
        candidates = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", "build/cuda-wheels", "/usr"]
    return next((c for c in candidates if c and os.path.exists(f"{c}/include/cuda.h")), None)


def library(args, header, name, flags=""):
    """The path of lib<name> if a program that includes its header links; else None."""
    with tempfile.TemporaryDirectory() as d:
        src = f"{d}/probe.c"
        with open(src, "w", encoding="utf-8") as f:
            f.write(f"#include <stdarg.h>\n#include <stddef.h>\n#include <setjmp.h>\n#include <stdint.h>\n"
                    f"#include <{header}>\nint main(void) {{ return 0; }}\n")
        cmd = [args.cc, src, "-o", f"{d}/probe", *flags.split(), f"-l{name}", "-Wl,--trace"]
        try:
            r = subprocess.run(cmd, capture_output=True, text=True)
        except FileNotFoundError:
            return None
        if r.returncode:
            return None
        return next((os.path.realpath(l) for l in r.stdout.splitlines() if f"lib{name}." in l), f"-l{name}")


def pkg_config(name):
    """The compiler and linker flags of a package; "" if it or pkg-config is missing."""
    try:
        return subprocess.run(["pkg-config", "--cflags", "--libs", name], capture_output=True, text=True).stdout.strip()
    except FileNotFoundError:
        return ""


def shared_object(pattern, home):
    """A library that is opened at run time: search the toolkit, then the cache of ldconfig."""
    for folder in [f"{home}/lib64", f"{home}/lib"] if home else []:
        hits = sorted(glob.glob(f"{glob.escape(folder)}/{pattern}*"))
        if hits:
            return hits[-1]
    try:
        cache = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    except FileNotFoundError:
        return None
    return next((l.split(" => ")[1] for l in cache.splitlines() if pattern in l), None)


def fuzzer():
    """The path of clang if it has libFuzzer's runtime; else None."""
    clang = shutil.which("clang")
    if not clang:
        return None
    r = subprocess.run([clang, "-fsanitize=fuzzer", "-x", "c", "-", "-o", "/dev/null"], text=True, capture_output=True,
                       input="int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n)"
                             "{ (void)d; (void)n; return 0; }")
    return clang if r.returncode == 0 else None


def compiler(args):
    try:
        r = subprocess.run([args.cc, "--version"], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return f"{shutil.which(args.cc)} ({r.stdout.splitlines()[0]})" if r.returncode == 0 and r.stdout else None


def find(args):
    """Search for all parts; returns {name: Part} in the order in which they are printed."""
    home = cuda_home(args)
    nvcc = next((p for p in [f"{home}/bin/nvcc", shutil.which("nvcc")] if p and os.path.exists(p)), None)
    found = [
        Part("compiler", compiler(args), "nothing can be built: run ./configure.py --install-deps"),
        Part("cuda.h", home and f"{home}/include/cuda.h", "nothing can be built"),
        Part("nvcc", nvcc, "examples with CUDA C++ kernels in the program are not built"),
        Part("NVRTC", shared_object("libnvrtc.so", home), "gpuload cannot compile .cu files"),
        Part("nvJitLink", shared_object("libnvJitLink.so", home), "relocatable device code cannot be linked"),
        Part("libcuda", shared_object("libcuda.so.1", None), "no NVIDIA driver: kernels run on the software driver"),
        Part("libelf", library(args, "libelf.h", "elf"), "kernels in .o, .so and executables cannot be loaded"),
        Part("zstd", library(args, "zstd.h", "zstd"), "zstd-compressed fatbins cannot be read"),
        Part("lz4", library(args, "lz4.h", "lz4"), "LZ4-compressed fatbins cannot be read"),
        Part("zlib", library(args, "zlib.h", "z"), "wheels, zip files and .tar.gz files cannot be read"),
        Part("libibverbs", library(args, "infiniband/verbs.h", "ibverbs"), "the send path cannot use RDMA NICs"),
        Part("libfabric", library(args, "rdma/fabric.h", "fabric"), "the send path needs an RDMA NIC"),
        Part("libpmix", library(args, "pmix.h", "pmix", pkg_config("pmix")), "under mpirun and srun, ranks find each other only through environment variables"),
        Part("ncurses", library(args, "ncurses.h", "ncursesw"), "gpuload step reads commands line by line, without windows"),
        Part("cmocka", library(args, "cmocka.h", "cmocka"), "the C tests are not built"),
        Part("bats", shutil.which("bats"), "the command line's tests are skipped"),
        Part("ctags", shutil.which("ctags"), "the check of file and function sizes is skipped"),
        Part("mandoc", shutil.which("mandoc") or shutil.which("groff"), "man pages are not checked"),
        Part("spin", shutil.which("spin"), "the model of the FIFO protocol is not checked"),
        Part("libFuzzer", fuzzer(), "fuzz targets are not built"),
    ]
    return {p.name: p for p in found}


def builds(args):
    """The instruction sets that the interpreter's handlers are built for: (suffix, flags), slowest first."""
    target = subprocess.run([args.cc, "-dumpmachine"], capture_output=True, text=True).stdout
    if target.startswith("x86_64"):
        return [("base", "-march=x86-64"), ("v3", "-march=x86-64-v3"), ("v4", "-march=x86-64-v4")]
    return [("base", "")]
