#!/usr/bin/env python3
"""A program that is linked with libgpuload-rt.a runs in any folder, with an empty environment: it finds the software driver."""
import os, re, shutil, subprocess, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", os.path.join(ROOT, "build")))
PTX = "-gencode", "arch=compute_75,code=compute_75"


def rules():
    folder = ROOT if BUILD == os.path.join(ROOT, "build") else BUILD
    with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as f:
        return f.read()


def nvcc():
    """The nvcc that this build uses; None: there is none."""
    found = re.search(r"command = (\S*/nvcc) ", rules())
    return os.path.join(ROOT, found[1]) if found else shutil.which("nvcc")


@unittest.skipIf(re.search("^cflags = .*(-fsanitize|--coverage)", rules(), re.M), "the program would need the sanitizer's library")
class Outside(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gpuload-outside-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_in_folder(self, *command, **environment):
        return subprocess.run(command, cwd=self.folder, env={"PATH": os.environ["PATH"], **environment}, text=True,
                              capture_output=True, timeout=250)

    def link(self, *objects):
        """Link a program as README.md describes."""
        r = self.run_in_folder("c++", *objects, f"-L{BUILD}", "-lgpuload-rt", "-ldl", "-lpthread", "-o", "program")
        self.assertEqual(r.returncode, 0, r.stderr)

    def make_c_program(self):
        include = re.search(r"^cflags = .*-isystem ('[^']+'|\S+)", rules(), re.M)
        where = [f"-I{os.path.join(ROOT, include[1].strip(chr(39)))}"] if include else []
        r = self.run_in_folder("cc", *where, "-c", f"{ROOT}/tests/install/runtime_user.c", "-o", "program.o")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.link("program.o")

    def test_a_program_of_the_runtime_api(self):
        self.make_c_program()
        r = self.run_in_folder("./program", GPULOAD_DRIVER="soft")
        self.assertEqual((r.stdout, r.returncode), ("42\n", 0), r.stderr)

    def test_without_a_driver_the_program_says_what_is_missing(self):
        self.make_c_program()
        r = self.run_in_folder("./program", GPULOAD_DRIVER="soft", GPULOAD_SOFT_DRIVER="/nonexistent/libcuda-soft.so")
        self.assertEqual(r.returncode, 1)
        self.assertIn("the software driver cannot be loaded: /nonexistent/libcuda-soft.so", r.stderr)
        self.assertEqual(r.stderr.count("the software driver cannot be loaded"), 1)

    @unittest.skipUnless(nvcc(), "no nvcc")
    def test_a_program_with_a_launch_as_in_the_readme(self):
        r = self.run_in_folder(nvcc(), f"-I{ROOT}", f"-I{ROOT}/include", "-cudart", "none", *PTX, "-c", f"{ROOT}/tests/nvidia/cudart/vecadd.cu", "-o", "program.o")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.link("program.o")
        r = self.run_in_folder("./program", GPULOAD_DRIVER="soft")
        self.assertEqual(r.returncode, 0, r.stdout + r.stderr)


if __name__ == "__main__":
    unittest.main()
