#!/usr/bin/env python3
"""The wheel in a new virtual environment, and the unpacked .deb: the module, the command, the drop-in driver, and a C program."""
import glob, os, shlex, shutil, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
# The installed files must use each other, not the files of the build.
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GPULOAD_", "LD_", "PYTHON"))}
VECADD = f"{ROOT}/demo/vecadd.ptx"
PROGRAM = f"""
import array, gpuload
a, out = array.array("d", range(1000)), array.array("d", [0] * 1000)
r = gpuload.run({VECADD!r}, a, a, out, 1000, driver="soft")
print(out[999], gpuload.__file__, gpuload.ls({VECADD!r})[0]["name"])
try:
    gpuload.run("nope.ptx")
except gpuload.Error as e:
    print(e)
"""
CUINIT = "import ctypes; d = ctypes.CDLL('libcuda.so.1'); print(d.cuInit(0), hasattr(d, 'gpuloadSoftDescribeDevice'))"


def packed(pattern):
    hits = glob.glob(f"{glob.escape(BUILD)}/packages/{pattern}")
    if not hits:
        raise unittest.SkipTest(f"no {pattern} in {BUILD}/packages: run ninja wheel deb")
    return hits[0]


class Packages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def output(self, *command, **env):
        r = subprocess.run(command, capture_output=True, text=True, env={**ENV, **env}, cwd=self.folder)
        self.assertEqual(r.returncode, 0, f"{' '.join(command)}:\n{r.stdout}{r.stderr}")
        return r.stdout

    def needs(self, *programs):
        for name in programs:
            if not shutil.which(name):
                self.skipTest(f"no {name}")

    def test_the_wheel_works_in_a_new_environment(self):
        wheel = packed("*.whl")
        if subprocess.run([sys.executable, "-c", "import venv, ensurepip"], capture_output=True).returncode:
            self.skipTest("this Python has no venv, or no pip for it")
        self.output(sys.executable, "-m", "venv", "v")
        python = f"{self.folder}/v/bin/python"
        self.output(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check", wheel)
        printed = self.output(python, "-c", PROGRAM).splitlines()
        self.assertEqual(printed[0].split()[::2], ["1998.0", "vecadd"])
        self.assertTrue(printed[0].split()[1].startswith(f"{os.path.realpath(self.folder)}/v/lib"))
        self.assertEqual(printed[1], "nope.ptx: no such file")
        command = f"{self.folder}/v/bin/gpuload"
        self.assertIn("yes, all of 1024 elements", self.output(command, "run", VECADD, GPULOAD_DRIVER="soft"))
        self.assertEqual(self.output(command, "soft", "--quiet", "--", python, "-c", CUINIT), "0 True\n")
        self.assertTrue(os.path.exists(f"{self.folder}/v/share/man/man1/gpuload.1.gz"))
        files = glob.glob(f"{self.folder}/v/lib/python*/site-packages/gpuload/files")[0]
        self.assertIn("ncclNetPlugin_v12", self.output("nm", "-D", f"{files}/libnccl-net-gpuload.so"))
        needed = self.output("ldd", f"{files}/gpuload")
        for line in needed.splitlines():
            if "=>" in line and not line.split()[0].startswith(("libc.", "libm.", "libdl.", "libpthread.", "librt.")):
                self.assertIn("/gpuload/files/", line)

    def test_a_c_program_uses_the_unpacked_deb(self):
        self.needs("dpkg-deb", "pkg-config", "cc")
        self.output("dpkg-deb", "-x", packed("*.deb"), "root")
        root = f"{self.folder}/root"
        lib = os.path.dirname(glob.glob(f"{root}/usr/lib/*/libgpuload.so")[0])
        environment = {"PKG_CONFIG_PATH": f"{lib}/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": root}
        flags = self.output("pkg-config", "--cflags", "--libs", "gpuload", **environment).split()
        self.output("cc", "-std=c11", f"{ROOT}/tests/install/user.c", "-o", "user", *flags, "-L", lib, *self.cuda())
        self.assertEqual(self.output("./user", LD_LIBRARY_PATH=lib), "42\n")
        self.assertIn("yes, all of 1024 elements", self.output(f"{root}/usr/bin/gpuload", "run", VECADD, GPULOAD_DRIVER="soft"))
        self.assertEqual(self.output(f"{root}/usr/bin/gpuload", "soft", "--quiet", "--", sys.executable, "-c", CUINIT), "0 True\n")
        self.assertTrue(os.path.exists(f"{lib}/libnccl-net-gpuload.so"))
        self.assertEqual(glob.glob(f"{lib}/libcuda*") + glob.glob(f"{lib}/libnv*"), [])  # NVIDIA's stay in use

    def ninja(self):
        with open(f"{ROOT}/build.ninja" if os.path.basename(BUILD) == "build" else f"{BUILD}/build.ninja", encoding="utf-8") as f:
            return f.read().splitlines()

    def cuda(self):
        folder = next(l for l in self.ninja() if l.startswith("cflags = ")).partition("-isystem ")[2].strip().strip("'")
        return ["-isystem", os.path.join(ROOT, folder)] if folder else []

    def pack(self, kind, *options):
        os.mkdir(f"{self.folder}/{kind}")
        line = next(l for l in self.ninja() if f"scripts/packages.py {kind}" in l)
        words = shlex.split(line.split("=", 1)[1].replace("$$", "$").partition(" && ")[0])
        subprocess.run([*words, "--out", f"{self.folder}/{kind}", *options], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        return glob.glob(f"{self.folder}/{kind}/*")[0]

    def test_packing_again_gives_the_same_bytes(self):
        self.needs("dpkg-deb", "readelf", "strip", "cc")
        with open(packed("*.whl"), "rb") as first, open(self.pack("wheel"), "rb") as again:
            self.assertTrue(first.read() == again.read(), "the wheels differ")
        tars = []  # without xz, which takes seconds
        for path in (packed("*.deb"), self.pack("deb", "--level", "0")):
            tars.append(subprocess.run(["dpkg-deb", "--fsys-tarfile", path], capture_output=True, check=True).stdout)
        self.assertTrue(tars[0] == tars[1], "the files of the .deb differ")

    def test_no_file_names_the_folder_of_the_build(self):
        self.needs("dpkg-deb")
        self.output("dpkg-deb", "-x", packed("*.deb"), "root")
        shutil.unpack_archive(packed("*.whl"), f"{self.folder}/wheel", "zip")
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = f"{folder}/{name}"
                if not os.path.islink(path):
                    with open(path, "rb") as f:
                        self.assertNotIn(ROOT.encode(), f.read(), path)


if __name__ == "__main__":
    if not glob.glob(f"{glob.escape(BUILD)}/packages/gpuload[-_]*"):
        print("skipped: no packages: this machine lacks dpkg-deb, or Debian's packages of the libraries in a wheel")
        sys.exit(77)
    unittest.main()
