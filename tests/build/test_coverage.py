#!/usr/bin/env python3
"""scripts/coverage.py: counts of executed lines, merged over all objects of a source."""
import os, shutil, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCE = """int twice(int x);
int twice(int x)
{
	if (x)
		return 2 * x;
	return 0;
}
int main(void)
{
	return twice(ARGUMENT) != 2 * ARGUMENT;
}
"""


def report(folder, *arguments):
    r = subprocess.run([sys.executable, f"{ROOT}/scripts/coverage.py", *arguments], cwd=folder, capture_output=True, text=True)
    return r.returncode, r.stdout + r.stderr


@unittest.skipUnless(shutil.which("gcc") and shutil.which("gcov"), "no gcc with gcov")
class Coverage(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        for f in ("core", "b/obj/core"):
            os.makedirs(f"{self.folder}/{f}")
        with open(f"{self.folder}/core/x.c", "w", encoding="utf-8") as f:
            f.write(SOURCE)

    def tearDown(self):
        shutil.rmtree(self.folder)

    def build(self, name, argument, run=True):
        o, exe = f"b/obj/core/{name}.o", f"b/{name}"
        subprocess.run(["gcc", "--coverage", f"-DARGUMENT={argument}", "-c", "core/x.c", "-o", o], cwd=self.folder, check=True)
        subprocess.run(["gcc", "--coverage", o, "-o", exe], cwd=self.folder, check=True)
        if run:
            subprocess.run([f"{self.folder}/{exe}"], cwd=self.folder, check=True)

    def test_counts_the_executed_lines_of_a_folder(self):
        self.build("x", 1)
        status, text = report(self.folder, "--build", "b", "--cc", "gcc")
        self.assertEqual(status, 0, text)
        self.assertRegex(text, r"(?m)^core +5 +6   83\.3 %$")

    def test_a_line_is_executed_if_one_object_of_the_source_executed_it(self):
        self.build("x.base", 1)
        self.build("x.v3", 0)
        self.assertRegex(report(self.folder, "--build", "b", "--cc", "gcc")[1], r"(?m)^all +6 +6  100\.0 %$")

    def test_a_program_that_never_ran_has_no_executed_lines(self):
        self.build("x", 1, run=False)
        self.assertRegex(report(self.folder, "--build", "b", "--cc", "gcc")[1], r"(?m)^core +0 +6    0\.0 %$")

    def test_a_build_without_counters_is_refused(self):
        status, text = report(self.folder, "--build", "b", "--cc", "gcc")
        self.assertEqual(status, 1)
        self.assertIn("configure with --coverage", text)


if __name__ == "__main__":
    unittest.main()
