#!/usr/bin/env python3
"""gpuload's libnvfatbin passes calls on to NVIDIA's library; if a program adds PTX as a cubin, it adds it as PTX instead.
In this test, a library that counts its calls (so_nvfatbin.c) replaces NVIDIA's."""
import ctypes, glob, os, subprocess, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from calls import HEAD, SOFT

COUNTS = os.path.join(os.path.dirname(SOFT), "tests/nvidia/so_nvfatbin.so")
INTERNAL, ARCH_MISMATCH, NULL_POINTER = 1, 2, 5
PTX = (HEAD + ".visible .entry k() { ret; }\n").encode() + b"\0"
os.environ["GPULOAD_NVFATBIN"] = COUNTS


class NvFatbin(unittest.TestCase):
    def setUp(self):
        self.lib, self.handle = ctypes.CDLL(f"{SOFT}/libnvfatbin.so.13"), ctypes.c_void_p(1)
        self.before = self.counts()

    def counts(self):
        """(calls with PTX, calls with a cubin, bytes) of the library that counts calls."""
        n = ctypes.c_size_t()
        self.assertEqual(self.lib.nvFatbinSize(self.handle, ctypes.byref(n)), 0)
        return n.value & 255, n.value >> 8 & 255, n.value >> 16

    def added(self):
        return tuple(now - before for now, before in zip(self.counts(), self.before))

    def add(self, code, arch):
        return self.lib.nvFatbinAddCubin(self.handle, code, ctypes.c_size_t(len(code)), arch, b"k")

    def test_ptx_in_place_of_a_cubin_is_packed_as_ptx(self):
        self.assertEqual(self.add(PTX, b"75"), 0)
        self.assertEqual(self.added(), (1, 0, len(PTX)))

    def test_ptx_of_another_architecture_is_refused_like_a_cubin_of_another(self):
        for arch in (b"80", b"7", b"75a", b""):
            self.assertEqual(self.add(PTX, arch), ARCH_MISMATCH, arch)
        self.assertEqual(self.added(), (0, 0, 0))
        self.assertEqual(self.add(PTX.replace(b"sm_75", b"sm_90a"), b"90a"), 0)

    def test_what_is_not_ptx_is_passed_on(self):
        for code in (b"\x7fELF" + PTX, PTX[:-1], b"text" + bytes(60), b"x"):
            self.assertEqual(self.add(code, b"75"), 0)
        self.assertEqual(self.added()[:2], (0, 4))
        self.assertEqual(self.lib.nvFatbinAddCubin(self.handle, None, ctypes.c_size_t(0), b"75", b"k"), NULL_POINTER)

    def test_a_call_that_the_library_lacks_is_an_internal_error(self):
        self.assertEqual(self.lib.nvFatbinAddReloc(self.handle, PTX, ctypes.c_size_t(4)), INTERNAL)

    def test_without_nvidias_library_one_line_says_so(self):
        code = f"import ctypes; lib = ctypes.CDLL({SOFT + '/libnvfatbin.so.12'!r}); print(lib.nvFatbinGet(None, None), lib.nvFatbinSize(None, None))"
        r = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "GPULOAD_NVFATBIN": "/nowhere"})
        self.assertEqual(r.stdout, "1 1\n")
        self.assertRegex(r.stderr, r"^gpuload: NVIDIA's libnvfatbin\.so\.12 was not found: set GPULOAD_NVFATBIN [^\n]*\n$")


if __name__ == "__main__":
    if any(b"__asan_init" in open(so, "rb").read() for so in glob.glob(f"{SOFT}/libnvfatbin.so.13")):
        print("skipped: a library with a sanitizer cannot be loaded into Python")
        sys.exit(77)
    unittest.main()
