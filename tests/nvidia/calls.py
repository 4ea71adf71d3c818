"""calls.py — libnvrtc, libnvJitLink and the driver through ctypes, for the tests of this folder."""
import ctypes, os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOFT = os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", os.path.join(ROOT, "build"))), "softcuda")
CUBIN, PTX, LTOIR, ANY = 1, 2, 3, 10
MISSING_ARCH, INVALID_INPUT, INTERNAL, FINALIZE, NULL_INPUT, LTO_NOT_ENABLED = 2, 3, 6, 9, 10, 18
CALLER = 'extern "C" __device__ float f(float); extern "C" __global__ void k(float *x) { x[0] = f(2); }'
CALLED = 'extern "C" __device__ float f(float x) { return x * 3; }'

HEAD = ".version 7.0\n.target sm_75\n.address_size 64\n"
CALLER_PTX = HEAD + """.extern .func (.param .b32 r) f (.param .b32 a);
.visible .entry k(.param .u64 out)
{
	.reg .b64 %rd<2>;
	.reg .f32 %f<2>;
	.param .b32 arg;
	.param .b32 ret0;
	ld.param.u64 %rd1, [out];
	st.param.f32 [arg], 0f40000000;
	call (ret0), f, (arg);
	ld.param.f32 %f1, [ret0];
	st.global.f32 [%rd1], %f1;
	ret;
}
"""
CALLED_PTX = HEAD + """.visible .func (.param .b32 r) f(.param .b32 a)
{
	.reg .f32 %f<3>;
	ld.param.f32 %f1, [a];
	mul.f32 %f2, %f1, 0f40400000;
	st.param.f32 [r], %f2;
	ret;
}
"""


def strings(options):
    return (ctypes.c_char_p * len(options))(*[o.encode() for o in options])


class Nvrtc:
    def __init__(self, version=13):
        self.lib = ctypes.CDLL(f"{SOFT}/libnvrtc.so.{version}")

    def get(self, program, what):
        n = ctypes.c_size_t()
        assert getattr(self.lib, f"nvrtcGet{what}Size")(program, ctypes.byref(n)) == 0
        text = ctypes.create_string_buffer(n.value + 1)
        assert getattr(self.lib, f"nvrtcGet{what}")(program, text) == 0
        return text.raw[:n.value]

    def compile(self, source, *options):
        """Compile with NVRTC; return the result of nvrtcCompileProgram, the PTX, the cubin, the LTO code, and the log."""
        program = ctypes.c_void_p()
        assert self.lib.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None) == 0
        result = self.lib.nvrtcCompileProgram(program, len(options), strings(options))
        got = [self.get(program, what) for what in ("PTX", "CUBIN", "LTOIR", "ProgramLog")]
        assert self.lib.nvrtcDestroyProgram(ctypes.byref(program)) == 0
        return result, *got


class Link:
    """A link by nvJitLink; run() sets .result and .cubin."""

    def __init__(self, *options, version=13):
        self.lib, self.handle = ctypes.CDLL(f"{SOFT}/libnvJitLink.so.{version}"), ctypes.c_void_p()
        self.create = getattr(self.lib, f"__nvJitLinkCreate_{version}_0")
        self.created = self.create(ctypes.byref(self.handle), len(options), strings(options))

    def add(self, kind, data):
        data = data if isinstance(data, bytes) else data.encode() + b"\0"
        return self.lib.nvJitLinkAddData(self.handle, kind, data, ctypes.c_size_t(len(data)), b"input")

    def get(self, what):
        n = ctypes.c_size_t()
        result = getattr(self.lib, f"nvJitLinkGet{what}Size")(self.handle, ctypes.byref(n))
        if result:
            return result
        text = ctypes.create_string_buffer(n.value + 1)
        assert n.value == 0 or getattr(self.lib, f"nvJitLinkGet{what}")(self.handle, text) == 0
        return text.raw[:n.value]

    def run(self, *inputs):
        added = [self.add(kind, data) for kind, data in inputs]
        self.result = max([*added, self.lib.nvJitLinkComplete(self.handle)])
        self.cubin, self.log = self.get("LinkedCubin"), self.get("ErrorLog")
        return self

    def __del__(self):
        if self.handle:
            assert self.lib.nvJitLinkDestroy(ctypes.byref(self.handle)) == 0 and not self.handle


def run_on_the_driver(image):
    """Load an image with the software driver, run its kernel k, and return the float that k writes."""
    cu, address, out = ctypes.CDLL(f"{SOFT}/libcuda.so.1"), ctypes.c_uint64(), ctypes.c_float()
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    for result in (cu.cuInit(0), cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cu.cuCtxSetCurrent(context),
                   cu.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4)),
                   cu.cuModuleLoadData(ctypes.byref(module), image), cu.cuModuleGetFunction(ctypes.byref(function), module, b"k"),
                   cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None,
                                     (ctypes.c_void_p * 1)(ctypes.addressof(address)), None),
                   cu.cuMemcpyDtoH_v2(ctypes.byref(out), address, ctypes.c_size_t(4))):
        assert result == 0, result
    return out.value
