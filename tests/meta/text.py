#!/usr/bin/env python3
"""Fail on text that must not be committed: paths of one machine, getenv() in the library, whitespace at line ends, files that are not UTF-8."""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(ROOT)

# The names are split, so that this file itself does not match the expression.
MACHINE = re.compile(r"(?<![\w.$}])/(" + "home" + r"|" + "root" + r"|" + "work" + r"|Users)/\w")
# getenv() is unsafe in a set-user-ID program: it must not take paths from its caller's environment, which secure_getenv() prevents.
UNSAFE = re.compile(r"(?<![\w])getenv\(")
BINARY = (".npy", ".bin", ".raw", ".cubin", ".fatbin", ".png")


def tracked():
    r = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True)
    if r.returncode == 0 and r.stdout:
        return [p for p in r.stdout.split("\0") if p and os.path.isfile(p) and not os.path.islink(p)]
    skip = ("build", ".git", "__pycache__")  # an unpacked archive has no git history
    return [os.path.join(d, n)[2:] for d, _, names in os.walk(".")
            if not any(part.startswith(skip) for part in d.split("/")[1:]) for n in names]


def complaints(path):
    with open(path, "rb") as f:
        raw = f.read()
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        if not path.startswith("tests/"):  # tests contain invalid input on purpose
            yield f"{path}: not UTF-8"
        return
    for n, line in enumerate(text.split("\n"), 1):
        if MACHINE.search(line):
            yield f"{path}:{n}: a path that exists on one machine only: {line.strip()[:80]}"
        if UNSAFE.search(line) and path.endswith((".c", ".h")) and not path.startswith(("tests/", "examples/", "bench/", "demo/")):
            yield f"{path}:{n}: getenv: write secure_getenv"
        if path.endswith((".c", ".h", ".py", ".md", ".bats", ".cu", ".cuh")) and line != line.rstrip():
            yield f"{path}:{n}: whitespace at the end of the line"
    if path.endswith((".c", ".h", ".py", ".md")) and text and not text.endswith("\n"):
        yield f"{path}: no newline at the end"


bad = [b for p in tracked() if not p.endswith(BINARY) for b in complaints(p)]
print("\n".join(bad), file=sys.stderr) if bad else None
sys.exit(bool(bad))
