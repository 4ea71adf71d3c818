#!/usr/bin/env python3
"""srun over the two nodes of a Slurm cluster, in two network namespaces, runs every collective, with and without PMIx."""
import os, sys, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bootstrap/hosts"))
from namespaces import ROOT, SECRET
from slurm import Cluster, missing

GPULOAD = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"), "gpuload")
CALLS = ("allreduce", "reducescatter", "allgather", "broadcast", "alltoall", "sendrecv")
LONG = 120  # seconds; a passing test never takes that long


class Srun(unittest.TestCase):
    cluster = Cluster()

    def srun(self, options, *arguments, **more):
        p = self.cluster.srun(["-N", "2", "-n", "4", "-O", *options], [GPULOAD, "comm", *arguments], **more)
        return (*p.communicate(timeout=LONG), p.returncode)

    def collective(self, call, options, launcher, **more):
        out, err, status = self.srun(options, call, "--driver", "soft", "--bytes", "8:64K:64", "--iters", "1", **more)
        self.assertEqual(status, 0, err + self.cluster.logs())
        self.assertIn(f"4 ranks ({launcher})", out)
        self.assertIn("# wrong elements: 0 OK", out)
        self.assertRegex(out, r"to ranks? [^;]*: net \(")
        self.assertIn("device (same GPU)", out)

    def test_every_collective_runs_with_pmix(self):
        for call in CALLS:
            with self.subTest(call=call):
                self.collective(call, ["--mpi=pmix"], "pmix")

    def test_the_variables_of_srun_suffice_with_a_secret(self):
        self.collective("allreduce", ["--mpi=none"], "srun", GPULOAD_COMM_SECRET=SECRET)

    def test_without_pmix_and_secret_one_line_says_what_to_do(self):
        _, err, status = self.srun(["--mpi=none"], "allreduce")
        self.assertNotEqual(status, 0)
        ours = [line for line in err.splitlines() if line.startswith("gpuload comm allreduce: ")]
        self.assertRegex("\n".join(ours), r"GPULOAD_COMM_SECRET is not set: ranks on several machines need a common secret")


if __name__ == "__main__":
    if missing():
        print(f"skipped: Slurm is not installed: {missing()}")
        sys.exit(77)
    try:
        with Srun.cluster:
            unittest.main()
    except OSError as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
