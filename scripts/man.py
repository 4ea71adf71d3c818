#!/usr/bin/env python3
"""man.py — generate the section 3 man pages from the headers.

    scripts/man.py OUT_DIR HEADER...

Each header gets a page gpuload-<folder>-<name>.3, and each function a page that includes it, so that
`man gpul_driver_open` works.  The parts of a header become these sections:

    /* name.h — one line.              NAME
     * more ... */                     DESCRIPTION
    /** What a function does.          FUNCTIONS, with its prototype
     * @param  ...
     * Errors  ... */
    everything else                    DECLARATIONS, unchanged
"""
import os, re, sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scripts.modules import DATE, VERSION

COMMENT = re.compile(r"/\*+(.*?)\*/", re.S)
FUNCTION = re.compile(r"^(?!typedef\b|#| \*)[A-Za-z_][\w\s*]*?\b(gpul_\w+)\(", re.M)
DOCUMENTED = re.compile(r"/\*\*((?:(?!\*/).)*)\*/\s*\n(.*?;)", re.S)


def roff(text):
    """Escape the characters that are special in roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.M)


def plain(comment):
    """The text of a comment without its asterisks."""
    return re.sub(r"^[ \t]*\*? ?", "", comment, flags=re.M).strip("\n ")


def as_is(text):
    return f".nf\n{roff(text.expandtabs(8))}\n.fi"


def parameters(doc):
    """The contract as paragraphs: the text, then a tagged paragraph for each @x, Errors, Threads and Source."""
    out, tag = [], re.compile(r"^(@\w+|Errors|Threads|Source)\s+(.*)")
    for line in plain(doc).split("\n"):
        if hit := tag.match(line):
            out.append(f".TP\n.B {roff(hit[1].removeprefix('@'))}\n{roff(hit[2])}")
        elif line.strip():
            out.append(roff(line.strip()))
        else:
            out.append(".PP")
    if "Errors " in doc and "Threads " not in doc:
        out.append(".TP\n.B Threads\nany thread may call")  # the default of core/error.h
    return "\n".join(out).replace(".PP\n.TP", ".TP")


def page(path, text):
    """The page of one header and the names of its functions."""
    guard = re.search(r"#define GPULOAD_\w+_H\n", text)
    top = plain(COMMENT.match(text)[1])
    first, _, rest = top.partition("\n")
    title = first.split(" — ", 1)[-1].rstrip(".")
    body = text[guard.end():text.rindex("#endif")].strip() if guard else text
    name = page_name(path)
    functions = list(dict.fromkeys(FUNCTION.findall(body)))
    out = [f'.TH {name.upper()} 3 "{DATE}" "gpuload {VERSION}" "gpuload library"', ".SH NAME",
           f"{roff(', '.join([name, *functions]))} \\- {roff(title)}", ".SH SYNOPSIS", ".nf",
           f'#include "{roff(path)}"', ".PP", "cc ... $(pkg\\-config \\-\\-cflags \\-\\-libs gpuload)", ".fi"]
    if rest.strip():
        out += [".SH DESCRIPTION", as_is(rest.strip("\n"))]
    documented = [m for m in DOCUMENTED.finditer(body) if FUNCTION.match(m[2])]
    if documented:
        out.append(".SH FUNCTIONS")
    for m in documented:
        out += [f".SS {FUNCTION.match(m[2])[1]}()", as_is(m[2]), ".PP", parameters(m[1])]
    for m in reversed(documented):
        body = body[:m.start()] + body[m.end():]
    body = re.sub(r"\n{3,}", "\n\n", body).strip()
    if body:
        out += [".SH DECLARATIONS", as_is(body)]
    out += [".SH SEE ALSO", ".BR gpuload (1)"]
    return "\n".join(out) + "\n", functions


def page_name(path):
    return "gpuload-" + path.removesuffix(".h").replace("/", "-")


def main(out, headers):
    os.makedirs(out, exist_ok=True)
    for path in headers:
        with open(path, encoding="utf-8") as f:
            path = path.removeprefix("include/")
            text, functions = page(path, f.read())
        pages = {page_name(path): text}
        pages.update((fn, f".so man3/{page_name(path)}.3\n") for fn in functions)
        for name, content in pages.items():
            with open(f"{out}/{name}.3", "w", encoding="utf-8") as f:
                f.write(content)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
