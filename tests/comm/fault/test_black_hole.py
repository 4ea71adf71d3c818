#!/usr/bin/env python3
"""The network between two hosts carries the job's own connections, but no data: the message
reports that, and does not name a rank as the cause.

The hosts are two network namespaces (it needs root)."""
import os, re, sys, time, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bootstrap/hosts"))
from namespaces import BUILD, TwoHosts

PORT = 29777
SAYS = r"the network between rank [01] \([ab]\) and rank [01] \([ab]\) does not deliver data: \d+ RDMA writes have not been acknowledged for \d+\.\d s"
LEASE_SAYS = r"the network between rank [01] \([ab]\) and rank [01] \([ab]\) does not deliver data: "


class BlackHole(unittest.TestCase):
    def end_of_job(self, directions, size, timeout_s=4):
        """Run an endless all-reduce, drop the data of these hosts, and return the output of the
        ranks."""
        with TwoHosts(seed=1) as hosts:
            hosts.spare(PORT)
            ranks = hosts.start_job("ab", [f"{BUILD}/gpuload", "comm", "allreduce", "--provider", "tcp", "--bytes", size, "--iters", "1000000",
                                           "--timeout", str(timeout_s)], port=PORT, GPULOAD_DRIVER="soft")
            moved = 0
            while moved < 1 << 20 and all(p.poll() is None for p in ranks):  # until calls run
                time.sleep(0.1)
                moved = hosts.sent_bytes("a", "wire")
            for host in directions:
                hosts.disturb(host, loss=100)
            texts = ["".join(p.communicate(timeout=120)) for p in ranks]
            hosts.started.clear()
            return texts

    def test_both_directions(self):
        texts = self.end_of_job("ab", "256K")
        self.assertTrue(any(re.search(SAYS, t) for t in texts), texts)

    def test_one_direction(self):
        texts = self.end_of_job("b", "64")
        self.assertTrue(any(re.search(SAYS, t) for t in texts), texts)

    def test_the_lease_of_a_connection_ends_first(self):
        texts = self.end_of_job("b", "64K", timeout_s=50)
        self.assertTrue(any(re.search(LEASE_SAYS, t) for t in texts), texts)
        self.assertFalse(any("the peer has rejected the memory key or the range" in t for t in texts), texts)


if __name__ == "__main__":
    try:
        TwoHosts(seed=1).__enter__().__exit__()
    except OSError as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
