#!/usr/bin/env python3
"""The inputs are there, and hold what inputs.json says: counted by hand from the bytes, not by gpuload."""
import json, os, re, struct, sys, unittest

BUILD = os.environ.get("GPULOAD_BUILD", "build")
FOLDER = f"{BUILD}/tests/inputs"
ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")  # loader/image/fatbin.c draws it
KINDS = {1: "ptx", 2: "cubin", 8: "lto"}


def entries(data):
    """(kind, arch, compression) of each image of each fatbin in some bytes."""
    for at in (m.start() for m in re.finditer(b"\x50\xed\x55\xba\x01\0\x10\0", data)):
        end = at + 16 + struct.unpack_from("<Q", data, at + 8)[0]
        at += 16
        while at < end:
            kind, _, header, padded, _, _, _, _, arch, _, _, flags, _, _ = ENTRY.unpack_from(data, at)
            suffix = "a" if flags & 0x100000 else "f" if flags & 0x200000 else ""
            yield KINDS[kind], f"sm_{arch}{suffix}", "lz4" if flags & 0x2000 else "zstd" if flags & 0x8000 else "none"
            at += header + padded


@unittest.skipUnless(os.path.exists(f"{FOLDER}/inputs.json"), "no inputs: no nvcc")
class Inputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(f"{FOLDER}/inputs.json", encoding="utf-8") as f:
            cls.told = json.load(f)

    def test_what_is_told_is_there_and_nothing_was_left_out(self):
        self.assertEqual(self.told["missing"], {})
        for i in self.told["inputs"]:
            self.assertGreater(os.path.getsize(f"{FOLDER}/{i['file']}"), 0, i["file"])

    def test_images_are_those_in_the_bytes(self):
        for i in self.told["inputs"]:
            with open(f"{FOLDER}/{i['file']}", "rb") as f:
                found = list(entries(f.read()))
            wanted = [(x["kind"], x["arch"], x["compression"]) for x in i["images"]]
            if found:  # a thin archive, a bare cubin and a text have no fatbin
                self.assertEqual(found, wanted[:len(found)], i["file"])
            self.assertTrue(found or i["file"].endswith((".cu", ".ptx", ".cubin", "host.o", "libthin.a")), i["file"])

    def test_every_file_of_a_run_is_there(self):
        for r in self.told["runs"]:
            for f in r["files"]:
                self.assertTrue(os.path.exists(f"{FOLDER}/{f}"), f)


if __name__ == "__main__":
    sys.exit(unittest.main())
