#!/usr/bin/env python3
"""synccheck finds every planted fault in tests/softcuda/tools/faults/synccheck, and reports nothing for the correct variants."""
import os, re, sys, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from planted import Planted

FAULTS = Planted("synccheck")


class Faults(unittest.TestCase):
    def test_each_fault_is_found_and_its_right_variant_is_silent(self):
        for path in FAULTS.files:
            with self.subTest(path):
                status, _, text = FAULTS.run(path, "--synccheck")
                want = FAULTS.expectation(path)
                self.assertEqual(status, 0 if want == "no errors" else 1, text)
                self.assertIn(want, text)
                self.assertRegex(text, r"gpuload synccheck: (no errors|\d+ errors?)")

    def test_there_are_20_faults_each_with_a_right_variant(self):
        FAULTS.assert_pairs(self, 20)

    def test_a_deadlock_names_each_group_of_threads_that_waits(self):
        _, _, text = FAULTS.run("different_barriers.ptx", "--synccheck")
        self.assertRegex(text, r"warp 0, all lanes: different_barriers.ptx:\d+: bar.sync waits at barrier 0: 32 of 64 threads have arrived")
        self.assertRegex(text, r"warp 1, all lanes: different_barriers.ptx:\d+: bar.sync waits at barrier 1: 32 of 64 threads have arrived")

    def test_a_thread_that_polls_is_named_with_the_word_that_it_polls(self):
        _, _, text = FAULTS.run("spin_on_shared_flag.ptx", "--synccheck")
        self.assertRegex(text, r"warp 0, all lanes: .*: ld.volatile.shared.u32 polls 4 bytes at offset 0 of shared memory, which contain 0x0")
        self.assertRegex(text, r"warp 1, all lanes: .*: bar.sync waits at barrier 0: 32 of 64 threads have arrived")
        _, _, text = FAULTS.run("mbarrier_never_completes.ptx", "--synccheck")
        self.assertRegex(text, r"warps 0-1, all lanes: .* polls the mbarrier at offset 0 of shared memory, whose phase waits for 1 of 3 arrivals")

    def test_a_block_that_polls_global_memory_is_reported_after_the_time_limit(self):
        """The host or another kernel may still change the polled word, so the launch continues, unless the option `end` is given."""
        path = os.path.join(HERE, "waits_for_host.ptx")
        status, _, text = FAULTS.run(path, GPULOAD_SOFT_TOOLS="synccheck:timeout=1:end")
        self.assertEqual(status, 1)
        self.assertRegex(text, r"deadlock: kernel waits_for_host, block 0: its threads have only polled memory for longer than the time limit")
        self.assertRegex(text, r"warp 0, all lanes: .*ld.acquire.gpu.global.u32 polls 4 bytes at offset 0 of cuMemAlloc \(0x\w+\), which contain 0x0")
        status, _, text = FAULTS.run(path, "--synccheck", "--synccheck-timeout", "1", "--timeout", "3")
        self.assertEqual(status, 1)
        self.assertIn("kernel waits_for_host, block 0 waits: its threads have only polled memory", text)
        self.assertIn("still running after 3 s", text)

    def test_decoding_takes_time_in_proportion_to_the_module(self):
        """If synccheck searched the module for mbarriers at each store, it would take quadratic time, 100 times as long as memcheck."""
        kernel = ".visible .entry k{}(.param .u64 p) {{ .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p];\n" + "st.global.u32 [%d], %r;\n" * 1500 + "ret; }}\n"
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "large.ptx")
            with open(path, "w", encoding="utf-8") as f:
                f.write(".version 8.0\n.target sm_80\n.address_size 64\n" + "".join(kernel.format(k) for k in range(100)))
            times = {}
            for tool in ("memcheck", "synccheck"):
                before = os.times()
                status, _, text = FAULTS.run(path, "--kernel", "k0", "--grid", "1", "--block", "1", "out:f32[64]", GPULOAD_SOFT_TOOLS=tool)
                times[tool] = os.times().children_user - before.children_user
                self.assertEqual(status, 0, text)
        self.assertLess(times["synccheck"], 5 * times["memcheck"] + 1)

    def test_kernels_have_their_c_plus_plus_names_and_places_are_the_users(self):
        """All tools report the line of the user's file first, and the line of a CUDA header second."""
        path = os.path.join(HERE, "names.ptx")
        _, out, text = FAULTS.run(path, "out:i32[64]", "--driver", "soft", "--block", "64", "--synccheck", "--racecheck", "--profile", "-")
        self.assertRegex(text, r"names.ptx:\d+ \(names.cu:4, inlined from sm_30_intrinsics.hpp:\d+\): shfl.sync")
        self.assertIn("kernel void halves<int>(int*), block 0, warp 0, lanes 0-15", text)
        self.assertIn("of block 0,0,0 of void halves<int>(int*): ", text)
        self.assertIn("kernel void halves<int>(int*): 1 launch", out + text)
        self.assertNotIn("_Z6halves", text)
        _, out, text = FAULTS.run(path, "out:i32[8]", "--driver", "soft", "--block", "64", "--memcheck")
        self.assertIn("void halves<int>(int*), block 0, thread", text)


if __name__ == "__main__":
    unittest.main()
