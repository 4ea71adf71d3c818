#!/usr/bin/env python3
"""What each tool sees of multimem instructions, and of ordinary stores to multicast addresses, of two devices (multicast_program.c)."""
import os, subprocess, unittest

BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
PROGRAM = os.path.join(BUILD, "tests/softcuda/api/vmm/multicast_program")


def run(tools, *kernels, limit_s=300):
    """stdout and stderr of the program with these tools."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "softcuda"), GPULOAD_SOFT_TOOLS=tools, GPULOAD_SOFT_DEVICES="2", GPULOAD_SOFT_QUIET="1",
               GPULOAD_CACHE="off")
    done = subprocess.run([PROGRAM, *kernels], env=env, capture_output=True, text=True, timeout=limit_s)
    return done.stdout, done.stderr


class Memcheck(unittest.TestCase):
    def finds(self, kernel, pattern, result="CUDA_ERROR_ILLEGAL_ADDRESS"):
        out, text = run("memcheck", kernel)
        self.assertEqual(out, f"{result}\n")
        self.assertRegex(text, pattern)
        self.assertIn("gpuload memcheck: 1 error\n", text)

    def test_accesses_inside_are_silent_and_memory_of_cuMemCreate_counts_as_written(self):
        for kernel in ("put:m", "add:m", "sum:m", "wide:m", "store:m"):
            self.assertEqual(run("memcheck", kernel), ("done\n", "gpuload memcheck: no errors\n"), kernel)

    def test_a_wrong_address_names_the_nearest_memory(self):
        object_at = r"bytes into a 4194304-byte cuMemMap at 0x\w+ \(allocation 7\)\n    allocated by map\+"
        self.finds("put:end", r":9: 4-byte multimem store at 0x\w+ is at offset 0x200000 of a multicast object, where device 0 of its team has no memory; "
                   r"put, block 0, thread 1\n    2097152 " + object_at)
        self.finds("sum:hole", r"4-byte multimem load at 0x\w+ is at offset 0x200000 of .* has no memory; sum, block 0, thread 0\n    2097152 " + object_at)
        self.finds("store:hole", r"4-byte global store at 0x\w+ is at offset 0x200000 of .* has no memory; store, block 0, thread 0\n    2097152 " + object_at)
        self.finds("add:0", r"4-byte multimem store at 0x\w+ is not an address of a multicast object; .*\n    0 bytes into a 2097152-byte cuMemMap")
        self.finds("put:odd", r"4-byte global store at 0x\w+ is not a multiple of 4; .*\n    2 " + object_at, "CUDA_ERROR_MISALIGNED_ADDRESS")

    def test_use_after_unmap_says_who_mapped_and_unmapped_the_object(self):
        self.finds("sum:gone", r"4-byte multimem load at 0x\w+ is in a 4194304-byte cuMemMap allocation that was freed; sum, block 0, thread 0\n"
                   r"    0 bytes into a freed 4194304-byte cuMemMap .*\n    allocated by map\+.*\n    freed by \w+\+.*\n    use after free\n")


if __name__ == "__main__":
    unittest.main()
