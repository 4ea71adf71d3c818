#!/usr/bin/env python3
"""Runs the test script of examples/08-rdma-send with an RDMA device; without a device, the script skips the programs 1 to 4."""
import os, unittest

import case  # in this folder

BUILD = os.environ.get("GPULOAD_BUILD", "build")


class Lesson(case.OneGuest):
    def test_the_steps_of_the_rdma_lesson_work(self):
        if not os.path.exists(f"{BUILD}/examples/08-rdma-send/4_clear_to_send"):
            self.skipTest("the lesson was not built: libibverbs-dev is missing")
        text = self.check("LESSON_NEEDS=rdma examples/08-rdma-send/test")
        self.assertNotIn("skipped:", text)
        self.assertIn("fabric: verbs, rxe0 port 1", text)

    def test_the_lessons_page_shows_the_output(self):
        if not os.path.exists(f"{BUILD}/examples/08-rdma-send/4_clear_to_send"):
            self.skipTest("the lesson was not built: libibverbs-dev is missing")
        self.check("LESSON=08-rdma-send python3 tests/readme/test_lessons.py")


if __name__ == "__main__":
    unittest.main()
