"""mistakes.py — plants mistakes into a copy of a module, whose simulation must then fail on some seed.

A mistake is a textual patch, which must fit in exactly one place.  The unpatched sources must pass the same seeds.
"""
import argparse, collections, concurrent.futures, glob, os, re, subprocess, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = "-std=c11 -D_GNU_SOURCE -O1 -w"
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=all"
Mistake = collections.namedtuple("Mistake", "name old new")


def run(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True)


def compile_to(out, source, include, flags):
    r = run(f"cc {flags} {include} -c {source} -o {out}")
    if r.returncode:
        raise RuntimeError(f"{source}: {r.stderr}")
    return out


def link(exe, objects, flags):
    r = run(f"cc {flags} {' '.join(objects.values())} -o {exe}")
    if r.returncode:
        raise RuntimeError(r.stderr)
    return exe


def first_failure(exe, seeds, unit="seed"):
    """Return (seed, reason) of the first seed that fails; None if all pass."""
    r = run(f"timeout 120 {exe} --{unit}s 1-{seeds} --failures 1")
    found = re.search(rf"^{unit} (\d+)(.*)", r.stdout, re.M)
    return (int(found[1]), found[2].lstrip(": ")) if found else None if r.returncode == 0 else (0, f"exit status {r.returncode}")


class Campaign:
    """module: the folder that is patched; sources: all sources of the simulation; seeds: by then, a mistake must be found; unit: the simulation's name for a seed."""

    def __init__(self, module, sources, seeds, unit="seed"):
        self.module, self.sources, self.seeds, self.unit = module, sources, seeds, unit

    def build_unpatched(self, folder, flags, pool):
        """Return the object files of the simulation and of the unchanged module."""
        outs = [f"{folder}/{os.path.basename(c)[:-2]}.o" for c in self.sources]
        return dict(zip(self.sources, pool.map(lambda p: compile_to(*p, "-I. -Iinclude", flags), zip(outs, self.sources))))

    def plant(self, m, folder, objects, flags):
        """Build the simulation with one mistake; returns the program."""
        here, text = tempfile.mkdtemp(dir=folder), {}
        os.makedirs(f"{here}/{self.module}")
        for path in glob.glob(f"{self.module}/*.[ch]"):
            with open(path, encoding="utf-8") as f:
                text[path] = f.read()
        places = [p for p in text for _ in range(text[p].count(m.old))]
        if len(places) != 1:
            raise ValueError(f"there are {len(places)} places for this mistake: change its patch")
        path = places[0]
        with open(f"{here}/{path}", "w", encoding="utf-8") as f:
            f.write(text[path].replace(m.old, m.new))
        new = dict(objects)
        for s in [path] if path.endswith(".c") else [s for s in self.sources if s.startswith(f"{self.module}/")]:
            # A patched header comes first on the search path.
            source = f"{here}/{s}" if s == path else s
            new[s] = compile_to(f"{here}/{os.path.basename(s)}.o", source, f"-I{here} -I. -Iinclude", flags)
        return link(f"{here}/sim", new, flags)

    def main(self, mistakes, about):
        """Plant all mistakes; return the exit status."""
        a = argparse.ArgumentParser(description=about)
        a.add_argument("--full", action="store_true", help="with sanitizers, and up to 100,000 seeds")
        a.add_argument("--only", default="", help="mistakes whose name contains this")
        a = a.parse_args()
        os.chdir(ROOT)
        seeds = 100000 if a.full else self.seeds
        flags = f"{FLAGS} {SANITIZE}" if a.full else FLAGS
        bad = 0
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count())) as pool:
            objects = self.build_unpatched(folder, flags, pool)
            clean = pool.submit(lambda: first_failure(link(f"{folder}/sim", objects, flags), self.seeds, self.unit))
            chosen = [m for m in mistakes if a.only in m.name]
            jobs = [pool.submit(lambda m: first_failure(self.plant(m, folder, objects, flags), seeds, self.unit), m) for m in chosen]
            for m, job in zip(chosen, jobs):
                f = None if job.exception() else job.result()
                bad += not f
                print(f"{m.name}: " + (f"found by {self.unit} {f[0]} {f[1]}" if f else f"NOT FOUND {job.exception() or ''}"), flush=True)
            if clean.result():
                bad += 1
                print(f"without a mistake: {self.unit} {clean.result()[0]} {clean.result()[1]}")
        print(f"{len(chosen) + 1 - bad} passed, {bad} failed, 0 skipped")
        return bad != 0
