#!/usr/bin/env python3
"""test_shared.py — libcudart.so.12 and .13 of the build folder, called as a program that was compiled for that version would.

The structures that differ between CUDA 12 and 13 are in buffers that end with a known pattern, so the test finds a library that writes too many
bytes.  The libraries use the software driver.
"""
import ctypes, glob, os, shutil, subprocess, unittest
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"))
INVALID_VALUE, INVALID_DEVICE = 1, 101
HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2
PATTERN = 0xa5
ATTRIBUTES = {"warpSize": 10, "multiProcessorCount": 16, "major": 75, "minor": 76}


class Version:
    """What a program gets from the headers of one CUDA version: sizes of structures and offsets of fields."""

    def __init__(self, major, properties, properties_bytes, offsets, pointer_bytes):
        self.major, self.properties, self.properties_bytes, self.offsets, self.pointer_bytes = major, properties, properties_bytes, offsets, pointer_bytes
        self.path = f"{BUILD}/softcuda/libcudart.so.{major}"


VERSIONS = [Version(12, "cudaGetDeviceProperties_v2", 1032, {"warpSize": 308, "major": 360, "minor": 364, "multiProcessorCount": 388}, 24),
            Version(13, "cudaGetDeviceProperties", 1008, {"warpSize": 308, "major": 360, "minor": 364, "multiProcessorCount": 384}, 88)]


def has_sanitizer(path):
    return subprocess.run(["grep", "-q", "__asan_init\\|__tsan_init", path], check=False).returncode == 0


def buffer(n_bytes, behind=256):
    return (ctypes.c_ubyte * (n_bytes + behind))(*([PATTERN] * (n_bytes + behind)))


UNKNOWN = b"unrecognized error code"


def error_texts(rt):
    """{(function, number): text} of all errors, of some numbers that are not errors, and of the smallest and the largest int."""
    texts = {}
    for name in ("cudaGetErrorName", "cudaGetErrorString"):
        call = getattr(rt, name)
        call.restype = c_char_p
        texts.update({(name, n): call(n) for n in (*range(-2, 1100), 9999, 10000, 10001, 0x10001, 2**31 - 1, -2**31)})
    return texts


def nvidia_runtime():
    """The libcudart.so.13 of the toolkit that nvcc belongs to; None: there is none."""
    nvcc = shutil.which("nvcc")
    found = nvcc and glob.glob(f"{os.path.dirname(os.path.realpath(nvcc))}/../lib64/libcudart.so.13")
    return found[0] if found else None


class Shared(unittest.TestCase):
    def each(self):
        for v in VERSIONS:
            if not os.path.exists(v.path):
                self.assertEqual(v.major, 13)   # with the headers of CUDA 12, only libcudart.so.12 is built
                continue
            if has_sanitizer(v.path):
                self.skipTest("a library with a sanitizer cannot be loaded into Python")
            yield v, ctypes.CDLL(v.path)

    def test_reports_its_version(self):
        for v, rt in self.each():
            value = c_int()
            self.assertEqual(rt.cudaRuntimeGetVersion(byref(value)), 0)
            self.assertEqual(value.value // 1000, v.major)

    def test_fills_the_properties_of_its_version_and_no_byte_more(self):
        for v, rt in self.each():
            out = buffer(v.properties_bytes)
            self.assertEqual(getattr(rt, v.properties)(out, 0), 0)
            self.assertEqual(bytes(out)[v.properties_bytes:], bytes([PATTERN]) * 256)
            for name, offset in v.offsets.items():
                value = c_int()
                self.assertEqual(rt.cudaDeviceGetAttribute(byref(value), ATTRIBUTES[name], 0), 0)
                self.assertEqual(int.from_bytes(bytes(out)[offset:offset + 4], "little"), value.value, name)
            self.assertEqual(getattr(rt, v.properties)(out, 99), INVALID_DEVICE)

    def test_the_properties_of_cuda_11_end_before_the_fields_of_cuda_12(self):
        for v, rt in self.each():
            if v.major == 12:
                out = buffer(0, 1032)
                self.assertEqual(rt.cudaGetDeviceProperties(out, 0), 0)
                self.assertEqual(bytes(out)[728:], bytes([PATTERN]) * 304)
                self.assertNotEqual(bytes(out)[360:364], bytes([PATTERN]) * 4)

    def test_fills_the_pointer_attributes_of_its_version_and_no_byte_more(self):
        for v, rt in self.each():
            p, out = c_void_p(), buffer(v.pointer_bytes)
            self.assertEqual(rt.cudaMalloc(byref(p), c_size_t(64)), 0)
            self.assertEqual(rt.cudaPointerGetAttributes(out, p), 0)
            self.assertEqual(bytes(out)[v.pointer_bytes:], bytes([PATTERN]) * 256)
            self.assertEqual(int.from_bytes(bytes(out)[0:4], "little"), 2)   # cudaMemoryTypeDevice
            self.assertEqual(int.from_bytes(bytes(out)[8:16], "little"), p.value)
            self.assertEqual(rt.cudaFree(p), 0)

    def test_copies_in_both_kinds_of_default_stream(self):
        for _, rt in self.each():
            for suffix in ("", "_ptds"):
                here, back, p = bytes(range(100)), ctypes.create_string_buffer(100), c_void_p()
                self.assertEqual(rt.cudaMalloc(byref(p), c_size_t(100)), 0)
                self.assertEqual(getattr(rt, f"cudaMemset{suffix}")(p, 7, c_size_t(100)), 0)
                self.assertEqual(getattr(rt, f"cudaMemcpy{suffix}")(p, c_char_p(here), c_size_t(50), HOST_TO_DEVICE), 0)
                self.assertEqual(getattr(rt, f"cudaMemcpy{suffix}")(back, p, c_size_t(100), DEVICE_TO_HOST), 0)
                self.assertEqual(back.raw, here[:50] + bytes([7]) * 50)
                self.assertEqual(rt.cudaFree(p), 0)

    def test_times_events_by_both_names(self):
        for v, rt in self.each():
            events, ms = (c_void_p * 2)(), c_float(-1)
            for i in range(2):
                self.assertEqual(rt.cudaEventCreate(byref(events, i * 8)), 0)
                self.assertEqual(rt.cudaEventRecord(c_void_p(events[i]), None), 0)
            self.assertEqual(rt.cudaDeviceSynchronize(), 0)
            for name in ("cudaEventElapsedTime", *(["cudaEventElapsedTime_v2"] if v.major == 12 else [])):
                self.assertEqual(getattr(rt, name)(byref(ms), c_void_p(events[0]), c_void_p(events[1])), 0)
                self.assertGreaterEqual(ms.value, 0)

    def test_finds_driver_functions_and_refuses_unknown_tables(self):
        for _, rt in self.each():
            for suffix in ("", "_ptsz"):
                p, answer = c_void_p(), c_int(-1)
                self.assertEqual(getattr(rt, f"cudaGetDriverEntryPoint{suffix}")(b"cuMemAlloc", byref(p), c_ulonglong(0), byref(answer)), 0)
                self.assertEqual(answer.value, 0)
                self.assertTrue(p.value)
                self.assertEqual(getattr(rt, f"cudaGetDriverEntryPointByVersion{suffix}")(b"cuInit", byref(p), c_uint(12000), c_ulonglong(0),
                                                                                         byref(answer)), 0)
            table = c_void_p()
            self.assertNotEqual(rt.cudaGetExportTable(byref(table), bytes(16)), 0)
            self.assertFalse(table.value)

    def test_an_error_stays_until_it_is_read(self):
        for _, rt in self.each():
            rt.cudaGetLastError()
            self.assertEqual(rt.cudaMalloc(None, c_size_t(4)), INVALID_VALUE)
            self.assertEqual([rt.cudaPeekAtLastError(), rt.cudaGetLastError(), rt.cudaGetLastError()], [INVALID_VALUE, INVALID_VALUE, 0])
            for name, text in (("cudaGetErrorName", b"cudaErrorInvalidValue"), ("cudaGetErrorString", b"invalid argument")):
                getattr(rt, name).restype = c_char_p
                self.assertEqual(getattr(rt, name)(INVALID_VALUE), text)

    def test_names_and_texts_of_errors_are_those_of_nvidias_runtime(self):
        path = nvidia_runtime()
        if not path:
            self.skipTest("NVIDIA's libcudart.so.13 was not found")
        version = c_int()
        self.assertEqual(ctypes.CDLL(path).cudaRuntimeGetVersion(byref(version)), 0)
        theirs = error_texts(ctypes.CDLL(path))
        for v, rt in self.each():
            ours = error_texts(rt)
            # Another release of CUDA 13 may have other errors; the errors that both have must have the same texts.
            compared = [key for key in ours if version.value == 13000 or UNKNOWN not in (ours[key], theirs[key])]
            self.assertGreater(len(compared), 260)
            self.assertEqual({k: ours[k] for k in compared}, {k: theirs[k] for k in compared}, v.path)

    def test_an_error_has_the_same_text_in_both_apis(self):
        cu = ctypes.CDLL(f"{BUILD}/softcuda/libcuda.so.1")
        for _, rt in self.each():
            for (name, number), text in error_texts(rt).items():
                out = c_char_p()
                if name == "cudaGetErrorString" and cu.cuGetErrorString(number, byref(out)) == 0 and text != UNKNOWN:
                    self.assertEqual(out.value, text)


if __name__ == "__main__":
    os.environ["GPULOAD_DRIVER"] = "soft"
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    unittest.main()
