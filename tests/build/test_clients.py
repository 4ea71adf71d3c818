#!/usr/bin/env python3
"""Tests tests/clients/client.py: counts of outcomes, known failures, test files that crash or hang, and missing requirements."""
import argparse, contextlib, io, os, shutil, signal, subprocess, sys, tempfile, time, unittest

CLIENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients")
sys.path.insert(0, CLIENTS)
import client, nccl_kills, smaller
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
# Replaces pytest: each letter of a file's name is a test that passes (p), skips (s), fails (f), is rerun (r), crashes (c) or hangs (h).
TESTS = """
import os, signal, sys, time, types
import outcomes
items = [types.SimpleNamespace(nodeid=f"{i}{letter}") for i, letter in enumerate(sys.argv[1])]
outcomes.pytest_collection_modifyitems(items)
for item in items:
    outcomes.pytest_runtest_logstart(item.nodeid)
    letter = item.nodeid[-1]
    if letter == "c":
        os.kill(os.getpid(), signal.SIGSEGV)
    if letter == "h":
        time.sleep(1000)
    for outcome in {"p": ("passed", "passed"), "s": ("skipped",), "f": ("passed", "failed", "passed"), "r": ("passed", "rerun", "passed", "passed")}[letter]:
        outcomes.pytest_runtest_logreport(types.SimpleNamespace(nodeid=item.nodeid, outcome=outcome, longrepr="a reason"))
    outcomes.pytest_runtest_logfinish(item.nodeid)
print("the end")
sys.exit({"ppp": 4, "sss": 1}.get(sys.argv[1], 0))
"""
UNITTEST = """
import os, signal, unittest
class A(unittest.TestCase):
    def test_a(self): pass
    def test_b(self): self.assertEqual(1, 2)
    def test_c(self): os.kill(os.getpid(), signal.SIGSEGV)
    @unittest.skip("no")
    def test_d(self): pass
    @unittest.expectedFailure
    def test_e(self): self.fail()
    def test_f(self):
        with self.subTest(one=1):
            self.assertTrue(False, "in one")
    @unittest.expectedFailure
    def test_g(self): pass
class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no")
    def test_h(self): pass
"""


class Frame(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.work)
        os.mkdir(f"{self.work}/logs")

    def outcomes(self, name, limit=300):
        args = argparse.Namespace(work=self.work, limit=limit)
        return client.one_file(args, [sys.executable, "-c", TESTS], name, self.work, {})

    def test_the_outcomes_of_a_file(self):
        self.assertEqual(self.outcomes("psf"), {"0p": ("passed", ""), "1s": ("skipped", ""), "2f": ("failed", "a reason")})

    def test_a_test_that_is_repeated_counts_as_its_last_try(self):
        self.assertEqual(self.outcomes("rp"), {"0r": ("passed", ""), "1p": ("passed", "")})

    def test_tests_after_a_crash_run_in_a_new_process(self):
        crashed = ("failed", f"the process ended with -{signal.SIGSEGV}")
        self.assertEqual(self.outcomes("pccp"), {"0p": ("passed", ""), "1c": crashed, "2c": crashed, "3p": ("passed", "")})

    def test_a_test_that_hangs_is_ended(self):
        self.assertEqual(self.outcomes("phs", limit=5), {"0p": ("passed", ""), "1h": ("failed", "did not end in 5 s"), "2s": ("skipped", "")})

    def test_the_end_of_the_run_ends_a_file(self):
        args = argparse.Namespace(work=self.work, limit=300, until=time.monotonic() + 5)
        notrun = {"phs (process)": ("notrun", "the time was up")}
        self.assertEqual(client.one_file(args, [sys.executable, "-c", TESTS], "phs", self.work, {}), {"0p": ("passed", ""), **notrun})
        self.assertEqual(client.one_file(args, [sys.executable, "-c", TESTS], "phs", self.work, {}), notrun)

    def test_a_process_that_fails_outside_of_a_test_is_a_failure(self):
        self.assertEqual(self.outcomes("ppp")["ppp (process)"], ("failed", "the process ended with 4: the end"))
        self.assertEqual(self.outcomes("sss")["sss (process)"], ("failed", "the process ended with 1: the end"))

    def test_a_module_of_unittest(self):
        with open(f"{self.work}/some_tests.py", "w", encoding="utf-8") as f:
            f.write(UNITTEST)
        args = argparse.Namespace(work=self.work, limit=300, jobs=1, gpuload="")
        outcomes = client.one_file(args, [sys.executable, f"{CLIENTS}/plugin/outcomes.py"], "some_tests", self.work, {"PYTHONPATH": self.work})
        name = "some_tests.A.test_"
        self.assertEqual(outcomes, {
            f"{name}a": ("passed", ""), f"{name}b": ("failed", "AssertionError: 1 != 2"), f"{name}c": ("failed", f"the process ended with -{signal.SIGSEGV}"),
            f"{name}d": ("skipped", ""), f"{name}e": ("skipped", ""), f"{name}f": ("failed", "AssertionError: False is not true : in one"),
            f"{name}g": ("failed", "succeeds, but a failure is expected"), "setUpClass (some_tests.B)": ("failed", "OSError: no")})

    def ended(self, known=None, *added):
        r = client.Results("nothing")
        r.known = known
        with contextlib.redirect_stdout(io.StringIO()) as out:
            for one in added:
                r.add(*one)
            status = r.end()
        return status, out.getvalue()

    def test_the_counts_and_the_exit_status(self):
        self.assertEqual(self.ended(None, ("a", "passed"), ("b", "skipped")), (0, "1 passed, 0 failed, 1 skipped\n"))
        self.assertEqual(self.ended(None, ("a", "passed"), ("b", "failed", "two\nlines")), (1, "FAILED b: two lines\n1 passed, 1 failed, 0 skipped\n"))
        self.assertEqual(self.ended(None, ("b", "skipped")), (1, "0 passed, 0 failed, 1 skipped\n"))  # status 1, because no test passed

    def test_known_failures_have_a_line_of_their_own(self):
        with open(f"{self.work}/known.txt", "w", encoding="utf-8") as f:
            f.write("# because of this\nt.py::test_a[*]\n\n")
        os.mkdir(f"{self.work}/known")
        os.rename(f"{self.work}/known.txt", f"{self.work}/known/x.txt")
        here, client.HERE = client.HERE, self.work
        self.addCleanup(setattr, client, "HERE", here)
        known = client.known_failures("x")
        status, text = self.ended(known, ("t.py::test_a[1-2]", "failed"), ("t.py::test_a", "failed"), ("t.py::test_b", "passed"))
        self.assertEqual(status, 1)
        self.assertEqual(text, "FAILED t.py::test_a: \n1 known failures (tests/clients/known/nothing.txt)\n1 passed, 1 failed, 0 skipped\n")
        self.assertIsNone(client.known_failures("none"))


class Sizes(unittest.TestCase):
    """Tests smaller.py, which reduces the sizes of programs that are too slow for hecbench.py."""

    def test_repetitions_then_sizes_become_smaller(self):
        self.assertEqual(smaller.commands("./main 512 4096 100"), ["./main 512 4096 1", "./main 512 256 1", "./main 512 16 1", "./main 512 256 100",
                                                                   "./main 512 16 100", "./main 512 1 1", "./main 32 256 1", "./main 32 256 6"])

    def test_values_of_options_are_sizes_and_names_of_files_are_not(self):
        self.assertEqual(smaller.commands("./main -i data/4096.txt --dimx=4096 -n 8192")[:2],
                         ["./main -i data/4096.txt --dimx=4096 -n 1", "./main -i data/4096.txt --dimx=256 -n 1"])

    def test_a_size_with_a_name_is_small(self):
        self.assertEqual(smaller.commands("./main -s large -r 10"), ["./main -s small -r 10", "./main -s small -r 1"])
        self.assertEqual(smaller.commands("./main -s 512"), ["./main -s 1", "./main -s 32"])
        self.assertEqual(smaller.commands("./main -s large"), ["./main -s small"])

    def test_a_command_without_numbers_has_no_smaller_sizes(self):
        self.assertEqual(smaller.commands("./main input.txt"), [])

    def test_no_size_becomes_zero(self):
        self.assertEqual([c for c in smaller.commands("./main 1024 2048 64") if " 0" in c], [])
        self.assertLess(smaller.work_of("./main 1 6 x"), smaller.work_of("./main 7 1 x"))

    def test_names_of_the_usage_tell_repetitions_from_sizes(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/main.cu", "w", encoding="utf-8") as f:
                f.write('printf("Usage: %s <repeat> <number of keys> <block size>\\n", argv[0]);')
            names = smaller.usage_names(folder)
        self.assertEqual(names, ["repeat", "number of keys", "block size"])
        self.assertEqual(smaller.commands("./main 100 65536 256", names)[:4], ["./main 1 65536 256", "./main 1 16384 256", "./main 1 4096 256", "./main 1 1024 256"])
        self.assertEqual(smaller.commands("./main 100 65536", names), smaller.commands("./main 100 65536"))

    def test_constants_of_a_source_become_smaller_by_their_names(self):
        text = "#define NUM_ITERATIONS 1000 // of the kernel\n#define BLOCK_SIZE 128\nconst int width = 3 * 1024, seed = 4711;\nint n = 1 << 20;\nuint64_t m = 2147483648;\n"
        self.assertEqual(smaller.constants(text, 100, 1), text.replace("1000", "10"))
        self.assertEqual(smaller.constants(text, 1000, 16), text.replace("1000", "1").replace("3 * 1024", "256").replace("1 << 20", "65536"))
        self.assertEqual(smaller.constants("const int rows = 1000000;", 1, 16), "const int rows = 62528;")   # like 1000000, a multiple of 64


class Scripts(unittest.TestCase):
    """Scripts whose requirements are missing print one line, and download nothing."""

    def output(self, name, *options, **env):
        env = {**{k: v for k, v in os.environ.items() if k != "GPULOAD_CHECKOUTS"}, **env}
        r = subprocess.run([sys.executable, f"{CLIENTS}/{name}", "--build", BUILD, *options], capture_output=True, text=True, env=env)
        return r.returncode, r.stdout + r.stderr

    def test_a_missing_checkout(self):
        with tempfile.TemporaryDirectory() as work:
            status, text = self.output("cuda_core.py", "--work", work)
            self.assertEqual(status, 77, text)
            self.assertRegex(text, r"\Askipped: no copy of github.com/NVIDIA/cuda-python: give --checkout DIR, or GPULOAD_CHECKOUTS, .*\n\Z")
            status, text = self.output("cuda_core.py", "--work", work, "--checkout", work)
            self.assertEqual(status, 1)
            self.assertEqual(text, f"cuda_core: {work} has no cuda_core/tests/conftest.py: give the path of a copy of github.com/NVIDIA/cuda-python\n")

    def test_a_build_folder_without_gpuload(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(self.output("cuda_core.py", "--build", empty, "--work", empty),
                             (1, f"cuda_core: {os.path.realpath(empty)}/gpuload not found: run ninja first, or give --build\n"))

    def test_hecbench_does_not_run_with_libraries_of_others(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(f"{folder}/bin"), os.makedirs(f"{folder}/src/x-cuda")
            for program in (f"{folder}/gpuload", f"{folder}/bin/nvcc"):
                os.symlink("/bin/true", program)
            status, text = self.output("hecbench.py", "--build", folder, "--checkout", folder, PATH=f"{folder}/bin:{os.environ['PATH']}")
            self.assertEqual((status, text), (77, f"skipped: {folder}/libgpuload-rt.a not found: run ninja {os.path.basename(folder)}/libgpuload-rt.a first\n"))
            open(f"{folder}/libgpuload-rt.a", "w", encoding="utf-8").close()
            status, text = self.output("hecbench.py", "--build", folder, "--checkout", folder, PATH=f"{folder}/bin:{os.environ['PATH']}")
            self.assertEqual((status, text), (77, f"skipped: {folder}/softcuda/libcudart.so not found: "
                                                  f"run ninja {os.path.basename(folder)}/softcuda/libcudart.so.N first\n"))


class Kills(unittest.TestCase):
    def test_a_kill_is_the_same_each_time_and_they_reach_every_way(self):
        kills = [nccl_kills.Kill(1, k) for k in range(200)]
        self.assertEqual([str(k) for k in kills], [str(nccl_kills.Kill(1, k)) for k in range(200)])
        self.assertNotEqual(str(kills[0]), str(nccl_kills.Kill(2, 0)))
        self.assertEqual({(k.algorithm, k.protocol, k.transport) for k in kills}, set(nccl_kills.WAYS))
        self.assertEqual({(k.n, k.victim) for k in kills}, {(n, v) for n in (2, 4) for v in range(n)})

    def test_a_transport_and_a_delay_may_be_given(self):
        kills = [nccl_kills.Kill(1, k, nccl_kills.BY_PLUGIN, 4) for k in range(50)]
        self.assertEqual({k.transport for k in kills}, {nccl_kills.BY_PLUGIN})
        self.assertEqual({k.algorithm for k in kills}, {"Ring", "Tree"})   # NVLS needs no network
        self.assertTrue(0.5 < max(k.delay_s for k in kills) <= 4)
        self.assertEqual(kills[0].environment("B")["NCCL_NET_PLUGIN"], "B/stage/lib/libnccl-net-gpuload.so")

    def test_a_file_that_is_open_is_in_use(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as f:
            self.assertTrue(nccl_kills.in_use(f.name))
            with tempfile.TemporaryDirectory(dir="/dev/shm") as d:
                closed = f"{d}/file"
                open(closed, "w", encoding="ascii").close()
                self.assertFalse(nccl_kills.in_use(closed))


if __name__ == "__main__":
    unittest.main()
