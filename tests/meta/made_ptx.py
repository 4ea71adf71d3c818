#!/usr/bin/env python3
"""made_ptx.py — is every .ptx that is made of a .cu beside it made of what that .cu is now?

    tests/meta/made_ptx.py            fails, and names those that are not
    tests/meta/made_ptx.py --write    makes them anew

The command stands in the .cu's first comment: nvcc -ptx ... > FILE.ptx.  Compilers of different versions make different
code of the same source, so without the one that made a file nothing can be said of it: that is skipped (77)."""
import os, re, shutil, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(ROOT)
COMMAND = re.compile(r"^ \*\s+(nvcc -ptx .*?> (\S+\.ptx))(?:\s|$)", re.M | re.S)
MAKER = re.compile(r"^// Cuda compilation tools, (.*)$", re.M)


def commands():
    """(command, file) of each .cu that tells."""
    files = subprocess.run(["git", "ls-files", "*.cu"], capture_output=True, text=True, check=True).stdout.split()
    for path in files:
        with open(path, encoding="utf-8") as f:
            head = f.read().split("*/")[0]
        for command, made in COMMAND.findall(head):
            yield re.sub(r"\n \*\s+", " ", command), made


def code(text):
    """Without what names the compiler's run alone: comments, and a hash in the names of what is local."""
    return re.sub(r"_INTERNAL_[0-9a-f]{8}_", "_INTERNAL_", re.sub(r"^//.*\n", "", text, flags=re.M))


def main(write):
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout if nvcc else ""
    path = os.pathsep.join([os.path.dirname(nvcc or ""), os.environ["PATH"]])
    stale, n_other = [], 0
    for command, made in commands():
        with open(made, encoding="utf-8") as f:
            before = f.read()
        if not write and not any(f"Cuda compilation tools, {m}" in version for m in MAKER.findall(before)):
            n_other += 1
            continue
        now = subprocess.run(["bash", "-c", "set -o pipefail; " + command.rsplit(">", 1)[0]], env={**os.environ, "PATH": path},
                             capture_output=True, text=True, check=True).stdout
        if code(now) == code(before):
            continue
        stale.append(made)
        if write:
            with open(made, "w", encoding="utf-8") as f:
                f.write(now)
    for made in stale:
        print(f"{made}: {'made anew' if write else 'is not what its .cu is: tests/meta/made_ptx.py --write'}", file=sys.stderr)
    if stale and not write:
        return 1
    if n_other:
        print(f"skipped: {n_other} files were made by a compiler that is not here")
        return 77
    return 0


sys.exit(main("--write" in sys.argv[1:]))
