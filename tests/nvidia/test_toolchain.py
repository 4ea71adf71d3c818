#!/usr/bin/env python3
"""libnvrtc.so.N and libnvJitLink.so.N return PTX to a program that wants a cubin, with and without NVIDIA's libraries.

The tests that need NVIDIA's libraries are skipped if these are not found.
"""
import ctypes, os, subprocess, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from calls import *

def in_a_new_process(code, **environment):
    r = subprocess.run([sys.executable, "-c", f"import sys; sys.path.insert(0, {sys.path[0]!r}); "
                        f"from calls import *; {code}"], capture_output=True, text=True, timeout=300,
                       env=dict(os.environ, **environment))
    return r.returncode, r.stdout, r.stderr


HAVE_NVRTC = Nvrtc().lib.nvrtcVersion(ctypes.byref(ctypes.c_int()), ctypes.byref(ctypes.c_int())) == 0
HAVE_LINKER = Link("-arch=sm_75", "-unknown").created != 0   # without NVIDIA's linker, options are not checked
NONE = "/nonexistent"


@unittest.skipUnless(HAVE_NVRTC, "NVIDIA's libnvrtc was not found")
class Compiler(unittest.TestCase):
    def test_a_cubin_is_the_ptx_of_the_same_compilation(self):
        result, ptx, cubin, _, _ = Nvrtc().compile(CALLED, "-arch=sm_75", "-rdc=true")
        self.assertEqual((result, cubin), (0, ptx))
        self.assertIn(b".target sm_75", cubin)
        self.assertEqual(cubin[-1:], b"\0")

    def test_a_virtual_architecture_has_no_cubin(self):
        result, ptx, cubin, _, _ = Nvrtc().compile(CALLED, "-arch=compute_75", "-rdc=true")
        self.assertEqual((result, cubin), (0, b""))
        self.assertIn(b".target sm_75", ptx)

    def test_a_limit_of_registers_is_written_into_the_kernels(self):
        for options in (("-maxrregcount=40",), ("--maxrregcount=40",), ("--maxrregcount", "40")):
            result, ptx, cubin, _, log = Nvrtc().compile('extern "C" __global__ void k() {}', "-arch=sm_75", *options)
            self.assertEqual((result, ptx.count(b".maxnreg"), cubin.count(b".maxnreg 40")), (0, 0, 1), log)
            self.assertEqual((cubin[-1:], cubin.count(b"\0")), (b"\0", 1))

    def test_an_error_of_ptxas_is_reported(self):
        result, _, cubin, _, log = Nvrtc().compile('extern "C" __global__ void k() { asm("foo.bar;"); }', "-arch=sm_75")
        self.assertEqual((result, cubin), (6, b""))
        self.assertIn(b"foo", log)

    def test_lto_code_stays_lto_code(self):
        result, ptx, cubin, lto, _ = Nvrtc().compile(CALLED, "-arch=sm_75", "-dlto")
        self.assertEqual((result, cubin), (0, b""))
        self.assertGreater(len(lto), 100)

    def test_both_versions_have_every_call_of_the_header(self):
        for version in (12, 13):
            lib = ctypes.CDLL(f"{SOFT}/libnvrtc.so.{version}")
            for name in ("nvrtcGetErrorString", "nvrtcAddNameExpression", "nvrtcGetNVVM", "nvrtcGetOptiXIRSize", "nvrtcSetFlowCallback"):
                self.assertTrue(hasattr(lib, name), name)


class Linker(unittest.TestCase):
    def test_a_program_without_nvidias_linker_links_ptx(self):
        code = "l = Link('-arch=sm_75').run((PTX, CALLER_PTX), (CUBIN, CALLED_PTX)); print(l.result, run_on_the_driver(l.cubin))"
        status, out, complaint = in_a_new_process(code, GPULOAD_NVJITLINK=NONE)
        self.assertEqual((status, out), (0, "0 6.0\n"), complaint)
        self.assertRegex(complaint, r"^gpuload: NVIDIA's libnvJitLink\.so\.13 was not found: set GPULOAD_NVJITLINK ")

    def test_a_limit_of_registers_is_written_into_the_kernels(self):
        for options, count in ((("-maxrregcount=40",), 1), ((), 0)):
            for inputs in (((PTX, HEAD + ".visible .entry k() { ret; }\n"),), ((PTX, CALLER_PTX), (PTX, CALLED_PTX))):
                link = Link("-arch=sm_75", *options).run(*inputs)
                self.assertEqual((link.result, link.cubin.count(b".maxnreg 40")), (0, count), link.log)

    def test_cooperative_groups_need_no_library(self):
        code = ("p = HEAD + '.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s); .extern .func (.param .b32 r) "
                "cudaCGSynchronize(.param .b64 h, .param .b32 f); .visible .entry k(.param .u64 out) { .reg .b64 %h; .reg .b32 %r; "
                ".param .b32 s; .param .b32 f; .param .b64 h; .param .b32 r; st.param.b32 [s], 1; call (h), cudaCGGetIntrinsicHandle, (s); "
                "st.param.b32 [f], 0; call (r), cudaCGSynchronize, (h, f); ld.param.b32 %r, [r]; ret; }'; "
                "l = Link('-arch=sm_75').run((PTX, p)); print(l.result, l.log)")
        self.assertEqual(in_a_new_process(code, GPULOAD_NVJITLINK=NONE)[:2], (0, "0 b''\n"))

    def test_bad_calls_are_errors(self):
        code = ("l = Link(); print(l.created, l.get('LinkedCubin'), l.add(PTX, b''), l.lib.nvJitLinkAddData(None, 2, b'x', 1, None), "
                "l.lib.nvJitLinkComplete(None), l.lib.nvJitLinkDestroy(None), l.get('LinkedPtx'))")
        status, out, _ = in_a_new_process(code, GPULOAD_NVJITLINK=NONE)
        self.assertEqual((status, out.split()), (0, [str(r) for r in (MISSING_ARCH, INTERNAL, INVALID_INPUT, NULL_INPUT,
                                                                     NULL_INPUT, NULL_INPUT, INVALID_INPUT)]))

    def test_an_undefined_function_is_reported(self):
        code = "l = Link('-arch=sm_75').run((PTX, CALLER_PTX)); print(l.result, l.log)"
        for where in (NONE, ""):
            status, out, _ = in_a_new_process(code, GPULOAD_NVJITLINK=where)
            self.assertEqual(status, 0)
            self.assertRegex(out, r"^[1-9]\d* b.*'f'")

    def test_lto_code_without_nvidias_linker_is_refused(self):
        code = "l = Link('-arch=sm_75', '-lto'); print(l.add(LTOIR, b'xxxx'), l.get('ErrorLog'))"
        status, out, _ = in_a_new_process(code, GPULOAD_NVJITLINK=NONE)
        self.assertEqual(status, 0)
        self.assertRegex(out, rf"^{LTO_NOT_ENABLED} b'LTO code needs NVIDIA's libnvJitLink|^{LTO_NOT_ENABLED} b\"LTO code")

    @unittest.skipUnless(HAVE_LINKER and HAVE_NVRTC, "NVIDIA's libnvJitLink or libnvrtc was not found")
    def test_lto_code_and_ptx_are_linked(self):
        caller, called = (Nvrtc().compile(source, "-arch=sm_75", "-dlto")[3] for source in (CALLER, CALLED))
        for second in ((LTOIR, called), (PTX, CALLED_PTX), (ANY, CALLED_PTX)):
            link = Link("-arch=sm_75", "-lto").run((LTOIR, caller), second)
            self.assertEqual((link.result, link.log), (0, b""))
            self.assertEqual(run_on_the_driver(link.cubin), 6)

    @unittest.skipUnless(HAVE_LINKER, "NVIDIA's libnvJitLink was not found")
    def test_the_errors_and_logs_are_nvidias(self):
        self.assertEqual(Link("-arch=sm_75", "-unknown").created, 1)
        self.assertIn(b"ptxas info", Link("-arch=sm_75", "-verbose").run((PTX, CALLED_PTX)).get("InfoLog"))
        self.assertEqual(Link("-arch=sm_75").add(PTX, HEAD + "foo"), 4)

    def test_version_12_exports_the_calls_of_version_12(self):
        code = "l = Link('-arch=sm_75', version=12).run((PTX, CALLED_PTX)); print(l.result, hasattr(l.lib, '__nvJitLinkComplete_13_0'))"
        self.assertEqual(in_a_new_process(code)[:2], (0, "0 False\n"))


if __name__ == "__main__":
    unittest.main()
