#!/usr/bin/env python3
"""Every order bug in tests/softcuda/tools/faults/schedule is found; for the right variants, all orders are proved to be alike.

A file has two lines: `// gpuload run: ARGUMENTS`, which gpuload reads, and `// expect: TEXT`: a part of what the tool reports.
"""
import glob, os, re, subprocess, sys, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
FAULTS = os.path.join(os.path.dirname(HERE), "faults", "schedule")
FILES = sorted(glob.glob("*.ptx", root_dir=FAULTS))
WRONG = [f for f in FILES if not f.endswith("_right.ptx")]
sys.path.insert(0, HERE)
import random_orders


def gpuload(path, *words):
    run = subprocess.run(["gpuload", "run", path, *words], cwd=FAULTS, capture_output=True, text=True, timeout=300)
    return run.returncode, run.stdout, run.stderr


def expectation(path):
    with open(os.path.join(FAULTS, path), encoding="utf-8") as f:
        return re.search(r"^// expect: (.*)$", f.read(), re.M)[1]


class Orders(unittest.TestCase):
    def test_each_wrong_order_is_found_and_each_right_kernel_is_proved(self):
        self.assertGreaterEqual(len(WRONG), 10)
        self.assertEqual([f.replace(".ptx", "_right.ptx") for f in WRONG], [f for f in FILES if f not in WRONG])
        for path in FILES:
            with self.subTest(path):
                status, _, text = gpuload(path, "--schedule", "all")
                self.assertEqual(status, 1 if path in WRONG else 0, text)
                self.assertIn(expectation(path), text)

    def test_the_string_of_a_schedule_replays_its_result(self):
        """The report has both values of a word: the program gets the first one, by the string the other one."""
        for path in WRONG:
            with self.subTest(path):
                _, _, text = gpuload(path, "--schedule", "all")
                offset, first, other = re.search(r"at offset (\d+) of .*: 0x(\w+).* by the first schedule, 0x(\w+)", text).groups()
                string = re.search(r"--schedule (replay:\S+)", text)[1]
                for words, want in (("all",), first), ((string,), other):
                    stdout = gpuload(path, "--show", "all", "--schedule", *words)[1]
                    shown = re.search(r"arg 0 .*?: ([\d ]*)", stdout)[1].split()
                    self.assertEqual(int(shown[int(offset) // 4]), int(want, 16), text)

    def test_the_report_names_both_accesses(self):
        _, _, text = gpuload("lost_update.ptx", "--schedule", "all")
        self.assertRegex(text, r"the order of two accesses was reversed:\n +lost_update.ptx:24: st by block 0, warp 1, lane 0\n"
                               r" +lost_update.ptx:22: ld by block 0, warp 2, lane 0\n")

    def test_a_seed_has_always_the_same_order_and_others_have_others(self):
        shown = [gpuload("missing_barrier.ptx", "--show", "all", "--schedule", str(seed))[1] for seed in [*range(12), *range(12)]]
        results = [re.search("arg 0.*", s)[0] for s in shown]
        self.assertEqual(results[:12], results[12:])
        self.assertGreater(len(set(results)), 1)

    def test_a_limit_is_not_called_complete(self):
        status, _, text = gpuload("queue_order_right.ptx", "--schedule", "all", "--max", "5")
        self.assertEqual(status, 0)
        self.assertIn("5 schedules tried, with the same result; not complete: --max is reached", text)

    def test_the_reduction_finds_what_a_search_of_all_orders_finds(self):
        random_orders.main(6, 36)


if __name__ == "__main__":
    unittest.main()
