#!/usr/bin/env python3
"""racecheck reports nothing for the kernels of clean.cu, in several orders of threads, and with the option ptx."""
import os, re, shlex, subprocess, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PTX = os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", "build")), "kernels/tests/softcuda/tools/racecheck/clean.ptx")


def kernels():
    """Return the name and the arguments of each kernel."""
    with open(os.path.join(HERE, "clean.cu"), encoding="utf-8") as f:
        return [(name, shlex.split(words)) for words, name in re.findall(r"^// run: (.*)\nKERNEL (\w+)", f.read(), re.M)]


def racecheck(name, words, *options):
    run = subprocess.run(["gpuload", "run", PTX, "--driver", "soft", "--kernel", name, *words, "--racecheck", *options], cwd=HERE,
                         capture_output=True, text=True, timeout=300)
    return run.returncode, run.stderr


class Clean(unittest.TestCase):
    def assert_silent(self, *options):
        for name, words in kernels():
            with self.subTest(name):
                self.assertEqual(racecheck(name, words, *options), (0, "gpuload racecheck: no errors\n"))

    def test_no_race_is_reported(self):
        self.assertGreaterEqual(len(kernels()), 36)
        self.assert_silent()

    def test_no_race_is_reported_in_other_orders(self):
        for seed in "1", "2":
            for name, words in kernels():
                with self.subTest(name, seed=seed):
                    status, text = racecheck(name, words, "--schedule", seed)
                    self.assertEqual(status, 0, text)
                    self.assertIn("gpuload racecheck: no errors\n", text)

    def test_no_race_is_reported_by_the_letter_of_ptx(self):
        self.assert_silent("--racecheck-ptx")


if __name__ == "__main__":
    unittest.main()
