"""outcomes.py — a plug-in of pytest (-p outcomes) that writes what each test did to $GPULOAD_OUTCOMES at once, so that a crash loses nothing.

Each line is {"test", "outcome", "why"}; the outcome is begun, passed, failed or skipped.  Tests that the file already names are left out.
"""
import json, os

PATH = os.environ["GPULOAD_OUTCOMES"]
ORDER = ("passed", "skipped", "failed")  # of set-up, call and tear-down the worst counts
now = {}


def write(test, outcome, why=""):
    with open(PATH, "a", encoding="utf-8") as f:
        f.write(json.dumps({"test": test, "outcome": outcome, "why": why}) + "\n")


def reason(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr or "").strip()


def pytest_collection_modifyitems(items):
    with open(PATH, encoding="utf-8") as f:
        done = {json.loads(line)["test"] for line in f}
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_collectreport(report):
    if report.failed:
        write(f"{report.nodeid} (collection)", "failed", reason(report))


def pytest_runtest_logstart(nodeid):
    now[nodeid] = ("passed", "")
    write(nodeid, "begun")


def pytest_runtest_logreport(report):
    outcome = report.outcome
    if ORDER.index(outcome) > ORDER.index(now[report.nodeid][0]):
        now[report.nodeid] = (outcome, reason(report) if outcome == "failed" else "")


def pytest_runtest_logfinish(nodeid):
    write(nodeid, *now.pop(nodeid))
