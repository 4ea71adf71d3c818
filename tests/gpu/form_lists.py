"""form_lists.py — the instruction forms that make_forms.py writes.

f(TEXT, RESULTS, SOURCES, check, only): {d} {q} are the results and {a} {b} {c} {e} the sources, of the given types.
`only` restricts the values of a source, by its position, to those for which PTX defines the result.
"""
import collections

Form = collections.namedtuple("Form", "name text results sources check only")
INTS = ["u16", "s16", "u32", "s32", "u64", "s64"]
ROUNDS = ["rn", "rz", "rm", "rp"]
COMPARES = ["eq", "ne", "lt", "le", "gt", "ge"]
FLOAT_COMPARES = COMPARES + ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]


def f(text, results, sources, check="bits", only=None, name=None):
    short = name or text.split("{")[0].split("%")[0].split(";")[0].strip()
    return Form(short, text, results.split(), sources.split(), check, only or {})


def finite(*bounds):
    """Return the bit patterns of form_values.F32 with lo <= |x| <= hi, of both signs."""
    import struct
    from form_values import F32
    lo, hi = bounds
    return [u for u in F32 if (u & 0x7fffffff) < 0x7f800000
            and lo <= abs(struct.unpack("<f", struct.pack("<I", u))[0]) <= hi]


def holds(to, source):
    """Return whether the integer type `to` can represent every value of the type `source`."""
    to_bits, from_bits = int(to[1:]), int(source[1:])
    if to[0] == "u":
        return source[0] == "u" and to_bits >= from_bits
    return to_bits >= from_bits if source[0] == "s" else to_bits > from_bits


def integer():
    for t in INTS:
        for root in ("add", "sub", "mul.lo", "mul.hi", "min", "max"):
            yield f(f"{root}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
        for root in ("mad.lo", "mad.hi", "sad"):
            yield f(f"{root}.{t} {{d}}, {{a}}, {{b}}, {{c}}", t, f"{t} {t} {t}")
        nonzero = [1, 2, 3, 7, 10, 0x7fff, 0x8001, 0x12345678, 0x7fffffff, 0x80000001, 0x123456789abcdef0, 0x7fffffffffffffff]
        for root in ("div", "rem"):  # PTX does not define MIN / -1 and x / 0
            yield f(f"{root}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}", only={1: nonzero})
        if t[0] == "s":
            yield f(f"abs.{t} {{d}}, {{a}}", t, t)
            yield f(f"neg.{t} {{d}}, {{a}}", t, t)
    for t, wide in (("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")):
        yield f(f"mul.wide.{t} {{d}}, {{a}}, {{b}}", wide, f"{t} {t}")
        yield f(f"mad.wide.{t} {{d}}, {{a}}, {{b}}, {{c}}", wide, f"{t} {t} {wide}")
    yield f("add.sat.s32 {d}, {a}, {b}", "s32", "s32 s32")
    yield f("sub.sat.s32 {d}, {a}, {b}", "s32", "s32 s32")
    yield f("mad.hi.sat.s32 {d}, {a}, {b}, {c}", "s32", "s32 s32 s32")
    for t in ("u32", "s32"):
        for half in ("lo", "hi"):
            yield f(f"mul24.{half}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
            yield f(f"mad24.{half}.{t} {{d}}, {{a}}, {{b}}, {{c}}", t, f"{t} {t} {t}")
    yield f("mad24.hi.sat.s32 {d}, {a}, {b}, {c}", "s32", "s32 s32 s32")
    for t in ("u16x2", "s16x2"):
        for root in ("add", "min", "max"):
            yield f(f"{root}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
    for root in ("min", "max"):
        yield f(f"{root}.relu.s32 {{d}}, {{a}}, {{b}}", "s32", "s32 s32")
        yield f(f"{root}.relu.s16x2 {{d}}, {{a}}, {{b}}", "s16x2", "s16x2 s16x2")
    for a in "us":
        for b in "us":
            yield f(f"dp4a.{a}32.{b}32 {{d}}, {{a}}, {{b}}, {{c}}", "b32", "bits bits b32")
            for half in ("lo", "hi"):
                yield f(f"dp2a.{half}.{a}32.{b}32 {{d}}, {{a}}, {{b}}, {{c}}", "b32", "bits bits b32")


def carry():
    for t in ("u32", "s32", "u64", "s64"):
        for op in ("add", "sub"):
            yield f(f"{op}.cc.{t} {{d}}, {{a}}, {{b}}; {op}c.{t} {{q}}, {{a}}, {{c}}", f"{t} {t}", f"{t} {t} {t}")
            yield f(f"{op}.cc.{t} {{d}}, {{a}}, {{b}}; {op}c.cc.{t} {{q}}, {{b}}, {{c}}; {op}c.{t} {{d}}, {{a}}, {{c}}",
                    f"{t} {t}", f"{t} {t} {t}", name=f"{op}c.cc.{t}")
        for half in ("lo", "hi"):
            yield f(f"mad.{half}.cc.{t} {{d}}, {{a}}, {{b}}, {{c}}; madc.{half}.{t} {{q}}, {{a}}, {{c}}, {{b}}",
                    f"{t} {t}", f"{t} {t} {t}")
            yield f(f"mad.{half}.cc.{t} {{d}}, {{a}}, {{b}}, {{c}}; madc.{half}.cc.{t} {{q}}, {{a}}, {{c}}, {{b}}; "
                    f"addc.{t} {{d}}, {{a}}, {{c}}", f"{t} {t}", f"{t} {t} {t}", name=f"madc.{half}.cc.{t}")
        for first, second in (("sub", "addc"), ("add", "subc"), ("sub", "madc.lo"), ("mad.lo", "subc")):  # mixes borrow and carry
            one, two = (", {c}" if x.startswith("mad") else "" for x in (first, second))
            yield f(f"{first}.cc.{t} {{d}}, {{a}}, {{b}}{one}; {second}.{t} {{q}}, {{c}}, {{a}}{two}", f"{t} {t}", f"{t} {t} {t}",
                    name=f"{first}.cc.{t} {second}")


def bits():
    for n in (16, 32, 64):
        for root in ("and", "or", "xor"):
            yield f(f"{root}.b{n} {{d}}, {{a}}, {{b}}", f"b{n}", f"b{n} b{n}")
        yield f(f"not.b{n} {{d}}, {{a}}", f"b{n}", f"b{n}")
        yield f(f"cnot.b{n} {{d}}, {{a}}", f"b{n}", f"b{n}")
        yield f(f"shl.b{n} {{d}}, {{a}}, {{b}}", f"b{n}", f"b{n} amount")
        for sign in "bus":
            yield f(f"shr.{sign}{n} {{d}}, {{a}}, {{b}}", f"b{n}", f"b{n} amount")
    for root in ("and", "or", "xor"):
        yield f(f"{root}.pred {{d}}, {{a}}, {{b}}", "pred", "pred pred")
    yield f("not.pred {d}, {a}", "pred", "pred")
    for side in "lr":
        for mode in ("clamp", "wrap"):
            yield f(f"shf.{side}.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}", "b32", "bits bits amount")
    for lut in (0x00, 0x80, 0x96, 0xe8, 0xca, 0x1b, 0xfe, 0x69):
        yield f(f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {lut}", "b32", "bits bits bits", name=f"lop3.b32 {lut}")
    for op in ("and", "or"):
        yield f(f"lop3.{op}.b32 {{d}}|{{q}}, {{a}}, {{b}}, {{c}}, 128, {{e}}", "b32 pred", "bits bits bits pred")
    yield f("prmt.b32 {d}, {a}, {b}, {c}", "b32", "bits bits pick")
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield f(f"prmt.b32.{mode} {{d}}, {{a}}, {{b}}, {{c}}", "b32", "bits bits pick")
    for n in (32, 64):
        yield f(f"popc.b{n} {{d}}, {{a}}", "u32", f"b{n}")
        yield f(f"clz.b{n} {{d}}, {{a}}", "u32", f"b{n}")
        yield f(f"brev.b{n} {{d}}, {{a}}", f"b{n}", f"b{n}")
        for sign in "us":
            yield f(f"bfind.{sign}{n} {{d}}, {{a}}", "u32", f"{sign}{n}")
            yield f(f"bfind.shiftamt.{sign}{n} {{d}}, {{a}}", "u32", f"{sign}{n}")
            yield f(f"bfe.{sign}{n} {{d}}, {{a}}, {{b}}, {{c}}", f"{sign}{n}", f"{sign}{n} amount amount")
        yield f(f"bfi.b{n} {{d}}, {{a}}, {{b}}, {{c}}, {{e}}", f"b{n}", f"b{n} b{n} amount amount")
    in_word = [0, 1, 5, 31]
    offsets = [0, 1, 2, 5, 31, 32, 0xffffffff, 0xfffffffe, 0xfffffff0]
    yield f("fns.b32 {d}, {a}, {b}, {c}", "b32", "bits small s32", only={1: in_word, 2: offsets})
    for mode in ("clamp", "wrap"):
        yield f(f"bmsk.{mode}.b32 {{d}}, {{a}}, {{b}}", "b32", "amount amount")
        for sign in "us":
            yield f(f"szext.{mode}.{sign}32 {{d}}, {{a}}, {{b}}", "b32", "b32 amount")


def compare():
    for t in INTS + ["b16", "b32", "b64"]:
        for cmp in (["eq", "ne"] if t[0] == "b" else COMPARES + (["lo", "ls", "hi", "hs"] if t[0] == "u" else [])):
            yield f(f"setp.{cmp}.{t} {{d}}, {{a}}, {{b}}", "pred", f"{t} {t}")
    for t in ("f32", "f64", "f16", "bf16"):
        for cmp in FLOAT_COMPARES:
            yield f(f"setp.{cmp}.{t} {{d}}, {{a}}, {{b}}", "pred", f"{t} {t}")
    for cmp in ("lt", "geu", "nan"):
        yield f(f"setp.{cmp}.ftz.f32 {{d}}, {{a}}, {{b}}", "pred", "f32 f32")
        yield f(f"setp.{cmp}.ftz.f16 {{d}}, {{a}}, {{b}}", "pred", "f16 f16")
        for t in ("f16x2", "bf16x2"):
            yield f(f"setp.{cmp}.{t} {{d}}|{{q}}, {{a}}, {{b}}", "pred pred", f"{t} {t}")
    for op in ("and", "or", "xor"):
        for t in ("s16", "u32", "s64", "f32", "f64"):
            yield f(f"setp.lt.{op}.{t} {{d}}|{{q}}, {{a}}, {{b}}, {{c}}", "pred pred", f"{t} {t} pred")
            yield f(f"setp.ge.{op}.{t} {{d}}|{{q}}, {{a}}, {{b}}, !{{c}}", "pred pred", f"{t} {t} pred",
                    name=f"setp.ge.{op}.{t} not")
    for t in ("u16", "s32", "u64", "f32", "f64"):
        for d in ("u32", "s32", "f32"):
            yield f(f"set.le.{d}.{t} {{d}}, {{a}}, {{b}}", d, f"{t} {t}")
            yield f(f"set.gt.xor.{d}.{t} {{d}}, {{a}}, {{b}}, {{c}}", d, f"{t} {t} pred")
    yield f("set.lt.f16.f16 {d}, {a}, {b}", "b16", "f16 f16")
    yield f("set.lt.bf16.bf16 {d}, {a}, {b}", "b16", "bf16 bf16")
    yield f("set.ne.f16x2.f16x2 {d}, {a}, {b}", "b32", "f16x2 f16x2")
    yield f("set.ne.u32.f16x2 {d}, {a}, {b}", "b32", "f16x2 f16x2")
    yield f("set.lt.u16.f16 {d}, {a}, {b}", "b16", "f16 f16")
    yield f("set.lt.u32.f16 {d}, {a}, {b}", "b32", "f16 f16")
    for t in ("b16", "u32", "s64", "f32", "f64"):
        bare = "b" + t[1:]
        yield f(f"selp.{t} {{d}}, {{a}}, {{b}}, {{c}}", bare, f"{t} {t} pred")
    for t in ("b16", "u32", "b64"):
        bare = "b" + t[1:]
        yield f(f"slct.{t}.s32 {{d}}, {{a}}, {{b}}, {{c}}", bare, f"{t} {t} s32")
        yield f(f"slct.{t}.f32 {{d}}, {{a}}, {{b}}, {{c}}", bare, f"{t} {t} f32")
    yield f("slct.ftz.u32.f32 {d}, {a}, {b}, {c}", "u32", "u32 u32 f32")
    for t in ("f32", "f64"):
        for what in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
            yield f(f"testp.{what}.{t} {{d}}, {{a}}", "pred", t)


def move():
    yield f("mov.b32 {d}, {{{a}, {b}}}", "b32", "b16 b16", name="mov.b32 pack 2")
    yield f("mov.b64 {d}, {{{a}, {b}}}", "b64", "b32 b32", name="mov.b64 pack 2")
    yield f("mov.b64 {d}, {{{a}, {b}, {c}, {e}}}", "b64", "b16 b16 b16 b16", name="mov.b64 pack 4")
    yield f("mov.b32 {{{d}, {q}}}, {a}", "b16 b16", "b32", name="mov.b32 unpack 2")
    yield f("mov.b64 {{{d}, {q}}}, {a}", "b32 b32", "b64", name="mov.b64 unpack 2")
    for n in (16, 32, 64):
        yield f(f"mov.b{n} {{d}}, {{a}}", f"b{n}", f"b{n}")
    yield f("mov.pred {d}, {a}", "pred", "pred")


def floats():
    for t in ("f32", "f64"):
        for rnd in ROUNDS:
            for mods in ([".ftz", ".sat", ".ftz.sat", ""] if t == "f32" else [""]):
                for root in ("add", "sub", "mul"):
                    yield f(f"{root}.{rnd}{mods}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
                yield f(f"fma.{rnd}{mods}.{t} {{d}}, {{a}}, {{b}}, {{c}}", t, f"{t} {t} {t}")
            for mods in ([".ftz", ""] if t == "f32" else [""]):
                yield f(f"div.{rnd}{mods}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
                yield f(f"rcp.{rnd}{mods}.{t} {{d}}, {{a}}", t, t)
                yield f(f"sqrt.{rnd}{mods}.{t} {{d}}, {{a}}", t, t)
        yield f(f"add.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
        yield f(f"mad.rn.{t} {{d}}, {{a}}, {{b}}, {{c}}", t, f"{t} {t} {t}")
        for root in ("min", "max"):
            yield f(f"{root}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
        yield f(f"neg.{t} {{d}}, {{a}}", t, t)
        yield f(f"abs.{t} {{d}}, {{a}}", t, t)
        yield f(f"copysign.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
    for root in ("min", "max"):
        for mods in ("ftz", "NaN", "ftz.NaN", "xorsign.abs", "NaN.xorsign.abs", "ftz.NaN.xorsign.abs"):
            yield f(f"{root}.{mods}.f32 {{d}}, {{a}}, {{b}}", "f32", "f32 f32")
    for root in ("neg", "abs"):
        yield f(f"{root}.ftz.f32 {{d}}, {{a}}", "f32", "f32")


def approx():
    """Approximate instructions.  The bound is twice that of the PTX ISA, because both results may differ by as much from the exact one,
    plus 1 ulp for each rounding."""
    for ftz in ("", ".ftz"):
        yield f(f"rcp.approx{ftz}.f32 {{d}}, {{a}}", "f32", "f32", "f32:2")
        yield f(f"sqrt.approx{ftz}.f32 {{d}}, {{a}}", "f32", "f32", "f32:3")
        yield f(f"rsqrt.approx{ftz}.f32 {{d}}, {{a}}", "f32", "f32", "f32:3")
        yield f(f"ex2.approx{ftz}.f32 {{d}}, {{a}}", "f32", "f32", "f32:3")
        yield f(f"div.full{ftz}.f32 {{d}}, {{a}}, {{b}}", "f32", "f32 f32", "f32:3", {0: finite(1e-30, 1e30), 1: finite(1e-6, 1e6)})
        yield f(f"div.approx{ftz}.f32 {{d}}, {{a}}, {{b}}", "f32", "f32 f32", "f32:3", {0: finite(1e-30, 1e30), 1: finite(1e-6, 1e6)})
        yield f(f"sin.approx{ftz}.f32 {{d}}, {{a}}", "f32", "f32", "f32:abs:0.0000014", {0: finite(0, 6.28)})
        yield f(f"cos.approx{ftz}.f32 {{d}}, {{a}}", "f32", "f32", "f32:abs:0.0000014", {0: finite(0, 6.28)})
        yield f(f"lg2.approx{ftz}.f32 {{d}}, {{a}}", "f32", "f32", "f32:abs:0.0000005", {0: finite(0.5, 2)})
        yield f(f"lg2.approx{ftz}.f32 {{d}}, {{a}}", "f32", "f32", "f32:3", {0: finite(3, 1e38) + finite(1e-37, 0.25)},
                name=f"lg2.approx{ftz}.f32 far")
    yield f("tanh.approx.f32 {d}, {a}", "f32", "f32", "f32:16384")
    yield f("rcp.approx.ftz.f64 {d}, {a}", "f64", "f64", "f64:17179869184")
    yield f("rsqrt.approx.ftz.f64 {d}, {a}", "f64", "f64", "f64:17179869184")


def halves():
    for t in ("f16", "f16x2", "bf16", "bf16x2"):
        f16 = t.startswith("f")
        for mods in (["", ".ftz", ".sat", ".ftz.sat"] if f16 else [""]):
            for root in ("add", "sub", "mul"):
                yield f(f"{root}.rn{mods}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
            yield f(f"fma.rn{mods}.{t} {{d}}, {{a}}, {{b}}, {{c}}", t, f"{t} {t} {t}")
        yield f(f"fma.rn.relu.{t} {{d}}, {{a}}, {{b}}, {{c}}", t, f"{t} {t} {t}")
        for root in ("min", "max"):
            for mods in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs") + ((".ftz",) if f16 else ()):
                yield f(f"{root}{mods}.{t} {{d}}, {{a}}, {{b}}", t, f"{t} {t}")
        for root in ("neg", "abs"):
            yield f(f"{root}.{t} {{d}}, {{a}}", t, t)
        base = t.removesuffix("x2")
        yield f(f"tanh.approx.{t} {{d}}, {{a}}", t, t, f"{base}:2")
        yield f(f"ex2.approx{'' if f16 else '.ftz'}.{t} {{d}}, {{a}}", t, t, f"{base}:2")


def convert():
    ints = ["u8", "s8"] + INTS
    for to in ints:
        for source in ints:
            if to != source:
                yield f(f"cvt.{to}.{source} {{d}}, {{a}}", to, source)
                if not holds(to, source):  # if every value fits, PTX has no .sat form
                    yield f(f"cvt.sat.{to}.{source} {{d}}, {{a}}", to, source)
    for to in ints:
        wide = ("f16", "f32", "f64") if to[1:] == "8" else ("f16", "bf16", "f32", "f64")
        for source in wide:
            for rnd in ("rni", "rzi", "rmi", "rpi"):
                yield f(f"cvt.{rnd}.{to}.{source} {{d}}, {{a}}", to, source)
        yield f(f"cvt.rzi.ftz.{to}.f32 {{d}}, {{a}}", to, "f32")
        for d in wide:
            for rnd in ROUNDS:
                yield f(f"cvt.{rnd}.{d}.{to} {{d}}, {{a}}", d, to)
        yield f(f"cvt.rn.sat.f32.{to} {{d}}, {{a}}", "f32", to)
    for rnd in ROUNDS:
        for mods in ("", ".sat", ".ftz", ".ftz.sat"):
            yield f(f"cvt.{rnd}{mods}.f32.f64 {{d}}, {{a}}", "f32", "f64")
    for source in ("f32", "f64"):
        for rnd in ROUNDS:
            yield f(f"cvt.{rnd}.f16.{source} {{d}}, {{a}}", "f16", source)
        yield f(f"cvt.rn.sat.f16.{source} {{d}}, {{a}}", "f16", source)
    for mods in ("rn", "rz", "rn.relu", "rz.relu", "rn.satfinite"):
        yield f(f"cvt.{mods}.bf16.f32 {{d}}, {{a}}", "bf16", "f32")
    yield f("cvt.rn.bf16.f64 {d}, {a}", "bf16", "f64")
    for mods in ("rn", "rz", "rna", "rn.relu", "rz.relu", "rna.satfinite"):
        yield f(f"cvt.{mods}.tf32.f32 {{d}}, {{a}}", "tf32", "f32")
    for t in ("f16", "bf16"):
        yield f(f"cvt.f32.{t} {{d}}, {{a}}", "f32", t)
        yield f(f"cvt.f64.{t} {{d}}, {{a}}", "f64", t)
        for mods in ("rn", "rz", "rn.relu", "rz.relu", "rn.satfinite"):
            yield f(f"cvt.{mods}.{t}x2.f32 {{d}}, {{a}}, {{b}}", f"{t}x2", "f32 f32")
    yield f("cvt.rn.bf16.f16 {d}, {a}", "bf16", "f16")
    yield f("cvt.rn.f16.bf16 {d}, {a}", "f16", "bf16")
    yield f("cvt.f64.f32 {d}, {a}", "f64", "f32")
    yield f("cvt.ftz.f64.f32 {d}, {a}", "f64", "f32")
    yield f("cvt.sat.f32.f32 {d}, {a}", "f32", "f32")
    yield f("cvt.sat.f64.f64 {d}, {a}", "f64", "f64")
    yield f("cvt.ftz.f32.f32 {d}, {a}", "f32", "f32")
    for t in ("f16", "f32", "f64"):
        for rnd in ("rni", "rzi", "rmi", "rpi"):
            yield f(f"cvt.{rnd}.{t}.{t} {{d}}, {{a}}", t, t)
    for small in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            yield f(f"cvt.rn.satfinite{relu}.{small}.f32 {{d}}, {{a}}, {{b}}", small, "f32 f32")
            yield f(f"cvt.rn.satfinite{relu}.{small}.f16x2 {{d}}, {{a}}", small, "f16x2")
            yield f(f"cvt.rn{relu}.f16x2.{small} {{d}}, {{a}}", "f16x2", small)
    for t in ("u8", "s8", "u4", "s4", "u2", "s2"):
        yield f(f"cvt.pack.sat.{t}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}}", "b32", "s32 s32 b32")
    for t in ("u16", "s16"):
        yield f(f"cvt.pack.sat.{t}.s32 {{d}}, {{a}}, {{b}}", "b32", "s32 s32")


def video():
    words = "bits bits"
    for root in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        for d in "us":
            for a in "us":
                for b in "us":
                    types = f"{d}32.{a}32.{b}32"
                    yield f(f"{root}.{types} {{d}}, {{a}}, {{b}}", "b32", words)
                    yield f(f"{root}.{types}.sat {{d}}, {{a}}.b1, {{b}}.h1", "b32", words)
                    yield f(f"{root}.{types}.sat {{d}}.b2, {{a}}.h0, {{b}}.b3, {{c}}", "b32", words + " bits",
                            name=f"{root}.{types}.sat merge")
                    for op in ("add", "min", "max"):
                        yield f(f"{root}.{types}.{op} {{d}}, {{a}}.b0, {{b}}, {{c}}", "b32", words + " bits")
    for root in ("vshl", "vshr"):
        for d in "us":
            for a in "us":
                for mode in ("clamp", "wrap"):
                    for sat in ("", ".sat"):
                        yield f(f"{root}.{d}32.{a}32.u32{sat}.{mode} {{d}}, {{a}}, {{b}}", "b32", "bits amount")
    for a in "us":
        for b in "us":
            for cmp in COMPARES:
                yield f(f"vset.{a}32.{b}32.{cmp} {{d}}, {{a}}.b1, {{b}}.b1", "b32", words)
            for tail in ("", ".sat", ".shr7", ".sat.shr15"):
                yield f(f"vmad.{'u' if a + b == 'uu' else 's'}32.{a}32.{b}32{tail} {{d}}, {{a}}, {{b}}, {{c}}", "b32",
                        words + " bits")
    for n in (2, 4):
        for root in ("vadd", "vsub", "vabsdiff", "vavrg", "vmin", "vmax"):
            for d in "us":
                for a in "us":
                    for b in "us":
                        types = f"{d}32.{a}32.{b}32"
                        yield f(f"{root}{n}.{types} {{d}}, {{a}}, {{b}}, {{c}}", "b32", words + " bits")
                        if root != "vavrg":
                            yield f(f"{root}{n}.{types}.sat {{d}}, {{a}}, {{b}}, {{c}}", "b32", words + " bits")
                        yield f(f"{root}{n}.{types}.add {{d}}, {{a}}, {{b}}, {{c}}", "b32", words + " bits")
        for cmp in COMPARES:
            yield f(f"vset{n}.u32.s32.{cmp} {{d}}, {{a}}, {{b}}, {{c}}", "b32", words + " bits")
    yield f("vadd4.u32.u32.u32 {d}.b31, {a}.b0123, {b}.b7651, {c}", "b32", words + " bits", name="vadd4 selectors")
    yield f("vsub2.s32.s32.s32 {d}.h1, {a}.h01, {b}.h32, {c}", "b32", words + " bits", name="vsub2 selectors")


def memory():
    """Loads and stores of every width, and atomics, in the row's bytes of the output buffer (%d21)."""
    for t in ("u8", "s8", "u16", "s16", "u32", "s32"):
        for n, r in ((32, "{d}"), (64, "{q}")):
            if int(t[1:]) <= n:
                other = "b64 b64" if n == 64 else "b32"
                yield f(f"st.global.{t} [%d21], {{a}}; ld.global.{t} {r}, [%d21]" + ("; mov.b64 {d}, {a}" if n == 64 else ""),
                        other, f"b{n}", name=f"ld.{t} to {n}")
    for t, ops in (("u32", "add and or xor min max exch inc dec"), ("s32", "add min max"), ("u64", "add and or xor min max exch"),
                   ("s64", "min max"), ("f32", "add"), ("f64", "add")):
        for op in ops.split():
            kind = "b" + t[1:] if op in ("and", "or", "xor", "exch") else t
            bare = "b" + t[1:] if t[0] != "f" else t
            width = "b" + t[1:]
            yield f(f"st.global.{width} [%d21], {{a}}; atom.global.{op}.{kind} {{q}}, [%d21], {{b}}; ld.global.{width} {{d}}, [%d21]",
                    f"{bare} {bare}", f"{t} {t}", name=f"atom.{op}.{kind}")
    for n in (16, 32, 64):
        yield f(f"st.global.b{n} [%d21], {{a}}; atom.global.cas.b{n} {{q}}, [%d21], {{b}}, {{c}}; ld.global.b{n} {{d}}, [%d21]",
                f"b{n} b{n}", f"b{n} b{n} b{n}", name=f"atom.cas.b{n}")


def warp():
    """Warp-wide forms.  All 32 lanes are active, because the number of rows is a multiple of 256."""
    for mode, b, c in (("idx", "small", "0x1f"), ("idx", "small", "0x181f"), ("up", "small", "0"), ("up", "small", "0x1800"),
                       ("down", "small", "0x1f"), ("bfly", "small", "0x1f"), ("bfly", "small", "0x1c1f")):
        yield f(f"shfl.sync.{mode}.b32 {{d}}|{{q}}, {{a}}, {{b}}, {c}, 0xffffffff", "b32 pred", f"b32 {b}",
                name=f"shfl.sync.{mode} {c}")
    for mode in ("all", "any", "uni"):
        yield f(f"vote.sync.{mode}.pred {{d}}, {{a}}, 0xffffffff", "pred", "pred")
    yield f("vote.sync.ballot.b32 {d}, {a}, 0xffffffff", "b32", "pred")
    for n in (32, 64):
        yield f(f"match.any.sync.b{n} {{d}}, {{a}}, 0xffffffff", "b32", f"b{n}")
        yield f(f"match.all.sync.b{n} {{d}}|{{q}}, {{a}}, 0xffffffff", "b32 pred", f"b{n}")
    for op, t in (("add", "u32"), ("add", "s32"), ("min", "u32"), ("min", "s32"), ("max", "u32"), ("max", "s32"), ("and", "b32"),
                  ("or", "b32"), ("xor", "b32")):
        yield f(f"redux.sync.{op}.{t} {{d}}, {{a}}, 0xffffffff", "b32", "b32")


def forms():
    for group in (integer, carry, bits, compare, move, floats, approx, halves, convert, video, memory, warp):
        yield from group()
