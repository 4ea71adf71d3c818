"""libgpuload through ctypes: finds the library, declares its structures, and raises its errors as exceptions.

The structures repeat core/error.h, loader/loader.h and loader/signature/signature.h; tests/python/test_layout.py compares their
sizes and offsets with those of the C compiler.
"""
from __future__ import annotations

import ctypes as c
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "files")  # in a wheel: the command, the library and the software driver
TYPES = ("", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "bf16", "f32", "f64")
UNKNOWN, SCALAR, COUNT, BUFFER, STRUCT, FUNCTION = range(6)
DRIVERS = {"auto": 0, "nvidia": 1, "soft": 2}


class Error(Exception):
    """A call of gpuload failed; the text is the library's own message, and `status` its number (core/error.h)."""

    def __init__(self, message: str, status: int = 1):
        super().__init__(message)
        self.status = status


class CError(c.Structure):
    _fields_ = [("status", c.c_int), ("native", c.c_int), ("text", c.c_char * 248)]


class Context(c.Structure):
    _fields_ = [("drv", c.c_void_p), ("device", c.c_int), ("handle", c.c_void_p)]


class LaunchConfig(c.Structure):
    _fields_ = [("grid", c.c_uint32 * 3), ("block", c.c_uint32 * 3), ("shared_bytes", c.c_uint32), ("stream", c.c_void_p),
                ("cooperative", c.c_bool)]


class Driver(c.Structure):
    """The first members of gpul_driver; the function pointers after them are omitted, because Python loads the driver's library itself."""
    _fields_ = [("name", c.c_char_p), ("path", c.c_char_p), ("version", c.c_int)]


class Param(c.Structure):
    _fields_ = [("offset", c.c_uint32), ("bytes", c.c_uint32), ("align", c.c_uint32), ("role", c.c_int), ("type", c.c_int),
                ("loaded", c.c_bool), ("stored", c.c_bool), ("vector", c.c_uint32), ("beyond", c.c_uint32),
                ("members", c.c_void_p), ("n_members", c.c_uint32), ("elements", c.c_uint64), ("zeros", c.c_bool),
                ("value", c.c_int64)]


class Signature(c.Structure):
    _fields_ = [("kernel", c.c_char_p), ("params", c.POINTER(Param)), ("n_params", c.c_size_t), ("complete", c.c_bool),
                ("why_not", c.c_char_p), ("assumed", c.c_bool), ("grid", c.c_uint32 * 3), ("block", c.c_uint32 * 3),
                ("grid_dims", c.c_uint32), ("reads_tid", c.c_bool), ("reads_ctaid", c.c_bool), ("reqntid", c.c_uint32 * 3),
                ("maxntid", c.c_uint32 * 3), ("shared_threads", c.c_uint32), ("uses_dynamic_shared", c.c_bool)]


def find(*names: str) -> str:
    """Find a file of gpuload in the wheel, in $GPULOAD_BUILD or in the folders of an installation; return its path."""
    folders = [FILES, os.environ.get("GPULOAD_BUILD", ""), "/usr/lib/x86_64-linux-gnu", "/usr/bin",
               os.path.join(sys.prefix, "lib"), os.path.join(sys.prefix, "bin"), "/usr/local/lib", "/usr/local/bin"]
    for folder in filter(None, folders):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
    raise Error(f"{names[0]} not found: install the wheel of gpuload, or set GPULOAD_BUILD to gpuload's build folder")


def use_wheels() -> None:
    """Let gpuload find NVIDIA's compiler and linker in NVIDIA's Python packages, unless environment variables name others."""
    for variable, name in (("GPULOAD_NVRTC", "libnvrtc.so.1?"), ("GPULOAD_NVJITLINK", "libnvJitLink.so.1?")):
        hits = [hit for folder in sys.path if folder for hit in glob.glob(f"{glob.escape(folder)}/nvidia/*/lib/{name}")]
        if hits and not os.environ.get(variable):
            os.environ[variable] = sorted(hits)[-1]


def check(status: int, error: CError) -> None:
    if status:
        raise Error(error.text.decode("utf-8", "replace"), status)


class Library:
    """libgpuload, opened at the first use."""
    loaded: Library | None = None

    def __init__(self) -> None:
        use_wheels()
        self.c = c.CDLL(find("libgpuload.so.0"))
        pointer, error = c.c_void_p, c.POINTER(CError)
        text, out = c.c_char_p, c.POINTER(c.c_void_p)
        for name, result, arguments in (
                ("gpul_driver_open", c.c_int, (c.c_int, out, error)),
                ("gpul_context_open", c.c_int, (pointer, c.c_int, c.POINTER(Context), error)),
                ("gpul_context_close", None, (c.POINTER(Context),)),
                ("gpul_module_load_file", c.c_int, (pointer, text, pointer, out, error)),
                ("gpul_module_unload", None, (pointer,)),
                ("gpul_kernel_find", c.c_int, (pointer, text, out, error)),
                ("gpul_kernel_demangled", text, (pointer,)),
                ("gpul_kernel_signature", c.POINTER(Signature), (pointer,)),
                ("gpul_signature_print", c.c_size_t, (c.POINTER(Signature), text, c.c_size_t)),
                ("gpul_kernel_launch", c.c_int, (pointer, c.POINTER(LaunchConfig), c.POINTER(pointer),
                                                 c.POINTER(c.c_size_t), c.c_size_t, error)),
                ("gpul_cu_status", c.c_int, (pointer, error, c.c_int, text))):
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments

    @classmethod
    def get(cls) -> Library:
        if cls.loaded is None:
            cls.loaded = cls()
        return cls.loaded


class Device:
    """A driver and the primary context of one of its devices: `with Device("soft", 0) as d`."""

    def __init__(self, driver: str | None, ordinal: int):
        if driver is not None and driver not in DRIVERS:
            raise Error(f"driver must be auto, nvidia or soft, not {driver!r}")
        self.gpul, self.drv, self.context, error = Library.get().c, c.c_void_p(), Context(), CError()
        check(self.gpul.gpul_driver_open(DRIVERS[driver or "auto"], c.byref(self.drv), c.byref(error)), error)
        self.table = c.cast(self.drv, c.POINTER(Driver)).contents
        self.cu_library = c.CDLL(self.table.path.decode())
        check(self.gpul.gpul_context_open(self.drv, ordinal, c.byref(self.context), c.byref(error)), error)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        self.gpul.gpul_context_close(c.byref(self.context))

    def cu(self, name: str, *arguments: object) -> None:
        """Call a function of the driver API; an error is raised with gpuload's message."""
        error = CError()
        result = getattr(self.cu_library, name)(*arguments)
        check(self.gpul.gpul_cu_status(self.drv, c.byref(error), result, name.encode()), error)

    @property
    def name(self) -> str:
        return self.table.name.decode()
