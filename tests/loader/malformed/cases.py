"""cases.py — malformed containers, and which commands must refuse each.

A case is a tuple: the name of the file, its bytes, the damaged part, a word of the error message.  The damaged part:

    container   the headers: every command fails
    part        one of several parts: every command reports it but `run`, which uses the others
    payload     the data of an image: `ls --images`, which unpacks nothing, works
    kernels     a kernel table: `ls --images` and `extract`, which read no kernel table, work
    fine        nothing; the file is unusual but valid: only `run` may fail, because the file has no PTX or wrong PTX
    any         `ls` fails; the other commands may fail
"""
import struct

import forge
from forge import (ELF, FLAG_LTO, FLAG_LZ4, FLAG_ZSTD, LTO, PTX, PTX_TEXT, Section, archive, attribute, cubin,
                   cubin_sections, elf, entry, fatbin, host, kernel_info, kparam, lz4, lz4_bomb, member, packed_entry, wrapper,
                   zstd, zstd_bomb)

TB = 2 ** 40
GOOD_FATBIN = fatbin(entry(cubin(), ELF, 90), packed_entry(PTX_TEXT))
GOOD = {  # Well-formed files must be listed; otherwise the cases below prove nothing.
    "good.fatbin": GOOD_FATBIN, "good_lz4.fatbin": fatbin(packed_entry(PTX_TEXT, FLAG_LZ4)), "good.cubin": cubin(),
    "good_old.cubin": cubin(7), "good_no_params.cubin": cubin(params=[]),
    "good_relocatable.cubin": cubin(relocatable=True), "good.so": host(GOOD_FATBIN),
    "good.o": host(GOOD_FATBIN, kind=1), "good.a": archive(member("good.o/", host(GOOD_FATBIN, kind=1))), "good.ptx": PTX_TEXT,
    "good_plain.so": host(b"plain data" + GOOD_FATBIN, section=".rodata"),
}


def both(name, data, shows, word):
    """Return two cases with the same damaged fatbin: as a file, and in a shared library."""
    return [(f"{name}.fatbin", data, shows, word), (f"{name}.so", host(data), shows, word)]


def fatbins():
    e, z = entry(PTX_TEXT), packed_entry(PTX_TEXT)
    good = fatbin(z)
    yield "only_magic.fatbin", good[:4], "container", ""
    for at in (8, 15, 16, 17, 40, 79, 80, 100, len(good) - 8):
        yield from both(f"cut_{at}", good[:at], "container", "")
    yield from both("version", fatbin(e, version=2), "container", "version")
    yield from both("header_bytes", fatbin(e, header_bytes=15), "container", "")
    yield from both("header_bytes_huge", fatbin(e, header_bytes=0xFFF0), "container", "")
    yield from both("payload_outside", fatbin(e, payload_bytes=len(e) + 4096), "container", "")
    yield from both("payload_overflow", fatbin(e, payload_bytes=2 ** 64 - 8), "container", "")
    yield from both("payload_half_an_entry", fatbin(e, payload_bytes=len(e) - 8), "container", "")
    yield from both("entry_header_0", fatbin(entry(PTX_TEXT, header_bytes=0)), "container", "")
    yield from both("entry_header_63", fatbin(entry(PTX_TEXT, header_bytes=63)), "container", "")
    yield from both("entry_header_huge", fatbin(entry(PTX_TEXT, header_bytes=0xFFFFFFF8)), "container", "")
    yield from both("entry_padded_outside", fatbin(entry(PTX_TEXT, padded_bytes=4096)), "container", "")
    yield from both("entry_padded_overflow", fatbin(entry(PTX_TEXT, padded_bytes=2 ** 64 - 64)), "container", "")
    yield from both("entry_loop", fatbin(entry(PTX_TEXT, padded_bytes=2 ** 64 - 64 - 16), e), "container", "")
    yield from both("entry_version", fatbin(entry(PTX_TEXT, version=0x0999)), "container", "")
    yield from both("compressed_over_padded", fatbin(packed_entry(PTX_TEXT, compressed=len(z))), "container", "")
    yield from both("options_outside", fatbin(entry(PTX_TEXT, options=b"-maxrregcount=32", options_offset=0xFFFFFFF0)),
                    "container", "option")
    bent = bytearray(fatbin(entry(PTX_TEXT, options=b"-maxrregcount=32")))
    struct.pack_into("<I", bent, 16 + 68, 0xFFFFFFFF)
    yield from both("options_bytes_huge", bytes(bent), "container", "option")
    struct.pack_into("<II", bent, 16 + 64, 0xFFFFFFF0, 0x20)
    yield from both("options_overflow", bytes(bent), "container", "option")
    yield "unknown_kind.fatbin", fatbin(entry(PTX_TEXT, kind=0x4711)), "container", ""
    yield "both_compressions.fatbin", fatbin(packed_entry(PTX_TEXT, flags=0x11 | FLAG_ZSTD | FLAG_LZ4)), "container", ""
    yield "in_itself.fatbin", fatbin(entry(good, ELF, 90)), "kernels", ""
    yield "in_itself_as_ptx.fatbin", fatbin(entry(good)), "kernels", ""


def compressed():
    z, four = zstd(PTX_TEXT), lz4(PTX_TEXT)
    yield "zstd_claims_2_40.fatbin", fatbin(packed_entry(PTX_TEXT, unpacked=TB)), "container", ""
    yield "lz4_claims_2_40.fatbin", fatbin(packed_entry(PTX_TEXT, FLAG_LZ4, unpacked=TB)), "container", ""
    yield "zstd_claims_2_64.fatbin", fatbin(packed_entry(PTX_TEXT, unpacked=2 ** 64 - 1)), "container", ""
    yield "zstd_claims_nothing.fatbin", fatbin(packed_entry(PTX_TEXT, unpacked=0)), "container", ""
    yield "zstd_claims_more.fatbin", fatbin(packed_entry(PTX_TEXT, unpacked=len(PTX_TEXT) + 1)), "payload", ""
    yield "zstd_claims_less.fatbin", fatbin(packed_entry(PTX_TEXT, unpacked=len(PTX_TEXT) - 1)), "payload", ""
    yield "lz4_claims_more.fatbin", fatbin(packed_entry(PTX_TEXT, FLAG_LZ4, unpacked=len(PTX_TEXT) + 1)), "payload", ""
    yield "lz4_claims_less.fatbin", fatbin(packed_entry(PTX_TEXT, FLAG_LZ4, unpacked=len(PTX_TEXT) - 1)), "payload", ""
    for name, bomb, claimed in [("small_claim", zstd_bomb(2 ** 30), 4096), ("own_claim", zstd_bomb(2 ** 30), 2 ** 30),
                             ("frame_2_40", zstd_bomb(2 ** 22, TB), 2 ** 22), ("window_2_41", zstd_bomb(2 ** 22, window=0xFF), 2 ** 22)]:
        yield (f"zstd_bomb_{name}.fatbin", fatbin(entry(bomb, flags=0x11 | FLAG_ZSTD, compressed=len(bomb), unpacked=claimed)),
               "any", "")
    bomb = zstd_bomb(2 ** 25)
    many = [entry(bomb, flags=0x11 | FLAG_ZSTD, compressed=len(bomb), unpacked=2 ** 25)] * 300
    yield "zstd_bombs.fatbin", fatbin(*many), "container", "decompress"
    yield "zstd_bombs.so", host(b"".join(map(fatbin, many))), "container", "decompress"
    bomb = lz4_bomb(2 ** 26)
    for name, claimed in [("small_claim", 4096), ("own_claim", 2 ** 26)]:
        yield (f"lz4_bomb_{name}.fatbin", fatbin(entry(bomb, flags=0x11 | FLAG_LZ4, compressed=len(bomb), unpacked=claimed)),
               "any", "")
    for name, data, flag in [("zstd_cut", z[:-20], FLAG_ZSTD), ("zstd_no_magic", b"\0" * 4 + z[4:], FLAG_ZSTD),
                             ("zstd_is_lz4", four, FLAG_ZSTD), ("lz4_is_zstd", z, FLAG_LZ4), ("lz4_cut", four[:-20], FLAG_LZ4),
                             ("lz4_match_before_start", b"\x10a\xff\xff\x50abcde", FLAG_LZ4),
                             ("zstd_empty", b"", FLAG_ZSTD), ("zstd_never_last", zstd(PTX_TEXT, last=False), FLAG_ZSTD),
                             ("zstd_skippable_only", b"\x50\x2a\x4d\x18\x04\0\0\0abcd", FLAG_ZSTD)]:
        yield (f"{name}.fatbin", fatbin(entry(data, flags=0x11 | flag, compressed=len(data), unpacked=len(PTX_TEXT))),
               "any", "")
    yield "lto_no_options.fatbin", fatbin(entry(b"garbage" * 99, LTO, 75, flags=0x10011)), "container", "options"
    o = b"-ftz=0 -prec_div=1 -prec_sqrt=1 -fmad=1 "
    yield "lto_garbage.fatbin", fatbin(entry(b"garbage" * 99, LTO, 75, flags=0x10011, options=o)), "fine", ""
    yield ("lto_zstd_garbage.fatbin",
           fatbin(entry(b"garbage!" * 9, LTO, 75, flags=0x18011, compressed=72, unpacked=500, options=o)), "fine", "")
    yield ("lto_no_end.fatbin", fatbin(entry(b"g" * 72, LTO, 75, flags=0x18011, compressed=72, unpacked=500, options=b"-" * 40)),
           "fine", "")


def cubins():
    good = cubin()
    for at in (17, 52, 63, 64, 200, len(good) - 65, len(good) - 1):
        yield f"cut_{at}.cubin", good[:at], "container", ""
    heads = {"shentsize_0": dict(section_header_bytes=0), "shentsize_63": dict(section_header_bytes=63),
             "shoff_outside": dict(section_offset=2 ** 40), "shoff_overflow": dict(section_offset=2 ** 64 - 64),
             "shoff_in_header": dict(section_offset=8), "shnum_65279": dict(n_sections=0xFEFF),
             "shstrndx_outside": dict(names_index=99), "shstrndx_null": dict(names_index=0),
             "class_32": dict(elf_class=1), "big_endian": dict(order=2)}
    for name, header in heads.items():
        yield f"{name}.cubin", cubin(header=header), "any", ""
    zero = bytearray(cubin(header=dict(n_sections=0)))
    yield "shnum_0.cubin", bytes(zero), "any", ""
    struct.pack_into("<Q", zero, struct.unpack_from("<Q", zero, 40)[0] + 32, 2 ** 60)  # sh_size of section 0 is the number of sections
    yield "shnum_0_size_2_60.cubin", bytes(zero), "any", ""
    outside = {"symtab_outside": dict(_symtab=dict(offset=2 ** 40)), "strtab_outside": dict(_strtab=dict(offset=2 ** 33)),
               "symtab_overflow": dict(_symtab=dict(offset=2 ** 64 - 8, size=64)),
               "symtab_size_huge": dict(_symtab=dict(size=2 ** 62)), "info_outside": dict(_nv_info=dict(offset=2 ** 50))}
    for name, change in outside.items():
        yield f"{name}.cubin", cubin(**change), "container", "end after"
    bomb = b"_Z1f1aIiiE" + b"".join(b"S_IS%c_S%c_E" % (d, d) for d in b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    yield "name_of_gigabytes.cubin", cubin(_strtab=dict(data=b"\0" + bomb + b"\0")), "fine", ""
    yield "name_with_escape.cubin", cubin(_strtab=dict(data=b"\0\x1b[2Jk\n\0")), "kernels", "name"
    changes = {
        "symtab_entsize_0": dict(_symtab=dict(entsize=0)),
        "symtab_entsize_1": dict(_symtab=dict(entsize=1)), "symtab_size_odd": dict(_symtab=dict(size=47)),
        "symtab_links_itself": dict(_symtab=dict(link=2)), "symtab_links_99": dict(_symtab=dict(link=99)),
        "symtab_links_null": dict(_symtab=dict(link=0)),
        "strtab_no_end": dict(_strtab=dict(data=b"\0vecadd")), "strtab_nobits": dict(_strtab=dict(kind=8)),
        "name_outside": dict(symbol=(0xFFFFFFFF, 0x12, 0x10, 6, 0, 128)),
        "symbol_section_outside": dict(symbol=(1, 0x12, 0x10, 0x77, 0, 128)),
        "info_cut": dict(info=kernel_info()[:-3]), "info_size_outside": dict(info=attribute(0x17, b"\0" * 12, size=0xFFFF)),
        "info_half_a_row": dict(info=kernel_info() + b"\x04\x17"), "info_unknown_format": dict(info=b"\xee\x17\x0c\0" + b"\0" * 12),
        "kparam_short": dict(info=attribute(0x17, b"\0" * 4)),
        "kparam_65535": dict(info=kparam(65535, 0, 8)), "kparam_twice": dict(info=kparam(0, 0, 8) * 2),
        "kparam_gap": dict(info=kparam(0, 0, 8) + kparam(7, 8, 8)),
    }
    for name, change in changes.items():
        yield f"{name}.cubin", cubin(**change), "kernels", ""
    rows = b"".join(kparam(i, 4 * i & 0xFFFF, 4) for i in range(20000))
    yield "kparam_20000.cubin", cubin(info=rows), "kernels", ""
    name = b"\0" + b"k" * 60000 + b"\0"
    symbols = b"\0" * 24 + b"".join(struct.pack("<IBBHQQ", i + 1, 0x12, 0x10, 6, 0, 128) for i in range(4000))
    yield "names_overlap.cubin", cubin(_strtab=dict(data=name), _symtab=dict(data=symbols)), "kernels", "overlap"
    name = b"\0" + b"".join(b"kernel%d\0" % i for i in range(1000, 5000))
    symbols = b"\0" * 24 + b"".join(struct.pack("<IBBHQQ", 1 + 11 * i, 0x12, 0x10, 6, 0, 128) for i in range(4000))
    rows = b"".join(kparam(i, 4 * i, 4) for i in range(4000))
    yield ("kernels_of_one_code.cubin", cubin(info=rows, _strtab=dict(data=name), _symtab=dict(data=symbols)), "kernels",
           "same code")
    linked = cubin_sections()
    linked += [Section(f".loop.{i}", b"", kind=0x70000000, link=7 + (i + 1) % 3, info=7 + (i + 2) % 3) for i in range(3)]
    yield "links_in_a_loop.cubin", cubin(sections=linked), "fine", ""
    yield "no_symbols.cubin", elf([Section(".text.vecadd", b"\0" * 128, flags=6)]), "fine", ""
    yield "arch_0.cubin", cubin(header=dict(flags=0)), "fine", ""
    yield "abi_99.cubin", cubin(header=dict(abi=99)), "fine", ""
    yield "in_fatbin_cut.fatbin", fatbin(entry(good[:200], ELF, 90)), "any", ""
    yield "in_fatbin_not_elf.fatbin", fatbin(entry(b"not an ELF file at all.." * 9, ELF, 90)), "any", ""
    yield "host_elf_as_cubin.fatbin", fatbin(entry(host(GOOD_FATBIN), ELF, 90)), "any", ""


def half_fatbins(n_bytes):
    """Nested fatbins: each extends to the end, where the last entry is damaged."""
    out = b""
    for at in range(0, n_bytes, 80):
        out += struct.pack("<IHHQ", 0xBA55ED50, 1, 16, max(n_bytes - at - 24, 8)) + entry(b"", padded_bytes=16)
    return out


def half_cubins(n_bytes):
    """ELF headers of cubins that share one section table, whose last section is outside the file."""
    n = 4096
    table = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 0, 0, 0, 0, 1, 0) * (n - 1)
    table += struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 2 ** 40, 8, 0, 0, 1, 0)
    out = b""
    for at in range(0, n_bytes, 64):
        out += b"\x7fELF\2\1\1\x41\x08" + b"\0" * 7 + struct.pack(
            "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, n_bytes - at, 0x6005A04, 64, 56, 0, 64, n, 1)
    return out + table


def overlapping_sections(n, n_bytes):
    """n sections of plain data, all with the same bytes: searching each section would take n times as long."""
    many = [Section(".data", b"x" * n_bytes, flags=2)] + [Section("", flags=2, size=n_bytes, offset=64) for _ in range(n)]
    return elf(many, machine=62, kind=3, osabi=0, abi=0, flags=0)


def overlapping_segments(n, n_bytes):
    """n overlapping writable segments and no sections: the search for wrappers would take n times as long."""
    data = b"\xb1\x43\x62\x46\1\0\0\0".ljust(n_bytes, b"x")
    segment = struct.pack("<IIQQQQQQ", 1, 6, 64 + 56 * n, 0, 0, n_bytes, n_bytes, 8)
    head = b"\x7fELF\2\1\1" + b"\0" * 9 + struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, n, 64, 0, 0)
    return head + segment * n + data


def endless_names(n, n_bytes):
    """n sections whose names are in a string table without any NUL."""
    many = [Section(".nv_fatbin", GOOD_FATBIN, flags=2)] + [Section("") for _ in range(n)]
    for s in many:
        s.header["name"] = 1
    whole = bytearray(elf(many, machine=62, kind=3, osabi=0, abi=0, flags=0))
    table = struct.unpack_from("<Q", whole, 40)[0]
    names = table + 64 * (n + 2)
    struct.pack_into("<QQ", whole, names + 24, len(whole), n_bytes)
    return bytes(whole) + b"n" * n_bytes


def hosts():
    good = host(GOOD_FATBIN)
    for at, word in ((20, "header"), (63, "header"), (64, "cut off"), (500, "cut off"), (len(good) - 1, "cut off")):
        yield f"host_cut_{at}.so", good[:at], "container", word
    for name, header in {"shentsize_0": dict(section_header_bytes=0), "shoff_outside": dict(section_offset=2 ** 40),
                         "shoff_overflow": dict(section_offset=2 ** 64 - 64), "shnum_65279": dict(n_sections=0xFEFF),
                         "shstrndx_outside": dict(names_index=77)}.items():
        yield f"host_{name}.so", host(GOOD_FATBIN, header=header), "container", "damaged"
    yield "host_section_outside.so", host(GOOD_FATBIN, offset=2 ** 40), "container", ""
    yield "host_section_overflow.so", host(GOOD_FATBIN, offset=2 ** 64 - 16), "container", ""
    yield "host_section_size.so", host(GOOD_FATBIN, size=2 ** 48), "container", ""
    yield "host_section_name.so", host(GOOD_FATBIN, name=2 ** 31), "container", ""
    yield "host_escape_in_section.so", host(b"junk" * 99, section=".nv_fatbin\n") + b"", "container", ""
    yield ("host_long_section.so", host(GOOD_FATBIN, extra=[Section(".x" + "y" * 9999 + "\n", b"data", flags=2, offset=2 ** 40)]),
           "container", "ends after")
    yield "host_section_of_zeros.so", host(b"\0" * 4096), "container", ""
    yield "host_section_of_junk.so", host(b"junk" * 999), "container", ""
    yield "host_section_nobits.so", host(GOOD_FATBIN, kind=3, **{"size": 2 ** 40}), "container", ""
    yield "host_junk_after.so", host(GOOD_FATBIN + b"junk" * 999), "part", ""
    yield "host_junk_between.so", host(GOOD_FATBIN + b"junk" * 99 + GOOD_FATBIN), "part", ""
    yield "host_second_cut.so", host(GOOD_FATBIN + GOOD_FATBIN[:-100]), "part", ""
    yield "host_no_device_code.so", host(b"", section=".text"), "container", ""
    # A search that starts at every magic number in these files would take quadratic time.
    yield "host_many_half_fatbins.so", host(half_fatbins(1 << 20), section=".rodata"), "container", ""
    yield "host_many_half_cubins.so", host(half_cubins(1 << 20), section=".rodata"), "container", ""
    yield "host_sections_overlap.so", overlapping_sections(60000, 1 << 20), "container", "overlap"
    yield "host_segments_overlap.so", overlapping_segments(60000, 1 << 20), "container", "overlap"
    yield "host_names_no_end.so", endless_names(60000, 1 << 20), "container", ""
    yield "wrapper_only.bin", wrapper(), "container", ""
    yield "wrapper_cut.bin", wrapper()[:12], "container", ""
    yield "wrapper_then_fatbin.bin", wrapper(data=24) + GOOD_FATBIN, "container", ""


def archives():
    o = host(GOOD_FATBIN, kind=1)
    yield "escape_in_name.a", archive(member("a\x1b[2J\nb.o/", o[:300])), "container", ""
    yield "empty.a", archive(), "container", ""
    yield "only_half_a_header.a", archive(member("x.o/", o)[:30]), "container", ""
    for name, size in [("size_negative", "-1"), ("size_words", "many"), ("size_empty", ""), ("size_huge", "9999999999"),
                       ("size_hex", "0x10"), ("size_one_more", str(len(o) + 1000))]:
        yield f"{name}.a", archive(member("x.o/", o, size=size)), "container", ""
    yield "no_end_of_header.a", archive(member("x.o/", o, end=b"xx")), "container", ""
    yield "cut_in_second.a", archive(member("x.o/", o), member("y.o/", o))[:-100], "part", ""
    yield "long_name_outside.a", archive(member("//", b"long_name.o/\n"), member("/4711", o)), "container", ""
    yield "long_name_without_table.a", archive(member("/0", o)), "container", ""
    yield "long_name_negative.a", archive(member("//", b"long_name.o/\n"), member("/-7", o)), "container", ""
    yield "long_name_no_end.a", archive(member("//", b"long_name.o"), member("/0", o)), "any", ""
    yield "long_names_twice.a", archive(member("//", b"a.o/\n"), member("//", b"/0\n/0"), member("/0", o)), "fine", ""
    yield "bsd_name_outside.a", archive(member("#1/99999999", o)), "container", ""
    yield "bsd_name_negative.a", archive(member("#1/-5", o)), "container", ""
    yield "in_itself.a", archive(member("inner.a/", archive(member("x.o/", o)))), "fine", ""
    yield "member_cut.a", archive(member("x.o/", o[:300])), "container", "cut off"
    for name, target in [("itself", "itself.a/"), ("parent", "../../../../etc/passwd/"), ("missing", "missing.o/"),
                         ("folder", "folder/"), ("fifo", "fifo/"), ("device", "/dev/zero/"), ("empty_name", "/")]:
        row = member(target, o, stored=False) if len(target) <= 16 and target[0] != "/" else \
            member("//", target.encode() + b"\n") + member("/0", o, stored=False)
        yield ("itself.a" if name == "itself" else f"thin_{name}.a"), archive(row, thin=True), "container", ""
    yield "thin_shorter.a", archive(member("good.o/", o, size=str(len(o) + 512), stored=False), thin=True), "fine", ""
    loop = [f"thin_loop_{c}.a" for c in "ab"]
    for this, other in zip(loop, reversed(loop)):
        yield this, archive(member(f"{other}/", o, size="100", stored=False), thin=True), "container", ""


def texts():
    yield "nul_only.ptx", b"\0" * 100, "container", ""
    yield "nul_inside.ptx", PTX_TEXT.replace(b"ret;", b"re\0t;"), "any", ""
    yield "long_line.ptx", b".version 9.0 .target sm_75 .address_size 64 " + b"a" * 2 ** 22, "any", ""
    yield "no_newline.ptx", PTX_TEXT.replace(b"\n", b" ") + b"// " + b"x" * 2 ** 20, "fine", ""
    yield "open_comment.ptx", PTX_TEXT + b"/* " * 999, "any", ""
    yield "binary_tail.ptx", PTX_TEXT + bytes(range(128, 256)) * 9, "any", ""
    yield "million_params.ptx", PTX_TEXT.replace(b"n)", b"n" + b", .param .u64 p" * 20000 + b")"), "any", ""
    yield "nul_in_fatbin.fatbin", fatbin(entry(b"\0" * 64)), "any", ""
    yield "junk_in_fatbin.fatbin", fatbin(packed_entry(b"this is no PTX " * 9)), "any", ""
    yield "bitcode.bc", b"BC\xc0\xde" + b"\0" * 100, "container", ""
    yield "bytes.bin", bytes(range(256)) * 16, "container", ""


def all_cases():
    for group in (fatbins, compressed, cubins, hosts, archives, texts):
        yield from group()
