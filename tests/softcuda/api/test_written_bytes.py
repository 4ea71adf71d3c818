#!/usr/bin/env python3
"""Each query of the driver API writes its own structure and no byte after it, in every version of the call that is exported.

Programs of older CUDA versions have shorter structures and call the symbols without a suffix.  The sizes are those of cuda.h.  A symbol with the 32-bit
addresses of CUDA 3.1 is refused and writes nothing.
"""
import ctypes, os, re, unittest
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", os.path.join(ROOT, "build")))
NOT_SUPPORTED = 801
BEHIND = 512
KERNEL = b".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .u32 g;\n.visible .entry k(.param .u32 a)\n{\n\tret;\n}\n"
CAPTURE_RELAXED, HANDLE_FD, PINNED, ON_DEVICE = 2, 1, 1, 1
UINT8 = 1   # CU_AD_FORMAT_UNSIGNED_INT8


class Array3d(ctypes.Structure):
    _fields_ = [("width", c_size_t), ("height", c_size_t), ("depth", c_size_t), ("format", c_int), ("channels", c_uint), ("flags", c_uint)]


class AllocationProp(ctypes.Structure):
    _fields_ = [("type", c_int), ("handle_types", c_int), ("location", c_int * 2), ("meta", c_void_p), ("flags", ctypes.c_ubyte * 8)]


class KernelNode(ctypes.Structure):
    _fields_ = [("func", c_void_p), ("grid", c_uint * 3), ("block", c_uint * 3), ("shared", c_uint), ("params", c_void_p), ("extra", c_void_p),
                ("kern", c_void_p), ("ctx", c_void_p)]


class MemsetNode(ctypes.Structure):
    _fields_ = [("dst", c_uint64), ("pitch", c_size_t), ("value", c_uint), ("element", c_uint), ("width", c_size_t), ("height", c_size_t)]


class WrittenBytes(unittest.TestCase):
    def setUp(self):
        self.cu = ctypes.CDLL(f"{BUILD}/softcuda/libcuda.so.1")
        self.context = c_void_p()
        self.works("cuInit", 0)
        self.works("cuCtxCreate_v2", byref(self.context), 0, 0)

    def tearDown(self):
        self.works("cuCtxDestroy_v2", self.context)

    def works(self, call, *args):
        self.assertEqual(getattr(self.cu, call)(*args), 0, call)

    def made(self, call, *args, kind=c_void_p):
        out = kind()
        self.works(call, byref(out), *args)
        return out

    def writes(self, call, sizes, *args):
        """Make the call.  Each None in args is replaced by a buffer of the next size, followed by a pattern that must not change."""
        for pattern in 0xa5, 0x5a:
            buffers = [(ctypes.c_ubyte * (n + BEHIND))(*[pattern] * (n + BEHIND)) for n in sizes]
            free = iter(buffers)
            self.works(call, *(next(free) if a is None else a for a in args))
            for n, b in zip(sizes, buffers):
                self.assertEqual(bytes(b[n:]), bytes([pattern]) * BEHIND, f"{call} writes behind {n} bytes")

    def test_devices_contexts_and_modules(self):
        for call, sizes, *args in (
                ("cuDeviceTotalMem_v2", [8], None, 0), ("cuMemGetInfo_v2", [8, 8], None, None), ("cuDeviceGetProperties", [56], None, 0),
                ("cuDeviceGetUuid", [16], None, 0), ("cuDeviceGetUuid_v2", [16], None, 0), ("cuDeviceComputeCapability", [4, 4], None, None, 0),
                ("cuDeviceGetName", [12], None, 12, 0), ("cuDeviceGetPCIBusId", [13], None, 13, 0), ("cuDeviceGet", [4], None, 0),
                ("cuDevicePrimaryCtxGetState", [4, 4], 0, None, None), ("cuCtxGetApiVersion", [4], self.context, None), ("cuCtxGetLimit", [8], None, 0),
                ("cuCtxGetStreamPriorityRange", [4, 4], None, None), ("cuCtxGetDevice", [4], None), ("cuCtxGetFlags", [4], None),
                ("cuGetProcAddress_v2", [8, 4], b"cuMemAlloc", None, 13000, c_uint64(0), None), ("cuGetProcAddress", [8], b"cuMemAlloc", None, 12000, c_uint64(0))):
            with self.subTest(call):
                self.writes(call, sizes, *args)
        module = self.made("cuModuleLoadData", KERNEL)
        kernel = self.made("cuModuleGetFunction", module, b"k")
        self.writes("cuModuleGetGlobal_v2", [8, 8], None, None, module, b"g")
        self.writes("cuFuncGetParamInfo", [8, 8], kernel, c_size_t(0), None, None)
        self.writes("cuFuncGetAttribute", [4], None, 0, kernel)
        self.works("cuModuleUnload", module)

    def test_memory(self):
        p = self.made("cuMemAlloc_v2", c_size_t(4096), kind=c_uint64)
        self.writes("cuMemGetAddressRange_v2", [8, 8], None, None, p)
        for attribute, n_bytes in ((1, 8), (2, 4), (3, 8), (6, 4), (7, 8), (8, 4), (9, 4), (11, 8), (12, 8), (13, 4)):
            with self.subTest(pointer_attribute=attribute):
                self.writes("cuPointerGetAttribute", [n_bytes], None, attribute, p)
        self.writes("cuIpcGetMemHandle", [64], None, p)
        prop = AllocationProp(type=PINNED, handle_types=HANDLE_FD, location=(ON_DEVICE, 0))
        handle = self.made("cuMemCreate", c_size_t(2 << 20), byref(prop), c_uint64(0), kind=c_uint64)
        self.writes("cuMemGetAllocationPropertiesFromHandle", [32], None, handle)
        self.writes("cuMemGetAllocationGranularity", [8], None, byref(prop), 0)
        self.works("cuMemRelease", handle)
        for shape, call, n_bytes in (((16, 8, 0), "cuArrayGetDescriptor_v2", 24), ((16, 8, 4), "cuArray3DGetDescriptor_v2", 40)):
            array = self.made("cuArray3DCreate_v2", byref(Array3d(*shape, UINT8, 1, 0)))
            self.writes(call, [n_bytes], None, array)
            self.works("cuArrayDestroy", array)
        self.works("cuMemFree_v2", p)

    def test_textures(self):
        p = self.made("cuMemAlloc_v2", c_size_t(4096), kind=c_uint64)
        resource = (ctypes.c_ubyte * 144)()                    # CUDA_RESOURCE_DESC of linear memory: type, address, format, channels, bytes
        resource[0] = 2
        resource[8:16] = p.value.to_bytes(8, "little")
        resource[16], resource[20], resource[25] = UINT8, 1, 16
        texture = self.made("cuTexObjectCreate", resource, (ctypes.c_ubyte * 104)(), None, kind=c_uint64)
        self.writes("cuTexObjectGetResourceDesc", [144], None, texture)
        self.writes("cuTexObjectGetTextureDesc", [104], None, texture)
        self.works("cuTexObjectDestroy", texture)
        self.works("cuMemFree_v2", p)

    def test_events_and_streams(self):
        stream = self.made("cuStreamCreate", 0)
        events = [self.made("cuEventCreate", 0) for _ in range(2)]
        for e in events:
            self.works("cuEventRecord", e, stream)
        self.works("cuStreamSynchronize", stream)
        for call in "cuEventElapsedTime", "cuEventElapsedTime_v2":
            self.writes(call, [4], None, *events)
        self.writes("cuStreamGetFlags", [4], stream, None)
        self.writes("cuStreamGetPriority", [4], stream, None)
        self.writes("cuStreamGetId", [8], stream, None)
        self.writes("cuStreamGetCtx", [8], stream, None)
        self.writes("cuStreamGetAttribute", [64], stream, 3, None)   # synchronization policy
        shared = self.made("cuEventCreate", 2 | 4)                    # without timing, for other processes
        self.writes("cuIpcGetEventHandle", [64], None, shared)
        for e in (*events, shared):
            self.works("cuEventDestroy_v2", e)
        self.works("cuStreamDestroy_v2", stream)

    def test_queries_of_a_capture(self):
        stream = self.made("cuStreamCreate", 1)
        self.works("cuStreamBeginCapture_v2", stream, CAPTURE_RELAXED)
        self.writes("cuStreamIsCapturing", [4], stream, None)
        self.writes("cuStreamGetCaptureInfo", [4, 8], stream, None, None)
        self.writes("cuStreamGetCaptureInfo_v2", [4, 8, 8, 8, 8], stream, *[None] * 5)
        self.writes("cuStreamGetCaptureInfo_v3", [4, 8, 8, 8, 8, 8], stream, *[None] * 6)
        graph = c_void_p()
        self.works("cuStreamEndCapture", stream, byref(graph))
        self.works("cuGraphDestroy", graph)
        self.works("cuStreamDestroy_v2", stream)

    def test_nodes_of_graphs(self):
        module, graph = self.made("cuModuleLoadData", KERNEL), self.made("cuGraphCreate", 0)
        p = self.made("cuMemAlloc_v2", c_size_t(4096), kind=c_uint64)
        argument = c_uint(7)
        arguments = (c_void_p * 1)(ctypes.addressof(argument))
        params = KernelNode(self.made("cuModuleGetFunction", module, b"k"), (1, 1, 1), (1, 1, 1), 0, ctypes.addressof(arguments), None, None, None)
        old = self.made("cuGraphAddKernelNode", graph, None, c_size_t(0), byref(params))
        new = self.made("cuGraphAddKernelNode_v2", graph, byref(old), c_size_t(1), byref(params))
        filled = self.made("cuGraphAddMemsetNode", graph, byref(new), c_size_t(1), byref(MemsetNode(p.value, 0, 0, 1, 16, 1)), self.context)
        for node in old, new:
            self.writes("cuGraphKernelNodeGetParams", [56], node, None)
            self.writes("cuGraphKernelNodeGetParams_v2", [72], node, None)
        self.writes("cuGraphMemsetNodeGetParams", [40], filled, None)
        self.writes("cuGraphNodeGetType", [4], filled, None)
        two, n = 2 * 8, c_size_t(2)
        self.writes("cuGraphGetEdges", [two, two], graph, None, None, byref(n))
        self.writes("cuGraphGetEdges_v2", [two, two, two], graph, None, None, None, byref(n))
        one = c_size_t(1)
        self.writes("cuGraphNodeGetDependencies", [8], new, None, byref(one))
        self.writes("cuGraphNodeGetDependencies_v2", [8, 8], new, None, None, byref(one))
        self.writes("cuGraphNodeGetDependentNodes", [8], new, None, byref(one))
        self.writes("cuGraphNodeGetDependentNodes_v2", [8, 8], new, None, None, byref(one))
        run = self.made("cuGraphInstantiateWithFlags", graph, c_uint64(0))
        self.writes("cuGraphExecUpdate", [8, 4], run, graph, None, None)
        self.writes("cuGraphExecUpdate_v2", [24], run, graph, None)
        self.works("cuGraphExecDestroy", run)
        self.works("cuGraphDestroy", graph)
        self.works("cuModuleUnload", module)
        self.works("cuMemFree_v2", p)

    def test_calls_with_32_bit_addresses_are_refused_and_write_nothing(self):
        with open(f"{ROOT}/softcuda/api/cu_refused_internal.h", encoding="utf-8") as f:
            names = re.findall(r"(\w+), OLD_ADDRESSES\)", f.read())
        self.assertGreater(len(names), 35)
        for name in names:
            buffers = [(ctypes.c_ubyte * BEHIND)(*[0xa5] * BEHIND) for _ in range(6)]
            self.assertEqual(getattr(self.cu, name)(*buffers), NOT_SUPPORTED, name)
            self.assertTrue(all(bytes(b) == bytes([0xa5]) * BEHIND for b in buffers), name)


if __name__ == "__main__":
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    unittest.main()
