#!/usr/bin/env python3
"""tests/gpu/run pack: the files that it packs from a small repository, and what tests/gpu/run then reports about missing files and about
steps."""
import contextlib, importlib.machinery, importlib.util, io, os, shutil, subprocess, sys, tarfile, tempfile, types, unittest
from unittest import mock

GPU = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "gpu")
sys.path.insert(0, GPU)
import pack


def load_run():
    loader = importlib.machinery.SourceFileLoader("gpu_run", f"{GPU}/run")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
    loader.exec_module(module)
    return module


class Pack(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.addCleanup(os.chdir, os.getcwd())
        os.makedirs(f"{self.folder}/here/tests/gpu")
        os.chdir(f"{self.folder}/here")
        for path in ("tests/gpu/run", "proxy/fifo.ptx"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write("text\n")
        with open(".gitignore", "w", encoding="utf-8") as f:
            f.write("build/\n")
        for command in (["init", "-q"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
            subprocess.run(["git", *command], check=True)
        for path in ("build/tests/inputs/vec.o", "build/tests/corpus/program", "build/examples/one/libone.a", "build/obj/x.o", "build/tests/corpus/test_a",
                     "build/tests/corpus/test_b"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            subprocess.run(["cc", "-g", "-x", "c", "-", "-o", path], input="int main(void) { return 0; }", text=True, check=True)
        os.symlink("program", "build/tests/corpus/link")

    def packed(self):
        """Pack, unpack, and change into the unpacked folder."""
        with mock.patch.object(pack, "build_programs"), mock.patch.object(pack, "tests_of_the_suite", return_value={"build/tests/corpus/test_a"}), contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(pack.main([f"{self.folder}/p.tar.xz"]), 0)
        self.assertRegex(out.getvalue(), r"p\.tar\.xz: 0\.\d MiB, \d+ files\n")
        with tarfile.open(f"{self.folder}/p.tar.xz") as tar:
            tar.extractall(f"{self.folder}/there")
        os.chdir(f"{self.folder}/there")

    def test_it_has_the_tracked_files_and_the_built_programs_without_debug_information(self):
        sizes = {path: os.path.getsize(path) for path in ("build/tests/inputs/vec.o", "build/tests/corpus/program")}
        self.packed()
        self.assertEqual(os.path.getsize("build/tests/inputs/vec.o"), sizes["build/tests/inputs/vec.o"])  # inputs of tests keep their debug information
        self.assertLess(os.path.getsize("build/tests/corpus/program"), sizes["build/tests/corpus/program"])
        self.assertEqual(subprocess.run(["build/tests/corpus/program"], check=False).returncode, 0)
        self.assertEqual(os.readlink("build/tests/corpus/link"), "program")
        for path in ("proxy/fifo.ptx", "tests/gpu/run", "build/examples/one/libone.a"):
            self.assertTrue(os.path.exists(path), path)
        self.assertTrue(os.path.exists("build/tests/corpus/test_a"))
        self.assertFalse(os.path.exists("build/tests/corpus/test_b") or os.path.exists("build/obj"))

    def test_a_lost_file_is_a_failure(self):
        self.packed()
        suite = types.SimpleNamespace(check=mock.Mock())
        gpu_run = load_run()
        gpu_run.check_pack(suite)
        self.assertTrue(suite.check.call_args[0][1])
        os.remove("build/tests/corpus/program")
        gpu_run.check_pack(suite)
        name, good, why = suite.check.call_args[0]
        self.assertFalse(good)
        self.assertRegex(why, r"^1 files are missing, such as build/tests/corpus/program: ")

    def test_a_checkout_is_not_a_pack(self):
        suite = types.SimpleNamespace(check=mock.Mock())
        load_run().check_pack(suite)
        suite.check.assert_not_called()

    def test_a_pack_that_is_too_large_is_refused(self):
        with mock.patch.object(pack, "MOST_BYTES", 100), self.assertRaisesRegex(SystemExit, "more than"):
            self.packed()


class Steps(unittest.TestCase):
    def report(self, **options):
        gpu_run = load_run()

        def first(_):
            pass

        def second(_):
            pass

        args = types.SimpleNamespace(**{"only": None, "skip": [], "limit": None, **options})
        with mock.patch.object(gpu_run, "STEPS", [first, second]), contextlib.redirect_stdout(io.StringIO()) as out:
            prevented = gpu_run.report_steps(args, gpu_run.run_steps(None, args))
        return prevented, out.getvalue()

    def test_a_run_prints_which_steps_it_did(self):
        prevented, text = self.report()
        self.assertEqual(prevented, 0)
        self.assertIn("steps that were run: first 0 s, second 0 s\n", text)
        self.assertNotIn("not selected", text)
        prevented, text = self.report(skip=["first"])
        self.assertEqual(prevented, 0)
        self.assertIn("steps that were run: second 0 s\nsteps that were not selected: first\n", text)

    def test_a_run_that_is_out_of_time_names_what_is_missing(self):
        prevented, text = self.report(limit=1e-9)
        self.assertEqual(prevented, 2)
        self.assertIn("steps that --limit prevented: first, second\n", text)


if __name__ == "__main__":
    unittest.main()
