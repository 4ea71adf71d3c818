#!/usr/bin/env python3
"""test_exports.py — the names that the mini runtime has, as an archive and as libcudart.so.N.

- The archive defines each call that the CUDA headers here declare.
- Each libcudart.so.N defines what NVIDIA's library of that version exports, where that is installed, with the same symbol version.
- scripts/runtime_calls.py, run on the headers here, would change neither rt_refused_internal.h nor docs/runtime-calls.md.
- A refused call returns cudaErrorNotSupported.
"""
import ctypes, glob, os, re, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
BUILD = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"))
sys.path.insert(0, f"{ROOT}/scripts")
import runtime_calls

NOT_SUPPORTED = 801


def cuda_home():
    """The toolkit whose headers this build uses; /usr when the build rules name none."""
    rules = ROOT if BUILD == os.path.join(ROOT, "build") else BUILD
    with open(os.path.join(rules, "build.ninja"), encoding="utf-8") as f:
        found = re.search(r"^cflags = .*-isystem ('[^']+'|\S+)", f.read(), re.M)
    return os.path.dirname(found[1].strip("'").replace("$ ", " ").replace("$$", "$")) if found else "/usr"


def exported(library):
    """{name: symbol version} of the functions that a shared library defines."""
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", library], check=True, capture_output=True, text=True).stdout
    return dict(re.findall(r" [TW] (\w+)@@(\S+)$", out, re.M))


class Exports(unittest.TestCase):
    def test_the_archive_defines_each_call_of_the_headers(self):
        out = subprocess.run(["nm", "--defined-only", f"{BUILD}/libgpuload-rt.a"], check=True, capture_output=True, text=True).stdout
        defined = set(re.findall(r" T (\w+)$", out, re.M))
        calls = runtime_calls.read_header(f"{cuda_home()}/include")
        self.assertGreater(len(calls), 200)
        self.assertEqual(sorted(c for c in calls if c not in defined), [])

    def test_the_shared_libraries_have_the_names_of_nvidias(self):
        mine = glob.glob(f"{BUILD}/softcuda/libcudart.so.*")
        self.assertTrue(mine)
        compared = 0
        for library in mine:
            name = os.path.basename(library)
            own = exported(library)
            self.assertEqual(set(own.values()), {name})
            for theirs in glob.glob(f"{glob.escape(cuda_home())}/lib*/{name}"):
                wanted = exported(theirs)
                compared += 1
                self.assertEqual(sorted(w for w in wanted if w not in own), [])
                self.assertEqual({wanted[w] for w in wanted}, {name})
        if not compared:
            self.skipTest("no libcudart of NVIDIA to compare with")

    def test_the_generated_files_are_up_to_date(self):
        with tempfile.TemporaryDirectory() as out:
            subprocess.run([sys.executable, f"{ROOT}/scripts/runtime_calls.py", f"{cuda_home()}/include", out], check=True)
            for name in (runtime_calls.REFUSED, runtime_calls.TABLE):
                with open(f"{out}/{name}", encoding="utf-8") as new, open(f"{ROOT}/{name}", encoding="utf-8") as old:
                    self.assertTrue(new.read() == old.read(), f"run scripts/runtime_calls.py: {name}")

    def test_a_refused_call_is_not_supported(self):
        for library in glob.glob(f"{BUILD}/softcuda/libcudart.so.*"):
            if subprocess.run(["grep", "-q", "__asan_init\\|__tsan_init", library], check=False).returncode == 0:
                self.skipTest("a library with a sanitizer cannot be loaded into Python")
            runtime = ctypes.CDLL(os.path.abspath(library))
            for name in ("cudaImportExternalMemory", "cudaGraphicsMapResources", "cudaSignalExternalSemaphoresAsync_ptsz"):
                self.assertEqual(getattr(runtime, name)(), NOT_SUPPORTED)
                self.assertEqual(runtime.cudaGetLastError(), NOT_SUPPORTED)


if __name__ == "__main__":
    unittest.main()
