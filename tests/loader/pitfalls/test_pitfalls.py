#!/usr/bin/env python3
"""Provokes each pitfall of docs/kernel-by-name-symbol-pointer.md with nvcc and the host's linker, and checks that gpuload
explains it: a note on the file (gpuload ls), advice on the tool's message (gpuload explain), or an error of the program."""
import argparse, os, re, shutil, subprocess, sys, tempfile, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path.insert(0, ROOT)
from scripts import parts

BUILD = os.path.abspath(os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build")))
os.chdir(ROOT)
HOME = os.path.abspath(parts.cuda_home(argparse.Namespace(cuda=None)) or "/usr")
NVCC = next((p for p in [f"{HOME}/bin/nvcc", shutil.which("nvcc")] if p and os.path.exists(p)), None)
ARCH = ["-arch=sm_75", "-Wno-deprecated-gpu-targets"]
CUDART = [f"-L{HOME}/lib64", f"-L{HOME}/lib", "-lcudart_static", "-lstdc++", "-ldl", "-lrt", "-lpthread"]
RT = [f"{BUILD}/libgpuload-rt.a", "-lstdc++", "-ldl", "-lpthread", "-lm"]


class Pitfalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not NVCC:
            raise unittest.SkipTest("no nvcc on this machine")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.nvcc("-c", "-Xcompiler", "-fPIC", f"{HERE}/kernels.cu", "-o", "kernels.o")
        cls.works("ar", "rcs", "libvec.a", "kernels.o")
        for name in ("parts", "helper", "other"):
            cls.nvcc("-dc", "-Xcompiler", "-fPIC", f"{HERE}/{name}.cu", "-o", f"{name}.o")

    @classmethod
    def tool(cls, *command):
        """Run a command in the temporary folder; return its status and output."""
        env = dict(os.environ, GPULOAD_DRIVER="soft", LC_ALL="C")
        r = subprocess.run(command, cwd=cls.folder.name, env=env, stdin=subprocess.DEVNULL, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return r.returncode, r.stdout

    @classmethod
    def works(cls, *command):
        status, text = cls.tool(*command)
        if status:
            raise AssertionError(f"{' '.join(command)}: {text}")
        return text

    @classmethod
    def nvcc(cls, *options):
        return cls.works(NVCC, *ARCH, "-cudadevrt", "none", *options)

    def gpuload(self, *arguments):
        return self.tool(f"{BUILD}/gpuload", *arguments)[1]

    def explained(self, log):
        with open(f"{self.folder.name}/log", "w", encoding="utf-8") as f:
            f.write(log)
        return self.gpuload("explain", "log")

    def look_up(self, *options, argument=""):
        """Compile main.c with these options, run it, and return its output."""
        self.works("cc", "-D_GNU_SOURCE", f"-I{ROOT}", f"-I{ROOT}/include", f"-I{HOME}/include", f"{HERE}/main.c", "-o", "lookup", *options, *libraries(), *RT)
        return self.works("./lookup", argument)

    # ---- host stubs ----------------------------------------------------------------------------------------------

    def test_a_shared_library_hides_its_stubs(self):
        self.nvcc("-shared", "-cudart", "static", "kernels.o", "-o", "libvec.so")
        self.assertIn("nvcc hides the stubs of a shared library", self.gpuload("ls", "libvec.so"))
        status, log = self.tool("cc", "-DSTUB=VecAdd", f"-I{ROOT}", f"-I{ROOT}/include", f"-I{HOME}/include", f"{HERE}/main.c", "-o", "hidden",
                                "-L.", "-lvec", *libraries(), *CUDART)
        self.assertNotEqual(status, 0)
        self.assertRegex(log, "undefined reference to `VecAdd'|hidden symbol `VecAdd'")
        self.assertIn("the host stub is NULL; if dlsym() did not find it: since CUDA 13 shared libraries hide their stubs",
                      self.look_up("-DSTUB_IN_LIBRARY", argument="./libvec.so"))

    def test_an_archive_or_an_nvcc_option_makes_stubs_visible(self):
        self.nvcc("-shared", "-cudart", "none", "--device-entity-has-hidden-visibility=false", "-Xcompiler", "-fPIC",
                  f"{HERE}/kernels.cu", "-o", "libshown.so")
        self.assertNotIn("note:", self.gpuload("ls", "libshown.so"))
        self.assertEqual(self.look_up("-DSTUB=VecAdd", "-L.", "-l:libvec.a"), "kernel VecAdd\n")

    def test_the_linker_leaves_out_an_archive_member_that_nothing_refers_to(self):
        for option, advice in (("-Wl,--no-whole-archive", True), ("-Wl,--whole-archive", False)):
            self.look_up("-L.", option, "-l:libvec.a", "-Wl,--no-whole-archive")
            listed = self.gpuload("ls", "lookup")
            self.assertEqual("no device code found" in listed, advice, listed)
            self.assertEqual("-Wl,--whole-archive adds the others" in listed, advice, listed)

    def test_explains_functions_that_are_not_kernels(self):
        # TSan's library defines abort, too, before libc.
        self.assertRegex(self.look_up("-DSTUB=abort"), r"abort is in lib(c\.so\.6|tsan\.so\.\d+), which has no device code")
        self.assertIn("not_a_kernel of this program is not a __global__ function",
                      self.look_up("-DSTUB=not_a_kernel", "-Wl,--whole-archive", "libvec.a", "-Wl,--no-whole-archive"))

    def test_explains_a_stub_registered_with_another_runtime(self):
        self.nvcc("-c", "--device-entity-has-hidden-visibility=false", "-Xcompiler", "-fPIC", f"{HERE}/kernels.cu", "-o", "shown.o")
        self.works("c++", "-shared", "shown.o", "-Wl,--exclude-libs,ALL", *libraries(), *RT, "-o", "libown.so")
        self.assertIn("VecAdd is a stub of libown.so, which registered it with its private CUDA runtime",
                      self.look_up("-DSTUB=VecAdd", "-L.", "-lown", "-Wl,-rpath,$ORIGIN"))

    def test_explains_that_nvidias_runtime_needs_nvidias_driver(self):
        self.works("cc", "-DSTUB=VecAdd", "-D_GNU_SOURCE", f"-I{ROOT}", f"-I{ROOT}/include", f"-I{HOME}/include", f"{HERE}/main.c", "-o", "nvidias",
                   "libvec.a", *libraries(), *CUDART)
        self.assertIn("NVIDIA's CUDA runtime works only with NVIDIA's driver", self.works("./nvidias"))

    # ---- relocatable code ----------------------------------------------------------------------------------------

    def test_explains_code_that_needs_a_device_link(self):
        self.assertIn("the device code is not linked yet (nvcc -dc)", self.gpuload("ls", "parts.o"))
        status, log = self.tool("c++", "-shared", "-Wl,--no-undefined", "parts.o", "helper.o", "-o", "unlinked.so", *CUDART)
        self.assertNotEqual(status, 0)
        self.assertIn("undefined reference to `__cudaRegisterLinkedBinary_", log)
        self.assertIn("nvcc -dlink OBJECTS -o dlink.o, and link dlink.o too", self.explained(log))

    def test_explains_kernels_that_the_device_link_dropped(self):
        objects = ["parts.o", "helper.o", "other.o"]
        for options, dropped in (([], True), (["-Xnvlink", "-ignore-host-info"], False)):
            self.nvcc("-dlink", *options, *objects, "-o", "dlink.o")
            output = self.look_up("-DSTUB=Unreferenced", "-DEXPLAIN", *objects, "dlink.o")
            listed = self.gpuload("ls", "lookup")
            if not dropped:
                self.assertNotIn("note:", listed)
                self.assertIn("this program has the code of Unreferenced for sm_75", output)
            else:
                self.assertRegex(listed, "note: (Unreferenced|UsesHelper) is not in the linked device code: nvcc -dlink drops")
                self.assertIn("Unreferenced has a stub in this program, but no kernel: nvcc -dlink drops", output)

    def test_explains_an_undefined_function(self):
        status, log = self.tool(NVCC, *ARCH, "-dlink", "-Xnvlink", "-ignore-host-info", "parts.o", "-o", "dlink.o")
        self.assertNotEqual(status, 0)
        self.assertIn("Undefined reference to 'helper'", log)
        self.assertIn("no linked file defines helper", self.explained(log))

    # ---- addresses of undefined functions ------------------------------------------------------------------------

    def check_undefined(self, source, message, advice):
        status, log = self.tool(NVCC, *ARCH, "-cubin", f"{HERE}/{source}.cu", "-o", "never.cubin")
        self.assertNotEqual(status, 0)
        self.assertIn(message, log)
        self.assertIn(advice, self.explained(log))
        self.nvcc("-ptx", f"{HERE}/{source}.cu", "-o", f"{source}.ptx")
        output = self.gpuload("run", f"{source}.ptx", "f32[1]=1")
        self.assertIn("in the initialiser of pointer", output)
        self.assertIn("in this file, or compile with nvcc -dc and link the file that defines it", output)

    def test_explains_the_address_of_an_undefined_kernel(self):
        self.check_undefined("kernel_pointer", "Undefined reference to '_Z7VecAdd2Pf' in '<input>'",
                      "VecAdd2(float*) is declared but not defined: define it in this file")

    def test_explains_the_address_of_an_undefined_device_function(self):
        self.check_undefined("function_pointer", "Cannot take address of function '_Z9elsewheref'",
                      "elsewhere(float) is declared but not defined, so it has no address")


def libraries():
    """Return linker flags for the libgpuload of the build, including those of the sanitizers that it was built with."""
    path = f"{BUILD}/build.ninja" if os.path.exists(f"{BUILD}/build.ninja") else f"{ROOT}/build.ninja"
    with open(path, encoding="utf-8") as f:
        ldflags = re.search(r"^ldflags =(.*)$", f.read(), re.M)[1].split()
    return [*ldflags, f"-L{BUILD}/stage/lib", "-lgpuload", f"-Wl,-rpath,{BUILD}/stage/lib"]


if __name__ == "__main__":
    unittest.main()
