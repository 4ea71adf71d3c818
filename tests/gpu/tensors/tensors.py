#!/usr/bin/env python3
"""tensors.py run LIBCUDA OUT [--seed S] [--only CLASS] — copy random boxes of random tensors with a driver, and write the results
tensors.py compare A B [--only CLASS] — compare the results of two drivers; exit 1 if one differs
tensors.py model FILE [--most N] — compare the first N loads and stores by possible maps of each class in FILE with a model of the documentation;
    exit 1 if one differs
tensors.py sum FILE — print the seed and a checksum of the inputs, then ten cases in a line: of each a checksum of the result (8 digits), the CUresult
    that refused the map, `error`, or `-` for a case that FILE does not have
tensors.py check FILE SUMS — compare the results in FILE with those checksums; exit 1 if one differs, 77 if the cases are others; possible maps
    that the driver refuses as not supported are counted, and cases without a checksum are left out

For example, on a machine with a GPU of sm_90:

    tests/gpu/tensors/tensors.py run libcuda.so.1 gpu.txt
    tests/gpu/tensors/tensors.py run build/softcuda/libcuda-soft.so soft.txt
    tests/gpu/tensors/tensors.py compare gpu.txt soft.txt

A case is a tensor map and one copy between the tensor and shared memory (cp.async.bulk.tensor, cp.reduce.async.bulk.tensor).  Its result is what the
call that makes the map returned; after a load, the shared memory; after a store or reduction, the words of the tensor that have changed.
Classes: tile, store, reduce, im2col, column (stores and reductions by im2col maps), slice and slices (interleaved layouts), limits (only the call that makes the map).

tensors.h200 has the checksums of an H200's results for the default seed.  Seed 0 has other classes (tensor_questions.py).
"""
import argparse, base64, ctypes, json, os, random, subprocess, sys, zlib

import tensor_cases, tensor_questions
from tensor_cases import SHARED, TENSOR, TYPES, reach, shared_bytes, tensor_bytes
from tensor_model import begins_at_a_pixel, bytes_copied, expected

THREADS = 128
PER_LINE = 10  # cases in a line of checksums
MOST_ERRORS = 20  # in a class of cases; each error needs a new process
NOT_SUPPORTED, REFUSED = "801", 1  # CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_INVALID_VALUE
FRAME = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 at, .param .u64 out, .param .u32 bytes)
{
.reg .b64 m, a, d, w; .reg .b32 t, s, b, n, v, e, c<5>, i<3>; .reg .b16 o<3>; .reg .pred p, q;
.shared .align 1024 .b8 shared[SHARED]; .shared .align 8 .b64 barrier;
mov.b64 m, map; cvta.param.u64 m, m; ld.param.u64 a, [at]; ld.param.u64 d, [out]; ld.param.u32 e, [bytes];
mov.u32 t, %tid.x; mov.u32 s, shared; mov.u32 b, barrier; setp.ne.u32 p, t, 0;
ld.global.b32 c0, [a]; ld.global.b32 c1, [a+4]; ld.global.b32 c2, [a+8]; ld.global.b32 c3, [a+12]; ld.global.b32 c4, [a+16];
ld.global.b32 i0, [a+20]; ld.global.b32 i1, [a+24]; ld.global.b32 i2, [a+28];
cvt.u16.u32 o0, i0; cvt.u16.u32 o1, i1; cvt.u16.u32 o2, i2;
mul.wide.u32 w, t, 4; add.u64 d, d, w; shl.b32 n, t, 2;
FILL: add.u32 v, s, n; VALUE st.shared.b32 [v], i0; add.u32 n, n, 512; setp.lt.u32 q, n, SHARED; @q bra FILL;
@!p mbarrier.init.shared.b64 [barrier], 1;
fence.mbarrier_init.release.cluster; fence.proxy.async; bar.sync 0;
BODY
bar.sync 0; ret;
}
"""
LOAD = """mov.u32 n, 0; @p bra DONE;
mbarrier.arrive.expect_tx.shared.b64 _, [barrier], e;
cp.async.bulk.tensor.RANKd.shared::cluster.global.MODE.mbarrier::complete_tx::bytes [s], [m, {COORDINATES}], [b]OFFSETS;
WAIT: mbarrier.test_wait.parity.shared.b64 q, [barrier], 0; @q bra ARRIVED; nanosleep.u32 100; add.u32 n, n, 1; setp.lt.u32 q, n, 20000; @q bra WAIT;
st.global.u32 [d+SHARED], 0; bra DONE;
ARRIVED: st.global.u32 [d+SHARED], 1;
DONE: bar.sync 0; shl.b32 n, t, 2;
COPY: add.u32 v, s, n; ld.shared.b32 i0, [v]; st.global.b32 [d], i0; add.u64 d, d, 512; add.u32 n, n, 512; setp.lt.u32 q, n, SHARED; @q bra COPY;
"""
STORE = """@p bra DONE;
cp.OPERATION.bulk.tensor.RANKd.global.shared::cta.MODE.bulk_group [m, {COORDINATES}], [s];
cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
DONE:
"""


def kernel_of(case):
    rank = case["rank"]
    column = case["map"] == "im2col"
    load = case["copy"] == "load"
    mode = ("im2col" if load else "im2col_no_offs") if column else "tile"
    offsets = ", {" + ", ".join(f"o{k}" for k in range(rank - 2)) + "}" if column and load else ""
    operation = "async" if case["copy"] in ("load", "store") else "reduce.async"
    text = LOAD if load else STORE.replace("MODE", case["copy"] + ".MODE" if operation != "async" else "MODE")
    text = text.replace("MODE", mode).replace("OPERATION", operation).replace("RANK", str(rank)).replace("OFFSETS", offsets)
    text = text.replace("COORDINATES", ", ".join(f"c{k}" for k in range(rank)))
    value = "mov.b32 i0, 0xa5a5a5a5;" if load else "ld.global.b32 i0, [d]; add.u64 d, d, 512;"
    return FRAME.replace("BODY", text).replace("VALUE", value).replace("SHARED", str(SHARED))


# ---- the driver --------------------------------------------------------------------------------------------------------

class Driver:
    def __init__(self, path):
        self.lib, self.functions = ctypes.CDLL(path), {}
        context, device = ctypes.c_void_p(), ctypes.c_int()
        self("cuInit", 0)
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)
        self.tensor, self.out, self.at = self.allocate(TENSOR), self.allocate(SHARED + 4096), self.allocate(32)
        store = ctypes.create_string_buffer(256)
        self.map = ctypes.c_void_p((ctypes.addressof(store) + 127) // 128 * 128)
        self.keep = store

    def __call__(self, name, *arguments):
        r = getattr(self.lib, name)(*arguments)
        if r:
            raise OSError(f"{name} {r}")

    def allocate(self, n):
        p = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(p), ctypes.c_size_t(n))
        return p

    def kernel(self, text):
        if text not in self.functions:
            module, f = ctypes.c_void_p(), ctypes.c_void_p()
            self("cuModuleLoadData", ctypes.byref(module), text.encode())
            self("cuModuleGetFunction", ctypes.byref(f), module, b"k")
            self.functions[text] = f
        return self.functions[text]

    def encode(self, case):
        rank = case["rank"]
        u64, u32, s32 = (lambda v: (ctypes.c_uint64 * 8)(*v)), (lambda v: (ctypes.c_uint32 * 8)(*v)), (lambda v: (ctypes.c_int * 8)(*v))
        address = ctypes.c_void_p(self.tensor.value + case.get("shift", 0))
        first = (self.map, TYPES[case["type"]][0], rank, address, u64(case["dims"]), u64(case["strides"]))
        last = (u32(case["steps"]), case["interleave"], case["swizzle"], 0, case["fill"])
        if case["map"] == "tile":
            return self.lib.cuTensorMapEncodeTiled(*first, u32(case["box"]), *last)
        return self.lib.cuTensorMapEncodeIm2col(*first, s32(case["lower"]), s32(case["upper"]), case["channels"], case["pixels"], *last)

    def write(self, to, data):
        self("cuMemcpyHtoD_v2", to, data, ctypes.c_size_t(len(data)))

    def read(self, at, n):
        result = ctypes.create_string_buffer(n)
        self("cuMemcpyDtoH_v2", result, at, ctypes.c_size_t(n))
        return result.raw

    def copy(self, case):
        """Run a copy.  After a load, return the shared memory and a word that tells whether the mbarrier counted all bytes; else the
        changed words of the tensor."""
        tensor, load = tensor_bytes(case), case["copy"] == "load"
        at = case["at"] + [0] * (5 - case["rank"]) + (case.get("offsets", []) + [0] * 3)[:3]
        self.write(self.tensor, tensor)
        self.write(self.at, b"".join((x & 0xffffffff).to_bytes(4, "little") for x in at))
        self.write(self.out, shared_bytes(case) + b"\0" * 4096)
        arguments = [self.at, self.out, ctypes.c_uint32(bytes_copied(case))]
        params = (ctypes.c_void_p * 4)(self.map, *(ctypes.cast(ctypes.byref(a), ctypes.c_void_p) for a in arguments))
        self("cuLaunchKernel", self.kernel(kernel_of(case)), 1, 1, 1, THREADS, 1, 1, 0, None, params, None)
        self("cuCtxSynchronize")
        if load:
            got = self.read(self.out, SHARED + 4)
            return got[:SHARED].rstrip(b"\xa5") + got[SHARED:]
        got = self.read(self.tensor, TENSOR)
        changed = b""
        for page in range(0, TENSOR, 4096):
            if got[page:page + 4096] != tensor[page:page + 4096]:
                for k in range(page, page + 4096, 4):
                    if got[k:k + 4] != tensor[k:k + 4]:
                        changed += k.to_bytes(4, "little") + got[k:k + 4]
        return changed


# ---- commands --------------------------------------------------------------------------------------------------------------

def make_cases(seed):
    r = random.Random(seed)
    cases = []
    for name, n, make in (tensor_cases if seed else tensor_questions).classes(r):
        for k in range(n):
            case = make(k)
            while max(case["bytes"], 0 if seed else bytes_copied(case)) > SHARED or reach(case) > TENSOR - 4096:
                case = make(k)
            case["class"] = name
            cases.append(case)
    return cases


def one_result(driver, case):
    code = driver.encode(case)
    if code or "only_map" in case:
        return {"map": code}
    return {"map": 0, "out": base64.b64encode(zlib.compress(driver.copy(case))).decode()}


def work(path, seed, only, first):
    """Run in a child process: print a line for each case; exit after a failure, because the context is then unusable."""
    driver = Driver(path)
    for k, case in enumerate(make_cases(seed)):
        if k < first or (only and case["class"] != only):
            continue
        try:
            result = one_result(driver, case)
        except OSError as e:
            result = {"error": str(e)}
        print(json.dumps({"case": k, "class": case["class"], **result}), flush=True)
        if "error" in result:
            os._exit(0)


def run(args):
    first, lines, errors, classes = 0, 0, {}, [case["class"] for case in make_cases(args.seed)]
    with open(args.out, "w", encoding="ascii") as f:
        f.write(json.dumps({"seed": args.seed, "digest": zlib.crc32(json.dumps(make_cases(args.seed)).encode())}) + "\n")
        while True:
            child = subprocess.run([sys.executable, __file__, "work", args.library, args.only or "-", str(args.seed), str(first)], capture_output=True,
                                   text=True, check=False)
            got = [line for line in child.stdout.splitlines() if line.endswith("}")]
            f.write("".join(line + "\n" for line in got))
            lines += len(got)
            if child.returncode:
                print(f"tensors.py: case {first + len(got)}: the process ended with {child.returncode}: {child.stderr[-300:]}")
                first = (json.loads(got[-1])["case"] if got else first) + 2
                continue
            if not got or "error" not in json.loads(got[-1]):
                break
            first = json.loads(got[-1])["case"] + 1
            name = classes[first - 1]
            errors[name] = errors.get(name, 0) + 1
            while errors[name] >= MOST_ERRORS and first < len(classes) and classes[first] == name:
                first += 1
    print(f"{lines} cases")


def read_results(path):
    with open(path, encoding="ascii") as f:
        rows = [json.loads(line) for line in f]
    return rows[0], {row["case"]: row for row in rows[1:]}


def comparable(case, out):
    """Remove the word after the shared memory if the H200's mbarrier waited for a number of bytes that differs from the copied one."""
    return out[:-4] if case["copy"] == "load" and case["bytes"] != bytes_copied(case) else out


def result_of(case, row):
    return comparable(case, zlib.decompress(base64.b64decode(row["out"]))) if "out" in row else b""


def model(args):
    head, rows = read_results(args.file)
    n, bad = {}, []
    for k, case in enumerate(make_cases(head["seed"])):
        seen = n.get(case["class"], 0)
        got = rows.get(k, {"map": REFUSED})
        if "only_map" in case or case["copy"] not in ("load", "store") or seen >= args.most or got.get("map") == REFUSED:
            continue
        n[case["class"]] = seen + 1
        fails = not begins_at_a_pixel(case) or bytes_copied(case) > SHARED
        if fails != ("error" in got) or (not fails and result_of(case, got) != comparable(case, expected(case))):
            bad.append(k)
    print(f"{sum(n.values())} cases, not as the model: {bad}")
    return 1 if bad or not n else 0


def compare(args):
    (head_a, a), (head_b, b) = read_results(args.a), read_results(args.b)
    if head_a != head_b:
        sys.exit("tensors.py: the results are of different cases")
    cases, counts, bad = make_cases(head_a["seed"]), {}, 0
    for k in sorted(set(a) | set(b)):
        x, y = a.get(k, {}), b.get(k, {})
        if args.only and cases[k]["class"] != args.only:
            continue
        row = counts.setdefault(cases[k]["class"], [0, 0])
        row[0] += 1
        same = x == y or ("error" in x and "error" in y) or (x.get("map", -1) == y.get("map", -2) and result_of(cases[k], x) == result_of(cases[k], y))
        if same:
            continue
        row[1] += 1
        bad += 1
        if row[1] <= args.show:
            brief = lambda r: r.get("error") or f"map {r.get('map')}, {zlib.crc32(r.get('out', '').encode()):08x}"
            print(f"case {k}: {brief(x)} | {brief(y)}: {json.dumps(cases[k])}")
    for name, (n, different) in counts.items():
        print(f"{name}: {n} cases, {different} differ")
    return 1 if bad else 0


def sums(path):
    """Return the line that identifies the cases, and the word of each case."""
    head, rows = read_results(path)
    words = []
    for k, case in enumerate(make_cases(head["seed"])):
        row = rows.get(k)
        if not row or "error" in row:
            words.append("error" if row else "-")
        else:
            words.append(str(row["map"]) if row["map"] else f"{zlib.crc32(result_of(case, row)):08x}")
    return f"{head['seed']} {head['digest']}", words


def print_sums(args):
    head, words = sums(args.file)
    print(head)
    for k in range(0, len(words), PER_LINE):
        print(*words[k:k + PER_LINE])


def check(args):
    with open(args.sums, encoding="ascii") as f:
        head, *lines = f.read().splitlines()
    cases, got = sums(args.file)
    if cases != head:
        print("tensors.py: the checksums are of other cases")
        return 77
    want = {k: word for k, word in enumerate(" ".join(lines).split()) if word != "-"}
    refused = [k for k in want if got[k] == NOT_SUPPORTED and (want[k] == "error" or len(want[k]) == 8)]
    bad = [k for k in want if got[k] != want[k] and k not in refused]
    print(f"{len(want)} cases: {len(want) - len(bad) - len(refused)} have the expected results, {len(refused)} are refused, not: {bad}")
    return 1 if bad or not want else 0


def main():
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2], int(sys.argv[4]), sys.argv[3].strip("-"), int(sys.argv[5]))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = p.add_subparsers(dest="command", required=True)
    one = sub.add_parser("run")
    one.add_argument("library")
    one.add_argument("out")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--only")
    one = sub.add_parser("compare")
    one.add_argument("a")
    one.add_argument("b")
    one.add_argument("--only")
    one.add_argument("--show", type=int, default=3)
    one = sub.add_parser("model")
    one.add_argument("file")
    one.add_argument("--most", type=int, default=1000)
    sub.add_parser("sum").add_argument("file")
    one = sub.add_parser("check")
    one.add_argument("file")
    one.add_argument("sums")
    args = p.parse_args()
    return {"run": run, "compare": compare, "sum": print_sums, "check": check, "model": model}[args.command](args)


if __name__ == "__main__":
    sys.exit(main())
