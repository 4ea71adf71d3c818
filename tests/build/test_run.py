#!/usr/bin/env python3
"""tests/run.py counts the cases of each test, and reports every failure, whatever the test prints."""
import os, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
from tests import run


def counted(text, status=0):
    return run.count_cases(run.Result("group", "name", status, text, 0.0))


class Counting(unittest.TestCase):
    def test_a_silent_process_counts_as_one(self):
        self.assertEqual(counted(""), (1, 0, 0))
        self.assertEqual(counted("", 1), (0, 1, 0))
        self.assertEqual(counted("0 passed\n", 77), (0, 0, 1))

    def test_cmocka_cases_are_counted(self):
        text = "[  PASSED  ] 3 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n[  FAILED  ] 2 test(s), listed below:\n"
        self.assertEqual(counted(text, 2), (3, 2, 1))

    def test_tap_cases_are_counted(self):
        self.assertEqual(counted("1..3\nok 1 a\nnot ok 2 b\nok 3 c # skip no GPU\n", 1), (1, 1, 1))

    def test_unittest_cases_are_counted(self):
        self.assertEqual(counted("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1, skipped=1)\n", 1), (2, 2, 1))
        self.assertEqual(counted("Ran 5 tests in 0.1s\n\nOK (skipped=2)\n"), (3, 0, 2))

    def test_our_own_summary_line_is_counted(self):
        self.assertEqual(counted("1 passed, 0 failed, 0 skipped\n12 passed, 1 failed, 3 skipped\n", 1), (12, 1, 3))

    def test_a_crash_after_a_summary_without_failures_is_a_failure(self):
        self.assertEqual(counted("12 passed, 0 failed, 0 skipped\n", -11), (12, 1, 0))


class Running(unittest.TestCase):
    def check(self, *tests, limit="5", tools="", group="g", j="2"):
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/tests.path", "w", encoding="utf-8") as f:
                f.write(tools)
            with open(f"{d}/tests.list", "w", encoding="utf-8") as f:
                f.writelines(f"{group}\t{i}\t{t}\n" for i, t in enumerate(tests))
            r = subprocess.run([sys.executable, f"{ROOT}/tests/run.py", "--build", d, "--limit", limit, "-j", j],
                               capture_output=True, text=True)
        return r.returncode, r.stdout.splitlines()

    def test_runs_all_tests_and_prints_the_output_of_a_failed_one(self):
        status, lines = self.check("echo quiet", "sh -c 'echo loud; exit 3'", "sh -c 'exit 77'")
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1], "1 passed, 1 failed, 1 skipped")
        self.assertIn("    loud", lines)
        self.assertNotIn("    quiet", lines)

    def test_names_the_failed_tests_and_runs_them_again(self):
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/tests.list", "w", encoding="utf-8") as f:
                f.write(f"g\ta/good\ttrue\ng\ta/bad\ttest -e {d}/mended\ng\tb/bad\tfalse\n")

            def again(*options):
                r = subprocess.run([sys.executable, f"{ROOT}/tests/run.py", "--build", d, *options], capture_output=True, text=True, check=False)
                return r.returncode, r.stdout.splitlines(), r.stderr

            self.assertEqual(again("--failed")[0], 1)
            self.assertIn("no run before", again("--failed")[2])
            status, lines, _ = again()
            self.assertEqual((status, sorted(lines[-3:-1]), lines[-1]), (1, ["failed: a/bad", "failed: b/bad"], "1 passed, 2 failed, 0 skipped"))
            self.assertEqual(again("--match", "^a/")[1][-1], "1 passed, 1 failed, 0 skipped")
            open(f"{d}/mended", "w", encoding="utf-8").close()
            self.assertEqual(again("--failed")[:2][1][-1], "1 passed, 0 failed, 0 skipped")
            self.assertIn("no test failed in the last run", again("--failed")[1])
            self.assertEqual(again("--match", "[")[0], 1)

    def test_stops_a_test_that_exceeds_the_time_limit(self):
        status, lines = self.check("sh -c 'sleep 60 & sleep 60'", limit="1")
        self.assertEqual(status, 1)
        self.assertIn("    stopped: time limit of 1 s exceeded", lines)

    def test_a_test_finds_the_toolkits_programs_that_configure_found(self):
        with tempfile.TemporaryDirectory() as tools:
            os.symlink("/bin/true", f"{tools}/a-tool-of-the-toolkit")
            self.assertEqual(self.check("sh -c 'a-tool-of-the-toolkit'", tools=tools)[0], 0)

    def test_tests_in_guests_run_one_at_a_time(self):
        with tempfile.TemporaryDirectory() as d:
            test = f"sh -c 'mkdir {d}/alone && sleep 0.2 && rmdir {d}/alone'"
            self.assertEqual(self.check(test, test, test, group="vm", j="4")[0], 0)

    def test_names_the_signal_that_ended_a_test(self):
        _, lines = self.check("sh -c 'kill -SEGV $$'")
        self.assertIn("    ended by signal 11 (SIGSEGV)", lines)

    def test_an_empty_list_of_tests_is_a_failure(self):
        self.assertEqual(self.check(), (1, ["0 passed, 0 failed, 0 skipped"]))


if __name__ == "__main__":
    unittest.main()
