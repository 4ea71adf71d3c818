"""forge.py — builds containers of device code; each field can get a wrong value.

Without arguments every function returns well-formed data.  The layouts repeat those of loader/image/*.c on purpose, so
that a reader and its test do not share a mistake.
"""
import struct

PTX = 1
ELF = 2
LTO = 8
FLAG_LZ4, FLAG_ZSTD, FLAG_LTO = 0x2000, 0x8000, 0x10000


def aligned(n, to):
    return -(-n // to) * to


def padded(data, to):
    return data + b"\0" * (aligned(len(data), to) - len(data))


# ---- compressed data, without a compressor ---------------------------------------------------

def lz4(data):
    """One LZ4 block of literals only."""
    more = len(data) - 15
    head = bytes([min(len(data), 15) << 4])
    return head + (b"\xff" * (more // 255) + bytes([more % 255]) if more >= 0 else b"") + data


def lz4_bomb(n_bytes):
    """An LZ4 block that unpacks to about n_bytes, 255 times its size: one repeated match."""
    return b"\x1f\0\x01\0" + b"\xff" * (n_bytes // 255) + b"\0" + b"\x50" + b"\0" * 5


def zstd(data, content_bytes=None, window=0x58, last=True):
    """A zstd frame of raw blocks; window 0x58 is 2 MB."""
    blocks = [data[i:i + 0x10000] for i in range(0, len(data), 0x10000)] or [b""]
    out = struct.pack("<IBBQ", 0xFD2FB528, 0xC0, window, len(data) if content_bytes is None else content_bytes)
    for i, b in enumerate(blocks):
        out += ((len(b) << 3) | (last and i == len(blocks) - 1)).to_bytes(3, "little") + b
    return out


def zstd_bomb(n_bytes, claimed_bytes=None, window=0x58):
    """A zstd frame of repeated zeros: 128 KB for every four bytes; claimed_bytes is the size in its header."""
    claimed = n_bytes if claimed_bytes is None else claimed_bytes
    n, out = n_bytes // 0x20000, struct.pack("<IBBQ", 0xFD2FB528, 0xC0, window, claimed)
    for i in range(n):
        out += ((0x20000 << 3) | 2 | (i == n - 1)).to_bytes(3, "little") + b"\0"
    return out


# ---- fatbins ---------------------------------------------------------------------------------

def entry(payload, kind=PTX, arch=75, flags=0x11, compressed=0, unpacked=0, options=None, header_bytes=None,
          padded_bytes=None, options_offset=None, ident_offset=0, ident_bytes=0, version=0x0101):
    """An image of a fatbin; compressed and unpacked are the sizes in its header, 0 for a raw image."""
    tail = b""
    if options is not None:
        tail = padded(struct.pack("<II", 72, len(options)) + options, 8)
    n_header = 64 + len(tail)
    if options_offset is None:
        options_offset = 64 if options is not None else 0
    body = padded(payload, 8)
    head = struct.pack("<HHIQIIHHIIIQQQ", kind, version, n_header if header_bytes is None else header_bytes,
                       len(body) if padded_bytes is None else padded_bytes, compressed, options_offset, 0, 8, arch,
                       ident_offset, ident_bytes, flags, 0, unpacked)
    return head + tail + body


def packed_entry(data, how=FLAG_ZSTD, kind=PTX, **more):
    """A compressed image; `more` has the fields with wrong values."""
    payload = zstd(data) if how == FLAG_ZSTD else lz4(data)
    return entry(payload, **{"kind": kind, "flags": 0x11 | how, "compressed": len(payload), "unpacked": len(data), **more})


def fatbin(*entries, version=1, header_bytes=16, payload_bytes=None, magic=0xBA55ED50):
    body = b"".join(entries)
    return struct.pack("<IHHQ", magic, version, header_bytes, len(body) if payload_bytes is None else payload_bytes) + body


def wrapper(version=1, data=0, more=0, magic=0x466243B1):
    return struct.pack("<IIQQ", magic, version, data, more)


# ---- ELF -------------------------------------------------------------------------------------

class Section:
    """A section of an ELF file; any field of its header may be set."""

    def __init__(self, name, data=b"", kind=1, flags=0, link=0, info=0, align=8, entsize=0, **header):
        self.name, self.data, self.header = name, data, header
        self.kind, self.flags, self.link, self.info, self.align, self.entsize = kind, flags, link, info, align, entsize


def elf(sections, machine=190, kind=2, osabi=0x41, abi=8, flags=0x6005A04, section_header_bytes=64, n_sections=None,
        names_index=None, section_offset=None, elf_class=2, order=1):
    """An ELF file: header, sections' bytes, section headers.  A null section and .shstrtab are added."""
    names = b"\0"
    sections = [Section("", kind=0, align=0), *sections, Section(".shstrtab", kind=3, align=1)]
    name_at = []
    for s in sections:
        name_at.append(len(names) if s.name else 0)
        names += s.name.encode() + b"\0" if s.name else b""
    sections[-1].data = names
    body, rows, at = bytearray(), [], 64
    for s, name in zip(sections, name_at):
        body += b"\0" * (aligned(at, s.align or 1) - at)
        at = 64 + len(body)
        nobits = s.kind in (0, 8)
        row = dict(name=name, kind=s.kind, flags=s.flags, address=0, offset=at if s.kind else 0, size=len(s.data), link=s.link,
                   info=s.info, align=s.align, entsize=s.entsize)
        row.update(s.header)
        rows.append(row)
        body += b"" if nobits else s.data
        at = 64 + len(body)
    body += b"\0" * (aligned(at, 8) - at)
    headers_at = 64 + len(body)
    table = b"".join(struct.pack("<IIQQQQIIQQ", *(r[k] & (2 ** 64 - 1) for k in (
        "name", "kind", "flags", "address", "offset", "size", "link", "info", "align", "entsize"))) for r in rows)
    ident = b"\x7fELF" + bytes([elf_class, order, 1, osabi, abi]) + b"\0" * 7
    return ident + struct.pack("<HHIQQQIHHHHHH", kind, machine, 1, 0, 0,
                               headers_at if section_offset is None else section_offset, flags, 64, 56, 0,
                               section_header_bytes, len(rows) if n_sections is None else n_sections,
                               len(rows) - 1 if names_index is None else names_index) + bytes(body) + table


def attribute(number, value, size=None):
    """A row of .nv.info with a value of any length."""
    return struct.pack("<BBH", 4, number, len(value) if size is None else size) + value


def kparam(ordinal, offset, n_bytes):
    return attribute(0x17, struct.pack("<IHHI", 0, ordinal, offset, n_bytes << 18))


PARAMS = [(0, 8), (8, 8), (16, 8), (24, 4)]


def kernel_info(params=PARAMS):
    rows = [kparam(i, o, n) for i, (o, n) in reversed(list(enumerate(params)))]
    end = max((o + n for o, n in params), default=0)
    return b"".join(rows) + struct.pack("<BBH", 3, 0x19, end) + attribute(0x05, struct.pack("<III", 256, 1, 1))


def cubin_sections(name="vecadd", params=PARAMS, info=None, symbol=None, **change):
    """The sections of a cubin with one kernel.  change: _section_name={field: value}, where each "_" means "."."""
    strings = b"\0" + name.encode() + b"\0"
    symbols = b"\0" * 24 + struct.pack("<IBBHQQ", *(symbol or (1, 0x12, 0x10, 6, 0, 128)))
    sections = [
        Section(".strtab", strings, kind=3, align=1),
        Section(".symtab", symbols, kind=2, link=1, info=1, entsize=24),
        Section(".nv.info", attribute(0x2F, struct.pack("<II", 1, 12)), kind=0x70000000, link=2, align=4),
        Section(f".nv.info.{name}", kernel_info(params) if info is None else info, kind=0x70000000, flags=0x40, link=2,
                info=6, align=4),
        Section(f".nv.constant0.{name}", b"\0" * 0x22C, flags=0x42, info=6, align=4),
        Section(f".text.{name}", b"\0" * 128, flags=6, link=2, info=1, align=128),
    ]
    for s in sections:
        fields = change.get(s.name.removesuffix(f".{name}").replace(".", "_"), {})
        for field, value in fields.items():
            if hasattr(s, field):
                setattr(s, field, value)
            else:
                s.header[field] = value
    return sections


def cubin(abi=8, relocatable=False, sections=None, header=None, **change):
    """A cubin with the kernel vecadd; header: arguments of elf(); change: arguments of cubin_sections()."""
    how = dict(osabi=0x41, abi=8, flags=0x6005A04) if abi == 8 else dict(osabi=0x33, abi=7, flags=0x5A055A)
    how.update(kind=1 if relocatable else 2)
    how.update(header or {})
    return elf(cubin_sections(**change) if sections is None else sections, **how)


def host(fatbins, section=".nv_fatbin", kind=3, extra=(), header=None, **fields):
    """A host ELF that has fatbins in one section."""
    sections = [Section(section, fatbins, flags=2), Section(".nvFatBinSegment", wrapper(), flags=3), *extra]
    for field, value in fields.items():
        sections[0].header[field] = value
    return elf(sections, **{"machine": 62, "kind": kind, "osabi": 0, "abi": 0, "flags": 0, **(header or {})})


# ---- archives --------------------------------------------------------------------------------

def member(name, data, size=None, end=b"`\n", stored=True):
    """A member of an archive; a thin archive stores none of its bytes."""
    size = str(len(data)) if size is None else size
    head = name.encode().ljust(16) + b"0".ljust(12) + b"0".ljust(6) + b"0".ljust(6) + b"644".ljust(8)
    return head + size.encode().ljust(10) + end + (data + b"\n" * (len(data) % 2) if stored else b"")


def archive(*members, thin=False):
    return (b"!<thin>\n" if thin else b"!<arch>\n") + b"".join(members)


# ---- PTX -------------------------------------------------------------------------------------

PTX_TEXT = b""".version 9.0
.target sm_75
.address_size 64
.visible .entry vecadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
	ret;
}
"""
