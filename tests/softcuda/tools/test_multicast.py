#!/usr/bin/env python3
"""What each tool reports on multimem instructions, and on ordinary stores to multicast addresses, of two devices (multicast_program.c)."""
import json, os, re, subprocess, tempfile, unittest

BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
PROGRAM = os.path.join(BUILD, "tests/softcuda/api/vmm/multicast_program")


def run(tools, *kernels, limit_s=300):
    """Return stdout and stderr of the program, run with these tools."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.join(BUILD, "softcuda"), GPULOAD_SOFT_TOOLS=tools, GPULOAD_SOFT_DEVICES="2", GPULOAD_SOFT_QUIET="1",
               GPULOAD_CACHE="off")
    done = subprocess.run([PROGRAM, *kernels], env=env, capture_output=True, text=True, timeout=limit_s)
    return done.stdout, done.stderr


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


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


class TraceAndProfile(unittest.TestCase):
    def test_a_trace_shows_addresses_and_the_reduced_values(self):
        with tempfile.TemporaryDirectory() as folder:
            run(f"trace:file={folder}/put.txt", "put:m")
            run(f"trace:file={folder}/add.txt", "add:m")
            run(f"trace:file={folder}/sum.txt", "sum:m")
            put, add, text = (read(f"{folder}/{name}.txt") for name in ("put", "add", "sum"))
        at = r"(0x\w+), 0x\w+ \.\.\. 0x\w+\n"
        self.assertRegex(put, r"multimem\.st\.weak\.global\.u32 \[%a\], %t;  writes 4 bytes of global at " + at)
        self.assertRegex(add, r"multimem\.red\.relaxed\.sys\.global\.add\.u32 \[%a\], %t;  changes 4 bytes of global at " + at)
        self.assertRegex(text, r"multimem\.ld_reduce\.weak\.global\.add\.u32 %v, \[%a\];  %v = 0  reads 4 bytes of global at " + at)
        self.assertEqual(re.search("writes 4 bytes of global at " + at, put)[1], re.search("%x = (0x\\w+)", put)[1])

    def test_a_profile_counts_them_as_loads_stores_and_reductions_of_global_memory(self):
        for kernel, by, requests in (("sum:m", "ld", 1), ("put:m", "st", 1), ("add:m", "red", 1), ("wide:m", "st", 1)):
            with tempfile.TemporaryDirectory() as folder:
                run(f"profile:file={folder}/p.json", kernel)
                metrics = json.loads(read(f"{folder}/p.json"))["kernels"][0]["metrics"]
            self.assertEqual(metrics[f"l1tex__t_requests_pipe_lsu_mem_global_op_{by}.sum"], requests, kernel)
            self.assertEqual(metrics[f"l1tex__t_sectors_pipe_lsu_mem_global_op_{by}.sum"], 1 if kernel == "wide:m" else 4, kernel)


class Racecheck(unittest.TestCase):
    def races(self, kernels, *patterns):
        _, text = run("racecheck", *kernels)
        for pattern in patterns:
            self.assertRegex(text, pattern, kernels)
        self.assertIn("gpuload racecheck: 1 error\n", text, kernels)

    def is_silent(self, *kernels):
        self.assertEqual(run("racecheck", *kernels), ("done\n", "gpuload racecheck: no errors\n"), kernels)

    def test_a_multimem_accesses_the_memory_of_every_device(self):
        memory = r"race: 4 bytes of global memory at 0x\w+, byte 0 of 2097152 of cuMemMap\n"
        for device in "01":
            self.races(("put:m", f"load:{device}"), memory, r"    write by thread 0,0,0 of block 0,0,0 of put: ", r"    read by thread 0,0,0 of block 0,0,0 of load: ")
            self.races(("sum:m", f"store:{device}"), memory, "    read by thread .* of sum: ", "    write by thread .* of store: ")
            self.races(("add:m", f"load:{device}"), memory, "    atomic operation of scope system by thread .* of add: ")
            self.races(("store:m", f"load:{device}"), memory, "    write by thread .* of store: ")
        self.races(("put:m", "sum:m"), memory)
        self.races(("put:m", "wide:m"), "    write by thread .* of put: ", "    write by thread .* of wide: ")

    def test_what_does_not_race(self):
        """None of these is a race: reads, reductions, writes of equal values, accesses to different memory."""
        for kernels in (("sum:m", "sum:m"), ("add:m", "add:m"), ("put:m", "put:m"), ("store:m", "store:m"), ("store:m", "store:1"), ("store:0", "load:1b")):
            self.is_silent(*kernels)

    def test_a_multimem_releases_and_acquires(self):
        for receiver in ("receive:0", "receive:1", "receive:1b", "receive_sum:m"):
            self.is_silent("send:m", receiver)
            self.races(("send_early:m", receiver), "    write by thread .* of send_early: ", "    read by thread .* of receive")

    def test_two_addresses_of_cuMemMap_are_the_same_memory(self):
        self.races(("store:0", "load:0b"), "    write by thread .* of store: ", "    read by thread .* of load: ")
        self.races(("put:m", "load:1b"), "    write by thread .* of put: ", "    read by thread .* of load: ")


class OtherTools(unittest.TestCase):
    def test_a_schedule_does_not_read_multicast_addresses(self):
        for kernel in ("put:m", "add:m", "sum:m", "store:m"):
            for how in ("all", "3"):
                self.assertEqual(run(f"schedule:how={how}", kernel)[0], "done\n", (kernel, how))

    def test_synccheck_names_a_multimem_that_polls(self):
        _, text = run("synccheck:end:timeout=1", "receive_sum:m")
        self.assertRegex(text, r"multimem\.ld_reduce\.acquire\.sys\.global\.min\.u32 polls 4 bytes at 0x\w+\n")


if __name__ == "__main__":
    unittest.main()
