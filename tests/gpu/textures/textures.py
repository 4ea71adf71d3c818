#!/usr/bin/env python3
"""textures.py run LIBCUDA OUT [--sets N] [--seed S] — read random textures through a driver, and write the results
textures.py compare A B — compare the results of two drivers; exit 1 if one differs beyond its bound
textures.py sum FILE — print a line for ten textures: a checksum of the inputs of all ten, and one of the results of each
textures.py check FILE SUMS — compare the results in FILE, the first lines of SUMS, with those checksums; exit 1 if one differs in any bit, 77 if
    the textures are others

For example, on a machine with a GPU:

    tests/gpu/textures/textures.py run libcuda.so.1 gpu.txt
    tests/gpu/textures/textures.py run build/softcuda/libcuda-soft.so soft.txt
    tests/gpu/textures/textures.py compare gpu.txt soft.txt

A case is a random texture (geometry, format, size, address mode, filter) and 64 random coordinates; both drivers get the same, from the
seed.  The bound of a case, in the file: 0 for integers and point reads of floats, which must have equal bits; one unit in the last place of fractions
made from integers; and for linear filters 1/256 of the range of the texels for each filtered dimension, because fractions have 8 bits.  Coordinates of
point reads keep a distance from the edges of texels, because the precision of normalised coordinates is not documented.

textures.h200 has the checksums of an H200's results for the default seed; the software driver has the same results in all bits.
"""
import argparse, ctypes, json, math, random, struct, sys, zlib

THREADS = 64
PER_LINE = 10  # textures in a line of checksums
FRAME = """.version 8.0
.target sm_75
.address_size 64
.visible .entry k(.param .u64 object, .param .u64 at, .param .u64 out)
{
.reg .b64 o, a, d, w; .reg .b32 t, x, y, z, l, m, r0, r1, r2, r3;
ld.param.u64 o, [object]; ld.param.u64 a, [at]; ld.param.u64 d, [out];
mov.u32 t, %tid.x; mul.wide.u32 w, t, 16; add.u64 d, d, w; mul.wide.u32 w, t, 32; add.u64 a, a, w;
ld.global.v4.b32 {x, y, z, l}, [a]; ld.global.b32 m, [a+16];
BODY
st.global.v4.b32 [d], {r0, r1, r2, r3}; ret;
}
"""
#        format: (number of CUarray_format, bytes, kind)
FORMATS = {"u8": (1, 1, "u"), "u16": (2, 2, "u"), "u32": (3, 4, "i"), "s8": (8, 1, "s"), "s16": (9, 2, "s"), "s32": (10, 4, "i"),
           "f16": (16, 2, "f"), "f32": (32, 4, "f")}
LAYERED, CUBE, GATHER = 1, 4, 8
#           geometry: (dimensions, layered, cube, coordinates in PTX)
GEOMETRIES = {"1d": (1, 0, 0, "x"), "2d": (2, 0, 0, "x, y"), "3d": (3, 0, 0, "x, y, z, z"), "a1d": (1, 1, 0, "l, x"),
              "a2d": (2, 1, 0, "l, x, y, y"), "cube": (2, 0, 1, "x, y, z, z"), "acube": (2, 1, 1, "l, x, y, z")}


class ArrayDesc(ctypes.Structure):
    _fields_ = [("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t), ("format", ctypes.c_int),
                ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)]


class Copy3D(ctypes.Structure):
    END = ("x", "y", "z", "lod")
    _fields_ = [(f"src_{n}", ctypes.c_size_t) for n in END] + [("src_type", ctypes.c_int), ("src_host", ctypes.c_void_p),
                ("src_device", ctypes.c_uint64), ("src_array", ctypes.c_void_p), ("reserved0", ctypes.c_void_p),
                ("src_pitch", ctypes.c_size_t), ("src_height", ctypes.c_size_t)] + \
               [(f"dst_{n}", ctypes.c_size_t) for n in END] + [("dst_type", ctypes.c_int), ("dst_host", ctypes.c_void_p),
                ("dst_device", ctypes.c_uint64), ("dst_array", ctypes.c_void_p), ("reserved1", ctypes.c_void_p),
                ("dst_pitch", ctypes.c_size_t), ("dst_height", ctypes.c_size_t), ("width", ctypes.c_size_t),
                ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class ResourceDesc(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handle", ctypes.c_uint64), ("rest", ctypes.c_uint64 * 15), ("flags", ctypes.c_uint)]


class TextureDesc(ctypes.Structure):
    _fields_ = [("address", ctypes.c_int * 3), ("filter", ctypes.c_int), ("flags", ctypes.c_uint), ("anisotropy", ctypes.c_uint),
                ("level_filter", ctypes.c_int), ("bias", ctypes.c_float), ("least", ctypes.c_float), ("most", ctypes.c_float),
                ("border", ctypes.c_float * 4), ("reserved", ctypes.c_int * 12)]


class Driver:
    """Opens a libcuda, and makes the calls of the driver API that this program needs."""

    def __init__(self, path):
        self.lib, self.functions = ctypes.CDLL(path), {}
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        self.at, self.out = self.allocate(32 * THREADS), self.allocate(16 * THREADS)

    def __call__(self, name, *arguments):
        r = getattr(self.lib, name)(*arguments)
        if r:
            sys.exit(f"textures.py: {name} failed with CUresult {r}")

    def allocate(self, n):
        p = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(n))
        return p

    def kernel(self, body):
        if body not in self.functions:
            module, f = ctypes.c_void_p(), ctypes.c_void_p()
            self("cuModuleLoadData", ctypes.byref(module), FRAME.replace("BODY", body).encode())
            self("cuModuleGetFunction", ctypes.byref(f), module, b"k")
            self.functions[body] = f
        return self.functions[body]

    def launch(self, body, texture, coordinates):
        arguments = [texture, self.at, self.out]
        params = (ctypes.c_void_p * 3)(*(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
        result = ctypes.create_string_buffer(16 * THREADS)
        self("cuMemcpyHtoD_v2", self.at, coordinates, ctypes.c_size_t(32 * THREADS))
        self("cuLaunchKernel", self.kernel(body), 1, 1, 1, THREADS, 1, 1, 0, None, params, None)
        self("cuMemcpyDtoH_v2", result, self.out, ctypes.c_size_t(16 * THREADS))
        return result.raw

    def fill(self, array, data, width_bytes, height, depth):
        host = ctypes.create_string_buffer(data, len(data))
        c = Copy3D(src_type=1, src_host=ctypes.addressof(host), src_pitch=width_bytes, src_height=height, dst_type=3,
                   dst_array=array.value, width=width_bytes, height=height, depth=depth)
        self("cuMemcpy3D_v2", ctypes.byref(c))


def random_elements(r, name, n):
    """Return the bytes of n random channel values; floats are between -1 and 1."""
    if name == "f32":
        return struct.pack(f"<{n}f", *(r.uniform(-1, 1) for _ in range(n)))
    if name == "f16":
        return struct.pack(f"<{n}e", *(r.uniform(-1, 1) for _ in range(n)))
    return r.randbytes(n * FORMATS[name][1])


def random_case(r):
    geometry = r.choice([*GEOMETRIES, "2d", "3d", "gather", "levels"])
    name = r.choice(list(FORMATS))
    kind = FORMATS[name][2]
    integer = kind == "i" or (kind in "us" and r.random() < 0.4)
    cube = "cube" in geometry
    normalised = cube or geometry == "levels" or r.random() < 0.6
    size = [r.choice([1, 2, 3, 4, 5, 7, 8, 16, 31, 33]) for _ in range(3)]
    return {"geometry": geometry, "format": name, "channels": r.choice([1, 2, 4]), "integer": integer, "normalised": normalised,
            "size": [size[0], size[0], 1] if cube else size, "layers": r.randint(1, 4), "linear": not integer and r.random() < 0.6,
            "address": [r.randrange(4) if normalised else r.choice([1, 3]) for _ in range(3)] if not cube else [1, 1, 1],
            "level_linear": r.random() < 0.5, "srgb": name == "u8" and not integer and r.random() < 0.2,
            "border": [r.random() for _ in range(4)] if not integer else [0.0] * 4}


def bound_of(c):
    """Return the largest accepted difference between two results of a case."""
    kind = FORMATS[c["format"]][2]
    dimensions = GEOMETRIES.get(c["geometry"], (2,))[0]
    if c["integer"]:
        return 0
    bound = 0 if kind == "f" else 2.0 ** -23
    if c["srgb"]:
        bound += 2.0 ** -9
    if c["geometry"] == "gather":
        return bound
    filtered = (dimensions if c["linear"] else 0) + (1 if c["geometry"] == "levels" and c["level_linear"] else 0)
    return bound + (filtered * 2 / 256 + 2.0 ** -20 if filtered else 0)


def coordinate(r, c, extent, mode):
    """Return a random coordinate that is not near the edge of a texel."""
    if mode == 1 or mode == 3 or c["normalised"]:
        texel = r.randint(-2 * extent - 2, 3 * extent + 2) + r.uniform(1 / 16, 15 / 16)
    else:
        texel = r.uniform(0, extent)
    if c["linear"] and r.random() < 0.5:
        texel = round(texel * 256) / 256
    return texel / extent if c["normalised"] else texel


def direction(r, extent):
    """Return a random direction to a point of a cube's face that is not near the edge of a texel."""
    s, t = (2 * (r.randrange(extent) + r.uniform(1 / 8, 7 / 8)) / extent - 1 for _ in range(2))
    face, m = r.randrange(6), r.choice([1.0, 0.5, 3.0, r.uniform(0.1, 9)])
    x, y, z = ((1, -t, -s), (-1, -t, s), (s, 1, t), (s, -1, -t), (s, -t, 1), (-s, -t, -1))[face]
    return [x * m, y * m, z * m]


def random_coordinates(r, c):
    out = b""
    for _ in range(THREADS):
        if "cube" in c["geometry"]:
            at = direction(r, c["size"][0])
        else:
            at = [coordinate(r, c, c["size"][k], c["address"][k]) for k in range(3)]
        out += struct.pack("<3fI4f", *at, r.randrange(c["layers"]), r.uniform(-1, 5) if r.random() < .5 else float(r.randint(0, 4)) + .25, 0, 0, 0)
    return out


def make_array(d, r, c):
    """Make an array with random elements; return (array, None) or (None, mipmapped array)."""
    dimensions, layered, cube, _ = GEOMETRIES.get(c["geometry"], (2, 0, 0, ""))
    width, height, depth = (c["size"][k] if k < dimensions else 0 for k in range(3))
    flags = (LAYERED if layered else 0) | (CUBE if cube else 0) | (GATHER if c["geometry"] == "gather" else 0)
    if layered or cube:
        depth = (c["layers"] if layered else 1) * (6 if cube else 1)
    number, element, _ = FORMATS[c["format"]]
    desc = ArrayDesc(width, height, depth, number, c["channels"], flags)
    array, levels = ctypes.c_void_p(), ctypes.c_void_p()

    def fill(array, width, height, depth):
        n = width * max(height, 1) * max(depth, 1) * c["channels"]
        d.fill(array, random_elements(r, c["format"], n), width * element * c["channels"], max(height, 1), max(depth, 1))

    if c["geometry"] != "levels":
        d("cuArray3DCreate_v2", ctypes.byref(array), ctypes.byref(desc))
        fill(array, width, height, depth)
        return array, None
    n = max(width, height).bit_length()
    d("cuMipmappedArrayCreate", ctypes.byref(levels), ctypes.byref(desc), n)
    for k in range(n):
        d("cuMipmappedArrayGetLevel", ctypes.byref(array), levels, k)
        fill(array, max(width >> k, 1), max(height >> k, 1), 0)
    return None, levels


def body_of(c):
    kind = ("s32" if c["format"][0] == "s" else "u32") if c["integer"] else "f32"
    if c["geometry"] == "gather":
        return f"tld4.{'rgba'[c['layers'] % c['channels']]}.2d.v4.{kind}.f32 {{r0, r1, r2, r3}}, [o, {{x, y}}];"
    if c["geometry"] == "levels":
        return f"tex.level.2d.v4.{kind}.f32 {{r0, r1, r2, r3}}, [o, {{x, y}}], m;"
    return f"tex.{c['geometry']}.v4.{kind}.f32 {{r0, r1, r2, r3}}, [o, {{{GEOMETRIES[c['geometry']][3]}}}];"


def run_case(d, r, c):
    array, levels = make_array(d, r, c)
    resource = ResourceDesc(type=1 if levels else 0, handle=(levels or array).value)
    flags = (1 if c["integer"] else 0) | (2 if c["normalised"] else 0) | (0x10 if c["srgb"] else 0)
    sampler = TextureDesc(address=(ctypes.c_int * 3)(*c["address"]), filter=c["linear"], flags=flags, level_filter=c["level_linear"],
                          least=0, most=20, border=(ctypes.c_float * 4)(*c["border"]))
    texture = ctypes.c_uint64()
    d("cuTexObjectCreate", ctypes.byref(texture), ctypes.byref(resource), ctypes.byref(sampler), None)
    at = random_coordinates(r, c)
    out = d.launch(body_of(c), texture, at)
    d("cuTexObjectDestroy", texture)
    d("cuMipmappedArrayDestroy" if levels else "cuArrayDestroy", levels or array)
    return {**c, "bound": bound_of(c), "at": at.hex(), "out": out.hex()}


def run(args):
    d = Driver(args.driver)
    with open(args.out, "w", encoding="ascii") as f:
        for k in range((args.sets + THREADS - 1) // THREADS):
            r = random.Random(f"{args.seed} {k}")
            f.write(json.dumps(run_case(d, r, random_case(r))) + "\n")
    print(f"{args.out}: {k + 1} textures, {(k + 1) * THREADS} operand sets")


def difference(c, a, b):
    """Return the largest difference between the channels of two results; infinity if they must be equal and are not."""
    n = 4 if c["geometry"] == "gather" else c["channels"]
    if a[:4 * n] == b[:4 * n]:
        return 0
    if c["integer"] or c["bound"] == 0:
        return math.inf
    worst = max(abs(x - y) for x, y in zip(struct.unpack(f"<{n}f", a[:4 * n]), struct.unpack(f"<{n}f", b[:4 * n])))
    return worst if worst == worst else math.inf


def compare(args):
    sets = equal = bad = 0
    kinds = {}
    with open(args.a, encoding="ascii") as fa, open(args.b, encoding="ascii") as fb:
        pairs = list(zip(fa, fb, strict=True))
    for number, (one, two) in enumerate(pairs):
        c, other = json.loads(one), json.loads(two)
        if {**c, "out": ""} != {**other, "out": ""}:
            sys.exit(f"textures.py: case {number} of the files is not the same texture: use the same seed and number of sets")
        a, b, at = (bytes.fromhex(x) for x in (c["out"], other["out"], c["at"]))
        for k in range(THREADS):
            differs = difference(c, a[16 * k:16 * k + 16], b[16 * k:16 * k + 16])
            sets += 1
            equal += differs == 0
            if differs <= c["bound"]:
                continue
            bad += 1
            key = (c["geometry"], "linear" if c["linear"] else "point", c["format"], "integer" if c["integer"] else "float", "unit" if c["normalised"] else "texels")
            kinds.setdefault(key, []).append(
                f"case {number} thread {k}: {struct.unpack('<3fIf', at[32 * k:32 * k + 20])} size {c['size']} address {c['address']}: "
                f"{a[16 * k:16 * k + 16].hex(' ', 4)} and {b[16 * k:16 * k + 16].hex(' ', 4)}")
    for key, lines in sorted(kinds.items(), key=lambda kind: -len(kind[1]))[:40]:
        print(f"{len(lines)} differences: {' '.join(key)}; {lines[0]}")
    print(f"{sets} operand sets: {equal} equal in all bits, {sets - equal - bad} within the bound, {bad} beyond it")
    return 1 if bad else 0


def checksums(path):
    """Return a list for each PER_LINE textures in the file: a checksum of the textures and coordinates, then one of the results of each texture."""
    lines = []
    with open(path, encoding="ascii") as f:
        for k, c in enumerate(map(json.loads, f)):
            if k % PER_LINE == 0:
                lines.append([0])
            results = zlib.crc32(c.pop("out").encode())
            lines[-1][0] = zlib.crc32(json.dumps(c, sort_keys=True).encode(), lines[-1][0])
            lines[-1].append(results)
    return [[f"{x:08x}" for x in line] for line in lines]


def print_sums(args):
    for line in checksums(args.file):
        print(*line)


def check(args):
    with open(args.sums, encoding="ascii") as f:
        expected = [line.split() for line in f if not line.startswith("#")]
    got = checksums(args.file)
    if any(a[0] != b[0] for a, b in zip(got, expected)):
        print("textures.py: this Python makes other textures from the seed than the one that made the checksums")
        return 77
    got, expected = ([results for line in lines for results in line[1:]] for lines in (got, expected))
    bad = [k for k, (a, b) in enumerate(zip(got, expected)) if a != b]
    print(f"{len(got)} textures: {len(got) - len(bad)} have the expected results" + (f", not: {bad[:10]}" if bad else ""))
    return 1 if bad or not got or len(got) > len(expected) else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("driver")
    one.add_argument("out")
    one.add_argument("--sets", type=int, default=102400)
    one.add_argument("--seed", type=int, default=1)
    one.set_defaults(call=run)
    two = commands.add_parser("compare")
    two.add_argument("a")
    two.add_argument("b")
    two.set_defaults(call=compare)
    three = commands.add_parser("sum")
    three.add_argument("file")
    three.set_defaults(call=print_sums)
    four = commands.add_parser("check")
    four.add_argument("file")
    four.add_argument("sums")
    four.set_defaults(call=check)
    args = p.parse_args()
    return args.call(args)


if __name__ == "__main__":
    sys.exit(main())
