"""rules_tests.py — the rules for tests, examples and fuzzers.

A test links only the folders that its folder may use, so that an error in another folder does not affect it.
"""
import glob, os, re

from scripts.flags import WARNINGS, cuda_flags, cuda_home, fabric_flags, flags, image_flags, module_flags, part_libraries
from scripts import rules_kernels
from scripts.modules import INCLUDE_FLAGS, LIBRARY, MODULES, closure, files, library_sources, owner
from scripts.writer import has_main, words


# Further folders that the tests of a folder link.
TESTS_ALSO_LINK = {"proxy": ["ipc"]}  # the proxy's tests share the FIFO between processes
# Helpers of other folders that the tests of a folder use.
TESTS_ALSO_HELP = {"tests/proxy": ["tests/ipc"], "tests/fault": ["tests/fault/hostile", "tests/fault/fifo", "tests/proxy"], "tests/comm/fault": ["tests/fault"], "tests/rdma/put": ["tests/rdma"],
                   "tests/comm/soak": ["tests/comm"], "tests/lab/sparse": ["tests/comm"],
                   "tests/comm/net": ["tests/comm/bootstrap", "tests/comm", "tests/rdma"],
                   "tests/comm/bootstrap/hosts": ["tests/comm/bootstrap"],
                   "tests/softcuda/api/code": ["tests/softcuda/api", "tests/loader/image"],
                   **{f"tests/softcuda/api/{chapter}": ["tests/softcuda/api"] for chapter in ("graph", "memory", "stream", "texture", "vmm")},
                   "tests/softcuda/tools/profile": ["tests/softcuda/exec/random"]}
# Linked into every cmocka test: it selects the test's cases by a command-line argument.
CMOCKA_CASE = "tests/support/cmocka_case.c"
# Linker flags of single programs.  With -ffast-math, gcc links start-up code that makes the CPU treat subnormal numbers as 0.
TESTS_LINK_FLAGS = {"tests/softcuda/api/test_fast_math.c": "-ffast-math"}


def test_link(w, folder):
    """What the tests of a folder link: (flags or archives as shell text, further dependencies)."""
    soft = f"{w.dir}/softcuda"
    if folder.startswith("tests/softcuda/api"):  # linked with the shared library, whose exported symbols it tests
        up = "/".join([".."] * folder.count("/"))
        return words(f"-L{soft}", "-lcuda", f"-Wl,-rpath,$ORIGIN/{up}/../softcuda"), [f"{soft}/libcuda.so"]
    if folder == "tests/gpu/plain":  # linked with -lcuda only: LD_LIBRARY_PATH selects the driver
        return words(f"-L{soft}", "-lcuda"), [f"{soft}/libcuda.so"]
    module = owner(folder.removeprefix("tests/"))
    modules = closure(module) if module in MODULES else list(reversed(LIBRARY))
    modules = [m for m in reversed(MODULES) if m in modules or m in TESTS_ALSO_LINK.get(module, [])]
    archives = w.link(modules)
    return words(archives), archives


def write_inputs(w):
    """Input files of every kind that gpuload reads, compiled by nvcc; inputs.json, written last, lists their contents."""
    nvcc = w.have["nvcc"].where
    if not nvcc:
        return []
    out, make = f"{w.dir}/tests/inputs", "tests/inputs/make.py"
    sources = [make, *(s for ext in (".cu", ".c", ".S") for s in files("tests/inputs", ext))]
    inputs = w.build(f"{out}/inputs.json", "sh", needs=sources, command=words(w.python, make, "--nvcc", nvcc, out))
    mixed = f"{w.dir}/tests/gpu/mixed"
    w.programs += [inputs, w.build(f"{mixed}/mixed.json", "sh", needs="tests/gpu/mixed.py",
                                   command=words(w.python, "tests/gpu/mixed.py", "make", mixed, "--nvcc", nvcc))]
    return [inputs]


def write_tests(w, products):
    """Programs below tests/: each .c file with a main is a program, each so_*.c a shared object that tests open, and
    the other files of a folder are helpers that its programs link."""
    by_folder = {}
    own_rules = ("tests/clients/programs/nccl_", "tests/clients/programs/offload_", "tests/clients/programs/ucx_", "tests/fuzz/", "tests/inputs/", "tests/install/", "tests/loader/pitfalls/", "tests/support/")  # or started by scripts
    no_headers = () if w.have["libibverbs"].where else ("tests/rdma/verbs/",)
    for c in files("tests", ".c"):
        if not c.startswith(own_rules + no_headers):
            by_folder.setdefault(os.path.dirname(c), []).append(c)
    if w.have["cmocka"].where:
        w.obj(CMOCKA_CASE)
    inputs = write_inputs(w)
    helpers, opened, programs = {}, {}, []
    for folder, sources in by_folder.items():
        plain = [c for c in sources if not has_main(c)]
        programs += [c for c in sources if has_main(c)]
        soname = "-Wl,-soname,libcuda.so.1" if folder == "tests/driver" else ""  # each so_*.c there replaces libcuda
        opened[folder] = [w.build(f"{w.dir}/{c[:-2]}.so", "shared", w.obj(c), flags=soname)
                          for c in plain if os.path.basename(c).startswith("so_")]
        objects = [test_object(w, c, folder) for c in plain if not os.path.basename(c).startswith("so_")]
        if objects:
            helpers[folder] = w.archive(folder, objects)
    w.programs += [so for shared in opened.values() for so in shared]   # also for scripts in folders without a C program
    for c in programs:
        write_test(w, c, helpers, opened, inputs, products)


def test_object(w, c, folder):
    own = image_flags(w) if folder.startswith("tests/loader/image") else fabric_flags(w) if folder.startswith(("tests/rdma", "tests/fake")) else ""
    return w.obj(c, f"{own} {rules_kernels.macro(w)} {rules_kernels.flags(w, c)}".strip(), needs=rules_kernels.needs(w, c))


def write_test(w, c, helpers, opened, inputs, products):
    with open(c, encoding="utf-8") as f:
        text = f.read()
    cmocka = "cmocka.h" in text
    if cmocka and not w.have["cmocka"].where:
        return
    folder = os.path.dirname(c)
    also = TESTS_ALSO_HELP.get(folder, [])
    extra = [helpers[h] for h in (folder, f"{folder}/image", *also, "tests/fake") if h in helpers]
    link, needs = test_link(w, folder)
    objects = [test_object(w, c, folder), *([f"{w.dir}/obj/{CMOCKA_CASE[:-2]}.o"] if cmocka else [])]
    exe = w.build(f"{w.dir}/{c[:-2]}", "link", objects, [*extra, *needs],
                  flags=f"{words(extra)} {link} {'-lcmocka' if cmocka else ''} {TESTS_LINK_FLAGS.get(c, '')}")
    if os.path.basename(c).startswith("test_"):
        # The test of a library folder needs only its own program; other tests run the gpuload command or open the software driver.
        alone = owner(folder.removeprefix("tests/")) in set([*LIBRARY, "softcuda"]) - {"memalloc", "ipc", "proxy", "rdma", "comm"}
        command = skipped(NOT_FOR_THREADS[c]) if w.args.sanitize == "thread" and c in NOT_FOR_THREADS else words(exe)
        w.tests.append((test_group(folder), c[6:-2], command, [exe, *opened[folder], *inputs, *([w.kernels] if "GPUL_KERNELS" in text else []), *([] if alone else products)]))
    else:
        w.programs.append(exe)


NVCC_LINE = re.compile(r"^// nvcc: (.*)$", re.M)


def write_runtime_programs(w):
    """Programs with <<<>>>: each .cu file of tests/nvidia/cudart is a program, and so is each folder there (with device linking).
    A line `// nvcc: OPTIONS` gives compiler options.  Each is linked three times: NAME with the mini runtime libgpuload-rt.a, NAME.shared
    with gpuload's libcudart.so.N, and NAME.cudart with NVIDIA's runtime, with which tests/gpu/run checks the expected output."""
    here, nvcc = "tests/nvidia/cudart", w.have["nvcc"].where
    if not nvcc:
        return w.tests.append(("nvidia-cudart", "nvidia/cudart programs", "sh -c 'echo no nvcc; exit 77'", []))
    runtime, library = f"{w.dir}/libgpuload-rt.a", f"{w.dir}/softcuda/libcuda-soft.so"
    cudart_of_ours = f"{w.dir}/softcuda/libcudart.so.{max(w.runtimes)}"
    ld = flags(w.args)[1]
    cudart = next(iter(glob.glob(f"{glob.escape(cuda_home(w))}/lib*/libcudart_static.a")), None)
    for program in sorted(glob.glob(f"{here}/*.cu") + glob.glob(f"{here}/*/")):
        sources = [program] if program.endswith(".cu") else sorted(glob.glob(f"{program}*.cu"))
        if not sources:
            continue
        name = program.rstrip("/").removesuffix(".cu")
        exe, objects = f"{w.dir}/{name}", []
        for cu in sources:
            with open(cu, encoding="utf-8") as f:
                said = NVCC_LINE.search(f.read())
            options = said[1] if said else "-gencode arch=compute_75,code=compute_75"
            o = f"{w.dir}/obj/{cu[:-3]}.o"
            objects.append(w.build(o, "sh", needs=[cu, f"{here}/check.h"], command=(
                f"{words(nvcc, INCLUDE_FLAGS)} -cudart none {options} {'-dc' if len(sources) > 1 else '-c'} {words(cu, '-o', o)}")))
        if len(sources) > 1:
            linked = f"{w.dir}/obj/{name}.dlink.o"
            options = NVCC_LINE.search(open(sources[0], encoding="utf-8").read())[1]
            objects.append(w.build(linked, "sh", needs=objects, command=(
                f"{words(nvcc)} {options} -dlink {words(objects, '-o', linked)}")))
        w.build(exe, "sh", needs=[*objects, runtime],
                command=f"c++ {words(objects, '-o', exe)} {ld} {words(runtime)} -ldl -lpthread")
        w.programs.append(exe)
        if cudart:
            w.programs.append(w.build(f"{exe}.cudart", "sh", needs=objects, command=(
                f"c++ {words(objects, '-o', exe + '.cudart')} {ld} {words(cudart)} -ldl -lrt -lpthread")))
        w.tests.append(("nvidia-cudart", name[6:], words(exe), [exe, library]))
        shared = w.build(f"{exe}.shared", "sh", needs=[*objects, cudart_of_ours], command=(
            f"c++ {words(objects, '-o', exe + '.shared')} {ld} {words(cudart_of_ours, '-Wl,-rpath,' + os.path.abspath(os.path.dirname(cudart_of_ours)))} -lpthread"))
        w.tests.append(("nvidia-cudart", f"{name[6:]}.shared", words(shared), [shared, library]))


def test_group(folder):
    inside = folder.removeprefix("tests/")
    module = owner(inside)
    return (module if module in MODULES else inside.split("/")[0]).replace("/", "-")


def for_make(text):
    """A value on make's command line: '$' is escaped for make, then the whole value for the shell."""
    return words(text.replace("$", "$$"))


def write_examples(w, stage):
    """Each folder of examples/ is built by its Makefile, with nothing but the installed files."""
    if not stage:
        return
    if re.search(r"[\s$:#%]", w.dir):
        return w.tests.append(("examples", "examples", "sh -c 'echo make cannot handle the name of this build folder; exit 77'", []))
    cuda, (c, ld) = os.path.abspath(cuda_home(w)), flags(w.args)
    nvcc = os.path.abspath(w.have["nvcc"].where) if w.have["nvcc"].where else ""
    warnings = WARNINGS.replace("-Wpedantic ", "")  # -Wpedantic forbids to convert function pointers to void *, as POSIX and CUDA do
    prefix = words(f"--define-variable=prefix={os.path.abspath(w.dir)}/stage")
    lessons = []
    for makefile in sorted(glob.glob("examples/*/Makefile")):
        name = os.path.dirname(makefile)
        out, sources = f"{w.dir}/{name}", [f for f in glob.glob(f"{name}/*") if os.path.isfile(f)]
        # -B, because the Makefiles do not name the library's headers, which define the layout of its tables.
        # make runs in the example's folder; relative paths work whatever the name of the checkout's folder is.
        variables = {"O": os.path.relpath(out, name), "PKG_CONFIG": f"pkg-config {prefix}", "CC": words(w.args.cc),
                     "NVCC": nvcc and words(nvcc), "CUDA": words(cuda), "COMPILE_PTX": words(os.path.relpath(f"{w.dir}/stage/bin/gpuload", name), "compile"),
                     "CFLAGS": f"-D_GNU_SOURCE {c} {warnings} {words('-isystem', cuda + '/include')}",
                     "LDFLAGS": f"{ld} {words('-Wl,-rpath,$ORIGIN/../../stage/lib')}"}
        built = w.build(f"{out}.ok", "sh", needs=[stage, *sorted(sources)], command=(
            f"mkdir -p {words(out)} && PKG_CONFIG_PATH={words(os.path.relpath(f'{w.dir}/stage/lib/pkgconfig', name))} "
            f"make -s -B -C {name} {' '.join(f'{v}={for_make(text)}' for v, text in variables.items())} && touch {words(out + '.ok')}"))
        lessons.append(built)
        w.programs.append(built)
        w.tests.append(("examples", name, f"{name}/test", [built]))
    w.build("lessons", "phony", lessons)


FUZZED = {"ptx": "ptx", "ptx_link": "ptx", "cxx_params": "loader", "mangled": "loader", "ipc_wire": "ipc", "ipc_server": "ipc", "fifo": "proxy", "rdma_oob": "rdma", "boot_tcp": "core", "json": "core", "nccl_handle": "core"}  # the module that a fuzzer tests, if that is not loader/image
FUZZ_HELP = {"ipc_server": ["tests/fake/fake_device.c", "tests/fake/fake_driver.c", "tests/fake/fake_memory.c"],  # further sources that the fuzzer links
             "boot_tcp": ["comm/bootstrap/boot_wire.c", "comm/bootstrap/hosts/stream.c", "comm/bootstrap/hosts/messages.c"],
             "nccl_handle": ["nccl/net/handle.c", "rdma/oob/address.c"], "json": ["cli/lib/json/json_read.c"]}
FUZZ_FLAGS = "-O2 -g -fsanitize={kind},address,undefined -fno-sanitize-recover=all"


def fuzz_object(w, c, module):
    """An object file for the fuzzers: compiled by clang with both sanitizers and libFuzzer's counters."""
    headers = [h for m in MODULES for h in files(m, ".h")]
    out = f"{w.dir}/fuzz/obj/{c[:-2]}.o"
    if out not in w.fuzz_objects:
        w.fuzz_objects.add(out)
        w.build(out, "sh", c, [*headers, *files("tests/fuzz", ".h")], command=(
            f"clang -std=c11 -D_GNU_SOURCE {FUZZ_FLAGS.format(kind='fuzzer-no-link')} {module_flags(w, module)} "
            f"{words(INCLUDE_FLAGS)} {cuda_flags(w)} -c {words(c, '-o', out)}"))
    return out


def write_seeds(w):
    """Generate seed inputs, in a folder for each fuzzer that does not use a committed corpus."""
    out = f"{w.dir}/fuzz/seeds"
    needs = ["tests/fuzz/make_seeds.py", rules_kernels.write_cases(w, "tests/fuzz", f"{out}/ptx"), *glob.glob("tests/loader/malformed/*.py")]
    return w.build(f"{out}.ok", "sh", needs=needs,
                   command=f"{words(w.python, 'tests/fuzz/make_seeds.py', out)} && touch {words(out + '.ok')}")


def write_fuzzers(w):
    if not w.have["libFuzzer"].where:
        return
    w.fuzz_objects, seeds = set(), write_seeds(w)
    for c in files("tests", ".c"):
        if not c.startswith("tests/fuzz/fuzz_"):
            continue
        name = os.path.basename(c)[5:-2]
        module = FUZZED.get(name, "loader/image")
        objects = [fuzz_object(w, s, m) for m in closure(module) for s in library_sources(m)]
        objects += [fuzz_object(w, s, module) for s in FUZZ_HELP.get(name, [])]
        exe, found = f"{w.dir}/fuzz/fuzz_{name}", f"{w.dir}/fuzz/{name}"
        # Some fuzzers start from a committed corpus, the others from the output of make_seeds.py.
        folders = f"tests/fuzz/corpus/{name}" if os.path.isdir(f"tests/fuzz/corpus/{name}") else f"{w.dir}/fuzz/seeds/{name}"
        dictionary = f"tests/fuzz/dict/{name}.dict"
        dictionary = [f"-dict={dictionary}"] if os.path.exists(dictionary) else []
        inputs = [fuzz_object(w, c, module), *objects]
        w.build(exe, "sh", inputs, command=f"clang {FUZZ_FLAGS.format(kind='fuzzer')} {words(inputs, '-o', exe)} -ldl -lpthread "
                                           f"-lm -Wl,--as-needed {part_libraries(w)}")
        w.build(f"fuzz-{name}", "console", needs=[exe, seeds],
                command=f"mkdir -p {words(found)} && {words(exe, dictionary, '-max_len=65536', found, folders)}")
        w.tests.append(("fuzz", f"fuzz/{name} over its corpus", words(exe, "-runs=0", folders), [exe, seeds]))


# Tests that load this build's libraries into programs that have no sanitizer; a library with a sanitizer cannot be loaded into them.
NOT_SANITIZED = ("tests/cli/soft.bats", "tests/cli/calls.bats", "tests/nvidia/calls/test_calls.py", "tests/nvidia/cudart/test_shared.py", "tests/readme/test_readme.py",
                 "tests/softcuda/api/test_written_bytes.py", "tests/nvidia/test_nvfatbin.py",
                 "tests/nvidia/test_nvml.py", "tests/nvidia/test_toolchain.py")


# Tests that ThreadSanitizer cannot run: it blocks all signals during a handler, and they stay blocked if the handler ends by siglongjmp().
JUMPS = "ThreadSanitizer does not allow a SIGSEGV handler to end with a jump"
NOT_FOR_THREADS = {"tests/memalloc/test_failing_system.c": "ThreadSanitizer calls the mmap() that the program replaces too early",
                   **dict.fromkeys((*(f"tests/softcuda/api/{name}.c" for name in ("test_gone", "memory/test_ranges", "memory/test_unreadable")),
                                    "tests/softcuda/tools/memcheck/test_memcheck_program.py"), JUMPS)}


def skipped(why):
    """The command of a test that is skipped."""
    return words("sh", "-c", f"echo 'skipped: {why}'; exit 77")


def script_test(w, how, path):
    """The command of a test that is a script."""
    if w.args.sanitize and path in NOT_SANITIZED:
        return skipped("a library with a sanitizer cannot be loaded into programs without one")
    if w.args.sanitize == "thread" and path in NOT_FOR_THREADS:
        return skipped(NOT_FOR_THREADS[path])
    return words(how, path)


def write_check(w, products, headers):
    """check runs all tests; check-<module> the tests of one folder, even if another folder does not compile."""
    everything = [*products, w.kernels, *w.programs, *headers]
    for t in sorted(glob.glob("tests/meta/*.py")):
        w.tests.append(("meta", t[6:-3], words(w.python, t), everything))
    for t in sorted(glob.glob("tests/**/test_*.sh", recursive=True) + glob.glob("tests/**/test_*.py", recursive=True)):
        how = "bash" if t.endswith(".sh") else w.python
        w.tests.append((test_group(os.path.dirname(t)), t[6:].rsplit(".", 1)[0], script_test(w, how, t), everything))
    for t in sorted(glob.glob("tests/**/*.bats", recursive=True)):
        w.tests.append((test_group(os.path.dirname(t)), t[6:-5], script_test(w, "bats", t), everything))
    with open(f"{w.dir}/tests.list", "w", encoding="utf-8") as f:
        f.writelines("\t".join(t[:3]) + "\n" for t in w.tests)
    with open(f"{w.dir}/tests.path", "w", encoding="utf-8") as f:  # where the tests find nvcc and ptxas, unless PATH has them
        f.write(os.path.abspath(os.path.dirname(w.have["nvcc"].where)) if w.have["nvcc"].where else "")
    run = [w.python, "tests/run.py", "--build", w.dir]
    needs = {}
    for group, _, _, need in w.tests:
        needs.setdefault(group, set()).update(need)
    for group, need in needs.items():
        w.build(f"check-{group}", "console", needs=sorted(need), command=words(run, "--only", group))
    w.build("check", "console", needs=sorted(set().union(*needs.values(), everything)), command=words(run))
    write_check_clients(w, everything)
    if not w.args.sanitize:
        write_check_sanitized(w)


def write_check_sanitized(w):
    """check-asan and check-tsan configure a separate build with sanitizers and run all its tests; check does not contain them."""
    for name, sanitizers in (("asan", "address,undefined"), ("tsan", "thread")):
        out = f"{w.dir}/{name}"
        configure = words(w.python, "configure.py", "--quiet", "--cc", w.args.cc, "--sanitize", sanitizers, "--out", out)
        w.build(f"check-{name}", "console", command=f"{configure} && {words('ninja', '-f', f'{out}/build.ninja', 'check')}")


def write_check_clients(w, everything):
    """check-clients: a short run of every script in tests/clients.  It is not a part of check, because it downloads packages from PyPI
    and takes long."""
    scripts = [s for s in sorted(glob.glob("tests/clients/*.py")) if os.access(s, os.X_OK)]
    with open(f"{w.dir}/clients.list", "w", encoding="utf-8") as f:
        for s in scripts:
            name = os.path.basename(s)[:-3]
            f.write("\t".join(("clients", f"clients/{name}", words(w.python, s, "--build", w.dir, "--work", f"{w.dir}/clients/{name}", "--short"))) + "\n")
    w.build("check-clients", "console", needs=everything,
            command=words(w.python, "tests/run.py", "--build", w.dir, "--list", "clients.list", "--limit", "3600", "-j", "1"))
