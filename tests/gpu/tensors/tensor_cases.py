"""Random tensor maps for tensors.py, each with one copy, and the initial contents of the tensor and of shared memory."""
import random

SHARED, TENSOR = 32768, 1 << 20
#        type: (number of CUtensorMapDataType, bytes, is a float)
TYPES = {"u8": (0, 1, 0), "u16": (1, 2, 0), "u32": (2, 4, 0), "s32": (3, 4, 0), "u64": (4, 8, 0), "s64": (5, 8, 0), "f16": (6, 2, 1), "f32": (7, 4, 1),
         "f64": (8, 8, 1), "bf16": (9, 2, 1), "f32_ftz": (10, 4, 1), "tf32": (11, 4, 1), "tf32_ftz": (12, 4, 1)}
REDUCTIONS = {"add": ("u32", "s32", "u64", "f16", "bf16", "f32", "f32_ftz", "f64", "tf32", "tf32_ftz"), "min": ("u32", "s32", "u64", "s64", "f16", "bf16"),
              "max": ("u32", "s32", "u64", "s64", "f16", "bf16"), "inc": ("u32",), "dec": ("u32",), "and": ("u32", "s32", "u64"),
              "or": ("u32", "s32", "u64"), "xor": ("u32", "s32", "u64")}

# ---- contents: random words; small floats for reductions --------------------------------------------------------------------

def contents(case, seed, n):
    r = random.Random(seed)
    if case["copy"] in ("load", "store") or not TYPES[case["type"]][2]:
        return r.getrandbits(8 * n).to_bytes(n, "little")
    size = TYPES[case["type"]][1]
    exponent, bias = {"f16": (10, 15), "bf16": (7, 127), "f64": (52, 1023)}.get(case["type"], (23, 127))
    return b"".join((r.getrandbits(1) << (8 * size - 1) | (bias + r.randrange(-3, 4)) << exponent | r.getrandbits(exponent)).to_bytes(size, "little")
                    for _ in range(4096 // size)) * (n // 4096)


CACHE = {}


def cached(case, seed, n):
    key = (seed, n, case["copy"] in ("load", "store"), case["type"] if case["copy"] not in ("load", "store") else "")
    if key not in CACHE:
        CACHE[key] = contents(case, seed, n)
    return CACHE[key]


def tensor_bytes(case):
    return cached(case, 11, TENSOR)


def shared_bytes(case):
    return cached(case, 22, SHARED)


# ---- maps and copies -------------------------------------------------------------------------------------------------------

def up(n, multiple):
    return -(-n // multiple) * multiple


def random_strides(r, dims, row, unit):
    strides, size = [], row
    for n in dims[1:]:
        size = up(size, unit) + unit * r.choice((0, 0, 1, 3))
        strides.append(size)
        size *= n
    return strides


def from_zero(kind, n):
    """Return n for loads, else max(n, 0), because an H200 ends a store or reduction with CUDA_ERROR_ILLEGAL_INSTRUCTION if it starts at a
    negative coordinate, or if the map has pixels around the image."""
    return n if kind == "load" else max(n, 0)


def tile(r, kind):
    rank = r.randint(1, 5)
    types = REDUCTIONS[kind] if kind in REDUCTIONS else list(TYPES)
    name = r.choice(types)
    size = TYPES[name][1]
    swizzle = r.choice((0, 0, 1, 2, 3))
    row = 16 * r.randint(1, {0: 8, 1: 2, 2: 4, 3: 8}[swizzle])
    most = (2048, 24, 8, 4, 3)[rank - 1]
    dims = [r.randint(1, 2 * row // size)] + [r.randint(1, most) for _ in range(rank - 1)]
    strides = random_strides(r, dims, dims[0] * size, 16)
    steps = [1] + [r.choice((1, 1, 1, 2, 3)) for _ in range(rank - 1)]
    box = [row // size] + [r.randint(1, (0, 16, 6, 4, 3)[rank - 1] * steps[k]) for k in range(1, rank)]
    if box[0] > 256:
        box[0] = 256
    at = [from_zero(kind, r.randint(-2, 2)) * (16 // size)] + [from_zero(kind, r.randint(-2, n)) for n in dims[1:]]
    total = size * box[0]
    for n, s in zip(box[1:], steps[1:]):
        total *= -(-n // s)
    return {"map": "tile", "copy": kind, "type": name, "rank": rank, "dims": dims, "strides": strides, "box": box, "steps": steps, "interleave": 0,
            "swizzle": swizzle, "fill": r.randint(0, 1) if TYPES[name][2] and kind == "load" else 0, "at": at, "bytes": total}


def im2col(r, kind):
    rank = r.randint(3, 5)
    types = REDUCTIONS[kind] if kind in REDUCTIONS else ("u8", "u16", "u32", "f16", "bf16", "f32", "tf32", "u64", "f64")
    name = r.choice(types)
    size = TYPES[name][1]
    swizzle = r.choice((0, 0, 1, 2, 3))
    row = 16 * r.randint(1, {0: 8, 1: 2, 2: 4, 3: 8}[swizzle])
    channels = min(row // size, 256)
    spatial = rank - 2
    dims = [r.randint(1, 2 * channels)] + [r.randint(2, (0, 12, 7, 5)[spatial]) for _ in range(spatial)] + [r.randint(1, 3)]
    steps = [1] + [r.choice((1, 1, 1, 2, 3)) for _ in range(spatial)] + [1]
    lower = [from_zero(kind, r.randint(-3, 1)) for _ in range(spatial)]
    upper = [-from_zero(kind, -r.randint(max(-3, 1 + lower[k] - dims[k + 1]), 2)) for k in range(spatial)]
    at = [from_zero(kind, r.randint(-1, 2)) * (16 // size)]
    for k in range(spatial):
        inside = -(-(dims[k + 1] + upper[k] - lower[k]) // steps[k + 1])
        at.append(lower[k] + steps[k + 1] * r.randrange(max(inside, 1)))
    at.append(r.randint(0, dims[-1] - 1))
    pixels = r.randint(1, min(64, 16384 // (channels * size)))
    return {"map": "im2col", "copy": kind, "type": name, "rank": rank, "dims": dims, "strides": random_strides(r, dims, dims[0] * size, 16), "lower": lower,
            "upper": upper, "channels": channels, "pixels": pixels, "steps": steps, "interleave": 0, "swizzle": swizzle,
            "fill": r.randint(0, 1) if TYPES[name][2] and kind == "load" else 0, "at": at,
            "offsets": [r.choice((0, 0, 1, 2, 3)) for _ in range(spatial)], "bytes": pixels * channels * size}


def slices(r, kind, column):
    """Return a case with an interleaved layout: the channels are in slices of 16 or 32 bytes.  Strides are small and sometimes
    unordered."""
    case = (im2col if column else tile)(r, kind)
    while case["rank"] < 3 or TYPES[case["type"]][1] > 4:
        case = (im2col if column else tile)(r, kind)
    rank, size = case["rank"], TYPES[case["type"]][1]
    slice_bytes = r.choice((16, 32))
    case["interleave"] = slice_bytes // 16
    case["swizzle"] = 1 if slice_bytes == 32 else r.choice((0, 0, 1, 2, 3))
    each = slice_bytes // size
    n = r.choice((1, 1, 2, 3))
    case["dims"][0] = each * r.randint(1, 4)
    case["at"][0] = from_zero(kind, r.choice((0, 0, 1, 2, -1)))
    case["strides"] = [slice_bytes * k for k in r.sample(range(3, 60), rank - 1)]
    if r.random() < .7:
        case["strides"].sort()
    if column:
        case["channels"], case["pixels"] = n * r.choice((1, each)), min(case["pixels"], 16)
        total = case["channels"] * case["pixels"]
    else:
        case["box"][0], total = n * r.choice((1, each)), 1
        for a, s in zip(case["box"], case["steps"]):
            total *= -(-a // s)
    case["bytes"] = total * size
    return case


def limits(r):
    """Return a case that only makes a map, with one or two unusual values."""
    case = r.choice((tile, im2col))(r, "load")
    for _ in range(r.randint(1, 2)):
        rank = case["rank"]
        case[r.choice(("interleave", "swizzle", "fill"))] = r.randint(0, 3)
        which, k = r.randrange(9), r.randrange(rank)
        if which == 0:
            case["steps"][k] = r.choice((0, 8, 9))
        elif which == 1:
            case["dims"][k] = r.choice((0, 1 << 32, (1 << 32) + 1))
        elif which == 2 and rank > 1:
            case["strides"][k % (rank - 1)] = r.choice((0, 8, 24, 16, 1 << 39, 1 << 40))
        elif which == 3:
            case["shift"] = r.choice((8, 16, 32))
        elif case["map"] == "tile":
            case["box"][k] = r.choice((0, 1, 3, 256, 257))
        elif which < 6:
            case["channels" if which == 4 else "pixels"] = r.choice((0, 1, 3, 256, 257, 1024, 1025))
        else:
            ends = {3: (-32768, 32767, -32769, 32768), 4: (-128, 127, -129, 128), 5: (-16, 15, -17, 16)}[rank]
            case[r.choice(("lower", "upper"))][k % (rank - 2)] = r.choice(ends)
    case["only_map"] = 1
    return case


def reach(case):
    return 0 if "only_map" in case else sum(s * (n + 1) for s, n in zip(case["strides"], case["dims"][1:])) + case["dims"][0] * 64


def classes(r):
    operations = list(REDUCTIONS)
    return [("tile", 300, lambda n: tile(r, "load")), ("store", 120, lambda n: tile(r, "store")),
            ("reduce", 160, lambda n: tile(r, operations[n % 8])), ("im2col", 400, lambda n: im2col(r, "load")),
            ("column", 160, lambda n: im2col(r, operations[n % 8] if n % 2 else "store")),
            ("slice", 200, lambda n: slices(r, "load" if n % 4 else "store", False)),
            ("slices", 160, lambda n: slices(r, "load" if n % 4 else "store", True)), ("limits", 400, lambda n: limits(r))]
