#!/usr/bin/env python3
"""racecheck finds every planted race in tests/softcuda/tools/faults/racecheck with both accesses, and reports nothing for the correct variants."""
import os, re, sys, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from planted import Planted

FAULTS = Planted("racecheck")
PLACE = r"    .* by thread \d+,\d+,\d+ of block \d+,\d+,\d+ of (\w+): \S*\.ptx:\d+ \(.*\.cu:\d+"


class Races(unittest.TestCase):
    def test_each_race_is_found_with_both_places(self):
        for path in FAULTS.wrong:
            with self.subTest(path):
                status, _, text = FAULTS.run(path, "--racecheck")
                self.assertEqual(status, 1, text)
                report = text[text.index("gpuload racecheck: race: "):].splitlines()
                self.assertIn(FAULTS.expectation(path), report[0])
                self.assertEqual(re.match(PLACE, report[1])[1], path[:-4], text)
                self.assertEqual(re.match(PLACE, report[2])[1], path[:-4], text)

    def test_the_right_variants_are_silent(self):
        for path in FAULTS.right:
            with self.subTest(path):
                status, _, text = FAULTS.run(path, "--racecheck")
                self.assertEqual((status, text), (0, "gpuload racecheck: no errors\n"))

    def test_an_arrival_at_the_mbarrier_of_another_block_is_followed(self):
        status, out, text = FAULTS.run(os.path.join(HERE, "remote_mbarrier.ptx"), "--grid", "2", "--block", "32", "--racecheck", "out:u32[2]")
        self.assertEqual((status, text), (0, "gpuload racecheck: no errors\n"), out)

    def test_volatile_accesses_do_not_race_with_each_other_by_the_letter_of_ptx(self):
        for name in "volatile_tree", "volatile_lanes", "volatile_rounds":
            with self.subTest(name):
                status, _, text = FAULTS.run(f"{name}.ptx", "--racecheck", "--racecheck-ptx")
                self.assertEqual((status, text), (0, "gpuload racecheck: no errors\n"))

    def test_a_pair_of_lines_is_reported_once(self):
        for name in "volatile_lanes", "read_after_atomics", "histogram":
            with self.subTest(name):
                text = FAULTS.run(f"{name}.ptx", "--racecheck")[2]
                places = [tuple(sorted(re.findall(r"\(.*\.cu:(\d+)", report)[:2])) for report in text.split("race: ")[1:]]
                self.assertTrue(places)
                self.assertEqual(len(places), len(set(places)), text)

    def test_there_are_20_races_each_with_a_right_variant(self):
        FAULTS.assert_pairs(self, 20)


if __name__ == "__main__":
    unittest.main()
