#!/usr/bin/env python3
"""Fail if a C file differs from what clang-format makes of it with .clang-format.

The result depends on the version, so that only VERSION decides; without it the test is skipped.  To format a file:
clang-format-19 -i FILE.  A table that is easier to read in columns stands between the comments clang-format off and on.
"""
import concurrent.futures, os, shutil, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(ROOT)
VERSION, ONE_RUN = 19, 100


def errors(tool, paths):
    """Return lines of the form file:line:column: error: ..."""
    r = subprocess.run([tool, "--style=file", "--dry-run", "-Werror", *paths], capture_output=True, text=True, check=False)
    found = [line for line in r.stderr.splitlines() if ": error: " in line]
    return found or ([r.stderr] if r.returncode else [])


tool = shutil.which(f"clang-format-{VERSION}")
if not tool:
    print(f"skipped: no clang-format-{VERSION}")
    sys.exit(77)
try:
    listed = subprocess.run(["git", "ls-files", "*.c", "*.h", "*.cuh"], capture_output=True, text=True, check=True).stdout.split()
except (OSError, subprocess.CalledProcessError):
    print("skipped: not a git checkout")
    sys.exit(77)
paths = [p for p in listed if os.path.exists(p)]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    bad = [e for found in pool.map(lambda i: errors(tool, paths[i:i + ONE_RUN]), range(0, len(paths), ONE_RUN)) for e in found]
print("\n".join(bad[:20] + [f"{len(bad)} places differ: clang-format-{VERSION} -i FILE..."]), file=sys.stderr) if bad else None
sys.exit(bool(bad))
