"""flags.py — compiler and linker flags: those of the whole build, and those of one folder.

Each function returns shell text, in which paths and strings are already quoted for the shell.
"""
import os, shlex

from scripts import parts
from scripts.modules import DATE, VERSION

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror"
IMAGE_PARTS = {"libelf": "elf", "zstd": "zstd", "lz4": "lz4", "zlib": "z"}  # for loader/image: name in parts.py, name for -l


def flags(args):
    """Compiler and linker flags that the command line selects."""
    c = "-O2 -DNDEBUG" if args.release else "-O2 -g"
    ld = ""
    if args.sanitize:
        on = f"-fsanitize={args.sanitize}"
        c = f"-O1 -g {on} -fno-omit-frame-pointer -fno-sanitize-recover=all"
        ld = on
    if args.coverage:
        c, ld = f"{c} -O0 --coverage", f"{ld} --coverage"
    return f"{c} {args.cflags}".strip(), f"{ld} {args.ldflags}".strip()


def cuda_home(w):
    """Return the toolkit's folder, the one that contains include/cuda.h."""
    return os.path.dirname(os.path.dirname(w.have["cuda.h"].where))


def cuda_flags(w):
    """-isystem and the folder of cuda.h; nothing for /usr/include, because -isystem would change the search order."""
    folder = os.path.dirname(w.have["cuda.h"].where)
    return shlex.join(["-isystem", folder]) if folder != "/usr/include" else ""


def string_macro(name, text):
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return shlex.quote(f'-D{name}="{escaped}"')


def image_flags(w):
    """Macros for loader/image: which libraries it may use."""
    return " ".join(f"-DGPUL_HAVE_{part.upper()}={int(bool(w.have[part].where))}" for part in IMAGE_PARTS)


def fabric_flags(w):
    """Macros for rdma: which libraries' headers were found.  The libraries are opened at run time, when first needed."""
    return " ".join(f"-DGPUL_HAVE_{part.upper()}={int(bool(w.have[part].where))}" for part in ("libibverbs", "libfabric"))


def pmix_flags(w):
    """Macro and include folders for comm.  libpmix is opened at run time, under mpirun or srun."""
    if not w.have["libpmix"].where:
        return "-DGPUL_HAVE_LIBPMIX=0"
    folders = [f[2:] for f in parts.pkg_config("pmix").split() if f.startswith("-I")]
    return "-DGPUL_HAVE_LIBPMIX=1" + "".join(f" -isystem {shlex.quote(f)}" for f in folders)


def module_flags(w, module):
    """Flags for the files of one folder only, so that a change of these flags rebuilds little."""
    nvcc = os.path.abspath(w.have["nvcc"].where) if w.have["nvcc"].where and not w.packaged else ""
    libdir, version = string_macro("GPUL_LIBDIR", w.libdir), string_macro("GPUL_VERSION", VERSION)
    built = "" if w.packaged else os.path.abspath(w.dir) + "/softcuda/libcuda-soft.so"
    return {
        "loader/image": image_flags(w),
        "memalloc": libdir,
        "driver": f"{libdir} {string_macro('GPUL_BUILT_DRIVER', built)}",
        "core": f"{libdir} {version} {image_flags(w)}",
        "rdma": fabric_flags(w),
        "comm": f"{version} {pmix_flags(w)}",
        "softcuda": "-fvisibility=hidden",
        "nvidia": f"-fvisibility=hidden {libdir}",
        "cli": f"{version} {string_macro('GPUL_DATE', DATE)} -DGPUL_HAVE_NCURSES={int(bool(w.have['ncurses'].where))}",
        "loader": f"{version} {libdir} {string_macro('GPUL_NVCC', nvcc)}",
    }.get(module, "")


def part_libraries(w):
    """Linker flags for every optional library that was found."""
    return " ".join(f"-l{library}" for part, library in IMAGE_PARTS.items() if w.have[part].where)
