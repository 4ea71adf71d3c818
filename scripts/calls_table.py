#!/usr/bin/env python3
"""calls_table.py CUDA_INCLUDE OUT [CC] — write the tables of calls/calls_table.h, and a wrapper for each call.

Reads the declarations of cuda.h and cuda_runtime_api.h (cuda_headers.py).  Writes in the folder OUT, which is a part of the build:

    table.c       the calls with their parameters, the types, the constants of enumerations
    wrappers.c    for each call a function that records it and calls the real one (nvidia/calls)

The generated code contains sizeof and offsetof, so the C compiler computes sizes and offsets from the same headers.
"""
import fnmatch, os, re, sys, zlib

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scripts.cuda_headers import DEFINES, SOURCE, Headers
from scripts.driver_calls import base_of, interface_versions

CATEGORIES = [(re.compile(pattern), name) for pattern, name in (
    ("Launch", "launch"), ("Graph|UserObject", "graph"), (r"cu(da)?(Stream|Thread)", "stream"), ("Event", "event"),
    (r"MemAddress|cuMemCreate|cuMemMap|cuMemUnmap|MemSetAccess|MemGetAccess|cuMemRelease|cuMemRetain|ShareableHandle|Multicast|"
     r"GetAllocation(Granularity|PropertiesFromHandle)", "vmm"),
    ("Array|Tex|Surf|Mipmap|ChannelDesc", "texture"), ("Mem|Malloc|Free|Pointer|HostAlloc|HostRegister|HostUnregister|HostGet", "memory"),
    ("Module|Library|Kernel|Func|cuLink|Register|Symbol|ProcAddress|EntryPoint", "module"), ("Ctx|GreenCtx", "context"),
    ("Device|cuInit|Version|P2P", "device"))]
# Names of parameters.  READ: pointers to input of the call, though not const.  ADDRESSES: pointers that the log shows without their target.
READ = ("options", "jitOptions", "libraryOptions", "launchParamsList", "paramArray", "paramsArray")
ADDRESSES = {"kernelParams", "extra", "args", "optionValues", "jitOptionsValues", "libraryOptionValues", "data", "values", "userData", "fatCubinHandle"}
COUNT = re.compile(r"num\w*|n\w*Count|count|nbArgs", re.I)
# typedefs of numbers that are handles or addresses
HANDLES = re.compile(r"CUdeviceptr|CUmemGenericAllocationHandle|CU(tex|surf)Object|cuda(Texture|Surface)Object|cudaGraphConditionalHandle|CUgraphConditionalHandle")
# The constants that a parameter named flags combines: a pattern of the calls' names, and the beginning of the constants' names.
FLAGS = [("cuStreamCreate*", "CU_STREAM_(DEFAULT|NON_BLOCKING)"), ("cuEventCreate*", "CU_EVENT_(DEFAULT|BLOCKING_SYNC|DISABLE_TIMING|INTERPROCESS)"), ("cuEventRecordWithFlags*", "CU_EVENT_RECORD_"),
         ("cuStreamWaitEvent*", "CU_EVENT_WAIT_"), ("cuCtxCreate*", "CU_CTX_(SCHED|MAP|LMEM|COREDUMP|USER|SYNC)"), ("cuDevicePrimaryCtxSetFlags*", "CU_CTX_(SCHED|MAP|LMEM|COREDUMP|USER|SYNC)"), ("cuMemHostAlloc*", "CU_MEMHOSTALLOC_"),
         ("cuMemHostRegister*", "CU_MEMHOSTREGISTER_"), ("cuMemAllocManaged*", "CU_MEM_ATTACH_"), ("cuStreamAttachMemAsync*", "CU_MEM_ATTACH_"),
         ("cuIpcOpenMemHandle*", "CU_IPC_MEM_"), ("cuGetProcAddress*", "CU_GET_PROC_ADDRESS_"), ("cudaStreamCreate*", "cudaStream(Default|NonBlocking)$"),
         ("cudaEventCreate*", "cudaEvent(Default|BlockingSync|DisableTiming|Interprocess)$"), ("cudaEventRecord*", "cudaEventRecord"), ("cudaStreamWaitEvent*", "cudaEventWait"),
         ("cudaHostAlloc", "cudaHostAlloc"), ("cudaHostRegister", "cudaHostRegister"), ("cudaMallocManaged", "cudaMemAttach"),
         ("cudaSetDeviceFlags", "cudaDevice(Schedule|MapHost|Lmem|Sync)"), ("cudaIpcOpenMemHandle", "cudaIpcMem"), ("cudaGetDriverEntryPoint*", "cudaEnable")]
NAMES_KERNEL = re.compile(r"cuModuleGetFunction|cuLibraryGetKernel|cuKernelGet(Function|Name)|cuFuncGetName|__cudaRegisterFunction|__cudaGetKernel|"
                          r"cudaGetFuncBySymbol|cudaGetKernel|cudaLibraryGetKernel|cudaFuncGetName|cudaGetFuncBySymbol")


# Parameters and fields that are handles of kernels, or addresses of their host functions.
KERNELS = {"f", "func", "hfunc", "kernel", "hKernel", "kern", "entryFuncAddr", "symbolPtr", "hostFun", "pFunc", "pKernel"}


def yes_no(x):
    return "true" if x else "false"


class Table:
    def __init__(self, headers):
        self.h, self.types, self.text, self.n = headers, {}, [], 0
        pairs = [(c, f"(int64_t){c}") for constants in headers.enums.values() for c in constants] + \
                [(c, f"(int64_t)({c})") for c in headers.macros if re.search(r"0x|\d", headers.macros[c]) and "(" not in headers.macros[c]]
        self.constants = dict(pairs)

    def type_of(self, p, stars=None):
        """Return the C name of the calls_type of a parameter or field; stars: its number of pointer levels, p.stars if None."""
        base, added = self.h.resolve(p.base)
        stars = (p.stars if stars is None else stars) + added
        c_type = f"{p.base} {'*' * (stars - added)}".strip()
        if stars or base in self.h.pointers:
            return self.plain("CALLS_POINTER", "void *")
        if base in self.h.enums:
            return self.enumeration(base)
        if base in self.h.structs:
            return self.struct(base, p.base)
        if HANDLES.match(p.base):
            return self.plain("CALLS_POINTER", c_type)
        if base in ("float", "double"):
            return self.plain("CALLS_FLOAT", base)
        if base == "void":
            return None
        kind = "CALLS_SIGNED" if re.fullmatch(r"(signed )?(char|short|int|long|long int|long long|long long int)|u?int\d+_t|ssize_t", base) and \
            not base.startswith("u") else "CALLS_UNSIGNED"
        return self.plain(kind, c_type)

    def name(self, prefix):
        self.n += 1
        return f"{prefix}_{self.n}"

    def add(self, key, kind, size, values="", n="0"):
        if key not in self.types:
            self.types[key] = name = self.name("type")
            self.text.append(f"static const struct calls_type {name} = {{ {kind}, {size}, {n}{values} }};")
        return self.types[key]

    def plain(self, kind, c_type):
        return self.add((kind, c_type), kind, f"sizeof({c_type})")

    def listed(self, key, kind, size, names):
        if key not in self.types:
            values = self.name("constants")
            rows = ", ".join(f'{{ {self.constants[n]}, "{n}" }}' for n in names)
            self.text.append(f"static const struct calls_constant {values}[] = {{ {rows} }};")
            return self.add(key, kind, size, f", .constants = {values}", str(len(names)))
        return self.types[key]

    def enumeration(self, tag):
        names = self.h.enums[tag]
        return self.listed(tag, "CALLS_ENUM", f"sizeof({tag})", names) if names else self.plain("CALLS_SIGNED", tag)

    def flags(self, prefix):
        names = [n for n in self.constants if re.match(prefix, n) and "MASK" not in n]
        return self.listed(prefix, "CALLS_FLAGS", "sizeof(unsigned)", names) if names else None

    def struct(self, tag, c_type):
        if tag in self.types:
            return self.types[tag]
        if self.h.structs[tag] is None:
            return self.add(tag, "CALLS_BYTES", f"sizeof({c_type})")
        self.types[tag] = None   # ends the recursion if the struct has a pointer to itself
        fields = [(f, self.field_type(tag, f, c_type)) for f in self.h.structs[tag] if not re.match("reserved|cudaReserved|__|pad", f.name)]
        del self.types[tag]
        fields = [(f, t) for f, t in fields if t]
        if not fields:
            return self.add(tag, "CALLS_BYTES", f"sizeof({c_type})")
        rows = ", ".join(f'{{ "{f.name}", &{t}, offsetof({c_type}, {f.name}), {yes_no(f.name in KERNELS)} }}' for f, t in fields)
        name = self.name("fields")
        self.text.append(f"static const struct calls_field {name}[] = {{ {rows} }};")
        return self.add(tag, "CALLS_STRUCT", f"sizeof({c_type})", f", .fields = {name}", str(len(fields)))

    def field_type(self, tag, f, c_type):
        if f.array and not f.stars:
            size = f"sizeof((({c_type} *)0)->{f.name})"
            return self.add((tag, f.name), "CALLS_CHARS" if f.base == "char" and f.name != "bytes" else "CALLS_BYTES", size)
        if self.h.structs.get(self.h.resolve(f.base)[0], 0) is None and not f.stars:
            return None   # a union is left out of the log
        return self.type_of(f)

    def capture(self, f, i):
        """For a pointer parameter: (enum calls_capture, element type or None, index of the parameter with the number of elements or -1)."""
        p = f.params[i]
        base, added = self.h.resolve(p.base)
        if p.stars == 2 and p.base == "char" and p.const:
            return "CALLS_TEXT_POINTER", None, -1
        if p.base == "char" and p.stars == 1:
            is_text = p.const and not re.search("image|data|Data|code|fatbin|hostFun", p.name)
            return ("CALLS_TEXT_IN" if is_text else "CALLS_TEXT_OUT" if p.name in ("name", "pciBusId") else "CALLS_NOTHING"), None, -1
        # A pointer to a pointer is the address of a result, as in cudaMalloc(void **devPtr).
        if p.name in ADDRESSES or p.stars > 2 or (p.stars == 2 and p.const) or (p.stars == 1 and base == "void" and not added):
            return "CALLS_NOTHING", None, -1
        if p.array or (p.stars == 1 and not added and base not in self.h.enums and self.h.structs.get(base, 0) is None):
            return "CALLS_NOTHING", None, -1
        if p.stars == 1 and re.match("struct ", base) and not added and base not in self.h.structs:
            return "CALLS_NOTHING", None, -1   # the headers do not define this struct
        element = self.type_of(p, p.stars - 1)
        reads = p.const or p.name in READ
        near = [k for k in (i + 1, i - 1, *([i + 2] if reads else [])) if 0 <= k < len(f.params) and COUNT.fullmatch(f.params[k].name)]
        near = [k for k in near if k > i or self.counts(f.params[k].name, p.name)]
        if near and f.params[near[0]].stars:
            return "CALLS_NOTHING", None, -1   # the call itself returns the length of this list
        if near and not reads:
            return "CALLS_NOTHING", None, -1
        return "CALLS_IN" if reads else "CALLS_OUT", element, near[0] if near and not re.search("bytes", f.params[near[0]].name, re.I) else -1

    @staticmethod
    def counts(number, elements):
        """True if `number` counts the elements of the next parameter: numOptions counts options, but numDependencies not nodeParams."""
        stem = re.sub("^num|^n(?=[A-Z])", "", number).lower().rstrip("s")
        return stem in ("count", "") or stem in elements.lower()

    def param(self, f, i):
        p, flags = f.params[i], None
        if p.name in ("flags", "Flags") and not p.stars:
            flags = next((self.flags(prefix) for pattern, prefix in FLAGS if fnmatch.fnmatch(f.name, pattern)), None)
        capture, element, count = self.capture(f, i) if p.stars else ("CALLS_NOTHING", None, -1)
        word = " + ".join(f"WORDS({q.type})" for q in f.params[:i]) or "0"
        return (f'{{ "{p.name}", &{flags or self.type_of(p)}, {f"&{element}" if element else "NULL"}, {capture}, {count}, {word}, '
                f'{yes_no(p.name in KERNELS)} }}'), capture

    def row(self, f, since):
        params = [self.param(f, i) for i in range(len(f.params))]
        if params:
            self.text.append(f"static const struct calls_param params_{f.name}[] = {{ {', '.join(text for text, _ in params)} }};")
        runtime = not re.match("cu[A-Z]", f.name)
        base = re.sub(r"^__|_pt[ds][sz]$", "", f.name) if runtime else base_of(f.name)[0]
        category = next((name for pattern, name in CATEGORIES if pattern.search(f.name)), "other")
        result = {"void": "NULL", "const char *": f"&{self.add('text', 'CALLS_TEXT', 'sizeof(void *)')}"}.get(f.result)
        captures = [c for _, c in params]
        words = " + ".join(f"WORDS({p.type})" for p in f.params) or "0"
        return (f'\t{{ "{f.name}", "{category}", "{base}", {result or "&" + self.enumeration(self.h.resolve(f.result)[0])}, '
                f'{f"params_{f.name}" if params else "NULL"}, {since}, {len(params)}, {words}, {yes_no(runtime)}, {yes_no(NAMES_KERNEL.fullmatch(f.name))}, '
                f'{yes_no(any(c in ("CALLS_IN", "CALLS_TEXT_IN") for c in captures))}, '
                f'{yes_no(any(c in ("CALLS_OUT", "CALLS_TEXT_OUT", "CALLS_TEXT_POINTER") for c in captures))} }},')


def head(headers):
    defines = "".join(f"#define {d[2:]}\n" for d in DEFINES)
    return f"/* Generated by scripts/calls_table.py. */\n{defines}{SOURCE}{headers.undeclared}#define WORDS(type) ((sizeof(type) + 7) / 8)\n"


def versions(include, functions):
    """Return a function: symbol of the driver API -> the CUDA version that introduced it, according to cudaTypedefs.h; 0: unknown."""
    path = f"{include}/cudaTypedefs.h"
    known = interface_versions(path) if os.path.exists(path) else {}
    numbers = {}
    for f in functions:
        call, number, _ = base_of(f.name) if re.match("cu[A-Z]", f.name) else (f.name, 1, "")
        numbers.setdefault(call, set()).add(number)

    def since(name):
        if not re.match("cu[A-Z]", name):
            return 0
        call, number, _ = base_of(name)
        at = sorted(numbers[call]).index(number)
        return known[call][at] if at < len(known.get(call, [])) else 0
    return since


def write_table(path, table, functions, since):
    rows = [table.row(f, since(f.name)) for f in functions]
    version = zlib.crc32("\n".join([*table.text, *rows]).encode())
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'{head(table.h)}#include "calls/calls_table.h"\n' + "\n".join(table.text) + "\nconst struct calls_row calls_rows[] = {\n" + "\n".join(rows) +
                  f"\n}};\nconst size_t n_calls_rows = {len(rows)};\nconst uint32_t calls_table_version = {version}u;\n")


# Code of a wrapper after the real call succeeded: it replaces the function address that the call returned by that function's wrapper.
AFTER = {"cuGetProcAddress": "calls_replace(symbol, pfn, cudaVersion, flags);", "cudaGetDriverEntryPoint": "calls_replace(symbol, funcPtr, 0, 0);",
         "cudaGetDriverEntryPointByVersion": "calls_replace(symbol, funcPtr, 0, 0);"}


def wrapper(headers, f, i):
    params = ", ".join(f"{p.type}{'' if p.type.endswith('*') else ' '}{p.name}{'[]' if p.array else ''}" for p in f.params) or "void"
    lines, offset = [f"static {f.result} log_{f.name}({params})", "{"], "0"
    words = " + ".join(f"WORDS({p.type})" for p in f.params) or "0"
    lines.append(f"\tuint64_t call_words[{words} + 1];\n\tunsigned call_sequence;")
    if f.result != "void":
        lines.append(f"\t{f.result} call_result;")
    for p in f.params:
        base, stars = headers.resolve(p.base)
        is_word = p.stars or stars or p.array or base in headers.pointers or (base not in headers.structs and base not in ("float", "double"))
        lines.append(f"\tcall_words[{offset}] = (uint64_t){p.name};" if is_word else f"\tmemcpy(call_words + {offset}, &{p.name}, sizeof {p.name});")
        offset += f" + WORDS({p.type})"
    lines.append(f"\tcall_sequence = calls_enter({i}, call_words, {words});")
    call = f"((__typeof__(&{f.name}))gpuload_calls_real[{i}])({', '.join(p.name for p in f.params)})"
    lines.append(f"\t{'' if f.result == 'void' else 'call_result = '}{call};")
    after = AFTER.get(re.sub(r"(_v\d)?(_ptsz)?$", "", f.name))
    if after:
        lines.append(f"\tif (!call_result)\n\t\t{after}")
    lines.append(f"\tif (call_sequence)\n\t\tcalls_exit({i}, call_sequence, call_words, {'0' if f.result == 'void' else '(uint64_t)call_result'});")
    if f.result != "void":
        lines.append("\treturn call_result;")
    return "\n".join([*lines, "}"])


def write_wrappers(path, headers, functions):
    """Write wrappers.c.  gpuload's auditor reads the rows of gpuload_calls_binding before the dynamic linker relocates this library,
    so each row contains differences of two addresses, which need no relocation."""
    def text(line):
        return f'\t"{line}\\n"'
    rows = "\n".join(text(f".long log_{f.name} - gpuload_calls_binding, {i}f - gpuload_calls_binding") for i, f in enumerate(functions))
    names = "\n".join(text(f'{i}: .asciz \\"{f.name}\\"') for i, f in enumerate(functions))
    with open(path, "w", encoding="utf-8") as out:
        out.write(f'{head(headers)}#include <string.h>\n#include "nvidia/calls/wrapper_internal.h"\n'
                  f'__attribute__((visibility("default"))) void *gpuload_calls_real[{len(functions)}];\n' +
                  "\n".join(wrapper(headers, f, i).replace("static ", "__attribute__((used)) static ", 1) for i, f in enumerate(functions)) +
                  f'\n__asm__(".pushsection .rodata, \\"a\\"\\n\\t.balign 8\\n\\t.globl gpuload_calls_binding\\n\\t.type gpuload_calls_binding, %object\\n'
                  f'gpuload_calls_binding:\\n\\t.long {len(functions)}, 0\\n"\n{rows}\n{names}\n\t".popsection\\n");\n')


def main(include, out, cc="cc"):
    headers = Headers(cc, include)
    functions = sorted(headers.functions, key=lambda f: f.name)
    os.makedirs(out, exist_ok=True)
    write_table(f"{out}/table.c", Table(headers), functions, versions(include, functions))
    write_wrappers(f"{out}/wrappers.c", headers, functions)


if __name__ == "__main__":
    main(*sys.argv[1:])
