#!/usr/bin/env python3
"""Kernels request RDMA writes (puts) over libibverbs in a virtual machine: the proxy's handler, the whole path with errors, the trace."""
import os, unittest

import case  # in this folder

BUILD = os.environ.get("GPULOAD_BUILD", "build")
SOFT = f"export GPULOAD_DRIVER=soft GPULOAD_TEST_BACKEND=verbs GPULOAD_BUILD={BUILD} GPULOAD_SOFT_DRIVER={BUILD}/softcuda/libcuda-soft.so; "
WAY = f"{SOFT}{BUILD}/tests/rdma/put/whole_way --driver soft --backend verbs "


class Puts(case.OneGuest):
    def test_the_handler_of_puts(self):
        self.assertIn("[  PASSED  ]", self.check(f"{SOFT}{BUILD}/tests/rdma/put/test_put 2>&1"))

    def test_puts_reach_the_kernel_of_another_process(self):
        for options in ("--puts 5000 --window 64", "--puts 300 --blocks 8 --bytes 4104 --qps 4", "--puts 200 --blocks 1 --bytes 0"):
            self.assertIn("over verbs, rxe0", self.check(WAY + options))

    def test_both_ends_report_what_breaks(self):
        for what in ("data", "sender", "receiver"):
            self.assertIn("1 passed, 0 failed", self.check(f"{WAY}--puts 3000 --break {what} 2>&1"))

    def test_a_trace_shows_both_processes(self):
        text = self.check(f"{SOFT}{BUILD}/gpuload fifo trace --put --backend verbs --parallel 2 --triggers 10 -o /tmp/t.json && "
                          "python3 tests/cli/fifo/check_trace.py /tmp/t.json")
        self.assertIn("over verbs, rxe0", text)
        self.assertTrue(text.endswith("\n20\n"), text)


if __name__ == "__main__":
    unittest.main()
