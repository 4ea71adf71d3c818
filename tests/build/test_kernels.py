#!/usr/bin/env python3
"""Every kernel of the build also compiles with NVRTC (gpuload compile), and has the same entries as the build's PTX."""
import glob, os, re, subprocess, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("GPULOAD_BUILD", "build")
ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.M)


def entries(path):
    with open(path, encoding="utf-8") as f:
        return set(ENTRY.findall(f.read()))


class Kernels(unittest.TestCase):
    def setUp(self):
        os.chdir(ROOT)

    def test_nvrtc_compiles_every_kernel(self):
        compiled = sorted(glob.glob(f"{BUILD}/kernels/**/*.ptx", recursive=True))
        self.assertGreater(len(compiled), 25)
        with tempfile.TemporaryDirectory() as d:
            for ptx in compiled:
                own = ptx[:-4] + ".cu"
                cu = own if os.path.exists(own) else os.path.relpath(own, f"{BUILD}/kernels")
                with self.subTest(kernel=cu):
                    r = subprocess.run([f"{BUILD}/gpuload", "compile", "--no-cache", "-I", ".", cu, "-o", f"{d}/out.ptx"], capture_output=True, text=True, check=False)
                    if "no libnvrtc" in r.stderr:
                        self.skipTest("no NVRTC")
                    self.assertEqual(r.returncode, 0, r.stderr)
                    self.assertEqual(entries(f"{d}/out.ptx"), entries(ptx))

    def test_a_row_of_kernels_def_is_a_kernel(self):
        with open("comm/kernels/kernels.def", encoding="utf-8") as f:
            rows = re.findall(r"^(?:KERNEL|RESIDENT)\((\w+), (\w+),", f.read(), re.M)
        self.assertGreater(len(rows), 25)
        for kernel, file in rows:
            self.assertIn(f"gpul_comm_{kernel}", entries(f"{BUILD}/kernels/comm/kernels/{file}.ptx"))


if __name__ == "__main__":
    unittest.main()
