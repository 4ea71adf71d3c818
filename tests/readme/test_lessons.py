#!/usr/bin/env python3
"""The lessons' pages show the output of their programs: every console block of examples/*/README.md, numbers aside.

`./PROGRAM` is the program that was built in build/examples; it runs in the lesson's folder, or in a copy of it with the kernels that
were built.  08-rdma-send needs an RDMA device: without one its blocks are skipped here, and tests/vm/test_lesson.py runs them in a
guest.  The lessons of NCCL are run by their own tests, LESSON=NAME, in a copy of the folder, because their commands write logs."""
import glob, os, re, shutil, sys, tempfile, unittest

import console  # in this folder

BUILD = os.path.abspath(os.path.join(console.ROOT, os.environ.get("GPULOAD_BUILD", "build")))
ONLY = os.environ.get("LESSON", "")
HAS_RDMA = bool(glob.glob("/sys/class/infiniband/*"))
OF_NCCL = ("19-inside-nccl", "20-net-plugin")  # NCCL is not there unless it was downloaded, and its start takes seconds


class Lessons(unittest.TestCase):
    def check_page(self, page):
        folder = os.path.dirname(page)
        built = f"{BUILD}/examples/{os.path.basename(folder)}"
        with tempfile.TemporaryDirectory() as sockets, tempfile.TemporaryDirectory() as copy:
            env = dict(os.environ, GPULOAD_DRIVER="soft", GPULOAD_RUNTIME_DIR=sockets, LC_ALL="C.UTF-8")
            env["PATH"] = f"{BUILD}:{env['PATH']}"
            env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"  # lesson 21 preloads a library
            kernels = glob.glob(f"{built}/*.ptx")
            if kernels or os.path.basename(folder) in OF_NCCL:
                folder = shutil.copytree(folder, copy, dirs_exist_ok=True)
            for kernel in kernels:
                shutil.copy(kernel, folder)
            for commands, printed in console.sessions(console.read(page)):
                with self.subTest(page=os.path.relpath(page, console.ROOT), command=commands):
                    self.assertEqual(len(commands), 1)
                    program = re.match(r"\./(\w+)", commands[0])
                    if program and not os.path.exists(f"{built}/{program[1]}"):
                        self.skipTest(f"{program[1]} was not built: a library is missing")
                    status, output = console.run_one(re.sub(r"(^|[\s=])\./(?=\w)", rf"\1{built}/", commands[0]), folder, env)
                    output = "\n".join(line for line in output.splitlines() if not line.startswith("gpuload: no "))
                    self.assertIsNone(console.first_difference(printed[0], output), output)

    def test_the_pages_show_what_the_programs_print(self):
        pages = sorted(glob.glob(f"{console.ROOT}/examples/*{ONLY}*/README.md"))
        self.assertTrue(pages)
        n_blocks = 0
        for page in pages:
            n_blocks += console.read(page).count("```console\n")
            if ("08-rdma-send" in page and not HAS_RDMA) or (not ONLY and any(name in page for name in OF_NCCL)):
                continue
            self.check_page(page)
        self.assertGreaterEqual(n_blocks, len(pages), "a page has no console block")

    def test_a_difference_is_found(self):
        for shown, printed, same in [
                ("a 1\n...\nb", "a 2\nx\ny\nb", True), ("a\n...", "a\nb", True), ("a ...", "a 5 of 7", True),
                ("a", "a\nb", False), ("a\nb", "a", False), ("a\n...\nc", "a\nb", False), ("a 1 us", "a 1 ms", False),
                ("at 0x7f3a", "at 0x55b3", True), ("...\nb", "a\nb\nc", False)]:
            with self.subTest(shown=shown, printed=printed):
                self.assertEqual(console.first_difference(shown, printed) is None, same)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
