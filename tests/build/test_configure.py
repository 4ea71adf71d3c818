#!/usr/bin/env python3
"""configure.py: the printed list of parts, its options, and that --install-deps does nothing if nothing is missing."""
import os, subprocess, sys, tempfile, types, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
from scripts import install_deps, modules, parts


def configured(*args, **env):
    """Run configure.py with a temporary build folder; return (status, standard output, standard error, text of build.ninja)."""
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

    def test_without_a_compiler_for_kernels_the_message_names_both(self):
        script = ("import sys; sys.path.insert(0, sys.argv[1]); sys.argv[1:] = ['--quiet', '--out', sys.argv[2]]\n"
                  "from scripts import parts; find = parts.find; import configure\n"
                  "parts.find = lambda args: {k: parts.Part(k, None if k in ('nvcc', 'NVRTC') else p.where, p.lost) for k, p in find(args).items()}\n"
                  "configure.main()")
        with tempfile.TemporaryDirectory() as d:
            r = subprocess.run([sys.executable, "-c", script, ROOT, d], capture_output=True, text=True, check=False)
            self.assertEqual(r.returncode, 1)
            self.assertRegex(r.stderr, r"^configure.py: neither nvcc nor NVRTC was found, .*--install-deps\n$")
            self.assertFalse(os.path.exists(f"{d}/build.ninja"))

    def test_passes_the_options_to_the_compiler(self):
        _, _, _, ninja = configured("--sanitize", "address,undefined", "--cflags=-DEXTRA", "--ldflags=-Wl,-x")
        self.assertRegex(ninja, r"(?m)^cflags = .*-fsanitize=address,undefined.*-DEXTRA")
        self.assertRegex(ninja, r"(?m)^ldflags = -fsanitize=address,undefined -Wl,-x$")
        self.assertRegex(configured("--release")[3], r"(?m)^cflags = .*-DNDEBUG")
        self.assertRegex(configured("--coverage")[3], r"(?m)^cflags = .*--coverage")

    def test_builds_with_sanitizers_have_folders_of_their_own(self):
        plain, sanitized = configured()[3], configured("--sanitize", "thread")[3]
        self.assertRegex(plain, r"(?s)build check-asan: console\s+command = .*--sanitize address,undefined --out \S+/asan && ninja -f \S+/asan/build.ninja check\n")
        self.assertRegex(plain, r"(?s)build check-tsan: console\s+command = .*--sanitize thread --out \S+/tsan && ninja -f \S+/tsan/build.ninja check\n")
        self.assertNotIn("build check-asan", sanitized)

    def test_can_write_the_commands_of_the_compiler(self):
        self.assertRegex(configured()[3], r"build \S+/compile_commands.json: sh\b.*\s+command = ninja .*-t compdb cc > ")

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


if __name__ == "__main__":
    os.chdir(ROOT)
    unittest.main()
