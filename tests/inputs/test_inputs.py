#!/usr/bin/env python3
"""The inputs contain what inputs.json lists, as counted from the bytes; and gpuload lists and runs them."""
import json, os, re, struct, subprocess, sys, unittest

BUILD = os.environ.get("GPULOAD_BUILD", "build")
FOLDER = f"{BUILD}/tests/inputs"
ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")  # loader/image/fatbin.c draws it
KINDS = {1: "ptx", 2: "cubin", 8: "lto"}


def entries(data):
    """Return (kind, arch, compression) of each image of each fatbin in some bytes."""
    for at in (m.start() for m in re.finditer(b"\x50\xed\x55\xba\x01\0\x10\0", data)):
        end = at + 16 + struct.unpack_from("<Q", data, at + 8)[0]
        at += 16
        while at < end:
            kind, _, header, padded, _, _, _, _, arch, _, _, flags, _, _ = ENTRY.unpack_from(data, at)
            suffix = "a" if flags & 0x100000 else "f" if flags & 0x200000 else ""
            yield KINDS[kind], f"sm_{arch}{suffix}", "lz4" if flags & 0x2000 else "zstd" if flags & 0x8000 else "none"
            at += header + padded


@unittest.skipUnless(os.path.exists(f"{FOLDER}/inputs.json"), "no inputs: built without nvcc")
class Inputs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(f"{FOLDER}/inputs.json", encoding="utf-8") as f:
            cls.manifest = json.load(f)

    def test_every_listed_file_exists_and_none_is_missing(self):
        self.assertEqual(self.manifest["missing"], {})
        for i in self.manifest["inputs"]:
            self.assertGreater(os.path.getsize(f"{FOLDER}/{i['file']}"), 0, i["file"])

    def test_the_listed_images_are_in_the_files(self):
        for i in self.manifest["inputs"]:
            with open(f"{FOLDER}/{i['file']}", "rb") as f:
                found = list(entries(f.read()))
            expected_images = [(x["kind"], x["arch"], x["compression"]) for x in i["images"]]
            if found:  # a thin archive, a cubin and a text contain no fatbin
                self.assertEqual(found, expected_images[:len(found)], i["file"])
            self.assertTrue(found or i["file"].endswith((".cu", ".ptx", ".cubin", "host.o", "libthin.a")), i["file"])

    def gpuload(self, *arguments):
        r = subprocess.run([os.path.abspath(f"{BUILD}/gpuload"), *arguments], cwd=FOLDER, capture_output=True, text=True,
                           stdin=subprocess.DEVNULL)
        return r.returncode, r.stdout, r.stderr

    def test_gpuload_lists_the_images(self):
        keys = ["kind", "arch", "compression", "section", "relocatable", "origin"]
        for i in self.manifest["inputs"]:
            if i["file"].endswith(".cu"):
                continue  # ls compiles this file
            status, out, err = self.gpuload("ls", "--json", "--images", i["file"])
            if not i["images"]:
                self.assertEqual((status, "no device code" in err), (1, True), i["file"])
                continue
            self.assertEqual((status, err), (0, ""), i["file"])
            found = [[image[k] for k in keys] for image in json.loads(out)["images"]]
            self.assertEqual(found, [[image[k] for k in keys] for image in i["images"]], i["file"])

    def test_gpuload_lists_the_kernels(self):
        for i in self.manifest["inputs"]:
            images = json.loads(self.gpuload("ls", "--json", i["file"])[1])["images"] if i["images"] else []
            for image, expected in zip(images, i["images"]):
                source = expected.get("of", i["kernels"])
                kernels = [] if image["kind"] == "lto" else self.manifest["sources"][source]
                found = {k["name"]: k for k in image["kernels"]}
                self.assertEqual(sorted(found), sorted(k["name"] for k in kernels), i["file"])
                for k in kernels:
                    self.compare(image["kind"], found[k["name"]], k, f"{i['file']}: {k['name']}")

    def compare(self, kind, found, expected, where):
        self.assertEqual(found["demangled"], expected["demangled"], where)
        self.assertEqual([(p["offset"], p["size"]) for p in found["params"]], [(o, n) for o, n, _ in expected["params"]], where)
        if expected["name"].startswith("_Z"):  # only mangled C++ names contain types
            self.assertEqual([p["type"] for p in found["params"]], [t for _, _, t in expected["params"]], where)
        if kind == "cubin":  # in PTX of nvcc -G, shared memory is declared outside the kernel
            self.assertEqual(found["shared_bytes"], expected.get("shared_bytes", 0), where)
        self.assertEqual(found["static"], expected.get("static", False), where)
        self.assertEqual(found["max_threads"], [expected["max_threads"], 1, 1] if "max_threads" in expected else None, where)

    def test_gpuload_runs_the_files_on_the_software_driver_or_reports_an_error(self):
        for r in self.manifest["runs"]:
            with self.subTest(r["files"]):
                status, out, err = self.gpuload("run", *r["files"], "--kernel", "vecadd", "--driver", "soft", *self.manifest["run"])
                if r["not_soft"]:
                    self.assertEqual((status, len(err.splitlines())), (1, 1), err)
                else:
                    self.assertEqual(status, 0, err)


if __name__ == "__main__":
    sys.exit(unittest.main())
