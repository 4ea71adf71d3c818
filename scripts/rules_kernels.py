"""rules_kernels.py — the rules for kernels and other files that the build puts into programs (core/file/embed.h).

    include/comm/kernels/kernels.def ─ configure ─ NAME.cu ┐
    the .cu files of FOLDERS ──────────────────────────────┴─ kernel.py ─ NAME.ptx ─ embed pack ─ NAME.ptx.zst ─ a source with GPUL_EMBED()

All outputs are below build/kernels, at the path of their source in the repository.  NVRTC compiles if there is no nvcc.
"""
import functools, glob, os, re

from scripts.flags import image_flags
from scripts.modules import INCLUDE_FLAGS, closure
from scripts.writer import words

# The folders whose .cu files are compiled: (architecture for the compiler, .version and .target to which kernel.py lowers the PTX).
FOLDERS = {"comm/kernels": ("80", "7.0", ""), "lab/netqueue": ("80", "7.0", ""), "lab/sparse": ("80", "7.0", ""), "tests/comm": ("80", "7.0", ""),
           **dict.fromkeys(("cli/kernels", "bench/kernels", "tests/ipc", "tests/proxy", "tests/proxy/soak", "tests/rdma/put"), ("75", "6.4", "sm_70"))}
# Large kernels of tests/corpus, whose PTX for sm_80 is almost the same as for sm_75.
LARGE = ("mathf", "mathd", "half", "atomics", "groups", "cub", "async")
KERNELS_DEF = "include/comm/kernels/kernels.def"
FILE_ROW = re.compile(r"^FILE_ROW\((\w+), (\w+)\)$", re.M)
KERNEL = re.compile(r"^(?:KERNEL|RESIDENT)\((\w+), (\w+), ([\w<>]+), (\w+), ", re.M)
PAGE = "softcuda/tools/trace/page"


@functools.cache
def embeds():
    """Return {C source that contains GPUL_EMBED(): the files that it embeds}."""
    return {"cli/fifo/bench/fifo_bench_run.c": ["cli/kernels/fifo_bench.ptx"], "cli/fifo/clock/fifo_clock.c": ["cli/kernels/fifo_clock.ptx"],
            "cli/fifo/fifo_push.c": ["cli/kernels/fifo_push.ptx"], "cli/fifo/fifo_trace_run.c": ["cli/kernels/fifo_trace.ptx"],
            "cli/fifo/put/fifo_put_end.c": ["cli/kernels/fifo_put.ptx"], "cli/sum/sum_gpu.c": ["cli/kernels/sum.ptx"],
            "comm/comm_kernels.c": [f"comm/kernels/{name}.ptx" for name, _ in FILE_ROW.findall(kernels_def())],
            "lab/netqueue/netqueue.c": ["lab/netqueue/unpack.ptx"],
            "lab/sparse/gpu.c": [f"lab/sparse/sparse_{name}.ptx" for name in ("bitmap", "pack", "scatter")],
            "softcuda/tools/trace/trace_page.c": sorted(glob.glob(f"{PAGE}/page.*") + glob.glob(f"{PAGE}/*.js")),
            "tests/comm/test_trace.c": ["tests/comm/trace_events.ptx"], "tests/proxy/ends.c": ["cli/kernels/fifo_push.ptx"]}


def kernels_def():
    with open(KERNELS_DEF, encoding="utf-8") as f:
        return f.read()


def flags(w, c):
    """Further compiler flags of a source."""
    return words(f"-Wa,-I,{w.dir}/kernels") if c in embeds() else ""


def needs(w, c):
    """Return the files that a source embeds, because the compiler does not list them in its .d file."""
    return [f"{w.dir}/kernels/{path}.zst" for path in embeds().get(c, [])]


def macro(w):
    """A macro with the folder of the compiled kernels, for tests and benchmarks that load one of them."""
    return words(f'-DGPUL_KERNELS="{w.dir}/kernels"')


def write_source(path, name, header, kernels):
    """Write a .cu file with the kernels of one FILE_ROW of kernels.def, unless the file is up to date."""
    text = f"/* Written by configure.py; edit {KERNELS_DEF} instead. */\n#include \"comm/kernels/{header}.cuh\"\n"
    for kernel, _, function, work in kernels:
        text += (f"\nextern \"C\" __global__ void __launch_bounds__(GPUL_COMM_MAX_THREADS) gpul_comm_{kernel}(const gpul_comm_view *comm, {work} work)\n"
                 f"{{\n\t{function}(comm, &work);\n}}\n")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            if f.read() == text:
                return
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def sources_of_def(w):
    """The rows of kernels.def: [(path of the kernel, its source)]; writes the sources that are not in the repository."""
    text, found = kernels_def(), []
    for name, header in FILE_ROW.findall(text):
        cu = f"comm/kernels/{name}.cu"
        if not os.path.exists(cu):
            cu = f"{w.dir}/kernels/{cu}"
            write_source(cu, name, header, [row for row in KERNEL.findall(text) if row[1] == name])
        found.append((f"comm/kernels/{name}.ptx", cu))
    return found


def compiler(w, cu, arch, options=()):
    """The command that prints PTX, and the files that it needs."""
    nvcc = w.have["nvcc"].where
    if nvcc:
        return words(nvcc, "-ptx", f"-arch=sm_{arch}", "-std=c++17", "-allow-unsupported-compiler", INCLUDE_FLAGS, options, cu, "-o", "-"), []
    embed = f"{w.dir}/embed"
    return words("env", f"GPULOAD_NVRTC={w.have['NVRTC'].where}", embed, "compile", f"compute_{arch}", cu, "--std=c++17", INCLUDE_FLAGS, options), [embed]


def write_embed(w):
    """Link scripts/embed_tool.c, which compresses files and compiles with NVRTC."""
    archives = w.link(closure("ptx"))
    return w.build(f"{w.dir}/embed", "link", [w.obj("scripts/embed_tool.c", image_flags(w)), *archives])


def variants():
    """Kernels of tests, whose PTX is not lowered, each compiled in several ways: (source, output, architecture, compiler options)."""
    for cu in sorted(glob.glob("tests/softcuda/tools/faults/racecheck/*.cu")):
        yield cu, f"{cu[:-3]}.ptx", "90", ["-lineinfo"]
        yield cu, f"{cu[:-3]}_right.ptx", "90", ["-lineinfo", "-DRIGHT"]
    yield "tests/softcuda/tools/racecheck/clean.cu", "tests/softcuda/tools/racecheck/clean.ptx", "90", ["-lineinfo"]
    for cu in sorted(glob.glob("tests/corpus/*.cu")):
        name = os.path.basename(cu)[:-3]
        in_git = os.path.exists(f"tests/corpus/ptx/{name}.sm_90.ptx")  # make_corpus.py has compiled it for sm_90
        for arch in ("75", *(() if name in LARGE else ("80",)), *(() if in_git else ("90",)), "100"):
            yield cu, f"{cu[:-3]}.sm_{arch}.ptx", arch, []
    for name in ("fnptr", "reduce", "vecadd"):
        yield f"tests/corpus/{name}.cu", f"tests/corpus/{name}.sm_90.debug.ptx", "90", ["-G"]
    for name in ("fnptr", "printf", "warp"):
        yield f"tests/corpus/{name}.cu", f"tests/corpus/{name}.sm_90.lineinfo.ptx", "90", ["-lineinfo"]


def write_variants(w):
    outs = []
    for cu, ptx, arch, options in variants():
        command, also = compiler(w, cu, arch, options)
        outs.append(w.build(f"{w.dir}/kernels/{ptx}", "kernel", cu, ["scripts/kernel.py", *also], how=f"-- {command}"))
    planted, out = "tests/softcuda/tools/planted.py", f"{w.dir}/kernels/tests/softcuda/tools/faults"
    outs.append(w.build(f"{out}.ok", "sh", needs=[planted, *sorted(glob.glob("tests/softcuda/tools/faults/*/*.ptx"))],
                        command=f"{words(w.python, planted, out)} && touch {words(out + '.ok')}"))
    return outs + [write_cases(w, folder, f"{w.dir}/kernels/{folder}") for folder in ("tests/ptx/bad", "tests/softcuda/exec/odd")]


def write_cases(w, folder, out):
    """The PTX files of the cases in a folder."""
    make = "tests/support/ptx_cases.py"
    return w.build(f"{out}.ok", "sh", needs=[make, *sorted(glob.glob(f"{folder}/*.cases") + glob.glob(f"{folder}/*.ptx"))],
                   command=f"{words(w.python, make, folder, out)} && touch {words(out + '.ok')}")


def write(w):
    """Write the rules for all embedded files, after the archives of core and ptx are known."""
    embed = write_embed(w)
    kernels = dict(sources_of_def(w))
    for folder in FOLDERS:
        kernels |= {f"{cu[:-3]}.ptx": cu for cu in sorted(glob.glob(f"{folder}/*.cu")) if f"{cu[:-3]}.ptx" not in kernels}
    compiled = []
    for ptx, cu in kernels.items():
        arch, isa, target = FOLDERS[os.path.dirname(ptx)]
        command, also = compiler(w, cu, arch)
        compiled.append(w.build(f"{w.dir}/kernels/{ptx}", "kernel", cu, ["scripts/kernel.py", *also],
                                how=f"--isa {isa}{target and f' --target {target}'} -- {command}"))
    for path in sorted({path for paths in embeds().values() for path in paths}):
        source, packed = f"{w.dir}/kernels/{path}" if path in kernels else path, f"{w.dir}/kernels/{path}.zst"
        w.build(packed, "sh", needs=[source, embed], command=words(embed, "pack", source, packed))
    w.kernels = w.build("kernels", "phony", [*compiled, *write_variants(w)])
