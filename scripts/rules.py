"""rules.py — the rules of the build: writes build.ninja.

    folder/*.c ─ obj/folder/*.o ─ lib<folder>.a ┬─ gpuload              the command
                                                ├─ gpuload-probe        its helper process
                                                ├─ libgpuload.a, .so    the library (not softcuda, not cli)
                                                ├─ libgpuload-rt.a      the mini runtime, with the modules that it uses
                                                ├─ libgpuload-lab.a     the experiments of lab/
                                                ├─ libnccl-net-gpuload.so  a network plug-in of NCCL
                                                ├─ softcuda/libcuda-soft.so, and libcuda.so.1 as a link to it
                                                ├─ softcuda/libcudart.so.N, the mini runtime as a shared library
                                                ├─ softcuda/libcuda-calls.so.1, which records the calls of a program
                                                └─ tests/…/test_*       see rules_tests.py
"""
import glob, os, re, sys

from scripts.flags import WARNINGS, cuda_flags, cuda_home, flags, module_flags, part_libraries
from scripts.modules import INCLUDE_FLAGS, LIBRARY, MODULES, PROGRAMS, TESTS_MAY_USE, VERSION, closure, files, library_sources, owner
from scripts import parts, rules_kernels, rules_packages, rules_tests
from scripts.install import device_headers, library_headers, public_headers
from scripts.writer import Writer, has_main, words

# Flags of the interpreter's handlers.  Results must follow IEEE 754: no contraction of a*b+c, no reassociation (never -ffast-math).
# The handlers read neither errno nor the floating-point exception flags, and gcc can vectorise more loops if it need not set them.
HANDLERS = "-O3 -ffp-contract=off -fno-strict-aliasing -fno-math-errno -fno-trapping-math -Wno-conversion"

# Other sources that are compiled with these flags once for each instruction set; -Wno-psabi: only inlined functions have vector parameters.
EACH_SET = {"softcuda/tools/trace/decimals.c": " -Wno-psabi"}

# Sources that are compiled twice, because programs built with --default-stream per-thread use other function names.
PER_THREAD = [f"nvidia/cudart/{name}.c" for name in ("rt_entry", "rt_launch", "graph/rt_execute", "memory/rt_batch", "memory/rt_copy", "memory/rt_managed",
                                                     "memory/rt_volume", "stream/rt_begin", "stream/rt_capture", "stream/rt_order")]

# Sources of the runtime whose functions differ between CUDA 12 and 13: compiled for libcudart.so.12, and with CUDA 13's headers for .13.
# libgpuload-rt.a has the interface of the CUDA version whose headers the build uses.
BY_INTERFACE = [f"nvidia/cudart/{name}.c" for name in ("rt_entry", "device/rt_properties", "graph/rt_any", "graph/rt_edges", "memory/rt_batch",
                                                       "memory/rt_managed", "stream/rt_capture")]
ONLY_12 = "nvidia/cudart/device/rt_old.c"

# Sources with loops over rows or lanes, which gcc vectorises at -O3.  They are never compiled with
# -ffast-math, so floating-point operations keep their order.
VECTORS = {"cli/sum/cli_sum.c", "cli/fifo/bench/fifo_bench_check.c", "lab/sparse/sum.c", "softcuda/tools/profile/count.c",
           "softcuda/tools/profile/transactions.c", "softcuda/tools/racecheck/race_access.c", "softcuda/tools/racecheck/instruction.c",
           *(f"softcuda/tools/trace/{name}.c" for name in ("lanes", "trace_predict", "trace_record"))}

# Tests that work with every driver: tests/gpu/run runs them on a GPU.
GPU_TESTS = ("memalloc/test_mem", "memalloc/test_numa", "memalloc/test_regcache_threads", "ipc/test_control",
             "proxy/test_device", "proxy/test_two_processes", "proxy/test_proxy_kernel", "proxy/soak/soak", "fault/fault",
             "rdma/gpu/test_gpu_memory", "rdma/gpu/test_gpu_copies", "rdma/put/whole_way",
             "comm/soak/comm_random", "comm/fault/fault", "lab/netqueue/test_unpack", "lab/netqueue/campaign")


def copy_libraries(w):
    """Copy the libraries that the command uses to build/lib, for a machine that gets build/ and lacks them."""
    lib, cli, done = f"{w.dir}/lib", f"{w.dir}/gpuload", f"{w.dir}/lib/copied"
    return w.build(done, "sh", needs=cli, command=(
        f"mkdir -p {words(lib)} && ldd {words(cli)} | awk '$1 ~ /^lib(elf|zstd|lz4|z|numa)[.]so/ {{ print $3 }}' "
        f"| xargs -r cp -Lt {words(lib)} && touch {words(done)}"))


def write_variables(w):
    c, ld = flags(w.args)
    w.p("# Written by configure.py; edit scripts/rules.py instead.")
    w.p("ninja_required_version = 1.10")
    w.variable("builddir", w.dir)
    # Without optimisation gcc warns about cases that it otherwise proves impossible.
    warnings = f"{WARNINGS} -Wno-error" if w.args.coverage else WARNINGS
    w.variable("cflags", f"-std=c11 -D_GNU_SOURCE {c} -fPIC {warnings} {words(INCLUDE_FLAGS)} {cuda_flags(w)}")
    w.variable("ldflags", ld)
    w.variable("libs", f"-ldl -lpthread -lm -Wl,--as-needed {part_libraries(w)}{' -lncursesw' if w.have['ncurses'].where else ''}")


def write_rules(w):
    again = [a for a in sys.argv[1:] if a not in ("--quiet", "--install-deps")] + ["--quiet"]
    cc, cuda, configure = (text.replace("$", "$$") for text in
                           (words(w.args.cc), cuda_flags(w), words(w.python, "configure.py", again)))
    # The counters of an old object do not fit a new one: libgcov would print a message into the output of each test.
    fresh = "o=$out && rm -f \"$${o%.o}.gcda\" && " if w.args.coverage else ""
    for name, command, extra in [
            ("cc", f"{fresh}{cc} $cflags $flags -MMD -MF $out.d -c $in -o $out", "deps = gcc\n  depfile = $out.d"),
            ("ar", "rm -f $out && ar crs $out $in", ""),
            ("link", f"{cc} $cflags -o $out $in $flags $ldflags $libs", ""),
            ("shared", f"{cc} -shared $cflags -o $out $in $flags $ldflags $libs", ""),
            ("symlink", "ln -sfn $target $out", ""),
            ("header", f"echo 'typedef int first;' | {cc} $cflags $flags -fsyntax-only -include $in -x c - && touch $out", ""),
            ("cxxheader", f"echo 'typedef int first;' | c++ -std=c++11 -Wall -Wextra -Werror -Iinclude {cuda} -fsyntax-only "
                          "-include $in -x c++ - && touch $out", ""),
            ("kernel", f"{words(w.python)} scripts/kernel.py $in $out $how", "deps = gcc\n  depfile = $out.d"),
            ("sh", "$command", ""),
            ("console", "$command", "pool = console"),
            ("configure", configure, "generator = 1")]:
        w.p(f"rule {name}\n  command = {command}\n  description = {name} $out")
        if extra:
            w.p(f"  {extra}")
    # Configure again when a file is added or removed, which changes the modification time of its folder.
    # The paths of bench and demo are absolute, because ninja targets have these names, too.
    roots = [*TESTS_MAY_USE, "scripts", "examples", *map(os.path.abspath, ("bench", "demo"))]
    folders = sorted({d for m in roots for d, _, _ in os.walk(m) if "__pycache__" not in d})
    scripts = glob.glob("scripts/*.py")
    w.build(w.file.name, "configure", needs=["configure.py", rules_kernels.KERNELS_DEF, *scripts, *folders])
    w.build([*folders, *scripts, rules_kernels.KERNELS_DEF], "phony")   # so that a removed file is not an error


def per_thread_calls(w, compiler_flags):
    """Generate the software driver's calls for programs with per-thread default streams (scripts/per_thread.py); return their object."""
    script, calls, out = "scripts/per_thread.py", "softcuda/api/cu_calls_internal.h", f"{w.dir}/softcuda/per_thread.c"
    sources = [c for c in files("softcuda", ".c") if c.startswith("softcuda/api/")]
    w.build(out, "sh", needs=[script, calls, *sources], command=words(w.python, script, out, calls, sources))
    return w.build(f"{w.dir}/obj/softcuda/per_thread.o", "cc", out, flags=compiler_flags)


def calls_table(w):
    """The tables and wrappers of all CUDA calls, which scripts/calls_table.py generates from the headers; returns the object of the tables."""
    out, scripts = f"{w.dir}/calls", ["scripts/calls_table.py", "scripts/cuda_headers.py", "scripts/driver_calls.py"]
    table, wrappers = f"{out}/table.c", f"{out}/wrappers.c"
    w.build([table, wrappers], "sh", needs=[*scripts, w.have["cuda.h"].where],
            command=words(w.python, scripts[0], os.path.dirname(w.have["cuda.h"].where), out, w.args.cc))
    # -w: the headers declare old interfaces as deprecated
    w.wrappers = w.build(f"{w.dir}/obj/calls/wrappers.o", "cc", wrappers, flags="-fvisibility=hidden -w")
    return w.build(f"{w.dir}/obj/calls/table.o", "cc", table, flags="-w")


def runtime_interfaces(w):
    """The versions of libcudart that can be built with these headers."""
    with open(f"{cuda_home(w)}/include/cuda.h", encoding="utf-8", errors="replace") as f:
        version = re.search(r"define CUDA_VERSION (\d+)", f.read())
    return [12, 13] if version and int(version[1]) >= 13000 else [12]


def runtime_interface(w, abi):
    """Return the objects of the mini CUDA runtime that are compiled only for this version of libcudart, 12 or 13."""
    once = [w.obj(c, f"-DGPUL_RT_ABI={abi}", f".{abi}") for c in BY_INTERFACE]
    twice = [w.obj(c, f"-DGPUL_RT_ABI={abi} -DGPUL_RT_PER_THREAD", f".{abi}.per_thread") for c in BY_INTERFACE if c in PER_THREAD]
    return [*once, *twice, *([w.obj(ONLY_12)] if abi == 12 else [])]


def write_modules(w):
    builds = parts.builds(w.args)
    handlers = HANDLERS.replace("-O3 ", "") if w.args.sanitize or w.args.coverage else HANDLERS
    for m in MODULES:
        objects = []
        for c in library_sources(m):
            if c.startswith("softcuda/exec/run/") or c in EACH_SET:  # one object per instruction set; the driver selects one
                objects += [w.obj(c, f"{module_flags(w, m)} {handlers}{EACH_SET.get(c, '')} {march} -DGPUL_BUILD_SUFFIX={name}", f".{name}")
                            for name, march in builds]
            elif c not in BY_INTERFACE and c != ONLY_12:
                vectors = " -O3" if c in VECTORS and not (w.args.sanitize or w.args.coverage) else ""
                flags_of = f"{module_flags(w, m)}{vectors} {rules_kernels.flags(w, c)}".rstrip()
                objects.append(w.obj(c, flags_of, needs=rules_kernels.needs(w, c)))
            if c in PER_THREAD and c not in BY_INTERFACE:
                objects.append(w.obj(c, "-DGPUL_RT_PER_THREAD", ".per_thread"))
        if m == "nvidia/cudart":
            w.runtimes = {abi: [*objects, *runtime_interface(w, abi)] for abi in runtime_interfaces(w)}
            objects = w.runtimes[max(w.runtimes)]
        if m == "calls":
            objects.append(calls_table(w))
        if m == "softcuda" and objects:
            objects.append(per_thread_calls(w, module_flags(w, m)))
        w.objects[m] = objects
        if objects:
            w.libs[m] = w.archive(m, objects)


def version_script(w, name, exported, version=""):
    path = f"{w.dir}/{name}.map"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"{version} {{ global: {exported} local: *; }};\n".lstrip())
    return path


def write_cudart(w, strict):
    """Link the mini CUDA runtime as shared libraries with the names and symbol versions of NVIDIA's libcudart."""
    soft, products = f"{w.dir}/softcuda", []
    for abi, objects in w.runtimes.items():
        name = f"libcudart.so.{abi}"
        script = version_script(w, name, "cuda*; __cuda*;", name)
        products.append(w.build(f"{soft}/{name}", "shared", [*objects, *w.link(closure("nvidia/cudart")[1:])], script,
                                flags=f"{strict}-Wl,-soname,{name} -Wl,-Bsymbolic {words(f'-Wl,--version-script={script}')}"))
    products.append(w.build(f"{soft}/libcudart.so", "symlink", needs=products[-1], target=f"libcudart.so.{max(w.runtimes)}"))
    return products


def write_products(w):
    """Link the library, the command and the software driver."""
    strict = "" if w.args.sanitize else "-Wl,--no-undefined "
    objects = [o for m in LIBRARY for o in w.objects[m]]
    major = VERSION.split(".")[0]
    exports = ["scripts/exports.py", *library_headers()]
    export = made_by(w, f"{w.dir}/libgpuload.map", [w.python, *exports], exports)
    whole = f"{w.dir}/libgpuload.so.{VERSION}"
    products = [
        w.build(f"{w.dir}/libgpuload.a", "ar", objects),
        w.build(f"{w.dir}/libgpuload-rt.a", "ar", [o for m in closure("nvidia/cudart") for o in w.objects[m]]),
        w.build(f"{w.dir}/libgpuload-lab.a", "ar", w.objects["lab"]),
        w.build(whole, "shared", objects, export, flags=f"{strict}-Wl,-soname,libgpuload.so.{major} "
                                                         f"{words(f'-Wl,--version-script={export}')}"),
        *(w.build(f"{w.dir}/{name}", "symlink", needs=whole, target=f"libgpuload.so.{VERSION}")
          for name in (f"libgpuload.so.{major}", "libgpuload.so"))]
    products += [w.build(f"{w.dir}/{name}", "link", [w.obj(main, module_flags(w, owner(main))), *w.link(closure(owner(main)))])
                 for name, main in PROGRAMS.items()]
    products.append(write_nccl_net(w, strict))
    if w.objects["softcuda"]:
        soft = f"{w.dir}/softcuda"
        export = version_script(w, "libcuda-soft", "cu*; gpuload*;")
        so = w.build(f"{soft}/libcuda-soft.so", "shared", [*w.objects["softcuda"], *w.link(closure("softcuda")[1:])], export,
                     flags=f"{strict}-Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic {words(f'-Wl,--version-script={export}')}")
        products.append(so)
        products += [w.build(f"{soft}/{name}", "symlink", needs=so, target="libcuda-soft.so")
                     for name in ("libcuda.so.1", "libcuda.so")]
        products += write_toolchain(w, strict)
        products += write_cudart(w, strict)
    return products


def write_nccl_net(w, strict):
    """The network plug-in of NCCL, which NCCL_NET_PLUGIN=gpuload selects.  -z nodelete keeps it loaded, because
    NCCL may close it while one of its threads runs."""
    name = "libnccl-net-gpuload.so"
    export = version_script(w, "libnccl-net-gpuload", "ncclNetPlugin_v*;")
    return w.build(f"{w.dir}/{name}", "shared", [*w.objects["nccl"], *w.link(closure("nccl")[1:])], export,
                   flags=f"{strict}-Wl,-soname,{name} -Wl,-Bsymbolic -Wl,-z,nodelete {words(f'-Wl,--version-script={export}')}")


# gpuload's libraries with the names of NVIDIA's: name, folder, CUDA versions, and the functions that each version exports.
TOOLCHAIN = [("libnvrtc", "nvrtc", (12, 13), "nvrtc*;"), ("libnvJitLink", "nvjitlink", (12, 13), "nvJitLink*; __nvJitLink*_{major}_*;"),
             ("libnvfatbin", "nvfatbin", (12, 13), "nvFatbin*;"), ("libnvidia-ml", "nvml", (1,), "nvml*;"),
             ("libcudart-redirect", "redirect", (1,), "la_*;")]

# The log of CUDA calls: name, sources, exported names.  The first is for LD_PRELOAD, the second for LD_AUDIT.
CALLS = [("libcuda-calls", ("log", "capture", "replace"), "gpuload_calls_*;"), ("libcuda-calls-audit", ("audit", "bind"), "la_*;")]


def write_calls(w, strict, objects):
    libraries = []
    for name, sources, exported in CALLS:
        own = [objects[f"nvidia/calls/{c}.c"] for c in sources]
        own += [w.wrappers, *w.link(["calls"])] if "log" in sources else [objects["nvidia/loaded.c"]]
        so, export = f"{name}.so.1", version_script(w, f"{name}.so.1", exported)
        libraries.append(w.build(f"{w.dir}/softcuda/{so}", "shared", own, export,
                                 flags=f"{strict}-Wl,-soname,{so} -Wl,-Bsymbolic {words(f'-Wl,--version-script={export}')}"))
    return libraries


def write_toolchain(w, strict):
    """Link one library for each CUDA version.  As in NVIDIA's libraries, the symbol version is the library's name."""
    module, libraries = "nvidia", []
    objects = {c: o for c, o in zip(library_sources(module), w.objects[module])}
    libraries += write_calls(w, strict, objects)
    for name, folder, majors, exported in TOOLCHAIN:
        own = [o for c, o in objects.items() if os.path.dirname(c) in (module, f"{module}/{folder}")]
        own += [objects["nvidia/calls/bind.c"]] if folder == "redirect" else []
        for major in majors:
            so = f"{name}.so.{major}"
            export = version_script(w, so, f"{exported.format(major=major)} gpuload_toolchain_mark;", "" if "-" in so else so)
            libraries.append(w.build(f"{w.dir}/softcuda/{so}", "shared", [*own, *w.link(closure(module)[1:])], export,
                                     flags=f"{strict}-Wl,-soname,{so} -Wl,-Bsymbolic {words(f'-Wl,--version-script={export}')}"))
    return libraries


def made_by(w, out, command, needs):
    """Write the standard output of a command into a file; a command that fails leaves no file."""
    return w.build(out, "sh", needs=needs,
                   command=f"{words(command)} > {words(out + '.new')} && mv {words(out + '.new', out)}")


def write_documents(w):
    """Generate man pages (section 3 from the headers, section 1 from the command's option tables) and shell completions."""
    headers, pages, cli = public_headers(), f"{w.dir}/man/man3", f"{w.dir}/gpuload"
    documents = [w.build(f"{pages}.ok", "sh", needs=["scripts/man.py", "configure.py", *headers], command=(
        f"rm -rf {words(pages)} && {words(w.python, 'scripts/man.py', pages, headers)} && touch {words(pages + '.ok')}"))]
    if os.path.exists("cli/main.c"):
        man = f"{w.dir}/man/man1"  # gpuload.1, and a page for each command
        documents += [w.build(f"{man}.ok", "sh", needs=cli, command=(
            f"rm -rf {words(man)} && mkdir -p {words(man)} && {words(cli)} help --man > {words(man)}/gpuload.1 && "
            f"for c in $({words(cli)} help --names); do {words(cli)} help --man $c > {words(man)}/gpuload-$c.1 || exit 1; done && "
            f"touch {words(man + '.ok')}"))]
        documents += [made_by(w, f"{w.dir}/completion.{shell}", [cli, "completion", shell], cli) for shell in ("bash", "zsh", "fish")]
    return documents


def write_install(w, products):
    """Install into the prefix, and into <build>/stage, which the examples are built against."""
    if not (os.path.exists("cli/main.c") and w.objects["softcuda"]):
        return None
    stage = f"{w.dir}/stage"
    install = [w.python, "scripts/install.py", "--build", w.dir, "--cuda", cuda_home(w),
               f"--libraries={part_libraries(w)}"]
    w.build("install", "console", needs=products, command=words(install, "--prefix", w.args.prefix))
    return w.build(f"{stage}.ok", "sh", needs=[*products, "scripts/install.py", *public_headers(), *device_headers()],
                   command=(f"rm -rf {words(stage)} && {words(install, '--link-cuda', '--prefix', '', '--destdir', stage)} "
                            f"&& touch {words(stage + '.ok')}"))


def write_headers(w):
    """Check that each header compiles alone, and each installed header also in C++."""
    return [w.build(f"{w.dir}/headers/{h}.ok", "header", h, flags=module_flags(w, m))
            for m in MODULES for h in files(m, ".h")] + \
           [w.build(f"{w.dir}/headers/{h}.cxx.ok", "cxxheader", h) for h in public_headers()]


def write_extras(w, products):
    demo = "demo/run" if os.path.exists("demo/run") else "echo 'demo: skipped, there is no demo/run'"
    w.build("demo", "console", needs=products, command=f"GPULOAD_BUILD={words(w.dir)} {demo}")
    script = [] if w.dir == "build" else ["-f", f"{w.dir}/build.ninja"]
    made_by(w, f"{w.dir}/compile_commands.json", ["ninja", *script, "-t", "compdb", "cc"], "configure.py")
    archives = w.link(list(reversed(MODULES)))
    sources = sorted(glob.glob("bench/**/*.c", recursive=True))
    helpers = [w.obj(c) for c in sources if not has_main(c)]
    programs = [w.build(f"{w.dir}/{c[:-2]}", "link", [w.obj(c, rules_kernels.macro(w)), *helpers], [*archives, w.kernels], flags=words(archives))
                for c in sources if has_main(c)]
    if programs:
        w.build("bench", "console", needs=[*programs, *products], command=" && ".join(map(words, [*programs, "bench/bench_run.py"])))
        w.build("bench-programs", "phony", programs)
    if w.args.coverage:
        w.build("coverage", "console", command=words(w.python, "scripts/coverage.py", "--build", w.dir, "--cc", w.args.cc))


def write(out, args, have):
    w = Writer(out, args, have)
    write_variables(w)
    write_rules(w)
    write_modules(w)
    rules_kernels.write(w)
    products = write_products(w)
    products += write_documents(w)
    stage = write_install(w, products)
    rules_packages.write(w, stage, write_products)
    headers = write_headers(w)
    rules_tests.write_tests(w, products)
    rules_tests.write_runtime_programs(w)
    rules_tests.write_examples(w, stage)
    rules_tests.write_fuzzers(w)
    rules_tests.write_check(w, products, headers)
    write_extras(w, products)
    tests = [f"{w.dir}/tests/{t}" for t in ("corpus/test_corpus", *GPU_TESTS)]
    w.build("gpu-tests", "phony", [w.kernels, *w.programs, *tests, copy_libraries(w)])
    w.build("all", "phony", products)
    w.p("default all")
