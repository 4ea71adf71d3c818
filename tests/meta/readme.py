#!/usr/bin/env python3
"""Fail if the folder map of README.md differs from MODULES, or a folder lacks its README.

The map is a table whose rows are | `folder/` | what it is | folders it may use |.  The README.md of a folder and of each sub-folder in
SUBFOLDERS begins with `# folder — what it is` and has the folders that it uses, the folders that use it, and a command to try.
"""
import os, re, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
os.chdir(ROOT)
from scripts.modules import MODULES, SUBFOLDERS

ROW = re.compile(r"^\| `([\w/]+)/` \|[^|]*\|([^|]*)\|$", re.M)


def read(path):
    try:
        with open(path, encoding="utf-8") as f:
            return f.read()
    except FileNotFoundError:
        return ""


def map_errors():
    rows = {folder: [u.strip() for u in uses.split(",") if u.strip() not in ("", "–")]
            for folder, uses in ROW.findall(read("README.md"))}
    for m in [m for m in MODULES if m not in rows]:
        yield f"README.md: the folder map has no row for {m}/"
    for folder, uses in rows.items():
        if folder in MODULES and uses != MODULES[folder]:
            yield f"README.md: {folder}/ may use {', '.join(MODULES[folder]) or 'nothing'}, the map has {', '.join(uses)}"


def folder_errors():
    for m in [*MODULES, *(f"{m}/{s}" for m, subfolders in SUBFOLDERS.items() for s in subfolders if s)]:
        text = read(f"{m}/README.md")
        if not text.startswith(f"# {m} — "):
            yield f"{m}/README.md: must begin with '# {m} — what it is'"
        elif not all(re.search(w, text) for w in (r"\bUses\b", r"\bused by\b", r"\bTry\b")):
            yield f"{m}/README.md: must say 'Uses ...', 'used by ...' and 'Try ...'"


bad = [*map_errors(), *folder_errors()]
print("\n".join(bad), file=sys.stderr) if bad else None
sys.exit(bool(bad))
