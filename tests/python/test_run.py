#!/usr/bin/env python3
"""The module gpuload on the software driver: results, lists, pages, and one clear line for each error.  Without NumPy, which a
machine may lack: array.array has the same kind of buffer."""
import array, os, subprocess, sys, tempfile, threading, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["GPULOAD_BUILD"] = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
os.environ["GPULOAD_DRIVER"] = "soft"
sys.path.insert(0, f"{ROOT}/python")
os.chdir(ROOT)
import gpuload

VECADD, SAXPY = "demo/vecadd.ptx", "tests/corpus/ptx/saxpy.sm_90.ptx"


def sanitized():
    return "san_init" in subprocess.run(["nm", "-D", f"{os.environ['GPULOAD_BUILD']}/libgpuload.so"], capture_output=True, text=True).stdout


class Run(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.out = array.array("d", range(1000)), array.array("d", [0.5] * 1000), array.array("d", [0] * 1000)

    def fails(self, text, *arguments, file=VECADD, **options):
        with self.assertRaises(gpuload.Error) as caught:
            gpuload.run(file, *arguments, **options)
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_what_the_kernel_writes_is_in_the_array(self):
        r = gpuload.run(VECADD, self.a, self.b, self.out, 1000)
        self.assertEqual(self.out.tolist(), [i + 0.5 for i in range(1000)])
        self.assertEqual((r.kernel, r.grid, r.block, r.driver), ("vecadd", (4, 1, 1), (256, 1, 1), "soft"))
        self.assertEqual(len(r.outputs), 1)
        self.assertIs(r.outputs[0], self.out)
        self.assertIs(r[2], self.out)
        self.assertEqual(self.a.tolist(), list(range(1000)))

    def test_floats_and_integers_become_the_types_of_the_parameters(self):
        x, y = array.array("f", range(100)), array.array("f", [1] * 100)
        gpuload.run(SAXPY, 2, x, y, 100)
        self.assertEqual(y.tolist(), [2 * i + 1 for i in range(100)])

    def test_the_given_grid_and_block_are_used(self):
        r = gpuload.run(VECADD, self.a, self.b, self.out, 1000, grid=2, block=[32, 1])
        self.assertEqual((r.grid, r.block), ((2, 1, 1), (32, 1, 1)))
        self.assertEqual(self.out.tolist(), [i + 0.5 for i in range(64)] + [0] * 936)

    def test_untyped_bytes_are_buffers(self):
        out = bytearray(8000)
        gpuload.run(VECADD, bytes(self.a), memoryview(self.b), out, 1000)
        self.assertEqual(array.array("d", bytes(out)).tolist(), [i + 0.5 for i in range(1000)])

    def test_an_error_is_one_line(self):
        a, b, out = self.a, self.b, self.out
        self.fails("nope.ptx: no such file", file="nope.ptx")
        self.fails("4 arguments needed, 3 given; the kernel is vecadd(f64 *, f64 *, f64 *, i32)", a, b, out)
        self.fails("argument 2: the kernel accesses elements of type f64, but the elements of the array have format 'f'", a, b, array.array("f", [0] * 1000), 1000)
        self.fails("argument 2: the kernel writes this array, but the array is read-only", a, b, bytes(8000), 1000)
        self.fails("argument 2: expected an array, not 3", a, b, 3, 1000)
        self.fails("argument 0: expected a C-contiguous array", memoryview(a)[::2], b, out, 1000)
        self.fails("argument 3: 'x' is not a value of type i32", a, b, out, "x")
        self.fails("argument 3: 4294967296 is not a value of type i32", a, b, out, 1 << 32)
        self.fails("argument 0: the array is empty", array.array("d"), b, out, 1000)
        self.fails("no kernel 'x'; the module has: vecadd", a, b, out, 1000, kernel="x")
        self.fails("driver must be auto, nvidia or soft, not 'amd'", a, b, out, 1000, driver="amd")
        self.fails("block must be one to three numbers, each at least 1, not 0", a, b, out, 1000, block=0)
        self.fails("device 7 does not exist", a, b, out, 1000, device=7)

    def test_a_fault_names_the_line_and_the_next_run_works(self):
        self.fails("past the end of a 8000-byte cuMemAlloc allocation", self.a, self.b, self.out, 1024 * 1024)
        gpuload.run(VECADD, self.a, self.b, self.out, 1000)
        self.assertEqual(self.out[999], 999.5)

    def test_threads_run_kernels_at_the_same_time(self):
        results = [array.array("d", [0] * 1000) for _ in range(4)]
        threads = [threading.Thread(target=gpuload.run, args=(VECADD, self.a, self.b, out, 1000)) for out in results]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for out in results:
            self.assertEqual(out.tolist(), [i + 0.5 for i in range(1000)])

    def test_memory_of_device_is_freed(self):
        big = [array.array("d", [0]) * 100000 for _ in range(3)]
        before = None
        for i in range(30):
            gpuload.run(VECADD, *big, 1000)
            with open("/proc/self/statm", encoding="ascii") as f:
                pages = int(f.read().split()[1])
            before = pages if i == 9 else before
        self.assertLess((pages - before) * 4096, 20 * 2400000 / 2)


class Shown(unittest.TestCase):
    def test_jupyter_shows_a_result_as_a_table(self):
        out = array.array("d", [0] * 20)
        html = gpuload.run(VECADD, array.array("d", range(20)), array.array("d", range(20)), out, 20)._repr_html_()
        self.assertIn("<tr><th>argument 2</th><td>0 2 4 6 8 10 12 14 16 18 ...</td></tr>", html)
        self.assertNotIn("argument 0", html)

    def test_ls_lists_parameters_and_shows_a_table(self):
        kernels = gpuload.ls(VECADD)
        self.assertEqual([(k["name"], k["kind"], k["arch"], len(k["params"])) for k in kernels], [("vecadd", "ptx", "sm_75", 4)])
        self.assertIn("<td>vecadd(f64 *, f64 *, f64 *, i32)</td><td>sm_75</td>", kernels._repr_html_())
        with self.assertRaisesRegex(gpuload.Error, "^/nope: no such file$"):
            gpuload.ls("/nope")

    def test_pages_are_shown_in_a_frame_and_pictures_as_svg(self):
        page = gpuload.trace(VECADD, "--blocks", "0", "--trace-limit", "100")
        self.assertIn("vecadd", page.html)
        self.assertTrue(page._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html'.lower()) or "&lt;" in page._repr_html_())
        self.assertNotIn('"', page._repr_html_().split('srcdoc="', 1)[1].split('" style=')[0])
        self.assertIn("vecadd", gpuload.profile(VECADD).html)
        with tempfile.TemporaryDirectory() as d, self.assertRaises(gpuload.Error):
            gpuload.trace(f"{d}/nothing.ptx")


if __name__ == "__main__":
    if sanitized():
        print("skipped: Python would have to be sanitized too")
        sys.exit(77)
    unittest.main()
