#!/usr/bin/env python3
"""Each command opens its file once: a preloaded library counts the calls of open()."""
import os, subprocess, tempfile, unittest

BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
INPUTS, COUNTER = f"{BUILD}/tests/inputs", f"{BUILD}/tests/cli/so_count_opens.so"
ARGS = ["f32[1024]=iota", "f32[1024]=iota:0:2", "out:f32[1024]", "i32=1024", "--expect", "2=iota:0:3"]


def opens(path, command, to):
    """Run a command, which must succeed; return how often it opens the file."""
    env = {**os.environ, "LD_PRELOAD": COUNTER, "COUNT_OPENS_OF": path, "COUNT_OPENS_TO": to}
    r = subprocess.run(command, capture_output=True, text=True, env=env)
    if r.returncode:
        raise AssertionError(f"{command}: {r.stderr}")
    return os.path.getsize(to) if os.path.exists(to) else 0


class OpenedOnce(unittest.TestCase):
    def setUp(self):
        with open(f"{BUILD}/gpuload", "rb") as f:
            sanitized = b"__asan_init" in (program := f.read()) or b"__tsan_init" in program
        if sanitized:
            self.skipTest("a sanitizer must be the first library")
        if not os.path.exists(f"{INPUTS}/inputs.json"):
            self.skipTest("no nvcc: no inputs")

    def each(self, command, names=("libvec.so", "libvec.a", "vec.o", "vec.ptx", "vec.cu", "vec.balance.fatbin")):
        with tempfile.TemporaryDirectory() as d:
            for name in names:
                with self.subTest(file=name):
                    path = f"{INPUTS}/{name}"
                    self.assertEqual(opens(path, [f"{BUILD}/gpuload", *command(path, d)], f"{d}/{name}.opens"), 1)

    def test_run_opens_its_file_once(self):
        self.each(lambda path, d: ["run", "--driver", "soft", path, "--kernel", "vecadd", *ARGS])

    def test_run_without_arguments_opens_its_file_once(self):
        self.each(lambda path, d: ["run", "--driver", "soft", path, "--kernel", "vecadd"], ["vec.ptx", "vec.cu", "libvec.so"])

    def test_ls_opens_its_file_once(self):
        self.each(lambda path, d: ["ls", path])

    def test_extract_opens_its_file_once(self):
        self.each(lambda path, d: ["extract", path, "-o", f"{d}/{os.path.basename(path)}"], ["libvec.so", "libvec.a", "vec.ptx"])


if __name__ == "__main__":
    unittest.main()
