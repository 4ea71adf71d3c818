#!/usr/bin/env python3
"""coverage.py — print the share of executed lines of each folder.

    ./configure.py --coverage --out build-cov
    ninja -f build-cov/build.ninja check
    ninja -f build-cov/build.ninja coverage

gcc writes NAME.gcno beside each object, and a program writes NAME.gcda when it ends; gcov reads both.  Some sources are
compiled several times (the interpreter's handlers): a line counts as executed if it was executed in one of the objects.
"""
import argparse, collections, concurrent.futures, glob, json, os, re, shutil, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scripts.modules import MODULES, owner


def gcov_of(cc):
    """Return the gcov of the same version as the compiler (gcov-12 for gcc-12), because each version has its own file format."""
    name = re.sub(r"^(.*-)?g?cc", r"\1gcov", os.path.basename(cc))
    return shutil.which(name) or shutil.which("gcov")


def lines_of(gcov, notes):
    """{source: {line: whether it was executed}} of one object; a .gcno without a .gcda was never executed."""
    r = subprocess.run([gcov, "--json-format", "--stdout", notes], capture_output=True, text=True)
    found = collections.defaultdict(dict)
    for text in r.stdout.splitlines():
        for source in json.loads(text)["files"]:
            path = os.path.relpath(source["file"])
            if owner(path) in MODULES:
                for line in source["lines"]:
                    n = line["line_number"]
                    found[path][n] = found[path].get(n, False) or line["count"] > 0
    return found


def collect(gcov, build):
    """{source: {line: whether it was executed}} of the whole build."""
    notes = [n for m in MODULES for n in glob.glob(f"{glob.escape(build)}/obj/{m}/**/*.gcno", recursive=True)]
    found = collections.defaultdict(dict)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for lines in pool.map(lambda n: lines_of(gcov, n), sorted(set(notes))):
            for path, executed in lines.items():
                for n, yes in executed.items():
                    found[path][n] = found[path].get(n, False) or yes
    return found


def report(found):
    folders = collections.defaultdict(lambda: [0, 0])
    for path, lines in found.items():
        for folder in (os.path.dirname(path), "all"):
            folders[folder][0] += sum(lines.values())
            folders[folder][1] += len(lines)
    whole = folders.pop("all")
    print(f"{'folder':<24} {'executed':>8} {'lines':>8}")
    for folder, (executed, n) in [*sorted(folders.items()), ("all", whole)]:
        print(f"{folder:<24} {executed:>8} {n:>8} {100 * executed / n:6.1f} %")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--build", default="build-cov")
    a.add_argument("--cc", default="cc", help="the compiler that the build used")
    args = a.parse_args()
    gcov = gcov_of(args.cc)
    if not gcov:
        sys.exit("coverage.py: no gcov found: it comes with gcc")
    found = collect(gcov, args.build)
    if not found:
        sys.exit(f"coverage.py: {args.build} contains no line counts: configure with --coverage and gcc 9 or later, then build")
    report(found)


if __name__ == "__main__":
    main()
