#!/usr/bin/env python3
"""tests/gpu/make_forms.py — writes one small kernel for each instruction form, with extreme operands.

    tests/gpu/make_forms.py FOLDER            write all forms
    tests/gpu/make_forms.py FOLDER --check    also assemble each form with ptxas (sm_90)
    tests/gpu/make_forms.py --list            print the names only

README.md in this folder describes the two files of a form.  A form is a row of form_lists.py or form_edges.py: the
instruction with {d} {a} {b} {c} {e} for its operands, their types, and how results are compared.
"""
import argparse, concurrent.futures, itertools, os, random, re, shutil, subprocess, sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from form_edges import edges
from form_lists import forms
from form_values import BYTES, values

MAX_ROWS = 1024  # a multiple of 256, so that the warps of the last block are full

# {size in bytes: prefix of the register names}, {size: type for load and store}; 8-bit values use 16-bit registers.
REGISTER = {1: "h", 2: "h", 4: "r", 8: "d"}
MEMORY = {1: "u8", 2: "b16", 4: "b32", 8: "b64"}


def aligned(offset, size):
    return -(-offset // size) * size


class Layout:
    """The offsets of the fields in a row, each aligned to its size; the row is aligned to 8."""

    def __init__(self, types):
        self.offsets, at = [], 0
        for t in types:
            at = aligned(at, BYTES[t])
            self.offsets.append(at)
            at += BYTES[t]
        self.bytes = max(8, aligned(at, 8))


def operand(kind, n):
    """The register that holds operand n of a type."""
    return f"%p{n}" if kind == "pred" else f"%{REGISTER[BYTES[kind]]}{n}"


def load(kind, n, offset):
    if kind == "pred":
        return [f"ld.global.u32 %r{n}, [%d20+{offset}];", f"setp.ne.u32 %p{n}, %r{n}, 0;"]
    return [f"ld.global.{MEMORY[BYTES[kind]]} {operand(kind, n)}, [%d20+{offset}];"]


def canonical(kind, n):
    """Return PTX that replaces a NaN result by fixed bits, because PTX does not define the bits of a NaN."""
    register = operand(kind, n)
    if kind == "f32":
        return [f"setp.nan.f32 %p19, {register}, {register};", f"selp.b32 {register}, 0x7fffffff, {register}, %p19;"]
    if kind == "f64":
        return [f"setp.nan.f64 %p19, {register}, {register};",
                f"selp.b64 {register}, 0x7ff8000000000000, {register}, %p19;"]
    if kind in ("f16", "bf16"):
        return [f"setp.nan.{kind} %p19, {register}, {register};", f"selp.b16 {register}, 0x7fff, {register}, %p19;"]
    if kind in ("f16x2", "bf16x2"):
        half = kind[:-2]
        lines = [f"mov.b32 {{%h18, %h19}}, {register};"]
        for h in ("%h18", "%h19"):
            lines += [f"setp.nan.{half} %p19, {h}, {h};", f"selp.b16 {h}, 0x7fff, {h}, %p19;"]
        return lines + [f"mov.b32 {register}, {{%h18, %h19}};"]
    return []


def store(kind, n, offset):
    if kind == "pred":
        return [f"selp.u32 %r{n}, 1, 0, %p{n};", f"st.global.u32 [%d21+{offset}], %r{n};"]
    return canonical(kind, n) + [f"st.global.{MEMORY[BYTES[kind]]} [%d21+{offset}], {operand(kind, n)};"]


def kernel(form, n_rows):
    """Return the PTX of a form.  Registers: operands from number 1 on, results from 8 on, addresses in %d20 (in) and %d21 (out)."""
    inputs, outputs = Layout(form.sources), Layout(form.results)
    body = ["ld.param.u64 %d20, [in];", "ld.param.u64 %d21, [out];", "ld.param.u32 %r20, [rows];",
            "mov.u32 %r21, %ctaid.x;", "mov.u32 %r22, %ntid.x;", "mov.u32 %r23, %tid.x;",
            "mad.lo.s32 %r21, %r21, %r22, %r23;", "setp.ge.u32 %p20, %r21, %r20;", "@%p20 ret;",
            f"mad.wide.u32 %d20, %r21, {inputs.bytes}, %d20;", f"mad.wide.u32 %d21, %r21, {outputs.bytes}, %d21;"]
    names = {}
    for n, (kind, offset) in enumerate(zip(form.sources, inputs.offsets)):
        body += load(kind, n + 1, offset)
        names["abce"[n]] = operand(kind, n + 1)
    for n, kind in enumerate(form.results):
        names["dq"[n]] = operand(kind, n + 8)
    body += [line.strip() + ";" for line in form.text.format_map(names).rstrip(";").split(";")]
    for n, (kind, offset) in enumerate(zip(form.results, outputs.offsets)):
        body += store(kind, n + 8, offset)
    text = "\n".join("\t" + line for line in body)
    return f"""// form: {form.name}
// rows: {n_rows} in: {inputs.bytes} out: {outputs.bytes} check: {form.check}
.version 8.6
.target sm_90
.address_size 64
.visible .entry form(.param .u64 in, .param .u64 out, .param .u32 rows)
{{
	.reg .pred %p<24>;
	.reg .b16 %h<24>;
	.reg .b32 %r<24>;
	.reg .b64 %d<24>;
{text}
	ret;
}}
"""


def pick_rows(form):
    """Return the form's rows if it has any; else all combinations of operands or, if there are more, MAX_ROWS random ones with a fixed
    seed."""
    if "rows" in form.only:
        rows = form.only["rows"]
        return rows + rows[:1] * (-len(rows) % 256)
    lists = [form.only.get(n) or values(kind) for n, kind in enumerate(form.sources)]
    total = 1
    for v in lists:
        total *= len(v)
    if total <= MAX_ROWS:
        rows = list(itertools.product(*lists))
        return rows + rows[:1] * (-len(rows) % 256)
    chance = random.Random(form.name)
    return [tuple(chance.choice(v) for v in lists) for _ in range(MAX_ROWS)]


def pack_row(form, layout, row):
    out = bytearray(layout.bytes)
    for kind, offset, value in zip(form.sources, layout.offsets, row):
        n = BYTES[kind]
        out[offset:offset + n] = (value & (256 ** n - 1)).to_bytes(n, "little")
    return out


def file_name(form):
    return re.sub(r"[^a-zA-Z0-9]+", "_", form.name).strip("_")


def write(folder, form):
    rows, layout = pick_rows(form), Layout(form.sources)
    path = os.path.join(folder, file_name(form))
    with open(path + ".ptx", "w", encoding="utf-8") as f:
        f.write(kernel(form, len(rows)))
    with open(path + ".in", "wb") as f:
        f.write(b"".join(pack_row(form, layout, row) for row in rows))
    return path + ".ptx"


def assemble(path):
    ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    r = subprocess.run([ptxas, "-arch=sm_90", path, "-o", os.devnull], capture_output=True, text=True)
    return r.returncode and f"{path}: {r.stderr.strip().splitlines()[0] if r.stderr else 'refused'}"


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("folder", nargs="?")
    a.add_argument("--check", action="store_true", help="assemble each form with ptxas")
    a.add_argument("--list", action="store_true", help="print the names only")
    args = a.parse_args()
    all_forms = [*forms(), *edges()]
    names = [file_name(f) for f in all_forms]
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        sys.exit(f"make_forms.py: two forms are called {twice[0]}")
    if args.list or not args.folder:
        print("\n".join(f.name for f in all_forms))
        return
    os.makedirs(args.folder, exist_ok=True)
    paths = [write(args.folder, f) for f in all_forms]
    bad = []
    if args.check:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            bad = [b for b in pool.map(assemble, paths) if b]
    print("\n".join(bad + [f"{len(paths)} forms" + (f", {len(bad)} refused" if args.check else "")]))
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
