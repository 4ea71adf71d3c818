#!/usr/bin/env python3
"""ptx_cases.py — a build tool: write the PTX files of a folder, from texts in which they share their first and last lines.

    ptx_cases.py FOLDER OUT    write OUT/NAME.ptx for each case in FOLDER/*.cases, and copy FOLDER/*.ptx

A section of a .cases file begins with `=== NAME` or `=== NAME: TEXT`, and contains the lines of one case. TEXT is what a test expects, and becomes the first line,
`// expect: TEXT`. A section whose name has capitals only is text for the others: HEAD is put before a case that has no .version, and a line that is
the name of another such section is replaced by its text.
"""
import glob, os, re, shutil, sys

SECTION = re.compile(r"^=== (\w+)(?:: (.*))?\n", re.M)


def read_cases(text):
    """Return {name: text of the case}."""
    _, *parts = SECTION.split(text)
    sections = list(zip(parts[::3], parts[1::3], parts[2::3]))
    shared = {name: body for name, _, body in sections if name.isupper()}
    cases = {}
    for name, expected, body in sections:
        if name not in shared:
            whole = re.search(r"^\.version", body, re.M)
            body = re.sub(r"^([A-Z]+)\n", lambda word: shared.get(word[1], word[0]), body, flags=re.M)
            cases[name] = (f"// expect: {expected}\n" if expected else "") + ("" if whole else shared["HEAD"]) + body
    return cases


def main(folder, out):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    for path in glob.glob(f"{glob.escape(folder)}/*.ptx"):
        shutil.copy(path, out)
    for path in glob.glob(f"{glob.escape(folder)}/*.cases"):
        with open(path, encoding="utf-8") as f:
            for name, text in read_cases(f.read()).items():
                with open(f"{out}/{name}.ptx", "x", encoding="utf-8") as f:
                    f.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
