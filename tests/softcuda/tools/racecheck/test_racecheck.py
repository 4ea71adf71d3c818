#!/usr/bin/env python3
"""Every planted race in tests/softcuda/tools/faults/racecheck is found with both places, and the right variants are silent."""
import glob, os, re, subprocess, sys, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = os.path.join(os.path.dirname(HERE), "faults", "racecheck")
FILES = sorted(glob.glob("*.ptx", root_dir=FAULTS))
PLACE = r"    .* by thread \d+,\d+,\d+ of block \d+,\d+,\d+ of (\w+): \S*\.ptx:\d+ \(.*\.cu:\d+"


def check(path):
    run = subprocess.run(["gpuload", "run", path, "--racecheck"], cwd=FAULTS, capture_output=True, text=True, timeout=300)
    return run.returncode, run.stderr


def expectation(path):
    with open(os.path.join(FAULTS, path), encoding="utf-8") as f:
        return re.search(r"^// expect: (.*)$", f.read(), re.M)[1]


class Races(unittest.TestCase):
    def test_each_race_is_found_with_both_places(self):
        for path in [f for f in FILES if not f.endswith("_right.ptx")]:
            with self.subTest(path):
                status, text = check(path)
                self.assertEqual(status, 1, text)
                report = text[text.index("gpuload racecheck: race: "):].splitlines()
                self.assertIn(expectation(path), report[0])
                self.assertEqual(re.match(PLACE, report[1])[1], path[:-4], text)
                self.assertEqual(re.match(PLACE, report[2])[1], path[:-4], text)

    def test_the_right_variants_are_silent(self):
        for path in [f for f in FILES if f.endswith("_right.ptx")]:
            with self.subTest(path):
                status, text = check(path)
                self.assertEqual((status, text), (0, "gpuload racecheck: no errors\n"))

    def test_there_are_20_races_each_with_a_right_variant(self):
        right = [f for f in FILES if f.endswith("_right.ptx")]
        self.assertGreaterEqual(len(right), 20)
        self.assertEqual(sorted(f.replace("_right", "") for f in right), [f for f in FILES if f not in right])


if __name__ == "__main__":
    if not FILES:
        sys.exit("no planted races")
    unittest.main()
