#!/usr/bin/env python3
"""exports.py HEADER... — print the linker's version script of libgpuload.so: it exports the functions of the installed headers."""
import re, sys

NAME = re.compile(r"\b(gpul_\w+)\s*\(|\bextern\s[^;(]*?\b(gpul_\w+)\s*[;\[]")


def names(headers):
    for path in headers:
        with open(path, encoding="utf-8") as f:
            code = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
        yield from (a or b for a, b in NAME.findall(code))


if __name__ == "__main__":
    print("{ global: " + " ".join(f"{name};" for name in sorted(set(names(sys.argv[1:])))) + " local: *; };")
