#!/usr/bin/env python3
"""make_seeds.py — writes small, well-formed seeds for the fuzzers.

    tests/fuzz/make_seeds.py FOLDER        write the seeds of each target to a folder in FOLDER
"""
import gzip, io, os, struct, sys, tarfile, zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "loader", "malformed"))
import cases
import forge

PTX = forge.PTX_TEXT
TINY_PTX = b".version 8.0 .target sm_75 .entry k(.param .b8 p[12]) .maxntid 32 { ret; }"
JSON = ['{"seq":1,"type":"request","command":"setBreakpoints","arguments":{"source":{"path":"/k.cu"},"breakpoints":[{"line":7}]}}',
        r'{"a":["\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00","é"],"b":{},"c":[],"d":[[[]]]}', '[0,-1.5e3,1e-9,true,false,null]', '"\\ud800"', '[' * 66]
CPLUSPLUS = ["f(int)", "void axpy<float>(float, float const*, float*, int)", "g()", "h", "(anonymous namespace)::k(unsigned long*)",
             "void run<ns::op<int, 4>, (ns::mode)2>(ns::box, double (*)(double), __half2*, char const* const*)", "a::b<c(int)>(d)"]
F = ".visible .func (.param .b32 r) f(.param .b32 a) { st.param.b32 [r], 1; ret; }"
CALL_F = (".extern .func (.param .b32 r) f(.param .b32 a); .visible .entry k() { .param .b32 r; .param .b32 a;"
          " call.uni (r), f, (a); ret; }")
TO_LINK = [[CALL_F, F], [F, CALL_F], [F.replace("visible", "weak"), F, CALL_F], [CALL_F],
           [".extern .global .u64 b; .visible .global .u64 a = b;", ".extern .global .u64 a; .visible .global .u64 b = a;"],
           [".global .u32 v = 1; .visible .global .u64 w = v;", ".global .u32 v = 2; .visible .global .u64 x = generic(v);"],
           [".common .global .b8 v[4];", ".common .global .b8 v[8];", ".extern .shared .b8 s[];"],
           ['.file 1 "a.cu" .visible .entry k() { .loc 1 2 3 ret; } .section .debug_str { $L: .b8 0 }',
            '.file 1 "b.cu" .visible .entry l() { .loc 1 2 3, function_name $L, inlined_at 1 2 3 ret; }'],
           [F + ".visible .func (.param .b32 r) g(.param .b32 a); .alias g, f;", CALL_F.replace("f", "g")],
           [".entry k(); .visible .global .u64 p = k; .entry k() { ret; }", ".entry k() .maxntid 32 { ret; }"]]

MANGLED = ["6vecaddPKdS0_Pdi", "4axpyIdEvT_PKS0_PS0_i", "N6shapes6insideENS_3boxEPKfPjj", "1f1aIiiES_IS0_S0_ES_IS1_S1_E",
           "3runIZ4mainEUlfE_EvT_PfMN1a1bEFvA4_iE", "1fIJifdEEvDpT_St4pairIKSsSaIcEE", "1gIXadL_Z1hIiEvT_EEDv4_fEvS0_Dn"]


DEEP = ["L", "X", "LX", "I", "N", "P", "ad", "cv", "Ul"]  # parts of mangled names that can be nested deeply


def offload(image, version=1):
    """Return an offload binary of clang with one image."""
    n_bytes = (72 + len(image) + 7) // 8 * 8
    return (b"\x10\xff\x10\xad" + struct.pack("<IQQQ", version, n_bytes, 32, 40 if version == 1 else 1)
            + struct.pack("<HHIQQQQ", 0, 0, 0, 72, 0, 72, len(image)) + image).ljust(n_bytes, b"\0")


def note(tool=b"ptxas", version=b"Cuda compilation tools, release 13.0, V13.0.88", options=b"-arch sm_100f -m 64 "):
    """A note about a tool, as in the section .note.nv.tkinfo."""
    texts = b"\0" + tool + b"\0" + version + b"\0" + options + b"\0"
    at = 2 + len(tool)
    desc = struct.pack("<6I", 2, 0, 1, at, 0, at + len(version) + 1) + texts
    return struct.pack("<III", 12, len(desc), 2000) + b"NVIDIA Corp\0" + desc.ljust((len(desc) + 3) // 4 * 4, b"\0")


def cubin(**how):
    """An input of fuzz_cubin: one byte that selects the ABI, and the bytes after e_version."""
    whole = forge.cubin(**how)
    return bytes([how.get("abi", 8) == 7]) + whole[24:]


def wire_share(kind=3, via=1, flags=1, dtype=b"<f4", dims=(4, 8), driver=b"soft"):
    """Return a description of shared memory, as in ipc/wire_internal.h: 64 KiB after a control page."""
    return struct.pack("<16s4QIi4I16s8s4Q16s8s2I", b"i" * 16, 1, 0x20000, 0x10000, 4096, kind, 0, flags, len(dims), 0, via,
                       b"u" * 16, dtype, *dims, *[0] * (4 - len(dims)), b"b" * 16, driver, 13000, 0)


def wire_messages():
    """Inputs of fuzz_ipc_wire: a byte that selects the type, and the bytes after the head; or 0x80 and a whole message."""
    hello = struct.pack("<4I16s8s2I", 1, 0, 2, 0x3FFFE, b"b" * 16, b"soft", 13000, 0) + b"u" * 256
    shares = [wire_share(), wire_share(1), wire_share(2, 2), wire_share(6, 3, 5), wire_share(4, 1, 3, b"", ())]
    peers = b"".join(struct.pack("<iIIIQQ16sQ", 100 + i, 0, i, 0, 1 << 40, 1 << 41, b"u" * 16, 7) for i in range(64))
    return [b"\0" + hello, *[b"\1" + s + b"h" * 128 for s in shares], b"\2" + struct.pack("<QQ16sII", 1 << 40, 1 << 41, b"u" * 16, 0, 0),
            b"\3" + struct.pack("<Ii200s", 4, 0, b"no such GPU here"),
            *[b"\4" + shares[0] + struct.pack("<QQII", 1 << 40, 1 << 41, n, 0) + peers[:56 * n] for n in (0, 1, 64)], b"\5",
            b"\x80" + struct.pack("<IHH", 0x49505547, 1, 1) + hello, b"\x80" + struct.pack("<IHH", 0x49505547, 1, 6)]


def conversations():
    """Inputs of fuzz_ipc_server: operations of two bytes."""
    def send(kind, who=0, more=0, changes=b""):
        return bytes([kind + 4 + 16 * (len(changes) // 3) + more, who]) + changes
    begin, end, serve, receive = b"\0\0", b"\1\0", b"\2\0", b"\3\0"
    attach = begin + send(1) + serve + receive + send(3) + serve
    return [attach + send(6) + serve, attach + end + serve, begin + send(1, changes=b"\x08\0\2") + serve + receive, attach + send(3) + serve,
            attach + attach.replace(b"\0\0", b"\0\1") + serve, begin + send(1, 4, 0x80) + serve, begin + send(1, 0x80, 0x40) + serve,
            begin + send(1) + serve + b"\4\0" + serve, begin + send(1) + serve + send(4) + serve, begin + send(2) + serve]


def fifo_acts():
    """Inputs of fuzz_fifo: the binary logarithms of the number of lanes and of slots per lane, the number of changes to the header,
    operations."""
    def push(slot):
        return struct.pack("<BHB", 0, 2 * slot, 1) + struct.pack("<BHB", 0, 2 * slot + 1, 1)
    poll, one, release, upto, abort, aborted, reset, again = b"\1\x40", b"\1\0", b"\2", b"\3\1", b"\4\7", b"\5", b"\6", b"\7"
    laps = b"".join(struct.pack("<BHB", 0, i, lap) for lap in (1, 0, 1) for i in range(8))
    return [b"\0\2\0" + b"".join(map(push, range(4))) + poll + release + poll, b"\2\0\0" + push(2) + one + upto + push(2) + poll,
            b"\6\0\0" + push(63) + push(0) + poll + one + again + poll + release, b"\0\2\0" + laps + poll + release + laps + poll,
            b"\1\1\0" + push(1) + abort + poll + aborted + reset + poll + release, b"\3\3\2\2\4\3\5" + poll + release,
            b"\0\0\0" + push(0) + poll + push(0) + poll + release + poll, b"\7\1\0" + push(255) + poll + upto + again + poll,
            b"\1\2\0" + b"".join(map(push, range(8))) + b"\x08\3" + one + b"\x08\x40" + release + b"\x08\x40"]


def oob_frames():
    """Inputs of fuzz_rdma_oob: a byte for the type, where the stream is cut (255: at its end), the payload; or 0, the cut, and a stream."""
    def hello(qps=1, description=b""):
        return struct.pack("<12I3Q16s64s", 3, qps, 256, 1 << 20, 4096, 0, 0, 1, 5000, 7500, 4711, len(description), 1 << 40, 77, 16384,
                           b"verbs", b"node1") + description
    def frame(kind, data=b""):
        return struct.pack("<4sHH", b"GPUR", kind, len(data)) + data
    failure = struct.pack("<IiIIQ40s120s64s160s", 7, 12, 0x81, 0, 7520000000, b"completion", b"IBV_WC_RETRY_EXC_ERR", b"10.9.0.2:18515",
                          b"check the route")
    return [b"\1\xff" + hello(), b"\2\x80" + hello(16, b"gid" * 100), b"\3\xff" + failure, b"\4\xff", b"\5\x40", b"\6\xfe" + failure, b"\7\xff",
            b"\0\xff" + frame(1, hello(4, b"x")) + frame(4), b"\0\x20" + frame(5) * 3 + frame(6, failure), b"\0\xff" + frame(7, b"!"),
            b"\x81\xff" + hello(2, b"long") + b"er", b"\0\xff" + b"GET / HTTP/1.1\r\n\r\n", b"\0\xff" + frame(1, struct.pack("<I", 2) + b"\0" * 200)]


def boot_packets():
    """Inputs of fuzz_boot_tcp: a byte for the type, where the stream is cut (255: at its end), the payload; or 0, the cut, and a stream."""
    def packet(kind, data=b"", version=3):
        return struct.pack("<8sIIIIiIQQQ", b"gpulboot", version, kind, 0, 0, 0, len(data), 0, 0, 0) + data
    hello = struct.pack("<iiiI64s64s40s32s", 1, 4, 4711, 1, b"comm-1", b"node7", b"2b0a1f3e", b"n" * 32)
    hosts = struct.pack("<32i32i", 0, 0, 1, 1, 2, *[0] * 27, *range(100, 132)) + b"".join(struct.pack("64s", h) for h in (b"a", b"b", b"c", *[b""] * 29))
    beats = b"".join(struct.pack("<iIIIQ", r, 1, 7, 2, 900) for r in range(4))
    failed = struct.pack("<6i200s", 1, 3, 4711, 3, 6, 0, b"rank 3 (pid 4711) on host b died")
    return [b"\1\xff" + hello, b"\2\x80" + b"p" * 32, b"\3\xff" + b"another job", b"\x08\xff" + b"c" * 32, b"\x0a\xff" + hosts, b"\x0b\xff" + beats,
            b"\x0c\x40" + failed, b"\x0d\xff", b"\0\xff" + packet(1, hello) + packet(13), b"\0\x30" + packet(11, beats) * 2,
            b"\0\xff" + packet(1, hello, 4), b"\0\xff" + b"GET / HTTP/1.1\r\n\r\n"]


def payload(kind, how, data, claimed):
    return bytes([how | kind << 2]) + struct.pack("<H", claimed) + data


def seeds():
    fatbin, small = cases.GOOD_FATBIN, forge.fatbin(forge.entry(TINY_PTX))
    entries = [forge.entry(TINY_PTX), forge.entry(TINY_PTX, options=b" -maxrregcount=32 "), forge.packed_entry(TINY_PTX),
               forge.packed_entry(TINY_PTX, forge.FLAG_LZ4), forge.entry(forge.cubin(), forge.ELF, 90),
               forge.entry(b"BC\xc0\xdebitcode", forge.LTO, 90, flags=0x10011, options=b"-ftz=0 ")]
    objects = [forge.host(small, kind=1), forge.host(small + small), forge.host(small, section="__nv_relfatbin", kind=1),
               forge.host(b"some data.." + small + forge.cubin(), section=".rodata")]
    archives = [forge.archive(forge.member("a.o/", o)) for o in objects[:2]]
    archives += [forge.archive(forge.member("//", b"a_long_name_of_a_member.o/\n"), forge.member("/0", forge.cubin())),
                 forge.archive(forge.member("#1/8", b"name.ptx" + TINY_PTX), forge.member("/", b"\0" * 4))]
    nested = forge.archive(forge.member("in.a/", archives[0]), forge.member("k.ptx/", TINY_PTX))
    clang = [offload(TINY_PTX), offload(small, 2) + offload(forge.cubin()), forge.host(offload(TINY_PTX), section=".llvm.offloading")]
    yield "images", [fatbin, small, *objects, *archives, forge.cubin(), forge.cubin(7), PTX, PTX + b"\0\0", nested, *clang,
                     small + b"junk" + small, forge.archive(*[forge.member("k.ptx/", TINY_PTX)] * 200)]
    yield "package", packages()
    yield "archive", [a[8:] for a in (*archives, nested, forge.archive(forge.member("x/", b"\x7fELF junk"), forge.member("y/", PTX)))]
    yield "fatbin", [*entries, b"".join(entries[:4])]
    yield "elf", [o[24:] for o in (*objects, clang[2])]
    notes = forge.Section(".note.nv.tkinfo", note(b"nvlink") + note(), kind=7)
    yield "cubin", [cubin(), cubin(abi=7), cubin(sections=[*forge.cubin_sections(), notes]), cubin(relocatable=True), cubin(params=[]),
                    cubin(info=forge.attribute(0x45, struct.pack("<IHHHH", 0, 0, 0, 8000, 0)) + forge.attribute(0x3D, b"\2\0\0\0" * 3))]
    yield "ptx_kernels", [PTX, TINY_PTX]
    yield "ptx_link", ["\x01".join(modules).encode() for modules in TO_LINK]
    yield "unpack", [payload(0, 0, TINY_PTX, 0), payload(0, 1, forge.lz4(TINY_PTX), len(TINY_PTX)),
                     payload(0, 2, forge.zstd(TINY_PTX), len(TINY_PTX)), payload(1, 2, forge.zstd_bomb(0x20000), 0xFFFF)]
    yield "ipc_wire", wire_messages()
    yield "ipc_server", conversations()
    yield "fifo", fifo_acts()
    yield "rdma_oob", oob_frames()
    yield "boot_tcp", boot_packets()
    yield "mangled", [c.encode() for c in MANGLED] + [("1fIX" + unit * (20000 // len(unit))).encode() for unit in DEEP]
    yield "json", [c.encode() for c in JSON]
    yield "cxx_params", [c.encode() for c in CPLUSPLUS]


def packages():
    """Zip and tar files with a PTX file: stored and deflated, in each tar format, and compressed."""
    tars = []
    for format in tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT:
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=format) as t:
            for name in "k.ptx", "f/" * (40 if format == tarfile.USTAR_FORMAT else 90) + "k.ptx":
                member = tarfile.TarInfo(name)
                member.size = len(TINY_PTX)
                t.addfile(member, io.BytesIO(TINY_PTX))
        tars.append(out.getvalue())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr(zipfile.ZipInfo("k.ptx"), TINY_PTX)
        z.writestr("f/k.ptx", TINY_PTX, zipfile.ZIP_DEFLATED)
    return [out.getvalue(), *tars, gzip.compress(tars[0], mtime=0)]


def main():
    for target, inputs in seeds():
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for i, data in enumerate(inputs):
            with open(f"{folder}/{i:02}", "wb") as f:
                f.write(data)


if __name__ == "__main__":
    main()
