"""outcomes.py — writes the outcome of each test to $GPULOAD_OUTCOMES as soon as it ends, so that a crash loses nothing.

It is a plug-in of pytest (`pytest -p outcomes FILE`), and a program that runs the tests of a module with unittest (`outcomes.py MODULE`).
Each line is {"test", "outcome", "why"}; the outcome is begun, passed, failed or skipped.  Tests that the file already names are not run.
"""
import json, os, sys, unittest

PATH = os.environ["GPULOAD_OUTCOMES"]
ORDER = ("passed", "skipped", "failed")  # a test's outcome is the last in this order among those of its set-up, call and tear-down
now = {}


def write(test, outcome, why=""):
    with open(PATH, "a", encoding="utf-8") as f:
        f.write(json.dumps({"test": test, "outcome": outcome, "why": why}) + "\n")


def already_written():
    with open(PATH, encoding="utf-8") as f:
        return {json.loads(line)["test"] for line in f}


# ---- pytest --------------------------------------------------------------------------------------------------


def reason(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr or "").strip()


def pytest_collection_modifyitems(items):
    done = already_written()
    items[:] = [item for item in items if item.nodeid not in done]


def pytest_collectreport(report):
    if report.failed:
        write(f"{report.nodeid} (collection)", "failed", reason(report))


def pytest_runtest_logstart(nodeid):
    now[nodeid] = ("passed", "")
    write(nodeid, "begun")


def pytest_runtest_logreport(report):
    outcome = report.outcome
    if outcome == "rerun":   # pytest-rerunfailures runs the test again
        now[report.nodeid] = ("passed", "")
    elif ORDER.index(outcome) > ORDER.index(now[report.nodeid][0]):
        now[report.nodeid] = (outcome, reason(report) if outcome == "failed" else "")


def pytest_runtest_logfinish(nodeid):
    write(nodeid, *now.pop(nodeid))


# ---- unittest ------------------------------------------------------------------------------------------------


class Log(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.outcome = ("passed", "")
        write(test.id(), "begun")

    def stopTest(self, test):
        super().stopTest(test)
        write(test.id(), *self.outcome)

    def bad(self, test, error):
        why = f"{error[0].__name__}: {error[1]}"
        if isinstance(test, unittest.TestCase):
            self.outcome = ("failed", why)
        else:   # `test` is the set-up of a class or module
            write(test.id(), "failed", why)

    def addError(self, test, err):
        self.bad(test, err)

    def addFailure(self, test, err):
        self.bad(test, err)

    def addSubTest(self, test, subtest, err):
        if err:
            self.bad(test, err)

    def addUnexpectedSuccess(self, test):
        self.outcome = ("failed", "succeeds, but a failure is expected")

    def addExpectedFailure(self, test, err):
        self.outcome = ("skipped", "")

    def addSkip(self, test, reason):
        if isinstance(test, unittest.TestCase) and hasattr(self, "outcome"):
            self.outcome = ("skipped", "")
        else:   # `test` is a class, which is skipped as a whole
            write(test.id(), "skipped")


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


if __name__ == "__main__":
    left_out = already_written()
    tests = unittest.defaultTestLoader.loadTestsFromName(sys.argv[1])
    unittest.TestSuite(t for t in each(tests) if t.id() not in left_out).run(Log())
