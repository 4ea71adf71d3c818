#!/usr/bin/env python3
"""make_corpus.py — compile tests/corpus/*.cu to tests/corpus/ptx/ with nvcc.

    scripts/make_corpus.py [--nvcc NVCC]

The PTX is committed, so that the tests need no compiler; run this after changing a kernel.
Each kernel is compiled for four architectures, and a few with line information or for the
debugger, because those bring directives that nothing else brings.  Nothing of the machine stays
in the text: nvcc runs inside the folder, and paths to the toolkit's headers are cut to their
file names.
"""
import argparse, glob, os, re, subprocess, sys

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tests", "corpus")
ARCHITECTURES = ["sm_75", "sm_80", "sm_90", "sm_100"]
VARIANTS = [("lineinfo", ["-lineinfo"], ["vecadd", "intops", "warp", "printf", "fnptr"]),
            ("debug", ["-G"], ["vecadd", "reduce", "fnptr"])]


def clean(text):
    """Drop the compiler's banner, and the folders from .file directives."""
    text = re.sub(r"\A(//[^\n]*\n)+\n*", "", text)
    return re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", text)


def compile_one(nvcc, name, arch, tag, options):
    out = os.path.join("ptx", f"{name}.{arch}{'.' + tag if tag else ''}.ptx")
    subprocess.run([nvcc, "-ptx", f"-arch={arch}", "-std=c++17", *options, f"{name}.cu", "-o", out], check=True)
    with open(out, encoding="utf-8") as f:
        text = clean(f.read())
    with open(out, "w", encoding="utf-8") as f:
        f.write(text)
    return len(text)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--nvcc", default="nvcc")
    nvcc = args.parse_args().nvcc
    os.chdir(FOLDER)
    os.makedirs("ptx", exist_ok=True)
    names = [os.path.splitext(f)[0] for f in sorted(glob.glob("*.cu"))]
    jobs = [(n, a, "", []) for n in names for a in ARCHITECTURES]
    jobs += [(n, "sm_90", tag, options) for tag, options, which in VARIANTS for n in which]
    total = sum(compile_one(nvcc, *j) for j in jobs)
    print(f"{len(jobs)} files, {total} bytes")


if __name__ == "__main__":
    sys.exit(main())
