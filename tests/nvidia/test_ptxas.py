#!/usr/bin/env python3
"""gpuload's ptxas, next to the software driver, checks PTX with or without NVIDIA's ptxas, and writes the PTX to its output."""
import os, shutil, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from calls import CALLED_PTX, HEAD, SOFT

NONE = "/nonexistent"


class Ptxas(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.write("good.ptx", CALLED_PTX)
        self.write("bad.ptx", HEAD + "foo\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        with open(f"{self.folder.name}/{name}", "w", encoding="utf-8") as f:
            f.write(text)

    def read(self, name):
        with open(f"{self.folder.name}/{name}", "rb") as f:
            return f.read()

    def run_ptxas(self, *args, real=""):
        return subprocess.run([f"{SOFT}/bin/ptxas", *args], cwd=self.folder.name, capture_output=True, text=True, timeout=300,
                              env=dict(os.environ, GPULOAD_PTXAS=real))

    def test_the_output_is_the_ptx_with_a_nul(self):
        for real in ("", NONE):
            for args in (("-o", "a"), ("--output-file", "a"), ("--output-file=a",)):
                r = self.run_ptxas("-arch=sm_75", "good.ptx", *args, real=real)
                self.assertEqual((r.returncode, self.read("a")), (0, CALLED_PTX.encode() + b"\0"), r.stderr)
                os.remove(f"{self.folder.name}/a")
        r = self.run_ptxas("-arch", "sm_75", "good.ptx")
        self.assertEqual((r.returncode, self.read("elf.o")), (0, CALLED_PTX.encode() + b"\0"), r.stderr)

    def test_a_limit_of_registers_is_written_into_the_kernels(self):
        self.write("kernel.ptx", HEAD + ".visible .entry k() { ret; }\n")
        for real in ("", NONE):
            for args in (("-maxrregcount=40",), ("--maxrregcount", "40"), ("-maxrregcount", "40")):
                r = self.run_ptxas("-arch=sm_75", "kernel.ptx", "-o", "out", *args, real=real)
                self.assertEqual((r.returncode, self.read("out").count(b".maxnreg 40")), (0, 1), r.stderr)

    def test_an_error_is_reported_and_no_file_is_written(self):
        for real in ("", NONE):
            r = self.run_ptxas("-arch=sm_75", "bad.ptx", "-o", "out", real=real)
            self.assertEqual(r.returncode, 255)
            self.assertRegex(r.stderr, r"bad\.ptx(, line 4|:4).*foo")
            self.assertIn("ptxas fatal   : ", r.stderr)
            self.assertFalse(os.path.exists(f"{self.folder.name}/out"))

    def test_clients_can_read_a_version(self):
        for real in ("", NONE):
            self.assertRegex(self.run_ptxas("--version", real=real).stdout, r"release \d+\.\d+, V\d+\.\d+\.\d+")

    def test_missing_files_are_errors(self):
        for args in (("missing.ptx",), (), ("good.ptx", "-o", "missing/out")):
            r = self.run_ptxas(*args, real=NONE)
            self.assertEqual((r.returncode, r.stderr.count("\n")), (255, 1), r.stderr)
            self.assertRegex(r.stderr, "^ptxas fatal")

    @unittest.skipUnless(shutil.which("ptxas"), "NVIDIA's ptxas was not found")
    def test_the_messages_of_nvidias_are_passed_on(self):
        r = self.run_ptxas("-v", "-arch=sm_75", "good.ptx", "-o", "out", real=shutil.which("ptxas"))
        self.assertRegex(r.stderr, r"ptxas info\s+: ")


if __name__ == "__main__":
    unittest.main()
