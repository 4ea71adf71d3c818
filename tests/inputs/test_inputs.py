#!/usr/bin/env python3
"""The inputs hold what inputs.json says: counted by hand from the bytes; and that is what gpuload lists and runs."""
import json, os, re, struct, subprocess, sys, unittest

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

    def gpuload(self, *arguments):
        r = subprocess.run([os.path.abspath(f"{BUILD}/gpuload"), *arguments], cwd=FOLDER, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL)
        return r.returncode, r.stdout, r.stderr

    def test_gpuload_lists_these_images(self):
        keys = ["kind", "arch", "compression", "section", "relocatable", "origin"]
        for i in self.told["inputs"]:
            if i["file"].endswith(".cu"):
                continue  # ls compiles it
            status, out, err = self.gpuload("ls", "--json", "--images", i["file"])
            if not i["images"]:
                self.assertEqual((status, "no device code" in err), (1, True), i["file"])
                continue
            self.assertEqual((status, err), (0, ""), i["file"])
            found = [[image[k] for k in keys] for image in json.loads(out)["images"]]
            self.assertEqual(found, [[image[k] for k in keys] for image in i["images"]], i["file"])

    def test_gpuload_lists_these_kernels(self):
        for i in self.told["inputs"]:
            images = json.loads(self.gpuload("ls", "--json", i["file"])[1])["images"] if i["images"] else []
            for image, told in zip(images, i["images"]):
                source = told.get("of", i["kernels"])
                kernels = [] if image["kind"] == "lto" else self.told["sources"][source]
                found = {k["name"]: k for k in image["kernels"]}
                self.assertEqual(sorted(found), sorted(k["name"] for k in kernels), i["file"])
                for k in kernels:
                    self.compare(image["kind"], found[k["name"]], k, f"{i['file']}: {k['name']}")

    def compare(self, kind, found, told, where):
        self.assertEqual(found["demangled"], told["demangled"], where)
        self.assertEqual([(p["offset"], p["size"]) for p in found["params"]], [(o, n) for o, n, _ in told["params"]], where)
        if told["name"].startswith("_Z"):  # others tell no types
            self.assertEqual([p["type"] for p in found["params"]], [t for _, _, t in told["params"]], where)
        if kind == "cubin":  # PTX of nvcc -G has it outside of the kernel
            self.assertEqual(found["shared_bytes"], told.get("shared_bytes", 0), where)
        self.assertEqual(found["static"], told.get("static", False), where)
        self.assertEqual(found["max_threads"], [told["max_threads"], 1, 1] if "max_threads" in told else None, where)

    def test_gpuload_runs_them_on_the_software_driver_or_says_why_not(self):
        for r in self.told["runs"]:
            with self.subTest(r["files"]):
                status, out, err = self.gpuload("run", *r["files"], "--kernel", "vecadd", "--driver", "soft", *self.told["run"])
                if r["not_soft"]:
                    self.assertEqual((status, len(err.splitlines())), (1, 1), err)
                else:
                    self.assertEqual(status, 0, err)


if __name__ == "__main__":
    sys.exit(unittest.main())
