#!/usr/bin/env python3
"""configure.py — find the tools and libraries of this machine and write build.ninja.

    ./configure.py --install-deps && ninja check

Read next: scripts/modules.py (the architecture), scripts/parts.py (the tools and libraries), scripts/rules.py (the build rules).
"""
import argparse, os, re, sys

from scripts import install_deps, parts, rules


def arguments(argv=None):
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--install-deps", action="store_true",
                   help="first install missing apt packages, and, if there is no CUDA toolkit, NVIDIA's Python "
                        "wheels into build/cuda-wheels; prompts only for sudo's password, on a terminal; a second run changes nothing")
    a.add_argument("--cc", default=os.environ.get("CC", "cc"), help="C compiler (default: cc)")
    a.add_argument("--cuda", metavar="DIR", help="CUDA toolkit, a folder with include/cuda.h (default: $CUDA_HOME, "
                                                 "/usr/local/cuda, build/cuda-wheels, /usr)")
    a.add_argument("--prefix", default="/usr/local", help="folder that ninja install installs into (default: /usr/local)")
    a.add_argument("--out", default="build", metavar="DIR",
                   help="build folder (default: build); for another folder run ninja -f DIR/build.ninja")
    a.add_argument("--release", "-O", action="store_true", help="no debug information, no assertions")
    a.add_argument("--sanitize", metavar="LIST", help="build with sanitizers: address,undefined or thread")
    a.add_argument("--coverage", action="store_true", help="count executed lines; after ninja -f DIR/build.ninja check, the target coverage "
                                                         "prints the percentage of executed lines in each folder")
    a.add_argument("--cflags", default="", help="further compiler flags")
    a.add_argument("--ldflags", default="", help="further linker flags")
    a.add_argument("--quiet", action="store_true", help="do not print the list of tools and libraries")
    return a.parse_args(argv)


def main():
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    args = arguments()
    args.out = os.path.normpath(args.out)
    for name, path in (("the folder", os.getcwd()), ("--out", args.out), ("--prefix", args.prefix), ("--cuda", args.cuda or "")):
        if re.search(r"[|\r\n]", path):
            sys.exit(f"configure.py: {name} {path!r}: ninja accepts neither '|' nor a line end in a path")
    args.prefix = os.path.abspath(os.path.expanduser(args.prefix))
    if args.install_deps:
        install_deps.run(args)
    have = parts.find(args)
    if not args.quiet:
        print("\n".join(p.line() for p in have.values()))
    if not have["cuda.h"].where:
        sys.exit("configure.py: cuda.h not found: add --cuda DIR, or run ./configure.py --install-deps")
    if not have["nvcc"].where and not have["NVRTC"].where:
        sys.exit("configure.py: neither nvcc nor NVRTC was found, and gpuload's own kernels are CUDA C++: add --cuda DIR, or run ./configure.py --install-deps")
    path = "build.ninja" if args.out == "build" else f"{args.out}/build.ninja"
    os.makedirs(args.out, exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        rules.write(f, args, have)


if __name__ == "__main__":
    main()
