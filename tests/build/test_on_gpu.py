#!/usr/bin/env python3
"""tests/clients/on_gpu.py: packs tiny suites, runs them with and without guard.so, and compares two lists of outcomes.

Nothing is downloaded: small packages replace pytest and cuda-bindings, and a small library replaces the driver.
"""
import argparse, contextlib, io, os, shutil, subprocess, sys, tarfile, tempfile, unittest
from unittest import mock

CLIENTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "clients")
sys.path[:0] = [CLIENTS, os.path.dirname(os.path.dirname(CLIENTS))]
import on_gpu
from scripts.flags import WARNINGS

# A driver whose functions return 1, whatever their arguments are.  cuGetProcAddress finds them by name (for CUDA 12 and later it has
# another signature); cuInside calls cuMemAllocManaged from inside the driver, which the guard must not refuse.
DRIVER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#define YES(name) int name(void) { return 1; }
YES(cuInit) YES(cuMulticastUnbind) YES(cuMulticastCreate) YES(cuMemAllocManaged) YES(cuMemAdvise_v2) YES(cuMemPrefetchAsync_v2)
YES(cuMemPoolCreate) YES(cuMemGetMemPool) YES(cuMemSetMemPool) YES(cuGraphAddNode) YES(cuGraphAddNode_v2) YES(cuGraphAddMemAllocNode)
YES(nvmlDeviceGetCount_v2) YES(nvmlDeviceSetPersistenceMode) YES(nvmlDeviceSetCpuAffinity) YES(nvmlDeviceDiscoverGpus)
static int find(const char *name, void **found, int version)
{
	*found = dlsym(RTLD_DEFAULT, strcmp(name, "cuGetProcAddress") == 0 && version >= 12000 ? "cuGetProcAddress_v2" : name);
	return !*found;
}
int cuGetProcAddress(const char *name, void **found, int version, unsigned long flags)
{
	return (void)flags, find(name, found, version);
}
int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long flags, int *status)
{
	return (void)flags, *status = 5, find(name, found, version);
}
int cuInside(void)
{
	return ((int (*)(void))dlsym(RTLD_DEFAULT, "cuMemAllocManaged"))();
}
"""
BINDINGS = """
import ctypes, os
library = ctypes.CDLL(os.environ["TEST_DRIVER"], ctypes.RTLD_GLOBAL)
def cuMulticastUnbind(*args):
    return (library.cuMulticastUnbind(*args),)
"""
# Replaces pytest: runs the functions test_* of a file, and calls the functions of outcomes.py that pytest would call.
PYTEST = """
import os, runpy, sys, types
import outcomes
path = sys.argv[-1]
tests = {f"{path}::{name}": f for name, f in runpy.run_path(path).items() if name.startswith("test_")}
items = [types.SimpleNamespace(nodeid=name) for name in tests]
outcomes.pytest_collection_modifyitems(items)
failed = 0
for item in items:
    os.environ["PYTEST_CURRENT_TEST"] = f"{item.nodeid} (call)"
    outcomes.pytest_runtest_logstart(item.nodeid)
    outcome, why = "passed", ""
    try:
        if tests[item.nodeid]() == "skip":
            outcome = "skipped"
    except AssertionError as e:
        outcome, why, failed = "failed", f"AssertionError: {e}", 1
    outcomes.pytest_runtest_logreport(types.SimpleNamespace(nodeid=item.nodeid, outcome=outcome, longrepr=why))
    outcomes.pytest_runtest_logfinish(item.nodeid)
sys.exit(failed)
"""
CORE = """
import os, signal, sys
def test_a_pass(): pass
def test_b_fail(): assert 1 == 2, "one is not two"
def test_c_skip(): return "skip"
def test_d_crash(): os.kill(os.getpid(), signal.SIGSEGV)
def test_e_packages_of_the_pack_only(): assert len([p for p in sys.path if p.endswith("-packages")]) == 3 and "/nonexistent" not in sys.path, sys.path
def test_f_on_soft(): assert "ON_SOFT" in os.environ, "not on the software driver"
"""
BUFFERS = """
class DummyDeviceMemoryResource:
    def free(ptr): driver.cuMemFree(ptr)
class DummyUnifiedMemoryResource:
    def allocate(size): return driver.cuMemAllocManaged(size, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value)
    def free(ptr): driver.cuMemFree(ptr)
"""
PINNED_BUFFERS = """
class DummyDeviceMemoryResource:
    def free(ptr): driver.cuMemFree(ptr)
class DummyUnifiedMemoryResource:
    def allocate(size): return driver.cuMemHostAlloc(size, driver.CU_MEMHOSTALLOC_PORTABLE)
    def free(ptr): driver.cuMemFreeHost(int(ptr))
"""
# Calls that the guard refuses, and similar calls that it allows; without the guard, all return 1.
GUARDED = """
import ctypes
from cuda.bindings.driver import library
pool = lambda type: (ctypes.c_int * 22)(type)
node = lambda type, memory: (ctypes.c_int * 64)(type, 0, 0, 0, memory)
find = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 6)
def found(name, version):
    f, status = ctypes.c_void_p(), ctypes.c_int()
    assert library.cuGetProcAddress_v2(name, ctypes.byref(f), version, ctypes.c_uint64(0), ctypes.byref(status)) == 0
    return find(f.value)
def test_init(): assert library.cuInit(0) == 1
def test_multicast(): assert library.cuMulticastCreate(0) == 1
def test_managed(): assert library.cuMemAllocManaged(0) == 1
def test_advise(): assert library.cuMemAdvise_v2(0) == 1
def test_prefetch(): assert library.cuMemPrefetchAsync_v2(0) == 1
def test_pool_pinned(): assert library.cuMemPoolCreate(None, pool(1)) == 1
def test_pool_managed(): assert library.cuMemPoolCreate(None, pool(2)) == 1
def test_get_pinned(): assert library.cuMemGetMemPool(None, None, 1) == 1
def test_get_managed(): assert library.cuMemGetMemPool(None, None, 2) == 1
def test_set_managed(): assert library.cuMemSetMemPool(None, ctypes.c_uint64(7 << 32 | 2), None) == 1   # the upper half has no meaning
def test_node_pinned(): assert library.cuGraphAddNode_v2(None, None, None, None, None, node(10, 1)) == 1
def test_node_kernel(): assert library.cuGraphAddNode_v2(None, None, None, None, None, node(0, 2)) == 1
def test_node_managed(): assert library.cuGraphAddNode_v2(None, None, None, None, None, node(10, 2)) == 1
def test_found_init(): assert found(b"cuInit", 13000)(0, 0, 0, 0, 0, 0) == 1
def test_found_managed(): assert found(b"cuMemAllocManaged", 13000)(0, 0, 0, 0, 0, 0) == 1
def test_found_node_12000(): assert found(b"cuGraphAddNode", 12000)(None, None, None, None, node(10, 2), 5) == 1
def test_found_node_13000(): assert found(b"cuGraphAddNode", 13000)(None, None, None, None, None, node(10, 2)) == 1
def test_found_twice():
    f, status = ctypes.c_void_p(), ctypes.c_int()
    new, old = (found(b"cuGetProcAddress", version) for version in (13000, 11000))
    assert old(b"cuInit", ctypes.addressof(f), 13000, 0, None, 0) == 0
    assert new(b"cuMulticastCreate", ctypes.addressof(f), 13000, 0, ctypes.addressof(status), 0) == 0 and status.value == 5
    assert find(f.value)(0, 0, 0, 0, 0, 0) == 1
def test_inside(): assert library.cuInside() == 1
def test_nvml_read(): assert library.nvmlDeviceGetCount_v2(0) == 1
def test_nvml_thread(): assert library.nvmlDeviceSetCpuAffinity(0) == 1
def test_nvml_setting(): assert library.nvmlDeviceSetPersistenceMode(0) == 1
def test_nvml_discover(): assert library.nvmlDeviceDiscoverGpus(0) == 1
"""
REFUSED = {"multicast", "managed", "advise", "prefetch", "pool_managed", "get_managed", "set_managed", "node_managed", "found_managed", "found_node_12000",
           "found_node_13000", "found_twice", "nvml_setting", "nvml_discover"}


def write(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def write_checkout(folder):
    for path in ("cuda_core/tests/conftest.py", "cuda_core/build_hooks.py", "cuda_bindings/cuda/bindings/_test_helpers/helper.py",
                 "cuda_python_test_helpers/x.py", "cuda_core/tests/cython/test_left_out.py"):
        write(f"{folder}/{path}")
    for name in ("test_memory.py", "memory_ipc/test_errors.py"):
        write(f"{folder}/cuda_core/tests/{name}", CORE if name == "test_memory.py" else "def test_one(): pass")
    write(f"{folder}/cuda_core/tests/helpers/buffers.py", BUFFERS)
    write(f"{folder}/cuda_bindings/tests/test_guarded.py", GUARDED)


def install(folder, requirements, _python, *_options):
    """Replaces on_gpu.install(), which runs pip."""
    for r in requirements:
        if r.startswith("pytest=="):
            write(f"{folder}/pytest/__main__.py", PYTEST)
        elif r.startswith("cuda-bindings"):
            write(f"{folder}/cuda/bindings/driver.py", BINDINGS)
        elif r.startswith("nvidia-"):
            for library in ("libcudart_static.a", "libnvfatbin.so.13", "libother.so"):
                write(f"{folder}/nvidia/cu13/lib/{library}", r)


def lines(path):
    """Return the lines of a file; [] if it does not exist."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as f:
        return f.read().splitlines()


class Pack(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not shutil.which("cc"):
            raise unittest.SkipTest("no cc")
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        write_checkout(f"{cls.folder}/checkout")
        write(f"{cls.folder}/driver.c", DRIVER)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{cls.folder}/libcuda.so.1", f"{cls.folder}/driver.c"], check=True)
        args = argparse.Namespace(file=f"{cls.folder}/p.tar.xz", checkout=f"{cls.folder}/checkout", python=on_gpu.THIS_PYTHON)
        with mock.patch("on_gpu.install", install), contextlib.redirect_stdout(io.StringIO()):
            on_gpu.pack(args)
        with tarfile.open(args.file) as tar:
            tar.extractall(cls.folder)   # makes the folder on_gpu

    def test_the_guard_compiles_without_a_warning(self):
        r = subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O2", *WARNINGS.split(), "-fPIC", "-c", "-o", f"{self.folder}/guard.o",
                            f"{CLIENTS}/programs/guard.c"], stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((r.returncode, r.stderr), (0, ""))

    def run_pack(self, *options):
        """Run the unpacked on_gpu.py; return (exit status, output, lines of core.txt, lines of bindings.txt)."""
        out = tempfile.mkdtemp(dir=self.folder)
        env = {**os.environ, "TEST_DRIVER": f"{self.folder}/libcuda.so.1", "PYTHONPATH": "/nonexistent"}
        r = subprocess.run([sys.executable, f"{self.folder}/on_gpu/on_gpu.py", "run", out, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, env=env, check=False)
        return r.returncode, r.stdout, *(lines(f"{out}/{name}.txt") for name in ("core", "bindings"))

    def test_two_libraries_of_the_toolkit_are_in_the_pack(self):
        found = [os.path.join(folder, f) for folder, _, files in os.walk(f"{self.folder}/on_gpu/python{on_gpu.THIS_PYTHON}") for f in files]
        libraries = sorted(os.path.relpath(f, self.folder).split("/", 2)[2] for f in found if "/nvidia/" in f)
        self.assertEqual(libraries, ["bindings/site-packages/nvidia/cu13/lib/libcudart_static.a", "common/site-packages/nvidia/cu13/lib/libnvfatbin.so.13",
                                     "core/site-packages/nvidia/cu13/lib/libcudart_static.a"])

    def test_a_helper_of_the_tests_has_pinned_memory_instead_of_managed_memory(self):
        path = f"{self.folder}/on_gpu/core/cuda_core/tests/helpers/buffers.py"
        with open(path, encoding="utf-8") as f:
            self.assertEqual(f.read(), PINNED_BUFFERS)
        with self.assertRaisesRegex(SystemExit, "the checkout is of another version"):
            on_gpu.use_pinned_memory(path)

    def test_the_outcomes_of_the_suites(self):
        status, text, core, bindings = self.run_pack()
        self.assertEqual(core, ["passed memory_ipc/test_errors.py::test_one", "passed test_memory.py::test_a_pass", "failed test_memory.py::test_b_fail",
                                "skipped test_memory.py::test_c_skip", "failed test_memory.py::test_d_crash",
                                "passed test_memory.py::test_e_packages_of_the_pack_only", "failed test_memory.py::test_f_on_soft"], text)
        self.assertEqual({line.split()[0] for line in bindings}, {"passed"}, text)
        self.assertIn("FAILED test_memory.py::test_b_fail: AssertionError: one is not two\n", text)
        self.assertIn("core: 3 passed, 3 failed, 1 skipped, 0 blocked, 0 files not finished\n", text)
        self.assertEqual(status, 0)

    def test_the_guard_refuses_what_others_on_the_gpu_would_notice(self):
        status, text, core, bindings = self.run_pack("--guard")
        self.assertEqual({line.split("::test_")[1] for line in bindings if line.startswith("blocked")}, REFUSED, text)
        self.assertEqual({line.split()[0] for line in bindings}, {"passed", "blocked"})
        self.assertEqual({line.split()[0] for line in core}, {"passed", "failed", "skipped"})
        self.assertIn(f"bindings: 9 passed, 0 failed, 0 skipped, {len(REFUSED)} blocked, 0 files not finished\n", text)
        self.assertEqual(status, 0)

    def test_nothing_runs_if_the_guard_does_not_work(self):
        os.rename(f"{self.folder}/on_gpu/guard.so", f"{self.folder}/guard.so")
        self.addCleanup(os.rename, f"{self.folder}/guard.so", f"{self.folder}/on_gpu/guard.so")
        status, text, core, bindings = self.run_pack("--guard")
        self.assertEqual((status, core, bindings), (1, [], []))
        self.assertRegex(text, "on_gpu: the guard does not work: 1\n\\Z")

    def test_files_of_one_suite_on_the_software_driver(self):
        write(f"{self.folder}/build/gpuload", '#!/bin/sh\n[ "$1 $2 $3" = "soft --quiet --" ] || exit 9\nshift 3\nON_SOFT=1 exec "$@"\n')
        os.chmod(f"{self.folder}/build/gpuload", 0o755)
        _, text, core, bindings = self.run_pack("--soft", f"{self.folder}/build", "--only", "core/test_memory.py")
        self.assertIn("passed test_memory.py::test_f_on_soft", core, text)
        self.assertNotIn("passed memory_ipc/test_errors.py::test_one", core)
        self.assertEqual(bindings, [])

    def test_the_lists_name_files_that_the_time_did_not_suffice_for(self):
        status, text, core, bindings = self.run_pack("--seconds", "0")
        self.assertEqual(core, ["notrun memory_ipc/test_errors.py (process)", "notrun test_memory.py (process)"])
        self.assertEqual(bindings, ["notrun test_guarded.py (process)"])
        self.assertIn("core: 0 passed, 0 failed, 0 skipped, 0 blocked, 2 files not finished\n", text)
        self.assertEqual(status, 1)

    def test_a_pack_for_another_python(self):
        here = f"{self.folder}/on_gpu/python{on_gpu.THIS_PYTHON}"
        os.rename(here, f"{here}0")
        self.addCleanup(os.rename, f"{here}0", here)
        status, text, *_ = self.run_pack()
        self.assertEqual(status, 1)
        self.assertRegex(text, f"has no packages for Python {on_gpu.THIS_PYTHON}: unpack a file that ")


class Compare(unittest.TestCase):
    def compare(self, gpu, soft):
        with tempfile.TemporaryDirectory() as folder:
            write(f"{folder}/gpu.txt", gpu)
            write(f"{folder}/soft.txt", soft)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                status = on_gpu.compare(argparse.Namespace(gpu=f"{folder}/gpu.txt", soft=f"{folder}/soft.txt"))
        return status, out.getvalue()

    def test_the_share_of_what_the_gpu_passes(self):
        gpu = "passed a[x y]\npassed b\npassed c\npassed d\nfailed e\nfailed f\nskipped g\nblocked h\npassed i\npassed j\n"
        soft = "passed a[x y]\nfailed b\nskipped c\npassed d\nfailed e\npassed f\npassed g\npassed h\nnotrun i\n"
        status, text = self.compare(gpu, soft)
        self.assertEqual(status, 0)
        self.assertEqual(text.split("\n\n"), [
            "GPU: 10 tests: 6 passed, 2 failed, 1 skipped, 1 blocked\nSOFT: 9 tests: 5 passed, 2 failed, 1 skipped, 1 notrun",
            "passed on the GPU, failed on SOFT: 1\n  passed / failed  b", "passed on the GPU, skipped on SOFT: 1\n  passed / skipped  c",
            "passed on SOFT, not on the GPU: 2\n  failed / passed  f\n  skipped / passed  g", "failed on both: 1\n  failed / failed  e",
            "in one list only, or left out: 3\n  blocked / passed  h\n  passed / notrun  i\n  passed / -  j",
            "of 7 tests on both: 4 pass on the GPU, 4 on SOFT\nSOFT passes 50.00 % of what the GPU passes (2 of 4)\n"])

    def test_lists_without_a_common_test_have_no_share(self):
        status, text = self.compare("passed a\n", "passed b\n")
        self.assertEqual(status, 1)
        self.assertTrue(text.endswith("\nof 0 tests on both: 0 pass on the GPU, 0 on SOFT\n"), text)


if __name__ == "__main__":
    unittest.main()
