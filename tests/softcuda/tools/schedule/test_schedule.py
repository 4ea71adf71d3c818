#!/usr/bin/env python3
"""--schedule finds every order bug in tests/softcuda/tools/faults/schedule, and proves that all orders of the correct variants give the same result."""
import os, re, sys, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
import random_orders
from planted import Planted

FAULTS = Planted("schedule")


class Orders(unittest.TestCase):
    def test_each_wrong_order_is_found_and_each_right_kernel_is_proved(self):
        FAULTS.assert_pairs(self, 10)
        for path in FAULTS.files:
            with self.subTest(path):
                status, _, text = FAULTS.run(path, "--schedule", "all")
                self.assertEqual(status, 1 if path in FAULTS.wrong else 0, text)
                self.assertIn(FAULTS.expectation(path), text)

    def test_the_string_of_a_schedule_replays_its_result(self):
        """The report has two values of a word: the first from the program's own order, the second from the order that the printed text replays."""
        for path in FAULTS.wrong:
            with self.subTest(path):
                _, _, text = FAULTS.run(path, "--schedule", "all")
                offset, first, other = re.search(r"at offset (\d+) of .*: 0x(\w+).* by the first schedule, 0x(\w+)", text).groups()
                string = re.search(r"--schedule (replay:\S+)", text)[1]
                for words, want in (("all",), first), ((string,), other):
                    stdout = FAULTS.run(path, "--show", "all", "--schedule", *words)[1]
                    shown = re.search(r"arg 0 .*?: ([\d ]*)", stdout)[1].split()
                    self.assertEqual(int(shown[int(offset) // 4]), int(want, 16), text)

    def test_the_report_names_both_accesses(self):
        _, _, text = FAULTS.run("lost_update.ptx", "--schedule", "all")
        self.assertRegex(text, r"the order of two accesses was reversed:\n +lost_update.ptx:24: st by block 0, warp 1, lane 0\n"
                               r" +lost_update.ptx:22: ld by block 0, warp 2, lane 0\n")

    def test_a_seed_has_always_the_same_order_and_others_have_others(self):
        shown = [FAULTS.run("missing_barrier.ptx", "--show", "all", "--schedule", str(seed))[1] for seed in [*range(12), *range(12)]]
        results = [re.search("arg 0.*", s)[0] for s in shown]
        self.assertEqual(results[:12], results[12:])
        self.assertGreater(len(set(results)), 1)

    def test_a_limit_is_not_called_complete(self):
        status, _, text = FAULTS.run("queue_order_right.ptx", "--schedule", "all", "--max", "5")
        self.assertEqual(status, 0)
        self.assertIn("5 schedules tried, with the same result; not complete: --max is reached", text)

    def test_the_reduction_finds_what_a_search_of_all_orders_finds(self):
        random_orders.main(6, 36)


if __name__ == "__main__":
    unittest.main()
