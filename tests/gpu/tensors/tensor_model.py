"""A model that computes the loads and stores of tensor_cases.py element by element, according to the documentation, with additional rules
that were observed on an H200."""
import itertools

from tensor_cases import SHARED, TYPES, shared_bytes, tensor_bytes, up


def width_dimension(case):
    """Return the index of dimension w.  An interleaved map has the dimensions w, h, d, slices of channels, images; other maps channels,
    w, h, d, images."""
    return 0 if case["interleave"] else 1


def counts_of_rows(case):
    """Return the box's number of rows in each dimension from w on.  With an interleaved map, an H200 copies one slice of channels, whatever
    the size of the box."""
    first = width_dimension(case)
    counts = [-(-n // s) for n, s in zip(case["box"][first:], case["steps"][first:])]
    if case["interleave"]:
        counts[-2] = 1
    return counts


def row_elements(case):
    if case["interleave"]:
        return 16 * case["interleave"] // TYPES[case["type"]][1]
    return case["box"][0] if case["map"] == "tile" else case["channels"]


def bytes_copied(case):
    rows = case["pixels"] if case["map"] == "im2col" else 1
    for n in counts_of_rows(case) if case["map"] == "tile" else ():
        rows *= n
    return rows * row_elements(case) * TYPES[case["type"]][1]


def tile_rows(case):
    """Yield the coordinates of each row of a box, in the dimensions from w on."""
    first = width_dimension(case)
    at, steps = case["at"][first:], case["steps"][first:]
    for index in itertools.product(*(range(n) for n in reversed(counts_of_rows(case)))):
        yield [a + k * s for a, k, s in zip(at, reversed(index), steps)]


def pixel_rows(case):
    """Yield the coordinates of the pixels in the order of an im2col map: w changes fastest, then h, d and the image."""
    spatial, first = case["rank"] - 2, width_dimension(case)
    at, steps, dims = list(case["at"][first:]), case["steps"][first:], case["dims"][first:]
    offsets = case["offsets"] if case["copy"] == "load" else [0] * spatial
    for _ in range(case["pixels"]):
        yield [a + o for a, o in zip(at, offsets)] + at[spatial:]
        for k in range(spatial):
            at[k] += steps[k]
            if at[k] < dims[k] + case["upper"][k]:
                break
            at[k] = case["lower"][k]
        else:
            at[-1] += steps[-1]


def begins_at_a_pixel(case):
    first = width_dimension(case)
    return case["map"] == "tile" or all(low <= a < n + high for low, high, a, n in zip(case["lower"], case["upper"], case["at"][first:], case["dims"][first:]))


def place_in_shared(case, offset):
    bits = (0, 1, 3, 7)[case["swizzle"]]  # bits of the number of a 16-byte chunk that the swizzle mode changes
    return offset ^ ((offset >> 7 & bits) << 4)


def as_loaded(case, element):
    """Return an element as a load writes it: an H200 rounds TF32 to 10 bits of mantissa, and replaces every NaN by the same one."""
    if not case["type"].startswith("tf32"):
        return element
    bits = int.from_bytes(element, "little")
    if bits & 0x7FFFFFFF > 0x7F800000:
        bits = 0x7FFFE000
    elif bits & 0x7FFFFFFF < 0x7F800000:
        bits = bits + 0xFFF + (bits >> 13 & 1) & 0xFFFFE000
    return bits.to_bytes(4, "little")


def expected(case):
    size, tensor, load = TYPES[case["type"]][1], tensor_bytes(case), case["copy"] == "load"
    shared = bytearray(b"\xa5" * SHARED if load else shared_bytes(case))
    filler = b"\xf7\x7f" * (size // 2) if case["fill"] else bytes(size)  # bytes that an H200 writes for elements outside the tensor
    changed, offset = {}, 0
    n, first, slices_at = row_elements(case), width_dimension(case), 16 * case["interleave"]
    for row in (tile_rows if case["map"] == "tile" else pixel_rows)(case):
        inside = all(0 <= c < d for c, d in zip(row, case["dims"][first:]))
        base = sum(c * s for c, s in zip(row, [slices_at] * (1 - first) + case["strides"]))
        start = case["at"][0] if first else 0
        for c in range(start, start + n):
            at, place = base + c * size, place_in_shared(case, offset)
            valid = inside and (not first or 0 <= c < case["dims"][0])
            stored = inside and (not first or 0 <= c < up(case["dims"][0] * size, 16) // size)  # at the end of a row, an H200 writes a multiple of 16 bytes
            if load:
                shared[place:place + size] = as_loaded(case, tensor[at:at + size]) if valid else filler
            elif stored:
                for k in range(size):
                    changed[at + k] = shared[place + k]
            offset += size
        if case["swizzle"] and first:  # the next row begins at the next multiple of the swizzle's width
            width = 16 << case["swizzle"]
            offset = -(-offset // width) * width
    if load:
        return bytes(shared).rstrip(b"\xa5") + (1).to_bytes(4, "little")
    out = b""
    for word in sorted({at & ~3 for at in changed}):
        data = bytes(changed.get(word + k, tensor[word + k]) for k in range(4))
        if data != tensor[word:word + 4]:
            out += word.to_bytes(4, "little") + data
    return out
