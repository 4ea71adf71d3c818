"""rules_packages.py — the rules of `ninja wheel` and `ninja deb`: link the products again, then pack them (packages.py).

A package must not depend on the folder where it was built: the few sources that contain the path of a folder are compiled again with
the paths of the package.  A wheel also contains the libraries that gpuload uses, because a machine with pip may lack them.
"""
import copy, glob, os, shutil, subprocess

from scripts.flags import IMAGE_PARTS, module_flags, part_libraries
from scripts.packages import STATIC
from scripts.writer import Writer, words

# Sources that use a macro of module_flags() whose value is a path.
KNOW_A_FOLDER = {"core": ["toolkit"], "driver": ["search"], "memalloc": ["probe/probe_child"], "loader": ["program/program_find"],
                 "nvidia": ["real"]}

# A wheel contains libelf.so.1, and libz.so.1 for it, next to the programs, because Debian's libelf.a cannot be linked into a shared
# library.  RPATH instead of RUNPATH, because only RPATH also applies to the libraries that libelf loads.
BESIDE = "-Wl,--disable-new-dtags,-rpath,$ORIGIN:$ORIGIN/..:$ORIGIN/../.."


class Packaged(Writer):
    """A Writer that links with self.libraries and strips what it links; its output is below build/packages/<kind>."""

    def build(self, out, rule, inputs=(), needs=(), **variables):
        if rule in ("link", "shared"):
            variables["libs"] = self.libraries
            variables["flags"] = f"{variables.get('flags', '')} -s"
        return super().build(out, rule, inputs, needs, **variables)


def packaged(w, kind, libdir, libraries):
    """Return a Packaged writer; the sources of KNOW_A_FOLDER are compiled again with the package's paths."""
    p = Packaged(w.file, w.args, w.have)
    p.__dict__.update(copy.copy(w.__dict__), packaged=True, libdir=libdir, libraries=libraries, dir=f"{w.dir}/packages/{kind}",
                      objects=dict(w.objects), libs=dict(w.libs))
    os.makedirs(p.dir, exist_ok=True)
    for module, names in KNOW_A_FOLDER.items():
        again = {f"{w.dir}/obj/{module}/{name}.o": f"{module}/{name}.c" for name in names}
        p.objects[module] = [p.obj(again[o], module_flags(p, module)) if o in again else o for o in w.objects[module]]
        p.libs[module] = p.archive(module, p.objects[module])
    return p


def multiarch(args):
    """Return the compiler's target triplet: x86_64-linux-gnu on Debian."""
    return subprocess.run([args.cc, "-dumpmachine"], capture_output=True, text=True).stdout.strip()


def can_be_packed(kind):
    """True if this machine has the tools and libraries for the package; `ninja wheel` reports missing ones."""
    if kind == "deb":
        return bool(shutil.which("dpkg-deb"))
    return all(os.path.exists(f"/usr/share/doc/{name}/copyright") for name in STATIC)


def write(w, stage, write_products):
    if not stage or w.args.sanitize or w.args.coverage:
        return
    static = ["-lelf" if library == "elf" else f"-l:lib{library}.a" for part, library in IMAGE_PARTS.items() if w.have[part].where]
    static += ["-l:libncursesw.a", "-l:libtinfo.a"] if w.have["ncurses"].where else []
    triplet = multiarch(w.args)
    shared = f"-ldl -lpthread -lm -Wl,--as-needed {' '.join(f'-l{l}' for part, l in IMAGE_PARTS.items() if w.have[part].where)}"
    kinds = {"deb": (f"/usr/lib/{triplet}/gpuload", shared + (" -lncursesw" if w.have["ncurses"].where else "")),
             "wheel": ("/usr/local/lib/gpuload", f"-ldl -lpthread -lm -Wl,--as-needed {words(static, BESIDE)}")}
    for kind, (libdir, libraries) in kinds.items():
        p = packaged(w, kind, libdir, libraries)
        products = write_products(p)
        pack = [w.python, "scripts/packages.py", kind, "--build", w.dir, "--triplet", triplet, f"--libraries={part_libraries(w)}"]
        inputs = ["scripts/packages.py", "scripts/install.py", "LICENSE", "CHANGELOG.md", "docs/python.md", stage, *products,
                  *sorted(glob.glob("python/gpuload/*.*"))]
        done = w.build(f"{w.dir}/packages/{kind}.ok", "sh", needs=inputs,
                       command=f"{words(pack)} && touch {words(w.dir)}/packages/{kind}.ok")
        w.build(kind, "phony", done)
        if can_be_packed(kind):
            w.programs.append(done)  # tests/install/test_packages.py installs it
