#!/usr/bin/env python3
"""mpirun over two network namespaces, as over two hosts, runs every collective: memory inside a host, the network between them."""
import os, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bootstrap/hosts"))
from namespaces import ROOT, TwoHosts, why_no_mpirun

GPULOAD = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"), "gpuload")
LONG = 120  # seconds; a passing test never takes that long


class Mpirun(unittest.TestCase):
    def test_every_collective_runs_over_two_hosts(self):
        with TwoHosts() as hosts:
            for call in ("allreduce", "reducescatter", "allgather", "broadcast", "alltoall", "sendrecv"):
                with self.subTest(call=call):
                    p = hosts.mpirun(2, [GPULOAD, "comm", call, "--driver", "soft", "--bytes", "8:64K:64", "--iters", "1"])
                    out, err = p.communicate(timeout=LONG)
                    self.assertEqual(p.returncode, 0, err)
                    self.assertIn("# wrong elements: 0 OK", out)
                    self.assertRegex(out, r"to ranks? [^;]*: net \(")
                    self.assertIn("device (same GPU)", out)


if __name__ == "__main__":
    if why_no_mpirun():
        print("skipped:", why_no_mpirun())
        sys.exit(77)
    try:
        TwoHosts().__enter__().__exit__()
    except OSError as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
