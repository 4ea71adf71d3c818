"""cuda_headers.py — the declarations of cuda.h and cuda_runtime_api.h: functions, enumerations, structs and typedefs.

Reads the output of the C preprocessor. It parses only the few forms of declarations that these headers use, and leaves out a function
that it cannot parse.
"""
import os, re, subprocess

SOURCE = "#include <cuda.h>\n#include <cuda_runtime_api.h>\n"
# With this macro the headers declare every version of a call (_v2) and its variants for per-thread default streams (_ptsz).
DEFINES = ["-D__CUDA_API_VERSION_INTERNAL"]
# Functions that these two headers do not declare: those of cudaProfiler.h, which some toolkits lack; one that only the driver exports;
# and those that nvcc's code calls, declared only in crt/host_runtime.h, which is C++.
UNDECLARED = """
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
CUresult cuGetProcAddress_v2_ptsz(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus);
void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun, const char *deviceName, int threadLimit,
                            void *tid, void *bid, void *bDim, void *gDim, int *wSize);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 gridDim, dim3 blockDim, void **args, size_t sharedMem, cudaStream_t stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entryFuncAddr);
"""
FUNCTION = re.compile(r"(?:extern )?(CUresult|cudaError_t|const char ?\*|void)\s*((?:cu[A-Z]|cuda[A-Z]|__cuda[A-Z])\w*) ?\((.*)\)")
KEYWORDS = r"\b(const|volatile|struct|enum|union|extern)\b"


class Param:
    """A parameter or field: .type as in C; .base: its type without const and '*'; .stars: the number of '*'; .const: the target of the
    first '*' is const; .array: it has []."""

    def __init__(self, text):
        text = re.sub(r"\s+", " ", text).strip()
        m = re.fullmatch(r"(.*?[\s*])(\w+)((?: ?\[[^\]]*\])*)", text)
        self.name, self.array = m[2], bool(m[3])
        self.type = m[1].strip()
        first = self.type.split("*")[0]
        self.const = bool(re.search(r"\bconst\b", first))
        self.stars = self.type.count("*")
        self.base = re.sub(r"\s+", " ", re.sub(r"\b(const|volatile)\b", "", first)).strip()


class Function:
    def __init__(self, result, name, params):
        self.result, self.name, self.params = re.sub(r" ?\*", " *", result).strip(), name, params


def without_attributes(text):
    """Return the text without __attribute__((...)) and __declspec(...)."""
    out, at = [], 0
    for m in re.finditer(r"__attribute__\s*\(\(|__declspec\s*\(\(?", text):
        if m.start() < at:
            continue
        out.append(text[at:m.start()])
        depth, at = m[0].count("("), m.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
    return "".join([*out, text[at:]])


def split_at(text, mark):
    """Split at a mark that is outside of all brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        if c in "({[":
            depth += 1
        elif c in ")}]":
            depth -= 1
            if c == "}" and mark == ";" and depth == 0 and re.match(r"\s*(static|extern)?[^;{]*\)\s*\{", text[start:]):
                start = i + 1   # the body of an inline function
        elif c == mark and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


class Headers:
    """.functions: [Function]; .enums: {C type: [constants]}; .structs: {C type: [Param]}; .typedefs: {name: C type}; .pointers: names of
    function pointer types; .undeclared: the declarations of UNDECLARED whose types these headers define; .macros: {name: text} of the
    constants that are macros."""

    def __init__(self, cc, include):
        self.functions, self.enums, self.structs, self.typedefs, self.pointers = [], {}, {}, {}, set()
        text = self.preprocess(cc, include, "-E", "-P")
        self.undeclared = "".join(f"{d};\n" for d in split_at(UNDECLARED, ";") if "cudaKernel_t" not in d or "cudaKernel_t" in text)
        for d in split_at(without_attributes(text) + self.undeclared, ";"):
            self.declaration(re.sub(r"\s+", " ", d))
        macros = self.preprocess(cc, include, "-E", "-dM")
        self.macros = dict(re.findall(r"^#define (CU_\w+|cuda[A-Z]\w*) +(\S.*)$", macros, re.M))

    @staticmethod
    def preprocess(cc, include, *options):
        folder = ["-isystem", include] if os.path.realpath(include) != "/usr/include" else []
        return subprocess.run([cc, *options, *DEFINES, *folder, "-x", "c", "-"], input=SOURCE, capture_output=True, text=True, check=True).stdout

    def declaration(self, d):
        if m := re.match(r"(typedef )?(enum|struct|union) ?(\w*) ?\{", d):
            close = self.closing(d, m.end())
            names = re.findall(r"\w+", d[close + 1:]) if m[1] else []
            tag = f"{m[2]} {m[3]}" if m[3] else names[0] if names else None
            self.body(m[2], tag, d[m.end():close])
            self.typedefs.update((n, tag) for n in names if n != tag)
        elif d.startswith("typedef ") and "(" in d:
            if m := re.search(r"\( ?\* ?(\w+) ?\)", d):
                self.pointers.add(m[1])
        elif d.startswith("typedef "):
            if m := re.fullmatch(r"typedef (.*?[\s*])(\w+)", d):
                self.typedefs[m[2]] = m[1].strip()
        elif m := FUNCTION.fullmatch(d):
            params = split_at(m[3], ",")
            if params != ["void"] and any("(" in p or not re.search(r"\w[\s*]+\w", p) for p in params):
                return
            self.functions.append(Function(m[1], m[2], [] if params == ["void"] else [Param(p) for p in params]))

    @staticmethod
    def closing(text, at):
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        return at - 1

    def body(self, kind, tag, text):
        if not tag:
            return
        if kind == "enum":
            self.enums[tag] = re.findall(r"(\w+)", ",".join(e.split("=")[0] for e in split_at(text, ",")))
        elif kind == "struct":
            self.structs[tag] = [f for part in split_at(text, ";") for f in self.fields(part)]
        else:
            self.structs[tag] = None   # a union: its active member is unknown

    @staticmethod
    def fields(part):
        """Yield the fields of one declaration; leave out bit-fields, function pointers and unnamed nested structs."""
        if re.search(r"[{(:]", part):
            return
        first, *more = split_at(part, ",")
        field = Param(first)
        yield field
        for name in more:
            yield Param(f"{field.base} {name}")

    def resolve(self, base):
        """Follow typedefs; return (the C type behind them, the number of '*' that they contain)."""
        stars = 0
        for _ in range(16):
            base = re.sub(r"\s+", " ", base.replace("const ", "")).strip()
            stars += base.count("*")
            base = base.replace("*", "").strip()
            if base in self.enums or base in self.structs or base in self.pointers or base not in self.typedefs:
                break
            base = self.typedefs[base]
        return base, stars
