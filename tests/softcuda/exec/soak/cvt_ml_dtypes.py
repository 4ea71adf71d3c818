#!/usr/bin/env python3
"""cvt_ml_dtypes.py [--seed N] [--random N] [--library LIBCUDA] — compare cvt of f8, bf16, f16 and tf32 with the package ml_dtypes

Needs the Python packages ml_dtypes and numpy (pip install ml_dtypes).  Run by hand:
    tests/softcuda/exec/soak/cvt_ml_dtypes.py --library build/softcuda/libcuda-soft.so

A form gets the values of its result type, the middles between them, their neighbours, and random bits; a form with a source of 16 bits or fewer
gets all of its values.  ml_dtypes rounds to nearest even; what it does not do is calculated here: other roundings and tf32 on the bits of an f32,
saturation, .relu, and the NaN of PTX.  Exits 1 if a result differs.
"""
import argparse, ctypes, sys

import ml_dtypes
import numpy as np

KERNEL = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out, .param .u32 n)
{
	.reg .b64 %pa, %pb, %po, %o; .reg .b32 %t, %c, %m, %n, %w; .reg .b16 %h, %g; .reg .f32 %x, %y; .reg .pred %p;
	ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %po, [out]; ld.param.u32 %n, [n];
	mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %m, %ntid.x; mad.lo.u32 %t, %c, %m, %t;
	setp.ge.u32 %p, %t, %n; @%p ret;
	mul.wide.u32 %o, %t, 4; add.u64 %pa, %pa, %o; add.u64 %pb, %pb, %o; add.u64 %po, %po, %o;
	ld.global.f32 %x, [%pa]; ld.global.f32 %y, [%pb]; ld.global.b32 %w, [%pa]; ld.global.b16 %h, [%pa];
	BODY
	st.global.b32 [%po], %w; ret;
}
"""


class Driver:
    def __init__(self, path):
        self.lib, context = ctypes.CDLL(path), ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self("cuCtxSetCurrent", context)

    def __call__(self, name, *arguments):
        result = getattr(self.lib, name)(*arguments)
        if result:
            sys.exit(f"{name} returned {result}")

    def run(self, form, a, b):
        """Return the 32-bit results of one form for the arrays a and b of uint32."""
        body = form + "; cvt.u32.u16 %w, %g" if "%g" in form else form
        module, f, count = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint(len(a))
        self("cuModuleLoadData", ctypes.byref(module), KERNEL.replace("BODY", body + ";").encode())
        self("cuModuleGetFunction", ctypes.byref(f), module, b"k")
        places = [ctypes.c_uint64() for _ in range(3)]
        out = np.zeros(len(a), np.uint32)
        for place, data in zip(places, (a, b, out)):
            self("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(data.nbytes))
            self("cuMemcpyHtoD_v2", place, data.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(data.nbytes))
        arguments = [*places, count]
        self("cuLaunchKernel", f, (len(a) + 255) // 256, 1, 1, 256, 1, 1, 0, None,
             (ctypes.c_void_p * 4)(*(ctypes.addressof(x) for x in arguments)), None)
        self("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), places[2], ctypes.c_size_t(out.nbytes))
        for place in places:
            self("cuMemFree_v2", place)
        self("cuModuleUnload", module)
        return out


# ---- reference formats -----------------------------------------------------------------------------------------------

class Format:
    def __init__(self, dtype, bits, greatest, nan):
        self.dtype, self.bits, self.greatest, self.nan = dtype, bits, greatest, nan
        self.word, self.sign = (np.uint8 if bits == 8 else np.uint16), 1 << bits - 1

    def values(self):
        return np.arange(1 << self.bits, dtype=self.word).view(self.dtype).astype(np.float32)


FORMATS = {"e4m3": Format(ml_dtypes.float8_e4m3fn, 8, 0x7e, 0x7f), "e5m2": Format(ml_dtypes.float8_e5m2, 8, 0x7b, 0x7f),
           "bf16": Format(ml_dtypes.bfloat16, 16, 0x7f7f, 0x7fff), "f16": Format(np.float16, 16, 0x7bff, 0x7fff)}


def rounded(x, f, mode, satfinite, relu):
    """Return the bits of f32 values x, rounded to a format: for .rn by ml_dtypes, for .rz to the next value toward 0."""
    with np.errstate(all="ignore"):
        p = x.astype(f.dtype).view(f.word).astype(np.uint32)
        if mode == "rz":
            back = p.astype(f.word).view(f.dtype).astype(np.float32)
            p = np.where(np.abs(back) > np.abs(x), p - 1, p)   # one pattern nearer to 0; infinity becomes the greatest value
    magnitude, sign = p & (f.sign - 1), p & f.sign
    if satfinite:
        magnitude = np.where(magnitude > f.greatest, f.greatest, magnitude)
    p = np.where(np.isnan(x), f.nan, magnitude | sign)
    return np.where(np.signbit(x) & ~np.isnan(x), 0, p) if relu else p


def tf32(u, mode, relu, satfinite):
    """Round f32 values that are not NaN, given as bits, to tf32."""
    low, sign = u & 0x1fff, u & 0x80000000
    magnitude = u & 0x7fffe000
    up = {"rz": np.zeros(len(u), bool), "rna": low >= 0x1000, "rn": (low > 0x1000) | (low == 0x1000) & (u >> 13 & 1 == 1)}[mode]
    magnitude = magnitude + (up.astype(np.uint32) << 13)
    if satfinite:
        magnitude = np.minimum(magnitude, 0x7f7fe000)
    return np.where((sign != 0) & relu, 0, magnitude | sign).astype(np.uint32)


# ---- operands to test ------------------------------------------------------------------------------------------------

def around(values):
    """Return the bits of the values, of the middles between adjacent values, and of the floats just below and above each."""
    with np.errstate(all="ignore"):
        v = np.unique(values[np.isfinite(values)]).astype(np.float64)
        middles = ((v[1:] + v[:-1]) / 2).astype(np.float32)
        bits = np.concatenate([v.astype(np.float32), middles, np.float32([np.inf, -np.inf, 448, 464, 480, 57344, 61440, 65520, 3.4e38])]).view(np.uint32)
    return np.concatenate([bits, bits + 1, bits - 1, bits ^ 0x80000000])


def operands(values, rng, n_random):
    u = np.concatenate([around(values), rng.integers(0, 1 << 32, n_random, dtype=np.uint64).astype(np.uint32)])
    exponent = rng.integers(100, 150, n_random).astype(np.uint32)   # the exponents of most 8-bit values
    return np.concatenate([u, rng.integers(0, 1 << 23, n_random).astype(np.uint32) | exponent << 23])


def forms(rng, n_random):
    """Yield (form, operands a, operands b, expected results)."""
    every16 = np.arange(1 << 16, dtype=np.uint32)
    for name in ("e4m3", "e5m2"):
        f = FORMATS[name]
        a = operands(f.values(), rng, n_random)
        b = rng.permutation(a)
        for relu in ("", ".relu"):
            low, high = (rounded(u.view(np.float32), f, "rn", True, relu) for u in (b, a))
            yield f"cvt.rn.satfinite{relu}.{name}x2.f32 %g, %x, %y", a, b, high << 8 | low
            h = np.concatenate([every16, every16])
            other = rng.permutation(h)
            low, high = (rounded(u.astype(np.uint16).view(np.float16).astype(np.float32), f, "rn", True, relu) for u in (h, other))
            yield f"cvt.rn.satfinite{relu}.{name}x2.f16x2 %g, %w", other << 16 | h, h, high << 8 | low
            low, high = (rounded(f.values()[u], FORMATS["f16"], "rn", False, relu) for u in (every16 & 255, every16 >> 8))
            yield f"cvt.rn{relu}.f16x2.{name}x2 %w, %h", every16, every16, high << 16 | low
    for name in ("bf16", "f16"):
        f = FORMATS[name]
        a = operands(f.values(), rng, n_random)
        b = rng.permutation(a)
        for mode in ("rn", "rz"):
            for relu in ("", ".relu"):
                for sat in ("", ".satfinite"):
                    high, low = (rounded(u.view(np.float32), f, mode, sat, relu) for u in (a, b))
                    yield f"cvt.{mode}{relu}{sat}.{name}.f32 %g, %x", a, b, high
                    yield f"cvt.{mode}{relu}{sat}.{name}x2.f32 %w, %x, %y", a, b, high << 16 | low
    x = every16.astype(np.uint16).view(ml_dtypes.bfloat16).astype(np.float32)
    numbers = ~np.isnan(x)
    yield "cvt.f32.bf16 %x, %h; mov.b32 %w, %x", every16[numbers], every16[numbers], x.view(np.uint32)[numbers]
    yield "cvt.rn.f16.bf16 %g, %h", every16, every16, rounded(x, FORMATS["f16"], "rn", False, False)
    y = every16.astype(np.uint16).view(np.float16).astype(np.float32)
    yield "cvt.rn.bf16.f16 %g, %h", every16, every16, rounded(y, FORMATS["bf16"], "rn", False, False)
    a = operands((np.arange(0, 1 << 19, 5, dtype=np.uint32) << 13).view(np.float32), rng, n_random)
    a = a[~np.isnan(a.view(np.float32))]
    for mode, relu, sat in (("rna", "", ""), ("rna", "", ".satfinite"), ("rn", "", ""), ("rn", ".relu", ""), ("rz", "", ""), ("rz", ".relu", "")):
        yield f"cvt.{mode}{relu}{sat}.tf32.f32 %w, %x", a, a, tf32(a, mode, bool(relu), bool(sat))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--random", type=int, default=300000, metavar="N", help="random operand sets of each kind for each form (default 300000)")
    p.add_argument("--library", default="libcuda.so.1")
    o = p.parse_args()
    d, sets, bad, n_forms = Driver(o.library), 0, 0, 0
    for form, a, b, want in forms(np.random.default_rng(o.seed), o.random):
        got = d.run(form, np.ascontiguousarray(a), np.ascontiguousarray(b))
        wrong = np.flatnonzero(got != want)
        sets, bad, n_forms = sets + len(a), bad + len(wrong), n_forms + 1
        for i in wrong[:3]:
            print(f"{form}: a 0x{a[i]:08x}, b 0x{b[i]:08x}: 0x{got[i]:x}, expected 0x{want[i]:x} ({len(wrong)} of {len(a)} differ)")
    print(f"{n_forms} forms, {sets} operand sets, {bad} differ (ml_dtypes {ml_dtypes.__version__}, seed {o.seed})")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
