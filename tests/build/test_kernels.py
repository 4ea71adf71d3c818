#!/usr/bin/env python3
"""Every kernel of the build also compiles with NVRTC (gpuload compile), and that PTX has the same kernels (.entry) as the build's PTX."""
import glob, os, re, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
from scripts import rules_kernels
from scripts.modules import INCLUDE_FLAGS

BUILD = os.environ.get("GPULOAD_BUILD", "build")
ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.M)


def entries(path):
    with open(path, encoding="utf-8") as f:
        return set(ENTRY.findall(f.read()))


class Kernels(unittest.TestCase):
    def setUp(self):
        os.chdir(ROOT)

    def test_nvrtc_compiles_every_kernel(self):
        with open(rules_kernels.KERNELS_DEF, encoding="utf-8") as f:
            rows = [f"comm/kernels/{name}.cu" for name, _ in rules_kernels.FILE_ROW.findall(f.read())]
        sources = sorted({*rows, *(cu for folder in rules_kernels.FOLDERS for cu in glob.glob(f"{folder}/*.cu"))})
        self.assertGreater(len(sources), 25)
        with tempfile.TemporaryDirectory() as d:
            for source in sources:
                cu, ptx = source if os.path.exists(source) else f"{BUILD}/kernels/{source}", f"{BUILD}/kernels/{source[:-3]}.ptx"
                with self.subTest(kernel=cu):
                    r = subprocess.run([f"{BUILD}/gpuload", "compile", "--no-cache", *INCLUDE_FLAGS, cu, "-o", f"{d}/out.ptx"], capture_output=True, text=True, check=False)
                    if "no libnvrtc" in r.stderr:
                        self.skipTest("no NVRTC")
                    self.assertEqual(r.returncode, 0, r.stderr)
                    self.assertEqual(entries(f"{d}/out.ptx"), entries(ptx))

    def test_a_row_of_kernels_def_is_a_kernel(self):
        with open("include/comm/kernels/kernels.def", encoding="utf-8") as f:
            rows = re.findall(r"^(?:KERNEL|RESIDENT)\((\w+), (\w+),", f.read(), re.M)
        self.assertGreater(len(rows), 25)
        for kernel, file in rows:
            self.assertIn(f"gpul_comm_{kernel}", entries(f"{BUILD}/kernels/comm/kernels/{file}.ptx"))


if __name__ == "__main__":
    unittest.main()
