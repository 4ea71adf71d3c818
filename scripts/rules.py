"""rules.py — what is built from what: writes build.ninja.

    folder/*.c ─ obj/folder/*.o ─ lib<folder>.a ┬─ gpuload              the command
                                                ├─ libgpuload.a, .so    the library (not softcuda, not cli)
                                                ├─ softcuda/libcuda-soft.so, and libcuda.so.1 as a link to it
                                                └─ tests/…/test_*       each with its own folder's closure only
"""
import glob, os, re, shlex, sys

from configure import DATE, LIBRARY, MODULES, TESTS_MAY_USE, VERSION, closure, files, owner
from scripts import parts
from scripts.install import public_headers

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror"
# The interpreter's handlers.  Results stay IEEE: no contraction of a*b+c, no reassociation (never
# -ffast-math).  Nobody reads errno or the exception flags there, so both may go: loops vectorise.
HANDLERS = "-O3 -ffp-contract=off -fno-strict-aliasing -fno-math-errno -fno-trapping-math -Wno-conversion"
MAIN = re.compile(r"^int main\(", re.M)


def has_main(path):
    with open(path, encoding="utf-8") as f:
        return bool(MAIN.search(f.read()))


class Writer:
    """Collects ninja statements; every method that builds something returns its path."""

    def __init__(self, out, args, have):
        self.file, self.args, self.have, self.dir = out, args, have, args.out
        self.python = shlex.quote(sys.executable)
        self.libs = {}      # module: archive
        self.objects = {}   # module: its object files
        self.tests = []     # (group, name, command, what it needs)
        self.programs = []  # below tests/, run by scripts there

    def p(self, text=""):
        print(text, file=self.file)

    def build(self, out, rule, inputs, needs="", **variables):
        needs = f" | {needs}" if needs else ""
        self.p(f"build {out}: {rule} {inputs}{needs}")
        for name, value in variables.items():
            if value:
                self.p(f"  {name} = {value}")
        return out.split(" | ")[0]

    def obj(self, c, flags="", suffix=""):
        return self.build(f"{self.dir}/obj/{c[:-2]}{suffix}.o", "cc", c, flags=flags)

    def archive(self, name, objects):
        return self.build(f"{self.dir}/lib{name.replace('/', '-')}.a", "ar", " ".join(objects))

    def link(self, modules):
        return " ".join(self.libs[m] for m in modules if m in self.libs)


def flags(args):
    """Compiler and linker flags that the command line asks for."""
    c = "-O2 -DNDEBUG" if args.release else "-O2 -g"
    ld = ""
    if args.sanitize:
        on = f"-fsanitize={args.sanitize}"
        c = f"-O1 -g {on} -fno-omit-frame-pointer -fno-sanitize-recover=all"
        ld = on
    if args.coverage:
        c, ld = f"{c} -O0 --coverage", f"{ld} --coverage"
    return f"{c} {args.cflags}".strip(), f"{ld} {args.ldflags}".strip()


def write_rules(w):
    c, ld = flags(w.args)
    cuda = os.path.dirname(w.have["cuda.h"].where)
    system = f"-isystem {cuda}" if cuda != "/usr/include" else ""
    w.p("# Written by configure.py; edit scripts/rules.py instead.")
    w.p("ninja_required_version = 1.10")
    w.p(f"builddir = {w.dir}")
    w.p(f"cflags = -std=c11 -D_GNU_SOURCE {c} -fPIC {WARNINGS} -I. {system}")
    w.p(f"ldflags = {ld}")
    w.p("libs = -ldl -lpthread -lm")
    python = w.python
    cc = w.args.cc
    again = [a for a in sys.argv[1:] if a not in ("--quiet", "--install-deps")] + ["--quiet"]
    for name, command, extra in [
            ("cc", f"{cc} $cflags $flags -MMD -MF $out.d -c $in -o $out", "deps = gcc\n  depfile = $out.d"),
            ("ar", "rm -f $out && ar crs $out $in", ""),
            ("link", f"{cc} $cflags -o $out $in $flags $ldflags $libs", ""),
            ("shared", f"{cc} -shared $cflags -o $out $in $flags $ldflags $libs", ""),
            ("symlink", "ln -sfn $target $out", ""),
            ("header", f"echo 'typedef int first;' | {cc} $cflags $flags -fsyntax-only -include $in -x c - && touch $out", ""),
            ("sh", "$command", ""),
            ("console", "$command", "pool = console"),
            ("configure", f"{python} configure.py {shlex.join(again)}", "generator = 1")]:
        w.p(f"rule {name}\n  command = {command}\n  description = {name} $out")
        if extra:
            w.p(f"  {extra}")
    # A folder's mtime changes when a file is added or removed: then configure again.
    # (Absolute where a target has the folder's name.)
    roots = [*TESTS_MAY_USE, "scripts", "examples", *map(os.path.abspath, ("bench", "demo"))]
    folders = sorted({d for m in roots for d, _, _ in os.walk(m) if "__pycache__" not in d})
    scripts = " ".join(glob.glob("scripts/*.py"))
    w.p(f"build {w.file.name}: configure | configure.py {scripts} {' '.join(folders)}")
    w.p(f"build {' '.join(folders)} {scripts}: phony")   # so that a removed one is no error


def module_flags(w, module):
    """Flags of one module's files alone, so that changing one rebuilds little."""
    json = int(bool(w.have["cJSON"].where))
    return {
        "driver": f'-DGPUL_LIBDIR=\\"{w.args.prefix}/lib/gpuload\\"',
        "softcuda": "-fvisibility=hidden",
        "cli": f'-DGPUL_VERSION=\\"{VERSION}\\" -DGPUL_DATE=\\"{DATE}\\" -DGPUL_HAVE_CJSON={json}',
    }.get(module, "")


def write_modules(w):
    builds = parts.builds(w.args)
    handlers = HANDLERS.replace("-O3 ", "") if w.args.sanitize or w.args.coverage else HANDLERS
    for m in MODULES:
        objects = []
        for c in files(m, ".c"):
            if c.startswith("softcuda/exec/run_"):  # once for each instruction set, chosen at load
                objects += [w.obj(c, f"{module_flags(w, m)} {handlers} {march} -DGPUL_BUILD_SUFFIX={name}", f".{name}")
                            for name, march in builds]
            elif c != "cli/main.c":
                objects.append(w.obj(c, module_flags(w, m)))
        w.objects[m] = objects
        if objects:
            w.libs[m] = w.archive(m, objects)


def json_library(w):
    """What the command's --json needs."""
    return "-lcjson" if w.have["cJSON"].where else ""


def version_script(w, name, exported):
    path = f"{w.dir}/{name}.map"
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"{{ global: {exported} local: *; }};\n")
    return path


def write_products(w):
    """The library, the command and the software driver."""
    strict = "" if w.args.sanitize else "-Wl,--no-undefined "
    objects = " ".join(o for m in LIBRARY for o in w.objects[m])
    major = VERSION.split(".")[0]
    export = version_script(w, "libgpuload", "gpul_*;")
    products = [
        w.build(f"{w.dir}/libgpuload.a", "ar", objects),
        w.build(f"{w.dir}/libgpuload.so.{VERSION}", "shared", objects, needs=export,
                flags=f"{strict}-Wl,-soname,libgpuload.so.{major} -Wl,--version-script={export}"),
        w.build(f"{w.dir}/libgpuload.so.{major}", "symlink", "", f"{w.dir}/libgpuload.so.{VERSION}",
                target=f"libgpuload.so.{VERSION}"),
        w.build(f"{w.dir}/libgpuload.so", "symlink", "", f"{w.dir}/libgpuload.so.{VERSION}",
                target=f"libgpuload.so.{VERSION}")]
    if os.path.exists("cli/main.c"):
        products.append(w.build(f"{w.dir}/gpuload", "link", f"{w.obj('cli/main.c', module_flags(w, 'cli'))} "
                                f"{w.link(closure('cli'))}", libs=f"{json_library(w)} $libs"))
    if w.objects["softcuda"]:
        soft = f"{w.dir}/softcuda"
        export = version_script(w, "libcuda-soft", "cu*; gpuload*;")
        so = w.build(f"{soft}/libcuda-soft.so", "shared",
                     f"{' '.join(w.objects['softcuda'])} {w.link(closure('softcuda')[1:])}", needs=export,
                     flags=f"{strict}-Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -Wl,--version-script={export}")
        products.append(so)
        products += [w.build(f"{soft}/{name}", "symlink", "", so, target="libcuda-soft.so")
                     for name in ("libcuda.so.1", "libcuda.so")]
    return products


def made_by(w, out, command, needs):
    """One file that a command writes to its standard output; a failing command leaves nothing behind."""
    return w.build(out, "sh", "", needs, command=f"{command} > {out}.new && mv {out}.new {out}")


def write_documents(w):
    """Man pages and bash completion: section 3 from the headers, the rest from the command's own table."""
    headers, pages, cli = " ".join(public_headers()), f"{w.dir}/man/man3", f"{w.dir}/gpuload"
    documents = [w.build(f"{pages}.ok", "sh", "", f"scripts/man.py configure.py {headers}",
                         command=f"rm -rf {pages} && {w.python} scripts/man.py {pages} {headers} && touch {pages}.ok")]
    if os.path.exists("cli/main.c"):
        documents += [made_by(w, f"{w.dir}/man/man1/gpuload.1", f"{cli} help --man", cli),
                      made_by(w, f"{w.dir}/completion.bash", f"{cli} completion bash", cli)]
    return documents


def write_install(w, products):
    """install; and the same into <build>/stage, which the examples are built against."""
    if not (os.path.exists("cli/main.c") and w.objects["softcuda"]):
        return None
    everything, stage = " ".join(products), f"{w.dir}/stage"
    cuda = shlex.quote(os.path.dirname(w.have["cuda.h"].where))
    install = f"{w.python} scripts/install.py --build {w.dir} --cuda {cuda}"
    w.build("install", "console", "", everything, command=f"{install} --prefix {shlex.quote(w.args.prefix)}")
    return w.build(f"{stage}.ok", "sh", "", f"{everything} scripts/install.py {' '.join(public_headers())}",
                   command=f"rm -rf {stage} && {install} --prefix '' --destdir {stage} && touch {stage}.ok")


def write_examples(w, stage):
    """Each folder of examples/ is a program built as a user would: from what is installed, and no more."""
    if not stage:
        return
    cuda = os.path.dirname(w.have["cuda.h"].where)
    for folder in sorted(glob.glob("examples/*/")):
        name = folder.rstrip("/")
        sources = sorted(glob.glob(f"{name}/*.c"))
        if not sources:
            continue
        kernels, libs, defines = [], "-lgpuload -lm", ""
        if w.have["nvcc"].where:
            kernels = [w.build(f"{w.dir}/{cu}.o", "sh", "", cu, command=(
                f"{w.have['nvcc'].where} -O3 -gencode arch=compute_75,code=[sm_75,compute_75] "
                f"-Xcompiler -fPIC -c {cu} -o {w.dir}/{cu}.o")) for cu in sorted(glob.glob(f"{name}/*.cu"))]
        if kernels:
            home = os.path.dirname(cuda)
            libs += f" -L{home}/lib64 -L{home}/lib -lcudart_static -lrt -ldl -lpthread -lstdc++"
            defines = "-DHAVE_CUDART"
        exe = f"{w.dir}/{name}/{os.path.basename(name)}"
        w.programs.append(exe)
        c, ld = flags(w.args)
        w.build(exe, "sh", "", " ".join([stage, *sources, *kernels]), command=(
            f"{w.args.cc} -std=c11 -D_GNU_SOURCE {c} {WARNINGS} {defines} -I{w.dir}/stage/include/gpuload "
            f"-isystem {cuda} {' '.join([*sources, *kernels])} -o {exe} {ld} -L{w.dir}/stage/lib {libs} "
            f"-Wl,-rpath,'$$ORIGIN/../../stage/lib'"))
        w.tests.append(("examples", name, f"{name}/test" if os.path.exists(f"{name}/test") else exe, exe))


def write_headers(w):
    """Each header compiles when it is the first one included."""
    return [w.build(f"{w.dir}/headers/{h}.ok", "header", h, flags=module_flags(w, m))
            for m in MODULES for h in files(m, ".h")]


def test_link(w, folder):
    """What the tests in a folder link: (archives or flags, further dependencies)."""
    if folder.startswith("tests/softcuda/api"):  # through the real thing: the exported symbols
        up = "/".join([".."] * folder.count("/"))
        return f"-L{w.dir}/softcuda -lcuda -Wl,-rpath,'$$ORIGIN/{up}/../softcuda'", f"{w.dir}/softcuda/libcuda.so"
    if folder == "tests/gpu/plain":  # a program that knows only NVIDIA's name: whose driver, LD_LIBRARY_PATH says
        return f"-L{w.dir}/softcuda -lcuda", f"{w.dir}/softcuda/libcuda.so"
    module = owner(folder.removeprefix("tests/"))
    modules = closure(module) if module in MODULES else list(reversed(LIBRARY))
    archives = w.link(modules)
    return f"{archives} {json_library(w) if module == 'cli' else ''}".strip(), archives


def write_tests(w, products):
    """Programs below tests/: a .c with a main is one, a so_*.c is a shared object for them to open, and
    the others of a folder help the programs there."""
    by_folder = {}
    for c in files("tests", ".c"):
        if not c.startswith(("tests/fuzz/", "tests/install/")):  # built in ways of their own
            by_folder.setdefault(os.path.dirname(c), []).append(c)
    helpers, opened, programs = {}, {}, []
    for folder, sources in by_folder.items():
        plain = [c for c in sources if not has_main(c)]
        programs += [c for c in sources if has_main(c)]
        opened[folder] = [w.build(f"{w.dir}/{c[:-2]}.so", "shared", w.obj(c), flags="-Wl,-soname,libcuda.so.1")
                          for c in plain if os.path.basename(c).startswith("so_")]
        objects = [w.obj(c) for c in plain if not os.path.basename(c).startswith("so_")]
        if objects:
            helpers[folder] = w.archive(folder, objects)
    for c in programs:
        write_test(w, c, helpers, opened, products)


def write_test(w, c, helpers, opened, products):
    with open(c, encoding="utf-8") as f:
        cmocka = "<cmocka.h>" in f.read()
    if cmocka and not w.have["cmocka"].where:
        return
    folder = os.path.dirname(c)
    extra = " ".join(helpers[h] for h in (folder, "tests/fake") if h in helpers)
    archives, needs = test_link(w, folder)
    exe = w.build(f"{w.dir}/{c[:-2]}", "link", f"{w.obj(c)}", f"{extra} {needs}",
                  flags=f"{extra} {archives}", libs=f"{'-lcmocka' if cmocka else ''} $libs")
    if os.path.basename(c).startswith("test_"):
        # A library folder's test stands alone; others run the command or open the software driver.
        alone = owner(folder.removeprefix("tests/")) in [*LIBRARY, "softcuda"]
        w.tests.append((test_group(folder), c[6:-2], exe, " ".join([exe, *opened[folder], *([] if alone else products)])))
    else:
        w.programs.append(exe)


def test_group(folder):
    inside = folder.removeprefix("tests/")
    module = owner(inside)
    return (module if module in MODULES else inside.split("/")[0]).replace("/", "-")


def write_fuzzers(w):
    if not w.have["libFuzzer"].where:
        return
    cuda = os.path.dirname(w.have["cuda.h"].where)
    for c in files("tests", ".c"):
        if not c.startswith("tests/fuzz/fuzz_"):
            continue
        name = os.path.basename(c)[5:-2]
        sources = [s for m in closure(name) for s in files(m, ".c")]
        exe = f"{w.dir}/fuzz/fuzz_{name}"
        corpus, words = f"tests/fuzz/corpus/{name}", f"tests/fuzz/{name}.dict"
        words = f"-dict={words}" if os.path.exists(words) else ""
        w.build(exe, "sh", "", " ".join([c, *sources, *files(os.path.dirname(sources[0]), ".h")]),
                command=f"clang -std=c11 -D_GNU_SOURCE -O2 -g -I. -isystem {cuda} "
                        f"-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all "
                        f"{c} {' '.join(sources)} -o {exe} -ldl -lpthread -lm")
        w.build(f"fuzz-{name}", "console", "", exe,
                command=f"mkdir -p {w.dir}/fuzz/{name} && {exe} {words} {w.dir}/fuzz/{name} {corpus}")
        if os.path.isdir(corpus):
            w.tests.append(("fuzz", f"fuzz/{name} over its corpus", f"{exe} -runs=0 {corpus}", exe))


def write_check(w, products, headers):
    """check runs everything; check-<module> one folder's tests, though another folder be broken."""
    everything = " ".join([*products, *w.programs, *headers])
    for t in sorted(glob.glob("tests/meta/*.py")):
        w.tests.append(("meta", t[6:-3], f"{w.python} {t}", everything))
    for t in sorted(glob.glob("tests/**/test_*.sh", recursive=True) + glob.glob("tests/**/test_*.py", recursive=True)):
        how = "bash" if t.endswith(".sh") else w.python
        w.tests.append((test_group(os.path.dirname(t)), t[6:].rsplit(".", 1)[0], f"{how} {t}", everything))
    for t in sorted(glob.glob("tests/**/*.bats", recursive=True)):
        w.tests.append((test_group(os.path.dirname(t)), t[6:-5], f"bats {t}", everything))
    path = f"{w.dir}/tests.list"
    with open(path, "w", encoding="utf-8") as f:
        f.writelines("\t".join(t[:3]) + "\n" for t in w.tests)
    run = f"{w.python} tests/run.py --build {w.dir}"
    needs = {}
    for group, _, _, need in w.tests:
        needs.setdefault(group, set()).update(need.split())
    for group, need in needs.items():
        w.build(f"check-{group}", "console", "", " ".join(sorted(need)), command=f"{run} --only {group}")
    every = sorted(set().union(*needs.values(), everything.split()))
    w.build("check", "console", "", " ".join(every), command=run)


def write_extras(w, products):
    everything = " ".join(products)
    demo = "demo/run" if os.path.exists("demo/run") else "echo 'demo: skipped, there is no demo/run'"
    w.build("demo", "console", "", everything, command=f"GPULOAD_BUILD={w.dir} {demo}")
    archives = w.link([m for m in reversed(MODULES) if m != "cli"])
    sources = sorted(glob.glob("bench/*.c"))
    helpers = " ".join(w.obj(c) for c in sources if not has_main(c))
    programs = [w.build(f"{w.dir}/{c[:-2]}", "link", f"{w.obj(c)} {helpers}", archives, flags=archives)
                for c in sources if has_main(c)]
    if programs:
        w.build("bench", "console", "", " ".join([*programs, *products]), command=" && ".join([*programs, "bench/bench_run.py"]))
        w.build("bench-programs", "phony", " ".join(programs))


def write(out, args, have):
    w = Writer(out, args, have)
    write_rules(w)
    write_modules(w)
    products = write_products(w)
    products += write_documents(w)
    stage = write_install(w, products)
    headers = write_headers(w)
    write_tests(w, products)
    write_examples(w, stage)
    write_fuzzers(w)
    write_check(w, products, headers)
    write_extras(w, products)
    w.p(f"build gpu-tests: phony {' '.join(w.programs)} {w.dir}/tests/corpus/test_corpus")
    w.p(f"build all: phony {' '.join(products)}")
    w.p("default all")
