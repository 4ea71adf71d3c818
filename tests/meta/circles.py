#!/usr/bin/env python3
"""Fail if source files depend on each other in a circle, or a sub-folder uses another one that SUBFOLDERS lists after it.

The symbols of the object files show the dependencies: file A uses file B if it needs a symbol that B defines.  The files of
a circle can only be understood, tested and changed together.  ALLOWED lists the circles that the problem itself requires.
"""
import glob, os, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
os.chdir(ROOT)
from scripts.modules import MODULES, SUBFOLDERS, owner, subfolder

ALLOWED = [  # sets of files, each with its reason in a comment
]


def objects():
    """Return {source without its suffix: (symbols that it defines, symbols that it needs)} of every module."""
    obj = f"{os.environ.get('GPULOAD_BUILD', 'build')}/obj"
    found = {}
    sources = {}
    for o in sorted(o for m in MODULES for o in glob.glob(f"{obj}/{m}/**/*.o", recursive=True)):
        stem, *build = os.path.basename(o)[:-2].split(".")
        path = f"{os.path.dirname(o)[len(obj) + 1:]}/{stem}"
        if os.path.exists(f"{path}.c") and build in ([], ["base"]):  # skips objects of removed sources, and further builds of a source
            sources[o] = found.setdefault(path, (set(), set()))
    for line in subprocess.run(["nm", "-gA", *sources], capture_output=True, text=True).stdout.splitlines():
        o, _, symbol = line.partition(":")
        *_, kind, name = symbol.split()
        sources[o][kind == "U"].add(name)
    return found


def uses(table):
    """Return {file: {file that it uses: one of the symbols}}."""
    where = {symbol: path for path, (defined, _) in table.items() for symbol in defined}
    return {path: {where[s]: s for s in sorted(needed) if s in where and where[s] != path}
            for path, (_, needed) in table.items()}


def circles(graph):
    """Return the strongly connected components with more than one file, by Tarjan's algorithm."""
    index, low, stack, found = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in graph[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            circle = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(circle) > 1:
                found.append(set(circle))

    sys.setrecursionlimit(10000)
    for v in graph:
        if v not in index:
            visit(v)
    return found


def circle_errors(graph):
    for circle in circles(graph):
        if circle in ALLOWED:
            continue
        yield "these files depend on each other in a circle:"
        for a in sorted(circle):
            for b, symbol in graph[a].items():
                if b in circle:
                    yield f"    {a}.c uses {b}.c: {symbol}"


def order_errors(graph):
    for a in graph:
        order = SUBFOLDERS.get(owner(a), [])
        for b, symbol in graph[a].items():
            if owner(b) == owner(a) and order and order.index(subfolder(b)) > order.index(subfolder(a)):
                yield f"{a}.c must not use {b}.c ({symbol}): SUBFOLDERS lists the folder of {b}.c later"


if __name__ == "__main__":
    graph = uses(objects())
    bad = [*circle_errors(graph), *order_errors(graph)]
    print("\n".join(bad), file=sys.stderr) if bad else None
    sys.exit(bool(bad))
