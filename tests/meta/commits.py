#!/usr/bin/env python3
"""Fail if the subject of a commit is longer than 72 columns or lacks its module.

A subject reads `module: imperative`, or `module, module: imperative`.  Commits up to BASE are older than the rule.
"""
import os, re, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BASE = "250a90e"
COLUMNS = 72
SUBJECT = re.compile(r"[\w./*-]+(, [\w./*-]+)*: \S")


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)


def errors(log):
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > COLUMNS:
            yield f"{commit}: the subject has {len(subject)} columns, the limit is {COLUMNS}: {subject}"
        if not SUBJECT.match(subject):
            yield f"{commit}: the subject must be 'module: imperative': {subject}"


try:
    known = git("merge-base", "--is-ancestor", BASE, "HEAD").returncode == 0
except FileNotFoundError:
    known = False
if not known:
    print(f"skipped: no git history that contains {BASE}")
    sys.exit(77)
bad = list(errors(git("log", "--no-merges", "--format=%h %s", f"{BASE}..HEAD").stdout))
print("\n".join(bad), file=sys.stderr) if bad else None
sys.exit(bool(bad))
