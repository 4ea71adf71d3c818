"""writer.py — what every rule needs: ninja statements, compiler flags."""
import re, shlex, sys

WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror"
MAIN = re.compile(r"^int main\(", re.M)


def has_main(path):
    with open(path, encoding="utf-8") as f:
        return bool(MAIN.search(f.read()))


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


IMAGE_PARTS = {"libelf": "elf", "zstd": "zstd", "lz4": "lz4"}  # part: library that loader/image reads files with


def image_flags(w):
    """Which of them the readers may use."""
    return " ".join(f"-DGPUL_HAVE_{part.upper()}={int(bool(w.have[part].where))}" for part in IMAGE_PARTS)


def memory_flags(w):
    """Whether memalloc may place memory on NUMA nodes."""
    return f"-DGPUL_HAVE_NUMA={int(bool(w.have['libnuma'].where))}"


def part_libraries(w):
    """All that is linked, where it was found."""
    parts = {**IMAGE_PARTS, "libnuma": "numa"}
    return " ".join(f"-l{library}" for part, library in parts.items() if w.have[part].where)


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

    def obj(self, c, flags="", suffix="", needs=""):
        return self.build(f"{self.dir}/obj/{c[:-2]}{suffix}.o", "cc", c, needs, flags=flags)

    def archive(self, name, objects):
        return self.build(f"{self.dir}/lib{name.replace('/', '-')}.a", "ar", " ".join(objects))

    def link(self, modules):
        return " ".join(self.libs[m] for m in modules if m in self.libs)
