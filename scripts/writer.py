"""writer.py — write ninja statements.

Some characters are special in ninja ('$', a blank and ':' in paths), in the shell and in make.  The rules use plain strings
as paths; build() escapes them for ninja, and words() quotes them for the shell.
"""
import re, shlex, sys

MAIN = re.compile(r"^int main\(", re.M)


def has_main(path):
    with open(path, encoding="utf-8") as f:
        return bool(MAIN.search(f.read()))


def words(*parts):
    """Shell text: each part is one word, or a list of words."""
    return shlex.join(w for p in parts for w in listed(p))


def listed(paths):
    """A path or a list of paths, as a list."""
    return [paths] if isinstance(paths, str) else list(paths)


def ninja_paths(paths):
    return " ".join(re.sub(r"[$ :]", r"$\g<0>", p) for p in listed(paths))


class Writer:
    """Writes ninja statements; a method that adds a rule returns the path of its output.

    An input or output is a path or a list of paths.  The value of a variable is shell text.
    """

    def __init__(self, out, args, have):
        self.file, self.args, self.have, self.dir = out, args, have, args.out
        self.python = sys.executable
        self.libs = {}      # {module: its archive}
        self.objects = {}   # {module: its object files}
        self.tests = []     # (group, name, command, the files that it needs)
        self.programs = []  # programs below tests/ that scripts run
        self.packaged, self.libdir = False, f"{args.prefix}/lib/gpuload"  # see rules_packages.py

    def p(self, text=""):
        print(text, file=self.file)

    def variable(self, name, value):
        self.p(f"{name} = {value.replace('$', '$$')}")

    def build(self, out, rule, inputs=(), needs=(), **variables):
        needs = f" | {ninja_paths(needs)}" if needs else ""
        self.p(f"build {ninja_paths(out)}: {rule} {ninja_paths(inputs)}{needs}")
        for name, value in variables.items():
            if value:
                self.variable(f"  {name}", value)
        return out

    def obj(self, c, flags="", suffix="", needs=()):
        return self.build(f"{self.dir}/obj/{c[:-2]}{suffix}.o", "cc", c, needs, flags=flags)

    def archive(self, name, objects):
        return self.build(f"{self.dir}/lib{name.replace('/', '-')}.a", "ar", objects)

    def link(self, modules):
        """The archives of these modules, in this order."""
        return [self.libs[m] for m in modules if m in self.libs]
