#!/usr/bin/env python3
"""memcheck finds every planted fault in tests/softcuda/tools/faults/memcheck, and reports nothing for the correct variants."""
import os, re, sys, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from planted import Planted

FAULTS = Planted("memcheck")


class Faults(unittest.TestCase):
    def test_each_fault_is_found_and_its_right_variant_is_silent(self):
        for path in FAULTS.files:
            with self.subTest(path):
                status, _, text = FAULTS.run(path, "--memcheck")
                want = FAULTS.expectation(path)
                self.assertEqual(status, 0 if want == "no errors" else 1, text)
                self.assertIn(want, text)
                if want != "no errors" and "leak" not in want:  # the report names the instruction, the kernel, the block and the thread
                    self.assertRegex(text, rf"gpuload memcheck: {path}:\d+: .*; {path[:-4]}, block \d+, thread \d+")

    def test_there_are_20_faults_each_with_a_right_variant(self):
        FAULTS.assert_pairs(self, 20)

    def test_an_access_beyond_an_allocation_names_it_and_its_number(self):
        _, _, text = FAULTS.run("global_past_end.ptx", "--memcheck")
        self.assertRegex(text, r"0 bytes past the end of a 256-byte cuMemAlloc at 0x[0-9a-f]+ \(allocation 1\)\n    allocated by ")

    def test_a_second_free_names_the_first_and_the_allocation(self):
        _, _, text = FAULTS.run("heap_double_free.ptx", "--memcheck")
        self.assertRegex(text, r"allocated by heap_double_free.ptx:\d+; heap_double_free, block 0, thread \d+\n"
                               r"    freed by heap_double_free.ptx:\d+; heap_double_free, block 0, thread \d+\n")

    def test_kernels_and_variables_have_their_names_of_cxx(self):
        with open(f"{FAULTS.folder}/shared_unwritten.ptx", encoding="utf-8") as f:
            ptx = f.read()
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/cxx.ptx", "w", encoding="utf-8") as f:
                f.write(re.sub(r"\bs\b", "_ZZ4workPjE3buf", ptx).replace("shared_unwritten", "_Z4workPj"))
            _, _, text = FAULTS.run(f"{d}/cxx.ptx", "--memcheck")
        self.assertRegex(text, r"; work\(unsigned int\*\), block 0, thread 32\n")
        self.assertIn("128 bytes into work(unsigned int*)::buf\n", text)
        self.assertNotIn("_Z", text)

    def test_reads_of_one_instruction_are_reported_once_and_counted(self):
        _, _, text = FAULTS.run("global_unwritten.ptx", "--memcheck")
        self.assertEqual(len(re.findall("was not written \\(uninitialised\\)", text)), 1)
        self.assertRegex(text, r"global_unwritten.ptx:\d+: 64 reads of memory that was not written")
        self.assertIn("gpuload memcheck: 1 error\n", text)

    def test_several_workers_lose_no_mark_of_a_write(self):
        status, _, text = FAULTS.run("workers_unwritten_right.ptx", "--memcheck", "--repeat", "50")
        self.assertEqual(status, 0, text)

    def test_strict_reports_the_padding_of_a_copy_and_leaks_can_be_left_out(self):
        for tools, path, found in (("memcheck", "vector_element_unwritten_right.ptx", "no errors"),
                                   ("memcheck:strict", "vector_element_unwritten_right.ptx", "8-byte global read"),
                                   ("memcheck", "heap_leak.ptx", "leak: "), ("memcheck:leaks=no", "heap_leak.ptx", "no errors")):
            with self.subTest(tools + " " + path):
                self.assertIn(found, FAULTS.run(path, "--driver", "soft", GPULOAD_SOFT_TOOLS=tools)[2])

    def test_wrong_options_are_one_clear_line(self):
        for tools, why in (("memcheck:leaks=2", "memcheck: leaks must be yes or no, not '2'"), ("memcheck:colour", "memcheck has no option 'colour'")):
            status, _, text = FAULTS.run("heap_leak.ptx", "--driver", "soft", GPULOAD_SOFT_TOOLS=tools)
            self.assertEqual((status != 0, text.count("\n")), (True, 1), text)
            self.assertIn(why, text)


if __name__ == "__main__":
    unittest.main()
