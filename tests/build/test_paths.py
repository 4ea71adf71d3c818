#!/usr/bin/env python3
"""The paths of the checkout, the build folder, the prefix and the toolkit may contain a blank, '$', ':' and a quote."""
import os, re, shlex, shutil, subprocess, sys, tempfile, types, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
from scripts import install, parts

ODD = "a b$c:d'e"


class Paths(unittest.TestCase):
    """Builds a part of a checkout whose path has special characters; the checkout consists of links to the real folders."""

    @classmethod
    def setUpClass(cls):
        cls.home = tempfile.mkdtemp()
        cls.root = f"{cls.home}/{ODD}"
        os.mkdir(cls.root)
        for name in os.listdir(ROOT):
            if not name.startswith((".", "build")):
                os.symlink(f"{ROOT}/{name}", f"{cls.root}/{name}")
        cuda = parts.cuda_home(types.SimpleNamespace(cuda=None))
        if cuda:
            os.symlink(os.path.join(ROOT, cuda), f"{cls.home}/cuda {ODD}")
        cls.run_in_root(sys.executable, "configure.py", "--quiet", "--out", f"out {ODD}", "--prefix", f"/opt/{ODD}",
                        *(["--cuda", f"{cls.home}/cuda {ODD}"] if cuda else []))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.home)

    @classmethod
    def run_in_root(cls, *command):
        r = subprocess.run(command, cwd=cls.root, capture_output=True, text=True)
        assert r.returncode == 0, f"{command}:\n{r.stdout}{r.stderr}"
        return r.stdout

    def ninja(self, *arguments):
        return self.run_in_root("ninja", "-f", f"out {ODD}/build.ninja", *arguments)

    def test_every_target_has_a_rule(self):
        self.ninja("-n", "check", "install")

    def test_builds_a_library_and_a_second_run_builds_nothing(self):
        targets = [f"out {ODD}/libdriver.a", f"out {ODD}/headers/include/driver/driver.h.ok", f"out {ODD}/man/man3.ok"]
        self.ninja(*targets)
        self.assertIn("no work to do", self.ninja(*targets))

    def test_the_install_command_gets_the_prefix_and_the_toolkit_as_one_argument_each(self):
        line = next(l for l in self.ninja("-t", "commands", "install").splitlines() if "install.py" in l)
        words = shlex.split(line)
        self.assertEqual(words[words.index("--prefix") + 1], f"/opt/{ODD}")
        self.assertEqual(words[words.index("--cuda") + 1], f"{self.home}/cuda {ODD}")
        self.assertEqual(words[words.index("--build") + 1], f"out {ODD}")

    def test_the_library_contains_the_prefix(self):
        self.ninja(f"out {ODD}/obj/driver/search.o")
        with open(f"{self.root}/out {ODD}/obj/driver/search.o", "rb") as f:
            self.assertIn(f"/opt/{ODD}/lib/gpuload".encode(), f.read())

    def test_refuses_a_path_with_a_line_end_or_a_vertical_bar(self):
        for path in ("a|b", "a\nb"):
            r = subprocess.run([sys.executable, f"{ROOT}/configure.py", "--prefix", path], capture_output=True, text=True)
            self.assertEqual(r.returncode, 1)
            self.assertRegex(r.stderr, r"^configure.py: --prefix 'a(\||\\n)b': ninja accepts neither")


@unittest.skipUnless(shutil.which("pkg-config"), "no pkg-config")
class PkgConfig(unittest.TestCase):
    def test_a_flag_with_a_blank_is_one_argument(self):
        with tempfile.TemporaryDirectory() as d:
            for name, text in (("gpuload", install.PKGCONFIG), ("gpuload-rt", install.RT_PKGCONFIG)):
                with open(f"{d}/{name}.pc", "w", encoding="utf-8") as f:
                    f.write(text.format(prefix="/opt/a b", cuda="/opt/c'd e", version="1", libraries="-lelf", rpath=install.RPATH))
                out = subprocess.run(["pkg-config", "--cflags", "--libs", name], capture_output=True, text=True, check=True,
                                     env={**os.environ, "PKG_CONFIG_PATH": d}).stdout
                self.assertIn("-L/opt/a b/lib", shlex.split(out))
                self.assertIn("-I/opt/c'd e/include", shlex.split(out))


if __name__ == "__main__":
    if not shutil.which("ninja"):
        print("no ninja")
        sys.exit(77)
    unittest.main()
