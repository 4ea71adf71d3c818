#!/usr/bin/env python3
"""Every planted race in tests/softcuda/tools/faults/racecheck is found with both places, and the right variants are silent."""
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

    def test_there_are_20_races_each_with_a_right_variant(self):
        FAULTS.assert_pairs(self, 20)


if __name__ == "__main__":
    unittest.main()
