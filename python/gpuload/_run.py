"""gpuload.run(): launches one kernel on objects with a buffer, such as NumPy arrays."""
from __future__ import annotations

import ctypes as c
import os
import struct
from dataclasses import dataclass, field
from html import escape
from typing import Any, Sequence, Union

from gpuload._library import (BUFFER, COUNT, SCALAR, STRUCT, TYPES, UNKNOWN, CError, Device, Error, LaunchConfig, Param, Signature,
                              check)

Dims = Union[int, Sequence[int], None]
FORMATS = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I", "i64": "q", "u64": "Q", "f16": "e",
           "f32": "f", "f64": "d"}
BLOCKS = {1: (256, 1, 1), 2: (16, 16, 1), 3: (10, 10, 5)}  # block size by dimensions of the grid, as in `gpuload run`


@dataclass
class Result:
    """What gpuload.run() did: `outputs` are the arguments that the kernel wrote, in order; `arguments` are all of them."""
    kernel: str
    driver: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    milliseconds: float
    arguments: list[Any] = field(repr=False)
    outputs: list[Any] = field(repr=False)

    def __getitem__(self, index: int) -> Any:
        return self.arguments[index]

    def _repr_html_(self) -> str:
        """A table for Jupyter: the launch, then the first elements of each output."""
        rows = [("kernel", self.kernel), ("driver", self.driver), ("grid", self.grid), ("block", self.block),
                ("time", f"{self.milliseconds:.4g} ms")]
        for i, argument in enumerate(self.arguments):
            if any(argument is o for o in self.outputs):
                shown = _flat(argument)
                text = " ".join(f"{x:.6g}" if isinstance(x, float) else str(x) for x in shown[:10].tolist())
                rows.append((f"argument {i}", text + (" ..." if len(shown) > 10 else "")))
        return "<table>" + "".join(f"<tr><th>{escape(str(a))}</th><td>{escape(str(b))}</td></tr>" for a, b in rows) + "</table>"


@dataclass
class _Buffer:
    """An argument in device memory."""
    view: memoryview
    copy_back: bool
    address: c.c_uint64 = field(default_factory=c.c_uint64)


def _flat(argument: Any) -> memoryview:
    view = memoryview(argument)
    return view.cast("B").cast(view.format) if view.ndim != 1 else view


def _dims(name: str, given: Dims) -> tuple[int, int, int] | None:
    if given is None:
        return None
    values = (given,) if isinstance(given, int) else tuple(int(x) for x in given)
    if not 1 <= len(values) <= 3 or min(values) < 1:
        raise Error(f"{name} must be one to three numbers, each at least 1, not {given!r}")
    return (values + (1, 1))[:3]  # type: ignore[return-value]


def _wrong(signature: str, index: int, problem: str) -> Error:
    return Error(f"argument {index}: {problem}; the kernel is {signature}")


def _as_buffer(text: str, index: int, p: Param, argument: Any) -> _Buffer:
    try:
        view = memoryview(argument)
        flat = view.cast("B")
    except TypeError:
        raise _wrong(text, index, f"expected a C-contiguous array, not {type(argument).__name__}") from None
    known = p.role == BUFFER
    expected, got = TYPES[p.type] if known else "", view.format.lstrip("@=<")
    plain = {"l": "q", "L": "Q", "?": "B", "c": "B"}.get(got, got)
    if expected in FORMATS and plain in FORMATS.values() and view.format != "B" and FORMATS[expected].lower() != plain.lower():
        raise _wrong(text, index, f"the kernel accesses elements of type {expected}, but the elements of the array have format {view.format!r}")
    stored = p.stored if known else not view.readonly
    if stored and view.readonly:
        raise _wrong(text, index, "the kernel writes this array, but the array is read-only")
    if not flat.nbytes:
        raise _wrong(text, index, "the array is empty")
    return _Buffer(flat, stored)


def _as_value(text: str, index: int, p: Param, argument: Any) -> bytes:
    if hasattr(argument, "tobytes") and getattr(argument, "ndim", 0) == 0:  # a NumPy scalar
        argument = argument.item() if TYPES[p.type] in FORMATS else argument.tobytes()
    if isinstance(argument, (bytes, bytearray)):
        if len(argument) != p.bytes:
            raise _wrong(text, index, f"the parameter has {p.bytes} bytes, not {len(argument)}")
        return bytes(argument)
    kind = TYPES[p.type] or (f"f{8 * p.bytes}" if isinstance(argument, float) else f"i{8 * p.bytes}")
    if kind not in FORMATS:
        raise _wrong(text, index, f"pass the {p.bytes} bytes of the parameter as bytes, not {type(argument).__name__}")
    try:
        if kind[0] in "iu" and isinstance(argument, int) and argument >= 1 << (8 * p.bytes - 1):
            kind = f"u{kind[1:]}"  # for example 0xffffffff for an i32: only the unsigned type can hold it
        elif kind[0] in "iu" and isinstance(argument, int) and argument < 0:
            kind = f"i{kind[1:]}"
        return struct.pack("=" + FORMATS[kind], argument)
    except (struct.error, OverflowError):
        raise _wrong(text, index, f"{argument!r} is not a value of type {TYPES[p.type] or kind}") from None


def _convert(text: str, s: Signature, arguments: Sequence[Any]) -> list[_Buffer | bytes]:
    if len(arguments) != s.n_params:
        raise Error(f"{s.n_params} arguments needed, {len(arguments)} given; the kernel is {text}")
    out: list[_Buffer | bytes] = []
    for i, argument in enumerate(arguments):
        p = s.params[i]
        is_value = isinstance(argument, (int, float)) or p.role in (SCALAR, COUNT, STRUCT) or \
            (hasattr(argument, "tobytes") and getattr(argument, "shape", None) == ()) or (p.role == UNKNOWN and p.bytes != 8)
        if is_value and p.role == BUFFER:
            raise _wrong(text, i, f"expected an array, not {argument!r}")
        out.append(_as_value(text, i, p, argument) if is_value else _as_buffer(text, i, p, argument))
    return out


def _block(s: Signature) -> tuple[int, int, int]:
    if s.reqntid[0]:
        return tuple(max(1, x) for x in s.reqntid)  # type: ignore[return-value]
    block, limit = list(BLOCKS.get(s.grid_dims, BLOCKS[1])), s.shared_threads or 1024
    if not s.reads_tid and s.n_params:
        block = [1, 1, 1]
    if s.maxntid[0]:
        limit = min(limit, max(1, s.maxntid[0]) * max(1, s.maxntid[1]) * max(1, s.maxntid[2]))
    for d in (2, 1, 0):
        while block[d] > 1 and block[0] * block[1] * block[2] > limit:
            block[d] //= 2
    return tuple(block)  # type: ignore[return-value]


def _grid(text: str, s: Signature, values: list[_Buffer | bytes], block: Sequence[int]) -> tuple[int, ...]:
    """Return a grid whose threads cover the largest count argument, or else the largest buffer, in each dimension that the kernel uses."""
    counts = [int.from_bytes(v, "little") for i, v in enumerate(values)
              if isinstance(v, bytes) and s.params[i].role == COUNT and TYPES[s.params[i].type][:1] in ("i", "u")]
    sizes = [v.view.nbytes // struct.calcsize(FORMATS.get(TYPES[s.params[i].type], "B"))
             for i, v in enumerate(values) if isinstance(v, _Buffer)]
    if not counts and s.grid_dims > 1:
        raise Error(f"grid is needed: the kernel reads {s.grid_dims} dimensions of the thread index, and no argument gives their "
                    f"size; the kernel is {text}")
    n = max(counts or sizes or [1])
    return tuple(max(1, -(-n // block[d])) if d < max(1, s.grid_dims) and s.reads_ctaid else 1 for d in range(3))


def _launch(device: Device, kernel: c.c_void_p, config: LaunchConfig, values: list[_Buffer | bytes]) -> float:
    """Copy the arguments to the device, launch the kernel, time it with events, and copy the results back; return the time."""
    error, start, end, took = CError(), c.c_void_p(), c.c_void_p(), c.c_float()
    storage = [v.address if isinstance(v, _Buffer) else c.create_string_buffer(v, len(v)) for v in values]
    arguments = (c.c_void_p * max(1, len(values)))(*(c.addressof(x) for x in storage))
    sizes = (c.c_size_t * max(1, len(values)))(*(c.sizeof(x) for x in storage))
    buffers = [v for v in values if isinstance(v, _Buffer)]
    try:
        for b in buffers:
            device.cu("cuMemAlloc_v2", c.byref(b.address), c.c_size_t(b.view.nbytes))
            raw = bytes(b.view) if b.view.readonly else (c.c_char * b.view.nbytes).from_buffer(b.view)
            device.cu("cuMemcpyHtoD_v2", b.address, raw, c.c_size_t(b.view.nbytes))
        for event in (start, end):
            device.cu("cuEventCreate", c.byref(event), c.c_uint(0))
        device.cu("cuEventRecord", start, None)
        check(device.gpul.gpul_kernel_launch(kernel, c.byref(config), arguments, sizes, len(values), c.byref(error)), error)
        device.cu("cuEventRecord", end, None)
        device.cu("cuCtxSynchronize")
        device.cu("cuEventElapsedTime", c.byref(took), start, end)
        for b in buffers:
            if b.copy_back:
                raw = (c.c_char * b.view.nbytes).from_buffer(b.view)
                device.cu("cuMemcpyDtoH_v2", raw, b.address, c.c_size_t(b.view.nbytes))
    finally:
        for event in (start, end):
            if event:
                device.cu_library.cuEventDestroy_v2(event)
        for b in buffers:
            if b.address.value:
                device.cu_library.cuMemFree_v2(b.address)
    return took.value


def run(path: str | os.PathLike[str], *arguments: Any, kernel: str | None = None, grid: Dims = None, block: Dims = None,
        shared: int = 0, driver: str | None = None, device: int = 0) -> Result:
    """Launch a kernel of a file once, on a copy of the arguments in device memory.

    path       PTX, CUDA C++ (.cu), or any other file that `gpuload run` reads; relocatable code is linked
    arguments  one for each parameter: an object with a buffer (a NumPy array, a bytearray, array.array) for a pointer, a number
               for a value, bytes for a struct.  Arrays that the kernel writes are changed in place
    kernel     its name, mangled or as in C++; needed if the file has several
    grid       blocks, one to three numbers; default: enough for the count parameter, or for the largest array
    block      threads per block; default: 256, 16 x 16 or 10 x 10 x 5, or fewer if the kernel limits its block
    shared     bytes of dynamic shared memory
    driver     "auto", "nvidia" or "soft"; default: $GPULOAD_DRIVER, else NVIDIA's driver if it has a device
    device     number of the GPU
    Returns    a Result; Jupyter shows it as a table
    Errors     Error: the file or an argument is not valid, or the launch failed; the text is the library's message
    Threads    any thread may call; a call blocks until the kernel has ended
    Source     loader/loader.h, gpul_module_load_file() and gpul_kernel_launch()
    """
    with Device(driver, device) as d:
        error, module, found = CError(), c.c_void_p(), c.c_void_p()
        check(d.gpul.gpul_module_load_file(d.drv, os.fsencode(path), None, c.byref(module), c.byref(error)), error)
        try:
            name = kernel.encode() if kernel else None
            check(d.gpul.gpul_kernel_find(module, name, c.byref(found), c.byref(error)), error)
            signature = d.gpul.gpul_kernel_signature(found)
            s, buffer = signature.contents, c.create_string_buffer(4096)
            d.gpul.gpul_signature_print(signature, buffer, 4096)
            text = buffer.value.decode()
            values = _convert(text, s, arguments)
            threads = _dims("block", block) or _block(s)
            blocks = _dims("grid", grid) or _grid(text, s, values, threads)
            config = LaunchConfig((c.c_uint32 * 3)(*blocks), (c.c_uint32 * 3)(*threads), shared)
            took = _launch(d, found, config, values)
            demangled = d.gpul.gpul_kernel_demangled(found).decode()
        finally:
            d.gpul.gpul_module_unload(module)
        written = [a for a, v in zip(arguments, values) if isinstance(v, _Buffer) and v.copy_back]
        return Result(demangled, d.name, tuple(blocks), tuple(threads), took, list(arguments), written)
