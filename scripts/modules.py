"""modules.py — the architecture: which folder may use which.

MODULES orders the link, tests/meta/layers.py holds every #include and every symbol to it, and tests/meta/readme.py the
folder map of the README.  So the drawing, the build and the code cannot disagree.
"""
import glob

VERSION, DATE = "0.1.0", "2026-11-20"
MODULES = {                      # folder: folders it may include
    "core":         [],
    "driver":       ["core"],
    "ptx":          ["core"],
    "loader/image": ["core", "ptx"],
    "loader":       ["core", "driver", "ptx", "loader/image"],
    "loader/runtime": ["core", "driver"],
    "softcuda":     ["core", "ptx", "loader/image"],
    "memalloc":     ["core", "driver"],
    "ipc":          ["core", "driver", "memalloc"],
    "proxy":        ["core", "driver", "memalloc"],
    "cli":          ["core", "driver", "ptx", "loader/image", "loader", "memalloc", "ipc", "proxy"],
}

# The sub-folders of a module, in the order of use: each may use those to its left, and what its module may use.
# "" is the module's own folder.
SUBFOLDERS = {
    "ptx":          ["", "parse", "link", "nvrtc"],
    "loader/image": ["", "kernels"],
    "loader":       ["signature", "names", "cache", "choose", "link", "", "advice", "symbol"],
    "cli":          ["lib", "kernels", "run", "ls", "compile", "devices", "sum", "share", "fifo/bench", "fifo", ""],
}
LIBRARY = [m for m in MODULES if m not in ("loader/runtime", "softcuda", "cli")]  # what libgpuload is made of
PROGRAMS = {"gpuload": "cli/main.c", "gpuload-probe": "memalloc/probe_main.c"}  # what is no part of its folder's library
TESTS_MAY_USE = list(MODULES) + ["tests"]


def owner(path):
    """The module a path belongs to: its longest prefix in MODULES (modules may nest)."""
    return max((m for m in TESTS_MAY_USE if path == m or path.startswith(m + "/")), key=len, default=None)


def subfolder(path):
    """The entry of SUBFOLDERS that a file of a module lies in."""
    inside = path[len(owner(path)) + 1:]
    return max((s for s in SUBFOLDERS.get(owner(path), []) if inside.startswith(f"{s}/")), key=len, default="")


def files(folder, ext):
    """The files of a module (not of one nested in it), or of any folder below tests/."""
    return sorted(f for f in glob.glob(f"{folder}/**/*{ext}", recursive=True) if owner(f) == owner(folder))


def library_sources(module):
    """The .c files that its library is made of."""
    return [c for c in files(module, ".c") if c not in PROGRAMS.values()]


def closure(module):
    """The module and all that it may use, users before used: the order a linker wants."""
    return [m for m in reversed(MODULES) if m == module or m in MODULES[module]]
