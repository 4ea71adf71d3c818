#!/usr/bin/env python3
"""Install below a temporary DESTDIR, then build and run programs against the installed files."""
import contextlib, glob, io, os, shlex, shutil, subprocess, sys, tempfile, unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
from scripts import install
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
PREFIX = "/opt/gpu load"
# The installed files must use each other, not the files of the build.
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPULOAD_", "LD_LIBRARY"))}


def install_command():
    """Return the command that `ninja install` runs, up to its option --prefix."""
    ninja = "build.ninja" if os.path.basename(BUILD) == "build" else f"{BUILD}/build.ninja"
    with open(os.path.join(ROOT, ninja), encoding="utf-8") as f:
        line = next(l for l in f if "scripts/install.py" in l and "command =" in l)
    words = shlex.split(line.split("=", 1)[1].replace("$$", "$"))
    return words[:words.index("--prefix")]


def sanitized():
    return "san_init" in subprocess.run(["nm", "-D", f"{BUILD}/libgpuload.so"], capture_output=True, text=True).stdout


class Installed(unittest.TestCase):
    CUDA = []  # further options of the install command

    @classmethod
    def setUpClass(cls):
        cls.dest = tempfile.mkdtemp(dir=BUILD)  # not /tmp, which may be too small for a toolkit
        cls.home = cls.dest + PREFIX
        cls.install()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.dest)

    @classmethod
    def install(cls):
        subprocess.run([*install_command(), *cls.CUDA, "--prefix", PREFIX, "--destdir", cls.dest],
                       cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    def output(self, *cmd, **env):
        r = subprocess.run(cmd, capture_output=True, text=True, env={**ENV, **env}, cwd=self.dest)
        self.assertEqual(r.returncode, 0, f"{' '.join(cmd)}:\n{r.stdout}{r.stderr}")
        return r.stdout

    def pkg_config(self, *what, package="gpuload"):
        return shlex.split(self.output("pkg-config", f"--define-variable=prefix={self.home}", *what, package,
                                       PKG_CONFIG_PATH=f"{self.home}/lib/pkgconfig"))


class Install(Installed):
    def test_a_program_builds_against_the_shared_library_and_runs(self):
        self.output("cc", "-std=c11", f"{ROOT}/tests/install/user.c", "-o", "user",
                    *self.pkg_config("--cflags", "--libs"))
        self.assertEqual(self.output("./user"), "42\n")  # pkg-config's flags have the library's folder for the loader

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

    def test_the_network_plug_in_exports_only_what_nccl_looks_up(self):
        out = self.output("nm", "-D", "--defined-only", f"{self.home}/lib/libnccl-net-gpuload.so")
        self.assertEqual(sorted(l.split()[-1] for l in out.splitlines()), [f"ncclNetPlugin_v{n}" for n in (10, 11, 12)])

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


class Wheels(Installed):
    """A toolkit in the build folder, as --install-deps makes it, is installed with gpuload."""

    @classmethod
    def setUpClass(cls):
        cls.toolkit = tempfile.mkdtemp(dir=BUILD)
        cls.CUDA = ["--cuda", cls.toolkit]
        for name, text in (("include/cuda.h", "#define CARRIED_ALONG 42\n"), ("bin/nvcc", "#!/bin/sh\necho nvcc\n"), ("lib/libold.so", ""),
                           ("wheels.txt", "nvidia-a==1\n")):
            cls.change(name, text)
        os.chmod(f"{cls.toolkit}/bin/nvcc", 0o755)
        os.symlink("lib", f"{cls.toolkit}/lib64")
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", f"{cls.toolkit}/lib/libgpuload-toolkit-test.so"], check=True,
                       input="int answer(void); int answer(void) { return 42; }", text=True)
        super().setUpClass()
        os.rename(cls.toolkit, cls.toolkit + ".away")

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.toolkit + ".away")

    @classmethod
    def change(cls, name, text):
        os.makedirs(os.path.dirname(f"{cls.toolkit}/{name}"), exist_ok=True)
        with open(f"{cls.toolkit}/{name}", "w", encoding="utf-8") as f:
            f.write(text)

    def setUp(self):
        self.carried = f"{self.home}/lib/gpuload/cuda-wheels"

    def test_the_pkg_config_files_name_the_installed_headers_and_nvcc(self):
        for package in ("gpuload", "gpuload-rt"):
            flags = self.pkg_config("--cflags", package=package)
            out = subprocess.run(["cc", *flags, "-E", "-"], input="#include <cuda.h>\nvalue CARRIED_ALONG", capture_output=True, text=True)
            self.assertIn("value 42", out.stdout, package)
        home = self.output("pkg-config", f"--define-variable=prefix={self.home}", "--variable=cudahome", "gpuload",
                           PKG_CONFIG_PATH=f"{self.home}/lib/pkgconfig").strip()
        self.assertEqual(self.output(f"{home}/bin/nvcc"), "nvcc\n")

    def test_a_program_of_the_library_finds_the_installed_toolkit(self):
        self.output("cc", "-std=c11", f"{ROOT}/tests/install/toolkit_user.c", "-o", "toolkit-user", f"-I{self.home}/include/gpuload",
                    f"-L{self.home}/lib", f"-Wl,-rpath,{self.home}/lib", "-lgpuload")
        self.assertEqual(self.output("./toolkit-user"), f"42 from {os.path.realpath(self.carried)}/lib/libgpuload-toolkit-test.so\n")

    @unittest.skipIf(shutil.which("nvcc", path="/usr/bin:/bin"), "nvcc of the system comes first")
    def test_a_program_of_the_library_finds_the_installed_nvcc(self):
        flags = ["-std=c11", "-D_GNU_SOURCE", f"-I{ROOT}", f"-I{ROOT}/include", f"-L{self.home}/lib", f"-Wl,-rpath,{self.home}/lib"]
        # Like libgpuload.so, this library is in lib/, and searches from there.
        self.output("cc", "-shared", "-fPIC", f"{ROOT}/loader/program/program_find.c", f"{ROOT}/core/own_folder.c", "-o", f"{self.home}/lib/libnvcc-user.so",
                    *flags, "-lgpuload")
        self.output("cc", f"{ROOT}/tests/install/nvcc_user.c", "-o", "nvcc-user", *flags, "-lnvcc-user", "-lgpuload")
        self.assertEqual(os.path.realpath(self.output("./nvcc-user", PATH="/usr/bin:/bin", CUDA_HOME="").strip()),
                         os.path.realpath(f"{self.carried}/bin/nvcc"))

    def test_it_is_copied_again_only_if_its_wheels_have_changed(self):
        os.rename(self.toolkit + ".away", self.toolkit)
        self.addCleanup(os.rename, self.toolkit, self.toolkit + ".away")
        before = os.stat(f"{self.carried}/bin/nvcc")
        self.install()
        self.assertEqual(os.stat(f"{self.carried}/bin/nvcc"), before)
        self.change("wheels.txt", "nvidia-a==2\n")
        os.remove(f"{self.toolkit}/lib/libold.so")
        self.install()
        self.assertEqual(os.readlink(f"{self.carried}/lib64"), "lib")
        self.assertFalse(os.path.exists(f"{self.carried}/lib/libold.so"))


class Permission(unittest.TestCase):
    def run_install(self, *arguments):
        with mock.patch.object(sys, "argv", ["install.py", "--cuda", "/usr", *arguments]), \
             contextlib.redirect_stdout(io.StringIO()):
            install.main()

    def test_one_line_gives_the_commands_if_the_prefix_is_not_writable(self):
        with mock.patch.object(install, "install", side_effect=AssertionError("files were written")), \
             mock.patch.object(os, "access", lambda path, mode: path != "/usr/local"):
            self.assertRaisesRegex(SystemExit, r"^install.py: no permission to write to /usr/local: run 'sudo ninja install', or choose "
                                               r"another folder: '\./configure.py --prefix ~/.local && ninja install'$", self.run_install)
            self.assertRaisesRegex(SystemExit, "sudo ninja -f out/build.ninja install", self.run_install, "--build", "out")

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_files_that_root_wrote_into_the_build_folder_get_its_owner(self):
        with tempfile.TemporaryDirectory() as d:
            for folder, owner in ((d, 0), (f"{d}/build", 1000), (f"{d}/build/obj", 0)):
                os.makedirs(folder, exist_ok=True)
                os.chown(folder, owner, owner)
            with open(f"{d}/build/.ninja_log", "w", encoding="utf-8"):
                pass
            install.give_back(f"{d}/build")
            self.assertEqual({os.stat(f"{d}/build/{name}").st_uid for name in ("obj", ".ninja_log")}, {1000})
            self.assertEqual(os.stat(d).st_uid, 0)


if __name__ == "__main__":
    if sanitized():
        print("skipped: the test programs would have to be sanitized too")
        sys.exit(77)
    unittest.main()
