#!/usr/bin/env python3
"""configure.py: the printed list of parts, its options, and that a second --install-deps does nothing."""
import contextlib, io, os, subprocess, sys, tempfile, types, unittest, zipfile
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
from scripts import install_deps, modules, parts


def configured(*args, **env):
    """Run configure.py with a temporary build folder; (status, standard output, standard error, build.ninja)."""
    with tempfile.TemporaryDirectory() as d:
        r = subprocess.run([sys.executable, f"{ROOT}/configure.py", "--out", d, *args], capture_output=True, text=True,
                           env={**os.environ, **env}, stdin=subprocess.DEVNULL)
        try:
            with open(f"{d}/build.ninja", encoding="utf-8") as f:
                ninja = f.read()
        except FileNotFoundError:
            ninja = None
    return r.returncode, r.stdout, r.stderr, ninja


class Configure(unittest.TestCase):
    def test_prints_a_line_for_each_part(self):
        status, out, _, ninja = configured()
        self.assertEqual(status, 0)
        for part in ("compiler", "cuda.h", "NVRTC", "nvJitLink", "libelf", "zstd", "lz4", "bats"):
            self.assertRegex(out, rf"(?m)^{part} +\S")
        self.assertIn("build check:", ninja)

    def test_without_cuda_headers_the_message_suggests_install_deps(self):
        status, _, err, ninja = configured("--cuda", "no/such/toolkit")
        self.assertEqual(status, 1)
        self.assertIn("--install-deps", err)
        self.assertIsNone(ninja)

    def test_passes_the_options_to_the_compiler(self):
        _, _, _, ninja = configured("--sanitize", "address,undefined", "--cflags=-DEXTRA", "--ldflags=-Wl,-x")
        self.assertRegex(ninja, r"(?m)^cflags = .*-fsanitize=address,undefined.*-DEXTRA")
        self.assertRegex(ninja, r"(?m)^ldflags = -fsanitize=address,undefined -Wl,-x$")
        self.assertRegex(configured("--release")[3], r"(?m)^cflags = .*-DNDEBUG")
        self.assertRegex(configured("--coverage")[3], r"(?m)^cflags = .*--coverage")

    def test_builds_the_handlers_for_each_instruction_set(self):
        ninja = configured()[3]
        if os.path.exists(f"{ROOT}/softcuda/exec/run/run_int.c"):
            for name, _ in parts.builds(types.SimpleNamespace(cc="cc")):
                self.assertIn(f"run_int.{name}.o", ninja)

    def test_a_folder_links_only_the_folders_that_it_may_use(self):
        self.assertEqual(modules.closure("ptx"), ["ptx", "core"])
        self.assertEqual(modules.owner("loader/image/recognise.c"), "loader/image")
        self.assertEqual(modules.owner("loader/loader.h"), "loader")
        self.assertIsNone(modules.owner("scripts/rules.py"))


class Dependencies(unittest.TestCase):
    def test_installs_nothing_if_nothing_is_missing(self):
        if install_deps.missing_packages():
            self.skipTest("some packages are not installed")
        if not parts.cuda_home(types.SimpleNamespace(cuda=None)):
            self.skipTest("no CUDA toolkit")
        status, out, _, _ = configured("--install-deps", PATH=os.environ["PATH"])
        self.assertEqual(status, 0)
        self.assertNotIn("installing", out)

    def test_without_root_only_a_missing_essential_package_is_an_error(self):
        for missing, stops in ((["mandoc"], False), (["gcc", "mandoc"], True)):
            with mock.patch.multiple(install_deps, missing_packages=lambda m=missing: m,
                                     apt=mock.Mock(side_effect=install_deps.Unable("no root"))), \
                 contextlib.redirect_stdout(io.StringIO()) as out:
                if stops:
                    self.assertRaises(install_deps.Unable, install_deps.packages)
                else:
                    install_deps.packages()
                    self.assertEqual(out.getvalue(), "no root; continuing without them\n")

    def test_unpacks_a_wheel_as_a_toolkit(self):
        with tempfile.TemporaryDirectory() as d:
            with zipfile.ZipFile(f"{d}/a.whl", "w") as z:
                z.writestr("nvidia/cu13/include/cuda.h", "#define CUDA_VERSION 13000\n")
                z.writestr("nvidia/cu13/bin/nvcc", "#!/bin/sh\n")
                z.writestr("nvidia_a.dist-info/METADATA", "")
            install_deps.unpack(f"{d}/a.whl", f"{d}/home")
            self.assertEqual(sorted(os.listdir(f"{d}/home")), ["bin", "include"])
            self.assertTrue(os.access(f"{d}/home/bin/nvcc", os.X_OK))
            self.assertTrue(parts.cuda_home(types.SimpleNamespace(cuda=f"{d}/home")))


if __name__ == "__main__":
    os.chdir(ROOT)
    unittest.main()
