#!/usr/bin/env python3
"""Collectives over real verbs in a guest: every call, and ranks whose connection is over rxe."""
import os, unittest

import case  # in this folder

BUILD = os.environ.get("GPULOAD_BUILD", "build")
SOFT = f"export GPULOAD_DRIVER=soft GPULOAD_BUILD={BUILD} GPULOAD_SOFT_DRIVER={BUILD}/softcuda/libcuda-soft.so GPULOAD_COMM_NET_ADDRESS=10.9.0.1; "


class Collectives(case.OneGuest):
    def test_every_call_runs_over_verbs(self):
        for call in ("allreduce", "sendrecv"):
            text = self.check(f"{SOFT}{BUILD}/gpuload comm {call} -n 2 --bytes 40K --iters 2 --transport net --backend verbs --qps 2")
            self.assertIn("verbs, rxe0", text)
            self.assertIn("# wrong elements: 0 OK", text)

    def test_slots_in_device_memory_are_right_over_verbs(self):
        for qps in (1, 3):
            text = self.check(f"{SOFT}{BUILD}/gpuload comm allreduce -n 2 --bytes 40K --iters 2 --transport net --backend verbs --qps {qps} "
                              "--gpu-direct yes")
            self.assertIn(", GPU-direct)", text)
            self.assertIn("# wrong elements: 0 OK", text)


if __name__ == "__main__":
    unittest.main()
