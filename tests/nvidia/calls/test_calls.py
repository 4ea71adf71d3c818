#!/usr/bin/env python3
"""gpuload calls: every way in which a program reaches a CUDA function, and programs that are unusual or crash."""
import json, os, re, shutil, signal, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from calls import ROOT, SOFT

BUILD, CC = os.path.dirname(SOFT), os.environ.get("CC", "cc")
ODD = f"{BUILD}/tests/nvidia/calls/odd"
LINKED = """
#include <cuda.h>
static CUresult (*volatile init)(unsigned) = cuInit;
int main(void)
{
	CUdeviceptr p = 0;
	CUcontext context;
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	size_t size = 2 << 20;

	if (init(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
		return 1;
	if (cuMemCreate(&handle, size, &prop, 0) || cuMemAddressReserve(&p, size, 0, 0, 0) || cuMemMap(p, size, 0, handle, 0) ||
	    cuMemSetAccess(p, size, &access, 1))
		return 2;
	return cuMemAlloc(&p, (size_t)1 << 62) != CUDA_ERROR_OUT_OF_MEMORY;
}
"""
KERNEL = """
#include <cstdio>
__global__ void scale(float *x, float f) { x[threadIdx.x] *= f; }
int main()
{
	float h[64] = { 1 }, *d = nullptr;
	void *get = nullptr;
	cudaDriverEntryPointQueryResult status;
	cudaMalloc(&d, sizeof h);
	cudaMemcpy(d, h, sizeof h, cudaMemcpyHostToDevice);
	scale<<<dim3(1, 1), 64>>>(d, 3.f);
	cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost);
	cudaGetDriverEntryPointByVersion("cuMemGetInfo", &get, 12000, cudaEnableDefault, &status);
	size_t n[2];
	printf("%g %d %s\\n", h[0], get ? ((int (*)(size_t *, size_t *))get)(n, n + 1) : -1, cudaGetErrorString(cudaMalloc(&d, (size_t)1 << 60)));
}
"""
with open(f"{ROOT}/build.ninja" if BUILD == f"{ROOT}/build" else f"{BUILD}/build.ninja", encoding="utf-8") as rules:
    found = re.search(r"-isystem (\S+)", rules.read())
    INCLUDE = ["-isystem", os.path.join(ROOT, found[1])] if found else []
with open(f"{SOFT}/libcuda-calls.so.1", "rb") as library:
    SANITIZED = re.search(rb"__[at]san_init", library.read())


def nvcc():
    """The nvcc that this build uses; None: there is none."""
    with open(f"{BUILD}/tests.path", encoding="utf-8") as f:
        folder = f.read().strip()
    return shutil.which("nvcc", path=folder) if folder else shutil.which("nvcc")


@unittest.skipIf(SANITIZED, "a library with a sanitizer cannot be loaded into programs without one")
class Calls(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def log(self, *command, filter="all", status=0, format="json", driver="soft"):
        """Run a command under `gpuload calls`; return the logged calls, and set self.out to the command's output."""
        path = f"{self.folder}/log"
        r = subprocess.run([f"{BUILD}/gpuload", "calls", "--driver", driver, "--filter", filter, "--format", format, "--output", path, "--", *command],
                           capture_output=True, text=True, timeout=120)
        self.assertEqual(r.returncode, status, r.stderr)
        self.assertNotIn("not recorded", r.stderr)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        self.out = r.stdout
        return [json.loads(line) for line in text.splitlines()] if format == "json" else text

    def named(self, calls, name):
        return [c for c in calls if c["call"] == name]

    # ---- the ways to a function ----

    def test_a_program_that_is_linked_with_the_driver(self):
        with open(f"{self.folder}/p.c", "w", encoding="utf-8") as f:
            f.write(LINKED)
        for bind, *options in (("",), ("1",), ("", "-fno-plt"), ("", "-no-pie"), ("", "-O2", "-fno-plt", "-Wl,-z,now")):
            with self.subTest(bind=bind, options=options):
                self.check_linked(bind, options)

    def check_linked(self, bind, options):
        subprocess.run([CC, *options, f"{self.folder}/p.c", "-o", f"{self.folder}/p", *INCLUDE, f"-L{SOFT}", "-lcuda"],
                       check=True, timeout=120)
        calls = self.log("env", f"LD_BIND_NOW={bind}", f"{self.folder}/p")
        self.assertEqual([c["call"] for c in calls], ["cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuMemCreate", "cuMemAddressReserve", "cuMemMap",
                                                      "cuMemSetAccess", "cuMemAlloc_v2"])
        create, access, last = calls[3], calls[6], calls[7]
        self.assertEqual(create["args"]["prop"]["type"], "CU_MEM_ALLOCATION_TYPE_PINNED")
        self.assertEqual(create["args"]["prop"]["location"]["type"], "CU_MEM_LOCATION_TYPE_DEVICE")
        self.assertEqual(access["args"]["desc"], [{"location": {"type": "CU_MEM_LOCATION_TYPE_DEVICE", "id": 0}, "flags": "CU_MEM_ACCESS_FLAGS_PROT_READWRITE"}])
        self.assertEqual(access["args"]["ptr"], calls[4]["args"]["ptr"])
        self.assertEqual((last["result"], last["error"], last["args"]["dptr"]), ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory", None))

    def test_cuGetProcAddress_gives_wrappers_of_the_requested_interface(self):
        calls = self.log(ODD, "address")
        names = [c["call"] for c in calls]
        self.assertEqual(names[-3:], ["cuMemAllocPitch_v2", "cuMemFree_v2", "cuStreamSynchronize_ptsz"])
        self.assertEqual(names.count("cuGetProcAddress_v2"), 5)
        missing = [c for c in calls if c["args"].get("symbol") == "cuNoSuchCall"]
        self.assertEqual((missing[0]["args"]["pfn"], missing[0]["args"]["symbolStatus"]), ("0x0", "CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND"))

    def test_a_driver_that_returns_functions_which_it_does_not_export(self):
        old = f"{self.folder}/old.so"   # has only the symbol hash table of System V, as libraries had before DT_GNU_HASH
        subprocess.run([CC, "-shared", "-fPIC", "-w", "-Wl,--hash-style=sysv", *INCLUDE, "-I", ROOT, "-o", old, f"{ROOT}/tests/nvidia/calls/so_driver.c"],
                       check=True, timeout=120)
        for path in (f"{BUILD}/tests/nvidia/calls/so_driver.so", old):
            with self.subTest(path):
                self.check_addresses(path)

    def check_addresses(self, path):
        program = f"""
import ctypes
cuda, p, out = ctypes.CDLL({path!r}), ctypes.c_void_p(), ctypes.c_uint64()
def call(symbol, version, flags, *args):
    found = cuda.cuGetProcAddress(symbol, ctypes.byref(p), version, ctypes.c_uint64(flags))
    return found or ctypes.CFUNCTYPE(ctypes.c_int)(p.value)(*args)
results = [call(b'cuMemAlloc', 99000, 0, ctypes.byref(out), ctypes.c_size_t(9)), call(b'cuMemAlloc', 12000, 0, ctypes.byref(out), ctypes.c_size_t(5)),
           call(b'cuStreamSynchronize', 12000, 2, None),
           call(b'cuStreamSynchronize', 12000, 1, ctypes.c_void_p(1)), call(b'cuNewerThanThisHeader', 12000, 0, ctypes.byref(out), ctypes.c_size_t(7))]
print(results, out.value)
"""
        calls = [c for c in self.log(sys.executable, "-c", program, driver="nvidia") if "GetProc" not in c["call"]]
        self.assertEqual(self.out, f"[0, 0, 0, 400, 0] {0x1007}\n")
        self.assertEqual([c["call"] for c in calls], ["cuMemAlloc_v2", "cuStreamSynchronize_ptsz", "cuStreamSynchronize"])
        self.assertEqual((calls[0]["args"]["dptr"], calls[2]["result"]), ("0x1005", "CUDA_ERROR_INVALID_HANDLE"))

    def test_python_through_ctypes(self):
        calls = self.log(sys.executable, "-c", "import ctypes; c = ctypes.CDLL('libcuda.so.1'); c.cuInit(0); n = ctypes.create_string_buffer(99); "
                         "c.cuDeviceGetName(n, 99, 0)")
        self.assertEqual(self.named(calls, "cuDeviceGetName")[0]["args"]["name"], "gpuload software GPU")

    @unittest.skipUnless(nvcc(), "no nvcc")
    def test_programs_of_nvcc_with_either_runtime(self):
        with open(f"{self.folder}/k.cu", "w", encoding="utf-8") as f:
            f.write(KERNEL)
        for kind in ("static", "shared"):
            program = f"{self.folder}/{kind}"
            r = subprocess.run([nvcc(), "-w", "-cudart", kind, "-gencode", "arch=compute_75,code=compute_75", "-o", program, f"{self.folder}/k.cu"],
                               capture_output=True, text=True, timeout=300)
            if r.returncode and kind == "shared":
                continue   # some toolkits lack this library
            self.assertEqual(r.returncode, 0, r.stderr)
            calls = self.log(program)
            self.assertEqual(self.out, "3 0 out of memory\n", kind)
            launches = [c for c in calls if "kernel" in c]
            self.assertEqual({c["kernel"] for c in launches}, {"scale(float*, float)"})
            self.assertEqual({c["api"] for c in launches}, {"runtime", "driver"})
            runtime = [c for c in launches if c["api"] == "runtime"][0]
            self.assertEqual(runtime["args"]["blockDim"], {"x": 64, "y": 1, "z": 1})
            copies = [c["args"]["kind"] for c in self.named(calls, "cudaMemcpy")]
            self.assertEqual(copies, ["cudaMemcpyHostToDevice", "cudaMemcpyDeviceToHost"])
            self.assertEqual(self.named(calls, "cudaGetErrorString")[0]["result"], "out of memory")
            self.assertEqual(self.named(calls, "cuMemGetInfo_v2")[0]["depth"], 0)
            outer, inner = self.named(calls, "cudaMalloc")[0], self.named(calls, "cuMemAlloc_v2")[0]
            self.assertEqual((outer["depth"], inner["depth"]), (0, 1))
            self.assertLess(calls.index(outer), calls.index(inner))
            self.assertEqual(outer["args"]["devPtr"], inner["args"]["dptr"])

    # ---- processes and threads ----

    def test_threads(self):
        for n in (8, 1500):
            calls = self.named(self.log(ODD, "threads", str(n)), "cuDriverGetVersion")
            self.assertEqual(len(calls), 10 * n)
            self.assertGreater(len({c["tid"] for c in calls}), n // 2)   # not n, because the kernel may reuse a thread id

    def test_each_process_after_fork_has_its_calls(self):
        calls = self.named(self.log(ODD, "fork", "5"), "cuDriverGetVersion")
        by_process = {}
        for c in calls:
            by_process[c["pid"]] = by_process.get(c["pid"], 0) + 1
        self.assertEqual(sorted(by_process.values()), [10] * 5 + [20])

    def test_exec_and_processes_of_a_shell(self):
        self.assertEqual(len(self.named(self.log(ODD, "exec", "1"), "cuDriverGetVersion")), 20)
        calls = self.log("sh", "-c", f"{ODD} threads 1; {ODD} threads 1")
        self.assertEqual(len({c["pid"] for c in calls}), 2)

    # ---- unusual programs ----

    def test_what_was_recorded_before_a_crash_is_in_the_log(self):
        calls = self.log(ODD, "crash", status=-signal.SIGABRT)
        self.assertEqual(len(self.named(calls, "cuDriverGetVersion")), 10)
        self.assertTrue(self.named(calls, "cuStreamSynchronize")[0]["unfinished"])
        text = self.log(ODD, "crash", status=-signal.SIGABRT, format="text")
        self.assertIn("cuStreamSynchronize(hStream=0) = ? <unfinished>\n", text)

    def test_a_program_that_jumps_out_of_a_call(self):
        calls = self.log(ODD, "longjmp")
        self.assertTrue(self.named(calls, "cuOccupancyMaxPotentialBlockSize")[0]["unfinished"])
        self.assertEqual(len(self.named(calls, "cuDriverGetVersion")), 10)

    def test_calls_in_signal_handlers(self):
        path = f"{self.folder}/log"
        r = subprocess.run([f"{BUILD}/gpuload", "calls", "--driver", "soft", "--output", path, "--", ODD, "signals", "200"], capture_output=True, timeout=120)
        self.assertEqual(r.returncode, 0, r.stderr)   # a call that interrupts the recording of another one may be counted as lost

    def test_arguments_that_cannot_be_read(self):
        calls = self.named(self.log(ODD, "pointers", status=-signal.SIGSEGV), "cuModuleGetFunction")   # the driver reads the name at 0x10
        self.assertEqual([c["args"]["name"] for c in calls], ["a name that is not in it", "0x10"])
        self.assertEqual([c.get("unfinished", False) for c in calls], [False, True])

    def test_other_cases(self):
        for case, n, expected in (("reopen", 3, 30), ("closed", 0, 10), ("late", 0, 10)):
            with self.subTest(case):
                self.assertEqual(len(self.named(self.log(ODD, case, str(n)), "cuDriverGetVersion")), expected)

    # ---- the log ----

    def test_nothing_is_lost_when_the_program_is_faster_than_the_reader(self):
        r = subprocess.run([f"{BUILD}/gpuload", "calls", "--driver", "soft", "--summary", "--format", "json", "--output", "-", "--", sys.executable, "-c",
                            "import ctypes\nc = ctypes.CDLL('libcuda.so.1')\nn = ctypes.byref(ctypes.c_int())\nf = c.cuDriverGetVersion\n"
                            "for i in range(200000): f(n)"], capture_output=True, text=True, timeout=120)
        summary = json.loads(r.stdout)
        self.assertEqual(summary["lost"], 0)
        self.assertEqual([(c["call"], c["calls"], c["errors"]) for c in summary["calls"]], [("cuDriverGetVersion", 200000, 0)])

    def test_times_are_those_of_the_program(self):
        calls = self.log(ODD, "threads", "4")
        for tid in {c["tid"] for c in calls}:
            starts = [c["start_ns"] for c in calls if c["tid"] == tid]
            self.assertEqual(starts, sorted(starts))

    def test_events_for_perfetto(self):
        trace = json.loads(self.log(ODD, "threads", "3", format="perfetto"))
        slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(slices), 30)
        self.assertTrue(all(e["dur"] >= 0 and e["name"] == "cuDriverGetVersion" and e["args"]["result"] == "CUDA_SUCCESS" for e in slices))
        self.assertEqual(len({e["tid"] for e in slices}), len({e["tid"] for e in trace["traceEvents"] if e["name"] == "thread_name"}))


if __name__ == "__main__":
    unittest.main()
