#!/usr/bin/env python3
"""Ranks on two hosts with two wires use both: the blocks take turns, whatever the number of NICs on each side."""
import os, re, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bootstrap/hosts"))
from namespaces import ROOT, TwoHosts

GPULOAD = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"), "gpuload")
LONG = 120  # seconds; a passing test never takes that long
BYTES = 4 << 20
WIRES = ("wire", "wire2")


class Nics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = TwoHosts().__enter__()
        cls.addClassCleanup(cls.hosts.__exit__)
        cls.hosts.add_wire("wire2", "10.99.78")
        cls.hosts.await_wires(*WIRES)
        cls.port = 29700

    def run_job(self, layout, nics, *options):
        """Run one call as a job; nics: the NICs of each host.  Return the exit statuses and the output of the ranks."""
        type(self).port += 1
        job = dict(GPULOAD_COMM_SIZE=str(len(layout)), GPULOAD_COMM_JOB=f"nics-{self.hosts.tag}-{self.port}", GPULOAD_COMM_SECRET="a secret of the tests",
                   GPULOAD_COMM_ADDRESS=f"10.99.77.1:{self.port}")
        ranks = [self.hosts.start(h, [GPULOAD, "comm", *options, "--driver", "soft", "--transport", "net", "--provider", "tcp", "--out-of-place",
                                      *(["--nic", nics[h]] if nics[h] else [])], GPULOAD_COMM_RANK=str(r), **job) for r, h in enumerate(layout)]
        out = [rank.communicate(timeout=LONG) for rank in ranks]
        return [rank.returncode for rank in ranks], "".join(o + e for o, e in out)

    def traffic(self):
        return {(h, w): self.hosts.sent_bytes(h, w) for h in "ab" for w in WIRES}

    def check_both_wires(self, layout, nics, pairs, call="allreduce"):
        before = self.traffic()
        statuses, out = self.run_job(layout, nics, call, "--bytes", str(BYTES), "--iters", "2", "--blocks", "4")
        self.assertEqual(set(statuses), {0}, out)
        self.assertIn("# wrong elements: 0 OK", out)
        self.assertIn(pairs, out)
        for (host, wire), n_bytes in self.traffic().items():
            with self.subTest(host=host, wire=wire):
                self.assertGreater(n_bytes - before[host, wire], BYTES // 2)

    def test_two_nics_on_each_side_carry_half_of_the_blocks_each(self):
        self.check_both_wires("ab", {"a": "wire,wire2", "b": "wire,wire2"}, "libfabric, wire - wire, wire2 - wire2, staged")

    def test_several_ranks_share_the_nics_of_their_hosts(self):
        self.check_both_wires("abab", {"a": "wire,wire2", "b": "wire,wire2"}, "libfabric, wire - wire, wire2 - wire2, staged", "alltoall")

    def test_different_numbers_of_nics_are_paired_modulo(self):
        for one in "ab":
            with self.subTest(one_nic=one):
                nics = {"a": "wire,wire2", "b": "wire,wire2", one: None}
                statuses, out = self.run_job("ab", nics, "allreduce", "--bytes", "64K", "--iters", "1")
                self.assertEqual(statuses, [0, 0], out)
                self.assertRegex(out, r"libfabric, wire - (wire2?), wire2 - \1, ")
                self.assertRegex(out, r"libfabric, (wire2?) - wire, \1 - wire2, ")
                self.assertIn("# wrong elements: 0 OK", out)

    def test_one_named_nic_is_the_one_that_is_used(self):
        before = self.traffic()
        statuses, out = self.run_job("ab", {"a": "wire2", "b": "wire2"}, "allreduce", "--bytes", str(BYTES), "--iters", "1")
        self.assertEqual(statuses, [0, 0], out)
        for h in "ab":
            self.assertGreater(self.hosts.sent_bytes(h, "wire2") - before[h, "wire2"], BYTES)
            self.assertLess(self.hosts.sent_bytes(h, "wire") - before[h, "wire"], BYTES)

    def test_a_nic_that_is_not_there_is_named_by_all_ranks(self):
        statuses, out = self.run_job("ab", {"a": "wire,wire2", "b": "wire,wire7"}, "allreduce", "--bytes", "4K")
        self.assertEqual(statuses, [1, 1], out)
        self.assertRegex(out, r"NIC 'wire7': .*")


if __name__ == "__main__":
    try:
        TwoHosts().__enter__().__exit__()
    except OSError as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
