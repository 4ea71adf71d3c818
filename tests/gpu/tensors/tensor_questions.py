"""The cases of tensors.py for seed 0: unusual maps, which the cases for seed 1 do not contain."""
from tensor_cases import REDUCTIONS, TYPES, im2col, slices


def slices_with_steps(r):
    """Return an interleaved tile map with a step in dimension 0, and a box of several slices of channels."""
    case = slices(r, "load", False)
    each = 16 * case["interleave"] // TYPES[case["type"]][1]
    case["steps"][0], case["box"][0], case["box"][-2] = r.choice((2, 3, 8)), each * r.randint(1, 3), r.choice((1, 8, 64, 256))
    return case


def half_slices(r):
    """Return an interleaved map with slices of 32 bytes whose box or number of channels is 16 bytes, or a map with a step between
    images."""
    column = r.random() < .5
    case = slices(r, "load", column)
    while case["interleave"] != 2:
        case = slices(r, "load", column)
    case["channels" if column else "box"] = 16 // TYPES[case["type"]][1] * r.choice((1, 3)) if column else [16 // TYPES[case["type"]][1]] + case["box"][1:]
    if column:
        case["steps"][-1] = r.choice((1, 2))
    return case


def started_outside(r, kind):
    """Return an im2col map with a copy that starts at a pixel outside of the map's bounding box."""
    case = im2col(r, kind)
    k = r.randrange(case["rank"] - 2)
    first, end = case["lower"][k], case["dims"][k + 1] + case["upper"][k]
    case["at"][k + 1] = r.choice((first - 1, first - 2, end, end + 1)) if kind == "load" else r.choice((max(first - 1, 0), end, end + 1))
    return case


def classes(r):
    operations = list(REDUCTIONS)
    return [("slice", 60, lambda n: slices_with_steps(r)), ("slices", 60, lambda n: half_slices(r)),
            ("slice_reduce", 60, lambda n: slices(r, operations[n % 8], False)), ("slices_reduce", 60, lambda n: slices(r, operations[n % 8], True)),
            ("outside", 40, lambda n: started_outside(r, "load")), ("outside_store", 40, lambda n: started_outside(r, "store"))]
