#!/usr/bin/env python3
"""memcheck in a driver API program: wrong frees, leaks, use after free, and what counts as written."""
import os, re, subprocess, unittest

BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
PROGRAM = os.path.join(BUILD, "tests/softcuda/api/memcheck_program")


def run(case, tools="memcheck", **more):
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "softcuda"), GPULOAD_SOFT_TOOLS=tools, **more)
    done = subprocess.run([PROGRAM, case], env=env, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


class Program(unittest.TestCase):
    def finds(self, case, *patterns, n=1):
        """Check that the report matches each pattern, and has n errors."""
        _, _, text = run(case)
        for pattern in patterns:
            self.assertRegex(text, pattern)
        self.assertIn(f"gpuload memcheck: {n} error{'s' if n > 1 else ''}\n", text)

    def test_a_second_cuMemFree_names_the_first_one_and_the_allocation(self):
        self.finds("double_free", r"cuMemFree of 0x\w+, which was freed before \(double free\); called by free_buffer\+0x\w+ in memcheck_program\n"
                   r"    0 bytes into a freed 256-byte cuMemAlloc at 0x\w+ \(allocation 1\)\n"
                   r"    allocated by make_buffers\+0x\w+ in memcheck_program\n    freed by free_buffer\+0x\w+ in memcheck_program\n")

    def test_frees_of_addresses_that_no_allocation_begins_at(self):
        self.finds("invalid_free", r"cuMemFree of 0x\w+, at which no allocation of this call begins \(invalid free\).*\n    16 bytes into a 256-byte cuMemAlloc",
                   r"cuMemFree of 0x3039, at which", n=2)

    def test_use_after_free_says_who_allocated_and_freed_the_memory(self):
        self.finds("use_after_free", r"4-byte global load at 0x\w+ is .*; copy, block 0, thread \d+\n    \d+ bytes into a freed 256-byte cuMemAlloc .*\(allocation 1\)\n"
                   r"    allocated by make_buffers.*\n    freed by free_buffer.*\n    use after free\n")

    def test_memory_of_pools_is_checked_too(self):
        self.finds("use_after_free_async", r"bytes into a freed 256-byte cuMemAllocAsync .*\(allocation 3\)")
        self.finds("double_free_async", r"cuMemFreeAsync of 0x\w+, which was freed before \(double free\)")

    def test_copies_and_fills_that_end_outside_or_use_freed_memory_name_the_allocation(self):
        self.finds("wrong_copies", r"copy: the destination, 512 bytes at 0x\w+, begins 0 bytes into 256 bytes of cuMemAlloc, and ends 256 bytes past the end; "
                   r"called by \w+\+0x\w+ in memcheck_program\n    0 bytes into a 256-byte cuMemAlloc at 0x\w+ \(allocation 1\)\n    allocated by make_buffers",
                   r"cuMemset: the memory, 256 bytes at 0x\w+, begins 16 bytes into 256 bytes of cuMemAlloc, and ends 16 bytes past the end",
                   r"copy: the source, 256 bytes at 0x\w+, is memory that was freed, or was never allocated; .*\n    0 bytes into a freed 256-byte cuMemAlloc "
                   r".*\n    allocated by make_buffers.*\n    freed by free_buffer", n=3)

    def test_copies_of_memory_that_the_program_has_unmapped_are_findings(self):
        self.finds("copies_of_lost_memory", r"copy or fill: it would access 0x\w+, which is 0 bytes into 256 bytes of cuMemHostRegister, whose pages the program has "
                   r"since unmapped or protected; called by \w+\+0x\w+ in memcheck_program\n", r"it would access 0x1000, which is not mapped or is protected; called by", n=2)

    def test_leaks_are_reported_at_the_end_of_the_context_or_the_program(self):
        self.finds("leak", r"leak: 256 bytes at 0x\w+ of cuMemAlloc \(allocation 2\) are not freed when the program ends\n    allocated by make_buffers")
        self.finds("leak_in_context", r"leak: 256 bytes at 0x\w+ of cuMemAlloc \(allocation 2\) are not freed when the context ends\n    allocated by make_buffers")
        self.assertEqual(run("leak", "memcheck:leaks=no")[2], "gpuload memcheck: no kernel ran, so nothing was checked\n")

    def test_the_caller_is_found_in_a_program_whose_backtrace_is_wrapped(self):
        wrapper = os.path.join(BUILD, "tests/softcuda/tools/memcheck/so_backtrace.so")
        self.assertRegex(run("leak", LD_PRELOAD=wrapper, ASAN_OPTIONS="verify_asan_link_order=0")[2], r"\n    allocated by make_buffers\+0x\w+ in memcheck_program\n")

    def test_reads_of_memory_that_was_not_written(self):
        self.finds("unwritten", r"4-byte global read at 0x\w+ of memory that was not written \(uninitialised\); copy, block 0, thread 0\n"
                   r"    0 bytes into a 256-byte cuMemAlloc at 0x\w+ \(allocation 1\)\n    allocated by make_buffers")
        self.finds("partly_unwritten", r"copy, block 0, thread 32\n    128 bytes into")
        self.finds("copy_of_unwritten", r"copy, block 0, thread 0\n")

    def test_copies_fills_graphs_and_the_cpu_write(self):
        for case in ("written_by_copies", "written_by_graph", "written_by_cpu"):
            with self.subTest(case):
                self.assertIn("gpuload memcheck: no errors", run(case)[2])

    def test_freed_addresses_are_kept_without_their_memory(self):
        status, _, text = run("allocates_much")
        self.assertEqual(status, 0, text)
        self.assertIn("gpuload memcheck: no kernel ran", text)

    def test_an_overrun_by_some_bytes_runs_as_on_a_gpu_and_memcheck_reports_it(self):
        for case in ("device", "async", "pool", "shared_pool", "managed", "host", "variable", "constant"):
            with self.subTest(case):
                self.assertEqual(run("overrun_" + case, tools="")[:2], (0, "copy to it: 0\n"))
                self.assertRegex(run("overrun_" + case)[2], r"4-byte global (store|load) at 0x\w+ crosses the end of a 250-byte")
        for case in ("variable", "constant"):
            with self.subTest(f"behind the last whole block of a {case}"):
                self.assertEqual(run("overrun_whole_" + case, tools="")[:2], (0, "copy from behind it: 0\n"))
                self.assertRegex(run("overrun_whole_" + case)[2], r"4-byte global load at 0x\w+ is 0 bytes past the end of a 1024-byte")
        self.assertEqual(run("overrun_pitch", tools="")[:2], (0, "copy to it: 0\n"))  # rows of 512 bytes

    def test_a_store_to_a_constant_and_a_host_pointer_are_findings(self):
        self.finds("store_to_constant", r"4-byte store at 0x\w+ to constant memory.*; copy, block 0, thread 0\n    0 bytes into a 1024-byte constant whole_constant")
        self.finds("host_pointer", r"4-byte global load at 0x\w+ is host memory \(pageable: (malloc or new|the stack)\), which a kernel cannot access")
        self.assertNotIn("nearest memory", run("host_pointer")[2])
        self.assertEqual(run("store_to_constant", tools="")[1:], ("copy to it: 0\n", ""))

    def test_without_memcheck_the_driver_explains_the_call_that_fails(self):
        status, out, text = run("double_free", tools="")
        self.assertEqual(status, 0)
        self.assertRegex(text, r"\Agpuload: CUDA_ERROR_INVALID_VALUE: cuMemFree: the 256 bytes of cuMemAlloc at 0x\w+ were freed before \(double free\)\n\Z")
        self.assertEqual(out, "cuMemFree: 0\ncuMemFree: 1\n")
        self.assertEqual(re.sub("[0-9]+", "N", run("double_free")[1]), "cuMemFree: N\ncuMemFree: N\n")


if __name__ == "__main__":
    unittest.main()
