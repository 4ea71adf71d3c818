"""Python functions that run the gpuload command: lists of kernels, HTML pages and SVG pictures, which Jupyter can show."""
from __future__ import annotations

import json
import os
import subprocess
import tempfile
from html import escape
from typing import Any

from gpuload._library import Error, find, use_wheels


def program() -> str:
    """The path of the command gpuload, to start it without Python."""
    return find("gpuload")


def prefix() -> str:
    """The folder with the library, include/ and pkgconfig/ of the wheel, for C programs."""
    return os.path.dirname(find("libgpuload.so.0"))


def _call(*words: str) -> str:
    use_wheels()
    r = subprocess.run([program(), *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if r.returncode:
        lines = [l for l in r.stderr.splitlines() if l.startswith("gpuload ")] or r.stderr.splitlines() or [f"status {r.returncode}"]
        raise Error(lines[-1].split(": ", 1)[-1], r.returncode)
    return r.stdout


class Kernels(list):  # type: ignore[type-arg]
    """A list of kernels, each a dict as in `gpuload ls --json`, with the file and architecture; Jupyter shows it as a table."""

    def _repr_html_(self) -> str:
        names = ("kernel", "arch", "registers", "shared bytes")
        rows = [(k.get("signature") or k["demangled"], k["arch"], k["registers"], k["shared_bytes"]) for k in self]
        head = "".join(f"<th>{n}</th>" for n in names)
        body = "".join("<tr>" + "".join(f"<td>{escape('-' if v is None else str(v))}</td>" for v in row) + "</tr>" for row in rows)
        return f"<table><tr>{head}</tr>{body}</table>"


def ls(path: str | os.PathLike[str], *options: str) -> Kernels:
    """The kernels in a file.

    path     PTX, a cubin, a fatbin, an object, an archive, a library or a program
    options  of `gpuload ls`, such as "--sm", "90" or "--match", "*AllReduce*"
    Returns  Kernels: dicts with name, demangled, params, registers, shared_bytes, signature, file, kind, arch ...
    Errors   Error: the file cannot be read, or has no device code
    Threads  any thread may call
    Source   `gpuload help ls`, cli/ls/README.md
    """
    listed = json.loads(_call("ls", "--json", *options, "--", os.fspath(path)))
    return Kernels({**kernel, "file": listed["file"], "kind": image["kind"], "arch": image["arch"]}
                   for image in listed["images"] for kernel in image.get("kernels", ()))


class Page:
    """An HTML page that gpuload wrote: `html` is its text; Jupyter shows it in a frame."""

    def __init__(self, html: str):
        self.html = html

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:640px;border:0"></iframe>'


class Picture:
    """An SVG picture that gpuload drew: `svg` is its text; Jupyter shows it."""

    def __init__(self, svg: str):
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg


def _in_file(*words: str, ending: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/page{ending}"
        _call(*words, path)
        with open(path, encoding="utf-8") as f:
            return f.read()


def trace(path: str | os.PathLike[str], *words: str) -> Page:
    """Run a kernel on the software driver and return an HTML page that replays the run step by step (docs/trace.md).

    path     the file, as for run()
    words    arguments and options of `gpuload run`, such as "f64[64]=iota"; none: gpuload infers the arguments
    Returns  a Page
    Errors   Error: the kernel cannot be run, or a tool found an error
    Threads  any thread may call
    Source   `gpuload help run`
    """
    return Page(_in_file("run", "--driver", "soft", os.fspath(path), *words, "--trace", ending=".html"))


def profile(path: str | os.PathLike[str], *words: str) -> Page:
    """Run a kernel on the software driver and return an HTML page with the cost of each source line (docs/profile.md).

    path     the file, as for run()
    words    arguments and options of `gpuload run`; none: gpuload infers the arguments
    Returns  a Page
    Errors   Error: the kernel cannot be run, or a tool found an error
    Threads  any thread may call
    Source   `gpuload help run`
    """
    return Page(_in_file("run", "--driver", "soft", os.fspath(path), *words, "--profile", ending=".html"))


def picture(*words: str, option: str = "--svg") -> Picture:
    """Run a command that draws an SVG, and return its picture.

    words    the command and its arguments: "map", "weights"; "comm", "allreduce", "-n", "4" with option="--trace"
    option   the option of this command that takes the name of the SVG file
    Returns  a Picture
    Errors   Error: the command failed
    Threads  any thread may call
    Source   `gpuload help COMMAND`
    """
    return Picture(_in_file(*words, option, ending=".svg"))


def main() -> Any:
    """Entry point of the gpuload command in a wheel: replaces this process with the compiled program."""
    import sys
    use_wheels()
    try:
        os.execv(program(), ["gpuload", *sys.argv[1:]])
    except Error as e:
        sys.exit(f"gpuload: {e}")
