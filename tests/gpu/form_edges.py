"""form_edges.py — instruction forms with operands that test the rules of rounding, flushing to zero and clamping.

A form here gives complete rows of operands (only["rows"]) or selected values of an operand.  A result has an untyped format (b32,
b64) if the bits of a NaN matter, because make_forms.py stores these formats unchanged.
"""
import random
import struct

from form_lists import ROUNDS, f

TINY32 = 1 / 2 ** 126  # the smallest normal float
TINY16 = 1 / 2 ** 14


def f32(x):
    return struct.unpack("<I", struct.pack("<f", x))[0]


def f16(x):
    return struct.unpack("<H", struct.pack("<e", x))[0]


def f64(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def near(bits, steps=(-2, -1, 0, 1, 2)):
    return [bits + k for k in steps]


def significands(n, bits, name):
    """Return n pseudo-random numbers in [1, 2) with this number of bits; the name is the seed."""
    chance = random.Random(name)
    return [1.0, 2 - 2.0 ** (1 - bits)] + [1 + chance.randrange(2 ** (bits - 1)) / 2 ** (bits - 1) for _ in range(n - 2)]


def with_signs(rows, sign):
    """Return the rows; in every second one, the sign of the first operand is flipped."""
    return [(r[0] ^ sign, *r[1:]) if k % 2 else r for k, r in enumerate(rows)]


def tiny_products(least, encode, bits, sign, n):
    """Operands whose products are near the smallest normal number `least`, for neighbouring values of b; and exact ties just below it."""
    rows = [(encode(a / 2), v) for a in significands(n, bits, "products") for v in near(encode(2 * least / a))]
    for p, q in ((18631, 1801), (31, 1082401), (601, 55831)) if bits == 24 else ((63, 65), (15, 273), (45, 91)):
        high = 2 ** (q.bit_length() - 1)  # p * q = 2^(bits + 1) - 1 is odd and one bit too long, so it is a tie
        rows.append((encode(p * high / 2 ** (bits + 1)), encode(q / high * least)))
    return with_signs(rows, sign)


def tiny_sums(least, encode, bits, sign, n):
    """Operands of a * b + c whose result is slightly below or above the smallest normal number `least`."""
    unit = 2.0 ** -bits
    rows = [(encode(a), v, encode(-least) | sign) for a in significands(n, bits, "sums") for v in near(encode(2 * least / a))]
    rows += [(encode(unit * s), encode(least * t), encode(-least) | sign)
             for s in (0.25, 0.5, 1.0, 1.5, 2.0) for t in (1.0, 1 + 4 * unit, 1.5, 2.0)]
    return with_signs(rows, 0)


def flushes():
    def rows(r):
        return {"rows": r}
    products = tiny_products(TINY32, f32, 24, 0x80000000, 40)
    sums = tiny_sums(TINY32, f32, 24, 0x80000000, 40)
    quotients = with_signs([(v, f32(2.0 ** 100 * b)) for b in significands(40, 24, "quotients")
                            for v in near(f32(2.0 ** -26 * b))], 0x80000000)
    large = [(v ^ s,) for v in near(f32(2.0 ** 126), range(-8, 9)) for s in (0, 0x80000000)]
    doubles = [(v ^ s,) for e in (24, 25, 26, 30) for v in near(f64(TINY32 * (1 - 2.0 ** -e))) + near(f64(TINY32)) for s in (0, 1 << 63)]
    for rnd in ROUNDS:
        for sat in ("", ".sat"):
            yield f(f"mul.{rnd}.ftz{sat}.f32 {{d}}, {{a}}, {{b}}", "f32", "f32 f32", only=rows(products), name=f"mul.{rnd}.ftz{sat}.f32 tiny")
            yield f(f"fma.{rnd}.ftz{sat}.f32 {{d}}, {{a}}, {{b}}, {{c}}", "f32", "f32 f32 f32", only=rows(sums),
                    name=f"fma.{rnd}.ftz{sat}.f32 tiny")
            yield f(f"cvt.{rnd}.ftz{sat}.f32.f64 {{d}}, {{a}}", "f32", "f64", only=rows(doubles), name=f"cvt.{rnd}.ftz{sat}.f32.f64 tiny")
        yield f(f"div.{rnd}.ftz.f32 {{d}}, {{a}}, {{b}}", "f32", "f32 f32", only=rows(quotients), name=f"div.{rnd}.ftz.f32 tiny")
        yield f(f"rcp.{rnd}.ftz.f32 {{d}}, {{a}}", "f32", "f32", only=rows(large), name=f"rcp.{rnd}.ftz.f32 tiny")
    products, sums = tiny_products(TINY16, f16, 11, 0x8000, 100), tiny_sums(TINY16, f16, 11, 0x8000, 100)
    for sat in ("", ".sat"):
        yield f(f"mul.rn.ftz{sat}.f16 {{d}}, {{a}}, {{b}}", "f16", "f16 f16", only=rows(products), name=f"mul.rn.ftz{sat}.f16 tiny")
        yield f(f"fma.rn.ftz{sat}.f16 {{d}}, {{a}}, {{b}}, {{c}}", "f16", "f16 f16 f16", only=rows(sums), name=f"fma.rn.ftz{sat}.f16 tiny")
        twice = [tuple(x << 16 | y for x, y in zip(r, s)) for r, s in zip(products, products[7:] + products[:7])]
        yield f(f"mul.rn.ftz{sat}.f16x2 {{d}}, {{a}}, {{b}}", "f16x2", "f16x2 f16x2", only=rows(twice), name=f"mul.rn.ftz{sat}.f16x2 tiny")


def nans():
    wide = [0x7ff8000000000001, 0xfff8000000000123, 0x7ff0000000000001, 0xfff7ffffffffffff, 0x7fffffffffffffff,
            0x3ff0000000000000, 0, 1 << 63, 0x7ff0000000000000, 0xfff0000000000000]
    for t, b, values in (("f64", "b64", wide), ("f32", "b32", [0x7fc00001, 0xffc00123, 0x7f800001, 0xffbfffff, 0x7fffffff, 0x3f800000, 0,
                                                               1 << 31, 0x7f800000, 0xff800000]),
                         ("f16", "b16", [0x7e01, 0xfe12, 0x7c01, 0xfdff, 0x7fff, 0x3c00, 0, 0x8000, 0x7c00, 0xfc00]),
                         ("bf16", "b16", [0x7fc1, 0xffd2, 0x7f81, 0xffbf, 0x7fff, 0x3f80, 0, 0x8000, 0x7f80, 0xff80])):
        only = {0: values, 1: values, 2: values}
        for root in ("add.rn", "sub.rn", "mul.rn", "min", "max") + (("div.rn",) if t in ("f32", "f64") else ()):
            yield f(f"{root}.{t} {{d}}, {{a}}, {{b}}", b, f"{b} {b}", only=only, name=f"{root}.{t} nan")
        yield f(f"fma.rn.{t} {{d}}, {{a}}, {{b}}, {{c}}", b, f"{b} {b} {b}", only=only, name=f"fma.rn.{t} nan")
        for root in ("rcp.rn", "sqrt.rn", "cvt.rni." + t, "cvt.sat." + t) if t in ("f32", "f64") else ():
            yield f(f"{root}.{t} {{d}}, {{a}}", b, b, only=only, name=f"{root}.{t} nan")
        for root in ("neg", "abs"):
            yield f(f"{root}.{t} {{d}}, {{a}}", b, b, only=only, name=f"{root}.{t} nan")
        for to, b_to in (("f64", "b64"), ("f32", "b32"), ("f16", "b16"), ("bf16", "b16")):
            narrow = int(b_to[1:]) < int(b[1:]) or {t, to} == {"f16", "bf16"}
            if to != t:
                yield f(f"cvt{'.rn' if narrow else ''}.{to}.{t} {{d}}, {{a}}", b_to, b, only=only, name=f"cvt.{to}.{t} nan")
    tf32 = [0x7fffffff, 0xffffffff, 0x7ffff000, 0x7fffefff, 0x7f800fff, 0x7f801000, 0xff800001, 0x7fbfffff, 0x3f801000, 0x3f803000,
            0x3f800fff, 0xbf801001, 1, 0xfff, 0x1000, 0x80001001, 0x7ff000, 0x7fefff, 0x7f7fefff, 0x7f7ff000, 0xff7ff001]
    for mods in ("rn", "rz", "rna", "rn.relu", "rz.relu", "rna.satfinite"):
        yield f(f"cvt.{mods}.tf32.f32 {{d}}, {{a}}", "b32", "b32", only={0: tf32}, name=f"cvt.{mods}.tf32.f32 edges")


def video():
    words = "bits bits bits"
    signs = ("u", "s")
    types = [f"{d}32.{a}32.{b}32" for d in signs for a in signs for b in signs]
    for root in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for t in types:
            for op in ("add", "min", "max"):
                yield f(f"{root}.{t}.sat.{op} {{d}}, {{a}}, {{b}}, {{c}}", "b32", words)
            yield f(f"{root}.{t}.sat {{d}}.h1, {{a}}, {{b}}, {{c}}", "b32", words, name=f"{root}.{t}.sat merge words")
            yield f(f"{root}.{t} {{d}}.b3, {{a}}.h1, {{b}}, {{c}}", "b32", words, name=f"{root}.{t} merge")
    for root in ("vshl", "vshr"):
        for t in (f"{d}32.{a}32.u32" for d in signs for a in signs):
            for op in ("add", "min", "max"):
                for sat in ("", ".sat"):
                    yield f(f"{root}.{t}{sat}.clamp.{op} {{d}}, {{a}}, {{b}}, {{c}}", "b32", "bits amount bits")
            for sat in ("", ".sat"):
                yield f(f"{root}.{t}{sat}.wrap {{d}}.h0, {{a}}, {{b}}.b0, {{c}}", "b32", "bits amount bits", name=f"{root}.{t}{sat}.wrap merge")
    for a in signs:
        for b in signs:
            for op in ("add", "min", "max"):
                yield f(f"vset.{a}32.{b}32.lt.{op} {{d}}, {{a}}, {{b}}, {{c}}", "b32", words)
            yield f(f"vset.{a}32.{b}32.ge {{d}}.b1, {{a}}, {{b}}, {{c}}", "b32", words, name=f"vset.{a}32.{b}32.ge merge")
            d = "u" if a + b == "uu" else "s"
            for tail in ("", ".sat", ".shr7", ".sat.shr15"):
                t = f"vmad.{d}32.{a}32.{b}32{tail}"
                yield f(f"{t} {{d}}, {{a}}.h1, {{b}}.b3, {{c}}", "b32", words, name=f"{t} parts")
                yield f(f"{t} {{d}}, {{a}}.b1, {{b}}, {{c}}", "b32", words, name=f"{t} part")
                yield f(f"vmad.{d}32.{a}32.{b}32.po{tail} {{d}}, {{a}}, {{b}}, {{c}}", "b32", words)
                yield f(f"vmad.s32.{a}32.{b}32{tail} {{d}}, -{{a}}, {{b}}, {{c}}", "b32", words, name=f"{t} minus product")
                yield f(f"vmad.s32.{a}32.{b}32{tail} {{d}}, {{a}}, {{b}}, -{{c}}", "b32", words, name=f"{t} minus c")


def edges():
    for group in (flushes, nans, video):
        yield from group()
