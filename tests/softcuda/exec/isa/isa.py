#!/usr/bin/env python3
"""isa.py page FILE — write the page of refused forms, docs/ptx-forms.md
isa.py ptxas — assemble all forms with ptxas; exit 1 if it refuses one, 77 without ptxas
isa.py list — print the forms

Expands forms.txt to some 4,900 instruction forms, each in a kernel of its own, and loads them with the software driver (GPULOAD_SOFT_DRIVER, or
build/softcuda/libcuda-soft.so).  No kernel is launched: tests/gpu/forms.c and the tests of the interpreter check what the instructions do.
"""
import ctypes, itertools, os, re, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = """.version 9.0
.target sm_90a
.address_size 64
.global .align 128 .b8 gl[4096]; .const .align 16 .b8 co[64];
.global .texref tx; .global .surfref su;
.func fn(.reg .b32 a, .reg .b32 b) { ret; }
.func (.reg .b32 a) fr(.reg .b32 b) { ret; }
"""
KERNEL = """.visible .entry %s(.param .b32 pa) {
.reg .pred p<4>; .reg .b16 h<16>; .reg .b32 r<16>; .reg .f32 f<16>; .reg .b64 d<8>; .reg .f64 e<8>; .reg .b128 q<4>;
.shared .align 1024 .b8 sh[4096]; .local .align 16 .b8 lo[64];
%s
L: ret; }
"""
FORM_LINE, FORMS_OF_KERNEL = 4, 100  # the line of KERNEL where the forms start; how many forms a kernel for ptxas has
# the letter with which the names of registers of this type begin
LETTERS = {"b8": "h", "u8": "h", "s8": "h", "b16": "h", "u16": "h", "s16": "h", "f16": "h", "bf16": "h", "b32": "r", "u32": "r", "s32": "r", "f16x2": "r",
           "bf16x2": "r", "f32": "f", "b64": "d", "u64": "d", "s64": "d", "f64": "e", "b128": "q", "pred": "p"}


# ---- expanding patterns to instructions ------------------------------------------------------------------------------------

def expand(pattern):
    m = re.search(r"\(([^()]*)\)", pattern)
    if not m:
        yield pattern
        return
    for one in m[1].split("|"):
        yield from expand(pattern[:m.start()] + one.replace("@", "\1") + pattern[m.end():])


def registers(letter, n, first=0):
    return ", ".join(f"{letter}{first + k}" for k in range(n))


def braces(letter, n):
    return "{" + registers(letter, n) + "}" if n > 1 else letter + "0"


def fill(text):
    """Replace the names that begin with $ in a form by operands."""
    parts = text.split()[0].rstrip(";").split(".")
    types = [LETTERS[p] for p in parts if p in LETTERS] or ["r"]
    first, last = types[0], types[0] if parts[0] == "slct" else types[-1]
    n = next((int(p[1:]) for p in parts if p in ("v2", "v4", "v8")), 1)
    rank = next((int(p[0]) for p in parts if re.fullmatch("[1-5]d", p)), 0)
    geometry = next((p for p in parts if p in ("1d", "2d", "3d", "a1d", "a2d", "cube", "acube", "2dms", "a2dms")), "")
    shared = any(p.startswith("shared") for p in parts)
    spot = {"1d": 1, "a1d": 2, "2d": 2}.get(geometry, 4)
    coordinates = ", ".join(("r" if k == 0 and geometry[:1] == "a" else last) + str(k + 1) for k in range(spot))
    counter = itertools.count(0)

    def value(m):
        name, k = m[1], next(counter)
        if parts[0] == "wmma" and name in ("wd", "wc"):
            return registers("r", 4) if parts[-2 if name == "wd" else -1] == "f16" else registers("f", 8)
        return {"s": f"{last}{k}", "w": f"{last}{k}", "d": f"{first}0", "wd": f"{first}0", "ws": f"{last}1",
                "a": "r1" if shared else "lo" if "local" in parts else "co" if "const" in parts else "d1", "m": "r1" if shared else "d1",
                "v": registers(last, n), "v8": registers("h", n), "v8v": registers(last, 8), "x": braces(last, n), "c": registers("r", rank),
                "o": registers("h", rank - 2), "hint": ", d2" if "L2::cache_hint" in text else "", "mad": ", r3" if parts[0] == "mad24" else "",
                "k": coordinates, "k1": coordinates, "k2": coordinates, "k4": coordinates, "ks": registers("r", spot), "sv": braces(last, n),
                "sx": braces(last, n), "r8": registers("r", 8), "q": registers("r", 4, 8) if parts[-1] == "f16" else registers("f", 8, 8)}[name]
    if parts[0] in ("tex", "tld4"):  # the first type is that of the result
        text = text.replace("{$v}", "{" + registers(first, 4) + "}")
    return re.sub(r"\$(\w+)", value, text).replace("\1", "|").replace("‹", "(").replace("›", ")")


def all_forms():
    with open(f"{HERE}/forms.txt", encoding="utf-8") as f:
        patterns = [line.strip() for line in f if line.strip() and not line.startswith("#")]
    return list(dict.fromkeys(fill(one) for pattern in patterns for one in expand(pattern)))


# ---- assembling the instructions with ptxas ---------------------------------------------------------------------------------

def assemble(ptxas, forms):
    """Assemble a file of all forms, many in a kernel; return the first errors of ptxas, or nothing."""
    text, at = HEADER, {}
    for first in range(0, len(forms), FORMS_OF_KERNEL):
        lines = []
        for form in forms[first:first + FORMS_OF_KERNEL]:
            at[text.count("\n") + FORM_LINE + len(lines)] = form
            lines.append("{ " + form + " }")
        text += KERNEL % (f"k{first}", "\n".join(lines))
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as f:
        f.write(text)
        f.flush()
        r = subprocess.run([ptxas, "-arch=sm_90a", "-O0", f.name, "-o", os.devnull], capture_output=True, text=True, check=False)
    errors = re.findall(r"line '?(\d+)'?(?:; (?:error|fatal)\s*: (.*)| which is .*)", r.stderr)
    return [f"{at.get(int(line), line)}  {why}" for line, why in errors] or ([r.stderr[-500:]] if r.returncode else [])


def find_ptxas():
    """Return the path of a ptxas that knows PTX 9.0, or None."""
    path = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not os.path.exists(path):
        return None
    version = re.search(r"release (\d+)", subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout)
    return path if version and int(version[1]) >= 13 else None


# ---- running the instructions on the software driver ------------------------------------------------------------------------

def soft_driver():
    return os.environ.get("GPULOAD_SOFT_DRIVER") or os.environ.get("GPULOAD_BUILD", "build") + "/softcuda/libcuda-soft.so"


def refused(forms):
    """Return (form, the driver's reason) for each form whose kernel is refused."""
    lib = ctypes.CDLL(soft_driver())
    device, context, log = ctypes.c_int(), ctypes.c_void_p(), ctypes.create_string_buffer(4096)
    for call in (lambda: lib.cuInit(0), lambda: lib.cuDeviceGet(ctypes.byref(device), 0),
                 lambda: lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), lambda: lib.cuCtxSetCurrent(context)):
        if call():
            sys.exit("isa.py: the software driver cannot be initialised")
    out = []
    for form in forms:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        options, values = (ctypes.c_int * 2)(5, 6), (ctypes.c_void_p * 2)(ctypes.addressof(log), 4096)  # CU_JIT_ERROR_LOG_BUFFER, its bytes
        log.value = b""
        if lib.cuModuleLoadDataEx(ctypes.byref(module), (HEADER + KERNEL % ("k", form)).encode(), 2, options, values):
            out.append((form, "the module is refused: " + log.value.decode().split("\n")[0]))
            continue
        if lib.cuModuleGetFunction(ctypes.byref(function), module, b"k"):
            out.append((form, "the kernel is refused"))
        lib.cuModuleUnload(module)
    return out


# ---- writing docs/ptx-forms.md ----------------------------------------------------------------------------------------------

REASONS = [
    (r"tex\.a?2dms", "multisampled textures: only OpenGL and Direct3D make them"),
    (r"tex\.2d.*f5;", "a depth is compared: no call of the driver makes a texture for it"),
]


def page(forms, rows):
    text = f"""# PTX forms of sm_75 to sm_90 that are refused

Written by `tests/softcuda/exec/isa/isa.py page FILE`. `forms.txt` beside it lists the instructions of PTX ISA 9.0 with their types and modifiers, as far as they are
valid for sm_90a: {len(forms):,} forms, all of which NVIDIA's `ptxas` accepts. The software driver refuses {len(rows)} of them, when a program asks for a kernel that
reaches one (`CUDA_ERROR_NOT_SUPPORTED`); `ninja check` fails if this page differs from what the driver does. Instructions that only sm_100 and later have
are not in the list.

| forms | refused | reason |
|---|--:|---|
"""
    rest = [form for form, _ in rows]
    for pattern, reason in REASONS:
        found = [form for form in rest if re.match(pattern, form)]
        rest = [form for form in rest if form not in found]
        if found:
            text += f"| `{found[0].split(' ')[0].rstrip(';')}` and the like | {len(found)} | {reason} |\n"
    for form in rest:
        text += f"| `{form}` | 1 | not known |\n"
    return text + "\n<details><summary>all refused forms</summary>\n\n```\n" + "".join(f"{form}\n" for form, _ in rows) + "```\n\n</details>\n"


def main():
    forms = all_forms()
    command = sys.argv[1:2]
    if command == ["list"]:
        print("\n".join(forms))
    elif command == ["page"] and len(sys.argv) == 3:
        with open(sys.argv[2], "w", encoding="utf-8") as f:
            f.write(page(forms, refused(forms)))
    elif command == ["ptxas"]:
        ptxas = find_ptxas()
        if not ptxas:
            print("ptxas of CUDA 13.0 or later is not installed")
            return 77
        errors = assemble(ptxas, forms)
        print("\n".join(errors[:40] + [f"{len(forms)} forms, {len(errors)} errors"]))
        return 1 if errors else 0
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
