"""form_values.py — extreme operands of each type, as bit patterns."""

BYTES = {"pred": 4, "u8": 1, "s8": 1, "b8": 1, "f16": 2, "bf16": 2, "f16x2": 4, "bf16x2": 4, "f32": 4, "f64": 8,
         "tf32": 4, **{f"{s}{n}": n // 8 for s in "bus" for n in (16, 32, 64)}, "amount": 4, "small": 4, "pick": 4, "bits": 4,
         "e4m3x2": 2, "e5m2x2": 2, "u16x2": 4, "s16x2": 4}

INTS = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffff,
        0x800000, 0xffffff, 0x12345678, 0x7fffffff, 0x80000000, 0x80000001, 0xdeadbeef, 0xfffffffe, 0xffffffff,
        0x100000000, 0x123456789abcdef0, 0x7fffffffffffffff, 0x8000000000000000, 0xfedcba9876543210,
        0xffffffff00000000, 0xfffffffffffffffe, 0xffffffffffffffff]
F32 = [0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x807fffff, 0x800000, 0x80800000, 0x3f800000, 0xbf800000, 0x3f800001,
       0x3f7fffff, 0x3f000000, 0xbf000000, 0x3effffff, 0x3fc00000, 0xc0200000, 0x40490fdb, 0x4b000000, 0x4b7fffff,
       0x4b800001, 0x4effffff, 0x4f000000, 0xcf000000, 0xcf000001, 0x4f7fffff, 0x4f800000, 0x5f000000, 0x5f800000,
       0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0x7e800000, 0x33800000,
       0x33800001, 0x38800000, 0x387fc000, 0x33000000, 0x477fe000, 0x477ff000, 0x477fefff, 0x3dcccccd, 0x42fe0000,
       0x43000000, 0x437f0000, 0x43800000, 0xc3000001, 0x43e00000, 0x43e80000, 0x3b000000]
F64 = [0, 1 << 63, 1, 0x800fffffffffffff, 0x0010000000000000, 0x3ff0000000000000, 0xbff0000000000000,
       0x3ff0000000000001, 0x3fefffffffffffff, 0x3fe0000000000000, 0xbfe0000000000000, 0xc004000000000000,
       0x400921fb54442d18, 0x3ca0000000000000, 0x3cb0000000000000, 0x41dfffffffc00000, 0x41e0000000000000,
       0xc1e0000000200000, 0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000, 0x7fefffffffffffff,
       0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000123,
       0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000, 0x3690000000000000, 0x3680000000000000,
       0x3680000000000001, 0x3810000000000000, 0x380fffffffffffff, 0x3ff0000010000000, 0x3ff0000030000000,
       0x3ff0000010000001, 0x3f50624dd2f1a9fc, 0x405fc00000000000, 0xc060200000000000]
HALF = [0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x3c01, 0x3bff, 0x4000, 0x4248, 0x7bff, 0xfbff,
        0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x3f80, 0xbf80, 0x3f81, 0x4049, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0x80,
        0x7f, 0x1400, 0x6400, 0x5555, 0xb555]
AMOUNTS = [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 0x80000000, 0xffffffff]


def pairs(singles):
    return [hi << 16 | lo for hi, lo in zip(singles, singles[5:] + singles[:5])]


def values(kind):
    if kind == "pred":
        return [0, 1]
    if kind == "amount":                   # shift amounts, positions, lengths
        return AMOUNTS
    if kind == "small":                    # shift amounts and lengths, each with a different result
        return [0, 1, 5, 16, 31, 32, 33, 64, 255]
    if kind == "pick":                     # prmt selectors
        return [0x3210, 0x7654, 0x0123, 0xfedc, 0x8080, 0x1b8d, 0xffff1234, 1, 2, 3]
    if kind == "bits":                     # bit patterns of words
        return [0, 1, 0x80000000, 0xffffffff, 0x12345678, 0xdeadbeef, 0x0000ffff, 0x80ff7f01]
    if kind in ("f32", "tf32"):
        return F32
    if kind == "f64":
        return F64
    if kind in ("f16", "bf16"):
        return HALF
    if kind in ("f16x2", "bf16x2"):
        return pairs(HALF)
    if kind in ("e4m3x2", "e5m2x2"):
        return [hi << 8 | lo for hi, lo in zip(range(256), [*range(77, 256), *range(77)])]
    bits = 8 * BYTES[kind]
    return sorted({v & (2 ** bits - 1) for v in INTS})
