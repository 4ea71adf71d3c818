"""modules.py — the architecture: the folders, and the folders that each of them may use.

MODULES gives the link order.  tests/meta/layers.py checks every #include and every symbol against it, and
tests/meta/readme.py the folder map of README.md, so that the documentation, the build and the code agree.
"""
import functools, glob

VERSION, DATE = "0.1.0", "2026-11-20"
MODULES = {                      # folder: folders it may include
    "core":         [],
    "driver":       ["core"],
    "ptx":          ["core"],
    "loader/image": ["core", "ptx"],
    "loader":       ["core", "driver", "ptx", "loader/image"],
    "softcuda":     ["core", "ptx", "loader/image"],
    "calls":        ["core"],
    "nvidia":       ["core", "ptx", "loader/image", "softcuda", "calls"],
    "nvidia/cudart": ["core", "driver"],
    "memalloc":     ["core", "driver"],
    "ipc":          ["core", "driver", "memalloc"],
    "proxy":        ["core", "driver", "memalloc"],
    "rdma":         ["core", "driver", "memalloc", "proxy"],
    "nccl":         ["core", "driver", "memalloc", "rdma"],
    "comm":         ["core", "driver", "ptx", "loader/image", "loader", "memalloc", "ipc", "proxy", "rdma"],
    "lab":          ["core", "driver", "ptx", "loader/image", "loader", "memalloc", "ipc", "proxy", "rdma", "comm"],
    "cli":          ["core", "driver", "ptx", "loader/image", "loader", "calls", "memalloc", "ipc", "proxy", "rdma", "comm", "lab"],
}

# The sub-folders of a module, in the order of use: each may use those to its left, and the modules of MODULES.
# "" is the folder of the module itself.
SUBFOLDERS = {
    "core":         ["", "thread", "file", "cache"],
    "ptx":          ["", "parse", "link", "nvrtc", "strict"],
    "loader/image": ["", "kernels", "package"],
    "loader":       ["signature", "names", "advice", "cache", "choose", "link", "", "symbol", "program"],
    "softcuda":     ["exec", "exec/texture", "exec/warp", "exec/native", "exec/run", "exec/decode", "exec/machine", "tools", "tools/trace", "tools/memcheck", "tools/debug", "tools/synccheck", "tools/schedule", "tools/profile", "tools/racecheck", "tools/start",
                     "api/base", "api/stream", "api/vmm", "api/array", "api/memory", "api/code", "api/texture", "api/graph", "api"],
    "nvidia":       ["", "nvrtc", "nvjitlink", "nvfatbin", "nvml", "ptxas", "calls", "redirect"],
    "nvidia/cudart": ["", "memory", "device", "stream", "graph"],
    "memalloc":     ["", "probe"],
    "rdma":         ["protocol", "reliable", "backend", "oob", "nic", "gpu", "verbs", "verbs_reliable", "ofi", "udp", "", "put"],
    "nccl":         ["net"],
    "comm":         ["bootstrap", "device", "net", "kernels", ""],
    "lab":          ["predict", "sparse", "netqueue", "fabric"],
    "cli":          ["lib", "lib/json", "lib/options", "lib/bench", "kernels", "calls/log", "soft", "calls", "run", "ls", "debug", "compile", "devices", "sum", "share", "fifo/clock", "fifo/bench", "fifo/put", "fifo", "rdma", "comm/netqueue", "comm", ""],
}
LIBRARY = [m for m in MODULES if m not in ("nvidia/cudart", "softcuda", "nvidia", "calls", "nccl", "lab", "cli")]  # the modules of libgpuload
# include/ has the public headers, in the folders of their modules: they are installed, and libgpuload.so exports their functions.
# A header in the folder of the sources is private.  Device code is in the .cuh files, all of which are installed.
INCLUDE_FLAGS = ("-I.", "-Iinclude")
PROGRAMS = {"gpuload": "cli/main.c", "gpuload-probe": "memalloc/probe/probe_main.c",
            "softcuda/bin/ptxas": "nvidia/ptxas/ptxas.c"}  # sources that are not in the library of their folder
TESTS_MAY_USE = list(MODULES) + ["tests"]


def owner(path):
    """The module of a path: its longest prefix in MODULES (modules may be nested)."""
    path = path.removeprefix("include/")
    return max((m for m in TESTS_MAY_USE if path == m or path.startswith(m + "/")), key=len, default=None)


def subfolder(path):
    """The entry of SUBFOLDERS that contains a file of a module."""
    inside = path.removeprefix("include/")[len(owner(path)) + 1:]
    return max((s for s in SUBFOLDERS.get(owner(path), []) if inside.startswith(f"{s}/")), key=len, default="")


@functools.cache
def files(folder, ext):
    """Return the files of a module, including its public headers but not those of nested modules, or the files of a folder below tests/."""
    found = (f for root in (folder, f"include/{folder}") for f in glob.glob(f"{root}/**/*{ext}", recursive=True))
    return tuple(sorted(f for f in found if owner(f) == owner(folder)))


def library_sources(module):
    """The .c files of the library of a module."""
    return [c for c in files(module, ".c") if c not in PROGRAMS.values()]


def closure(module):
    """The module and all modules that it may use, in link order: a user comes before the modules that it uses."""
    return [m for m in reversed(MODULES) if m == module or m in MODULES[module]]
