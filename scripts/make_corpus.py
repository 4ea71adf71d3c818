#!/usr/bin/env python3
"""make_corpus.py — compile the committed PTX files with nvcc: some of tests/corpus/*.cu and a few other kernels.

    scripts/make_corpus.py [--nvcc NVCC]

Run this script after a kernel changes.  Each kernel is compiled for sm_90, and vecadd also with line information;
the build compiles them for other architectures, with line information and for the debugger (rules_kernels.py).  The PTX contains no path of this machine: nvcc
runs inside the folder, and paths of the toolkit's headers are reduced to file names.  The `// gpuload run:` line of a source is copied.
"""
import argparse, os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The kernels of tests/corpus that guides, benchmarks and tests name; the build compiles the PTX of the others, and no copy is committed.
READ = ("const", "fnptr", "hist", "matmul", "persist", "reduce", "saxpy", "transpose", "vecadd")
# Kernels in other folders: folder, name, architecture.  PTX for sm_75 runs on every GPU that CUDA 13 supports.
OTHERS = [("demo", "blocksum", "sm_75"), ("demo", "mandelbrot", "sm_75"),
          ("examples/01-run-ptx", "vecadd", "sm_75")]


def clean(text):
    """Remove the compiler's banner and the folders in .file directives."""
    text = re.sub(r"\A(//[^\n]*\n)+\n*", "", text)
    return re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", text)


def compile_one(nvcc, folder, name, arch, out, options):
    os.chdir(os.path.join(ROOT, folder))
    subprocess.run([nvcc, "-ptx", f"-arch={arch}", "-std=c++17", *options, f"{name}.cu", "-o", out], check=True)
    with open(f"{name}.cu", encoding="utf-8") as f:
        arguments = "".join(l for l in f if l.startswith("// gpuload run:"))
    with open(out, encoding="utf-8") as f:
        text = arguments + clean(f.read())
    with open(out, "w", encoding="utf-8") as f:
        f.write(text)
    return len(text)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--nvcc", default="nvcc")
    nvcc = args.parse_args().nvcc
    os.chdir(ROOT)
    os.makedirs("tests/corpus/ptx", exist_ok=True)
    jobs = [("tests/corpus", n, "sm_90", f"ptx/{n}.sm_90.ptx", []) for n in READ]
    jobs += [("tests/corpus", "vecadd", "sm_90", "ptx/vecadd.sm_90.lineinfo.ptx", ["-lineinfo"])]
    jobs += [(folder, n, a, f"{n}.ptx", []) for folder, n, a in OTHERS]
    total = sum(compile_one(nvcc, *j) for j in jobs)
    print(f"{len(jobs)} files, {total} bytes")


if __name__ == "__main__":
    sys.exit(main())
