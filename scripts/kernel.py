#!/usr/bin/env python3
"""kernel.py — a build tool: compile CUDA C++ to PTX for older GPUs and drivers than the compiler itself chooses.

    scripts/kernel.py FILE.cu OUT.ptx [--isa 7.0] [--target sm_70] -- COMPILER...

COMPILER is a command that prints PTX.  --isa and --target lower its .version and .target, which is possible because the kernels use no
newer instruction, and remove the hints that the older version lacks.  The folders in .file directives are removed, and the lines
`// gpuload run:` and `// expect:` of the source are copied.  OUT.ptx.d lists the headers, for ninja.
"""
import argparse, os, re, subprocess, sys

COPIED = re.compile(r"^// (?:gpuload run|expect):.*\n", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def headers(path, found):
    """Add the files of the repository that a source includes, directly or not, to found."""
    with open(path, encoding="utf-8") as f:
        names = INCLUDE.findall(f.read())
    for name in names:
        if name not in found and os.path.exists(name):
            found.add(name)
            headers(name, found)
    return found


def tidy(ptx, source):
    """Return the PTX with the COPIED lines of the source, and without the compiler's banner and the folders of .file directives."""
    ptx = re.sub(r"\A(//[^\n]*\n)+\n*", "", ptx)
    ptx = re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", ptx)
    with open(source, encoding="utf-8") as f:
        return "".join(COPIED.findall(f.read())) + ptx


def lower(ptx, isa, target):
    if not isa:
        return ptx
    ptx = re.sub(r"^\.version .*", f".version {isa}", ptx, count=1, flags=re.M)
    if target:
        ptx = re.sub(r"^\.target .*", f".target {target}", ptx, count=1, flags=re.M)
    return re.sub(r"^.*(used_bytes_mask.*|inline asm)\n", "", ptx, flags=re.M)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("source")
    a.add_argument("out")
    a.add_argument("--isa", help=".version of the output (default: the compiler's)")
    a.add_argument("--target", help=".target of the output (default: the compiler's)")
    a.add_argument("compiler", nargs="+")
    args = a.parse_args()
    r = subprocess.run(args.compiler, stdout=subprocess.PIPE, text=True)
    if r.returncode:
        return r.returncode
    with open(f"{args.out}.d", "w", encoding="utf-8") as f:
        f.write(f"{args.out}: {' '.join(sorted(headers(args.source, set())))}\n")
    with open(args.out, "w", encoding="utf-8") as f:
        f.write(lower(tidy(r.stdout, args.source), args.isa, args.target))
    return 0


if __name__ == "__main__":
    sys.exit(main())
