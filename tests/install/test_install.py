#!/usr/bin/env python3
"""Install below a temporary DESTDIR, then build and run programs against the installed files."""
import glob, os, shlex, shutil, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
PREFIX = "/opt/gpu load"
# The installed files must use each other, not the files of the build.
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPULOAD_", "LD_LIBRARY"))}


def install_command():
    """The command that `ninja install` runs, up to its option --prefix."""
    ninja = "build.ninja" if os.path.basename(BUILD) == "build" else f"{BUILD}/build.ninja"
    with open(os.path.join(ROOT, ninja), encoding="utf-8") as f:
        line = next(l for l in f if "scripts/install.py" in l and "command =" in l)
    words = shlex.split(line.split("=", 1)[1].replace("$$", "$"))
    return words[:words.index("--prefix")]


def sanitized():
    return "san_init" in subprocess.run(["nm", "-D", f"{BUILD}/libgpuload.so"], capture_output=True, text=True).stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dest = tempfile.mkdtemp()
        cls.home = cls.dest + PREFIX
        cls.install()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dest)

    @classmethod
    def install(cls):
        subprocess.run([*install_command(), "--prefix", PREFIX, "--destdir", cls.dest],
                       cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    def output(self, *cmd, **env):
        r = subprocess.run(cmd, capture_output=True, text=True, env={**ENV, **env}, cwd=self.dest)
        self.assertEqual(r.returncode, 0, f"{' '.join(cmd)}:\n{r.stdout}{r.stderr}")
        return r.stdout

    def pkg_config(self, *what, package="gpuload"):
        return shlex.split(self.output("pkg-config", f"--define-variable=prefix={self.home}", *what, package,
                                       PKG_CONFIG_PATH=f"{self.home}/lib/pkgconfig"))

    def test_a_program_builds_against_the_shared_library_and_runs(self):
        self.output("cc", "-std=c11", f"{ROOT}/tests/install/user.c", "-o", "user",
                    *self.pkg_config("--cflags", "--libs"))
        self.assertEqual(self.output("./user", LD_LIBRARY_PATH=f"{self.home}/lib"), "42\n")

    def test_a_program_builds_against_the_static_library_and_runs(self):
        libs = self.pkg_config("--libs", "--static")
        libs[libs.index("-lgpuload")] = "-l:libgpuload.a"
        self.output("cc", "-std=c11", f"{ROOT}/tests/install/user.c", "-o", "user-static",
                    *self.pkg_config("--cflags"), *libs)
        # A static program cannot find the software driver by itself, so the environment has its path.
        self.assertEqual(self.output("./user-static", GPULOAD_SOFT_DRIVER=f"{self.home}/lib/gpuload/libcuda-soft.so"),
                         "42\n")

    def test_the_installed_command_runs_the_installed_probe(self):
        out = self.output(f"{self.home}/bin/gpuload", "devices", "--memory", GPULOAD_PROBE="", GPULOAD_DRIVER="soft")
        self.assertRegex(out, r"(?m)^memfd +yes +yes ")
        self.assertNotIn("not tested", out)

    def test_a_runtime_api_program_runs_with_the_installed_runtime(self):
        self.output("cc", "-std=c11", f"{ROOT}/tests/install/runtime_user.c", "-o", "runtime-user",
                    *self.pkg_config("--cflags", "--libs", package="gpuload-rt"))
        self.assertEqual(self.output("./runtime-user", GPULOAD_DRIVER="soft",
                                     GPULOAD_SOFT_DRIVER=f"{self.home}/lib/gpuload/libcuda-soft.so"), "42\n")

    def test_the_runtime_defines_only_cuda_and_gpul_names(self):
        out = self.output("nm", "-g", "--defined-only", f"{self.home}/lib/libgpuload-rt.a")
        names = [l.split()[-1] for l in out.splitlines() if len(l.split()) == 3]
        self.assertIn("__cudaRegisterFatBinary", names)
        self.assertEqual([n for n in names if not n.startswith(("cuda", "__cuda", "gpul_"))], [])
        self.assertEqual(len(names), len(set(names)))

    def test_the_command_finds_the_installed_software_driver(self):
        shutil.copy(f"{ROOT}/demo/vecadd.ptx", self.dest)
        self.output(f"{self.home}/bin/gpuload", "run", "--driver", "soft", "vecadd.ptx")

    def test_every_installed_header_is_public_and_compiles_alone(self):
        headers = glob.glob(f"{self.home}/include/gpuload/**/*.h", recursive=True)
        self.assertGreater(len(headers), 8)
        for h in headers:
            self.assertFalse(h.endswith("_internal.h"), h)
            with self.subTest(h):
                self.output("cc", "-std=c11", *self.pkg_config("--cflags"), "-fsyntax-only", "-x", "c", h)

    def test_the_library_exports_only_gpul_names(self):
        out = self.output("nm", "-D", "--defined-only", f"{self.home}/lib/libgpuload.so")
        names = [l.split()[-1] for l in out.splitlines()]
        self.assertIn("gpul_driver_open", names)
        self.assertEqual([n for n in names if not n.startswith("gpul_")], [])

    def test_the_software_driver_exports_only_driver_calls(self):
        out = self.output("nm", "-D", "--defined-only", f"{self.home}/lib/gpuload/libcuda.so.1")
        names = [l.split()[-1] for l in out.splitlines()]
        self.assertIn("cuInit", names)
        self.assertEqual([n for n in names if not n.startswith(("cu", "gpuloadSoft"))], [])

    def test_installs_the_man_pages_and_the_completion(self):
        for name in ("man/man1/gpuload.1", "man/man3/gpul_driver_open.3", "bash-completion/completions/gpuload"):
            self.assertGreater(os.path.getsize(f"{self.home}/share/{name}"), 20)
        self.output("bash", "-n", f"{self.home}/share/bash-completion/completions/gpuload")

    def test_installing_again_changes_nothing(self):
        before = sorted(os.walk(self.home))
        self.install()
        self.assertEqual(before, sorted(os.walk(self.home)))


if __name__ == "__main__":
    if sanitized():
        print("skipped: the test programs would have to be sanitized too")
        sys.exit(77)
    unittest.main()
