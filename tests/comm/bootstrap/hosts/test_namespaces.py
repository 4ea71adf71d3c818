#!/usr/bin/env python3
"""Ranks in two network namespaces, as on two hosts, meet, also under mpirun; messages name a killed rank, a stopped rank and a cut wire."""
import os, signal, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from namespaces import RANK, TwoHosts, why_no_mpirun

LONG = 120  # seconds; a passing test never takes that long


class Namespaces(unittest.TestCase):
    def setUp(self):
        self.hosts = TwoHosts()
        try:
            self.hosts.__enter__()
        except OSError as e:
            self.skipTest(str(e))
        self.addCleanup(self.hosts.__exit__)

    def end(self, p):
        out, err = p.communicate(timeout=LONG)
        return p.returncode, out, err

    def stay(self, layout, **more):
        """Start ranks that exchange blocks until one of them ends, and wait until all are ready."""
        ranks = self.hosts.start_job(layout, [RANK, "stay"], **more)
        for p in ranks:
            line = p.stdout.readline()
            self.assertTrue(line.startswith("ready "), line or p.communicate()[1])
        return ranks

    def expect_names(self, ranks, victim, text):
        """Check that all other ranks end by themselves, with a message."""
        for r, p in enumerate(ranks):
            if r != victim:
                status, _, err = self.end(p)
                self.assertEqual(status, 1, err)
                self.assertRegex(err, text)

    def test_ranks_meet_and_exchange_blocks(self):
        ranks = self.hosts.start_job("aabba", [RANK, "meet"])
        for r, p in enumerate(ranks):
            self.assertEqual(self.end(p), (0, f"rank {r} of 5 by gpuload: sum 10\n", ""))

    def test_a_killed_rank_is_named_on_both_hosts(self):
        for i, victim in enumerate((0, 1, 2, 3)):
            ranks = self.stay("aabb", port=29610 + i)
            ranks[victim].kill()
            self.expect_names(ranks, victim, rf"rank {victim} \(pid {ranks[victim].pid}\) on host {'aabb'[victim]} (died|has left)")

    def test_a_cut_wire_is_noticed_on_both_hosts(self):
        ranks = self.stay("aabb", port=29620, GPULOAD_COMM_LOST_MS="1000")
        self.hosts.set_wire("b", "down")
        self.expect_names(ranks[:2], None, r"rank [23] \(pid \d+\) on host b no longer answers \(.*\): its host or the network is down")
        self.expect_names(ranks[2:], None, r"rank 0 \(pid \d+\) on host a no longer answers \(.*\): its host or the network is down")

    def test_a_stopped_rank_is_named_when_a_call_times_out(self):
        for i, victim in enumerate((0, 3)):
            ranks = self.stay("aabb", port=29630 + i, RANK_TIMEOUT_MS="4000", GPULOAD_COMM_LOST_MS="1000")
            ranks[victim].send_signal(signal.SIGSTOP)
            others = [p for r, p in enumerate(ranks) if r != victim]
            self.expect_names(others, None, rf"rank {victim} .*(is not running: is it stopped|ranks did not answer within 4000 ms)")
            ranks[victim].kill()

    def test_mpirun_starts_ranks_on_both_hosts(self):
        if why_no_mpirun():
            self.skipTest(why_no_mpirun())
        p = self.hosts.mpirun(2, ["sh", "-c", f"echo on $GPULOAD_COMM_HOST; exec {RANK} meet"])
        status, out, err = self.end(p)
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["on a"] * 2 + ["on b"] * 2 + [f"rank {r} of 4 by pmix: sum 6" for r in range(4)], err)


if __name__ == "__main__":
    if not os.path.exists(RANK):
        print(f"skipped: {RANK} has not been built")
        sys.exit(77)
    try:
        TwoHosts().__enter__().__exit__()
    except OSError as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
