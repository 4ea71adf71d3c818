#!/usr/bin/env python3
"""Calls of a CUDA runtime that is linked into a program are redirected to gpuload's runtime.  The linked runtime is a small
replacement for NVIDIA's: its functions ask the driver for a private table, as NVIDIA's do, and all return 999."""
import glob, os, random, re, shutil, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from calls import ROOT, SOFT

BUILD, CC = os.path.dirname(SOFT), os.environ.get("CC", "cc")
SCAN = f"{BUILD}/tests/nvidia/redirect_scan"
PROGRAMS = f"{BUILD}/tests/nvidia/cudart/*.cudart"
CALLS = ("cudaMalloc", "cudaFree", "cudaRuntimeGetVersion", "cudaGetDeviceCount", "__cudaRegisterFatBinary")
RUNTIME = """
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
extern long __getdelim(char **, unsigned long *, int, FILE *);  /* the real runtime needs both */
const char *file = "/cudart.shm.%x";
int unused(void) { return shm_open(file, 0, 0) + (int)__getdelim(0, 0, 0, 0); }
static int calls;
static int (*volatile get_table)(const void **, const void *);
__attribute__((noinline)) static int count(int n)
{
	static const char id[16] = "a private table";
	void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
	const void *table;

	get_table = cuda ? dlsym(cuda, "cuGetExportTable") : 0;
	calls += n;
	return (get_table && !get_table(&table, id)) || calls > -9 ? 999 : n;
}
""" + "".join(f"int {name}(void *a, long b) {{ return count({i} + (a != 0) + (b == {i * 77 + 5})); }}\n" for i, name in enumerate(CALLS)) + \
    "".join(f"int filler{i}(int a, int b) {{ return count(a * {i * 1000 + 7} + b / (a | {i + 1}) + (a ^ {i * 31})); }}\n" for i in range(40))
PROGRAM = """
#include <stdio.h>
int cudaRuntimeGetVersion(int *), cudaMalloc(void **, unsigned long), cudaFree(void *);
int unused(void);
int test(void)
{
	int version = 1, r = cudaRuntimeGetVersion(&version), m;
	void *p = 0;

	m = cudaMalloc(&p, 100);
	printf("%d %d %d %d %d\\n", r, version, m, p != 0, cudaFree(p));
	fflush(stdout);
	return r == 12345 ? unused() : 0;
}
"""
IDLE = "int test(void); int main(int n, char **a) { return n > 9 ? test() : 0; }"
THREAD = """
#include <pthread.h>
int test(void);
static void *run(void *unused) { test(); return unused; }
int main(void) { pthread_t thread; return pthread_create(&thread, 0, run, 0) || pthread_join(thread, 0); }
"""
REDIRECTED, FAILED = "0 13000 0 1 0\n", "999 1 999 0 999\n"
with open(f"{SOFT}/libcudart-redirect.so.1", "rb") as library:
    SANITIZED = re.search(rb"__[at]san_init", library.read())
auditor = unittest.skipIf(SANITIZED, "a sanitizer cannot be loaded into an auditor")
KERNEL = """
#include <cstdio>
__constant__ int factor;
__global__ void scale(int *x) { x[threadIdx.x] *= factor; }
int main()
{
	int x[64], seven = 7, sum = 0, *d = nullptr;
	for (int i = 0; i < 64; i++) x[i] = i;
	cudaMalloc(&d, sizeof x);
	cudaMemcpy(d, x, sizeof x, cudaMemcpyHostToDevice);
	cudaMemcpyToSymbol(factor, &seven, sizeof seven);
	scale<<<1, 64>>>(d);
	cudaError_t e = cudaMemcpy(x, d, sizeof x, cudaMemcpyDeviceToHost);
	for (int v : x) sum += v;
	printf("%s %d\\n", cudaGetErrorString(e), sum);
}
"""


def nvcc():
    """The nvcc that this build uses; None: there is none."""
    with open(f"{ROOT}/build.ninja", encoding="utf-8") as rules:
        found = re.search(r"command = (\S*/nvcc) ", rules.read())
    return os.path.join(ROOT, found[1]) if found else shutil.which("nvcc")


def compile_c(folder, out, *args, **sources):
    for name, text in sources.items():
        with open(f"{folder}/{name}.c", "w", encoding="utf-8") as f:
            f.write(text)
    subprocess.run([CC, "-O1", "-falign-functions=16", "-o", f"{folder}/{out}", *(f"{folder}/{name}.c" for name in sources), *args], check=True, timeout=300)


class Redirect(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        f = cls.folder
        compile_c(f, "runtime.o", "-c", "-fPIC", "-fvisibility=hidden", runtime=RUNTIME)
        compile_c(f, "shared.o", "-c", "-fPIC", shared=RUNTIME)
        compile_c(f, "old.o", "-c", "-fPIC", old=RUNTIME + "int cudaBindTexture(void) { return 999; }\n")
        compile_c(f, "v12.o", "-c", "-fPIC", v12=RUNTIME + "int cudaGetDeviceProperties_v2(void) { return 999; }\n")
        compile_c(f, "other.o", "-c", "-fPIC", other=RUNTIME.replace("* 1007", "* 1008"))
        for name in ("runtime", "other"):
            os.mkdir(f"{f}/{name}")
            subprocess.run(["ar", "rc", f"{f}/{name}/libcudart_static.a", f"{f}/{name}.o"], check=True)
        for name in ("runtime", "old", "v12"):
            compile_c(f, name if name != "runtime" else "program", f"{f}/{name}.o", "-lrt", "-ldl", program=PROGRAM, main="int test(void); int main(void) { return test(); }")
        for name, main in (("idle", IDLE), ("thread", THREAD)):
            compile_c(f, name, f"{f}/runtime.o", "-s", "-lrt", "-ldl", "-lpthread", program=PROGRAM, main=main)
        compile_c(f, "library.so", f"{f}/runtime.o", "-shared", "-fPIC", "-fvisibility=hidden",
                  library=PROGRAM + "__attribute__((constructor)) static void begin(void) { test(); }\n")
        compile_c(f, "opens", "-ldl", opens="#include <dlfcn.h>\nint main(int n, char **a) { return n > 1 && dlopen(a[1], 2) ? 0 : 1; }")
        compile_c(f, "shared.so", f"{f}/shared.o", "-shared", "-fPIC", "-Wl,-Bsymbolic", library=PROGRAM + "__attribute__((constructor)) static void begin(void) { test(); }\n")
        for name in ("program", "library.so", "shared.so"):
            subprocess.run(["strip", "-o", f"{f}/stripped.{name}", f"{f}/{name}"], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def soft(self, *command, archive="/nonexistent", log=None, **variables):
        env = dict(os.environ, GPULOAD_CUDART_STATIC=archive, XDG_CACHE_HOME=f"{self.folder}/cache", **({"GPULOAD_LOG": log} if log else {}))
        env.update(variables)
        return subprocess.run([f"{BUILD}/gpuload", "soft", "--quiet", "--", *command], capture_output=True, text=True, timeout=300, env=env, cwd=self.folder)

    def expect(self, stdout, stderr, *command, **more):
        r = self.soft(*command, **more)
        self.assertEqual((r.returncode, r.stdout), (0, stdout), r.stderr)
        self.assertRegex(r.stderr, stderr)

    @auditor
    def test_a_program_with_symbols_calls_our_runtime(self):
        self.assertEqual(subprocess.run([f"{self.folder}/program"], capture_output=True, text=True, check=True).stdout, FAILED)
        self.expect(REDIRECTED, "^$", "./program")
        self.expect(REDIRECTED, f"{len(CALLS)} of {len(CALLS)} functions of NVIDIA's CUDA runtime in /proc/self/exe jump to .*libcudart.so.13", "./program", log="info")

    @auditor
    def test_the_constructor_of_a_library_calls_our_runtime(self):
        self.expect(REDIRECTED, "^$", "./opens", f"{self.folder}/library.so")
        self.expect(REDIRECTED, "^$", "./opens", f"{self.folder}/stripped.library.so", archive=f"{self.folder}/runtime")

    @auditor
    def test_a_library_that_exports_the_runtime_calls_ours(self):
        self.expect(REDIRECTED, "^$", "./opens", f"{self.folder}/stripped.shared.so")

    @auditor
    def test_a_stripped_program_needs_the_archive_of_its_runtime(self):
        for archive in (f"{self.folder}/runtime", f"{self.folder}/runtime/libcudart_static.a"):
            self.expect(REDIRECTED, "^$", "./stripped.program", archive=archive)
        message = "^gpuload: {} contains a copy of NVIDIA's CUDA runtime without symbols, whose calls fail on the software driver; .*:\ngpuload: .*pip install --no-deps --target " \
                  f"'{self.folder}/cache/gpuload/cudart/VERSION' nvidia-cuda-runtime==VERSION\n$"
        self.expect(FAILED, message.format("/proc/self/exe"), "./stripped.program")
        self.expect(FAILED, message.format("/proc/self/exe"), "./stripped.program", archive=f"{self.folder}/other")
        self.expect(FAILED, message.format("/proc/self/exe"), "./thread")
        self.expect(FAILED, message.format(f"{self.folder}/stripped.library.so"), "./opens", f"{self.folder}/stripped.library.so")

    @auditor
    def test_a_runtime_that_is_never_called_is_not_mentioned(self):
        self.expect("", "^$", "./idle")
        self.expect("", "/proc/self/exe contains NVIDIA's CUDA runtime without symbols, and no libcudart_static.a of the same version was found", "./idle", log="info")

    @auditor
    def test_other_programs_are_left_alone(self):
        self.expect("", "^$", "true")
        self.assertEqual(self.soft(f"{BUILD}/gpuload", "version").stderr, "")   # gpuload imports what a CUDA runtime imports

    @auditor
    def test_an_archive_in_the_folder_that_the_message_names_is_found(self):
        home = f"{self.folder}/home of the user"
        for variables, folder in (({}, f"{self.folder}/cache"), ({"XDG_CACHE_HOME": "", "HOME": home}, f"{home}/.cache"),
                                  ({"XDG_CACHE_HOME": "relative", "HOME": home}, f"{home}/.cache")):
            with self.subTest(str(variables)):
                target = re.search("--target '(.*)' ", self.soft("./stripped.program", **variables).stderr)[1]
                self.assertEqual(target, f"{folder}/gpuload/cudart/VERSION")
                place = f"{target}/nvidia/cu13/lib"
                os.makedirs(place)
                shutil.copy(f"{self.folder}/runtime/libcudart_static.a", place)
                self.expect(REDIRECTED, "^$", "./stripped.program", **variables)
                shutil.rmtree(folder)

    @auditor
    def test_an_archive_among_the_python_packages_of_the_library_is_found(self):
        packages = f"{self.folder}/venv/lib/python3.11/site-packages"
        os.makedirs(f"{packages}/nvidia/cu13/lib")
        os.makedirs(f"{packages}/client")
        library = shutil.copy(f"{self.folder}/stripped.library.so", f"{packages}/client")
        self.assertNotEqual(self.soft("./opens", library).stdout, REDIRECTED)
        shutil.copy(f"{self.folder}/runtime/libcudart_static.a", f"{packages}/nvidia/cu13/lib")
        self.expect(REDIRECTED, "^$", "sh", "-c", f"./opens {library}")

    @auditor
    def test_a_user_without_folders_is_told_the_variable(self):
        self.expect(FAILED, "\ngpuload: set GPULOAD_CUDART_STATIC to the path of libcudart_static.a\n$", "./stripped.program", XDG_CACHE_HOME="", HOME="")

    @auditor
    def test_the_version_of_the_runtime_counts(self):
        if os.path.exists(f"{SOFT}/libcudart.so.12"):
            r = self.soft("./v12", log="info")
            self.assertRegex(r.stderr, "jump to .*libcudart.so.12")
            self.assertRegex(r.stdout, r"^0 12\d\d\d 0 1 0\n$")
        self.expect(FAILED, "whose calls will fail: it is older than CUDA 12", "./old")

    @auditor
    def test_a_program_of_nvcc_runs_kernels(self):
        home = os.path.dirname(os.path.dirname(os.path.realpath(nvcc()))) if nvcc() else ""
        archives = glob.glob(f"{home}/lib*/libcudart_static.a")
        if not archives:
            self.skipTest("no nvcc, or no libcudart_static.a beside it")
        with open(f"{self.folder}/kernel.cu", "w", encoding="utf-8") as f:
            f.write(KERNEL)
        subprocess.run([nvcc(), "-gencode", "arch=compute_75,code=compute_75", f"-L{os.path.dirname(archives[0])}", "kernel.cu", "-o", "kernel"], cwd=self.folder, check=True, timeout=300)
        subprocess.run(["strip", "-o", f"{self.folder}/stripped.kernel", f"{self.folder}/kernel"], check=True)
        for name in ("kernel", "stripped.kernel"):
            self.expect(f"no error {7 * 63 * 32}\n", "^$", f"./{name}", archive=archives[0])

    @auditor
    @unittest.skipUnless(glob.glob(PROGRAMS), "no programs with NVIDIA's runtime were built")
    def test_the_programs_of_the_runtimes_tests_run_with_nvidias_runtime_in_them(self):
        for program in sorted(glob.glob(PROGRAMS)):
            with self.subTest(os.path.basename(program)):
                r = self.soft(program)
                self.assertEqual(r.returncode, 0, r.stdout + r.stderr)

    def scan(self, name, archive, *more):
        return subprocess.run([SCAN, f"{self.folder}/{name}", *more], capture_output=True, text=True, errors="replace", timeout=300,
                              env=dict(os.environ, GPULOAD_CUDART_STATIC=archive, XDG_CACHE_HOME=f"{self.folder}/nothing"))

    def test_the_archive_gives_the_addresses_of_the_symbols(self):
        for name in ("program", "library.so"):
            by_symbols, by_archive = self.scan(name, "/nonexistent"), self.scan(f"stripped.{name}", f"{self.folder}/runtime", "archive")
            self.assertEqual(sorted(by_symbols.stdout.splitlines()), sorted(by_archive.stdout.splitlines()))
            self.assertEqual(len(by_symbols.stdout.splitlines()), len(CALLS) + 1)

    def test_damaged_files_are_refused_or_harmless(self):
        with open(f"{self.folder}/runtime/libcudart_static.a", "rb") as f:
            whole = f.read()
        with open(f"{self.folder}/stripped.program", "rb") as f:
            program = f.read()
        rng = random.Random(17)
        for k in range(120):
            for name, data in (("damaged.a", bytearray(whole)), ("damaged", bytearray(program))):
                if k % 3 == 0:
                    del data[rng.randrange(len(data)):]
                for _ in range(0 if k % 3 == 0 else rng.choice((1, 8, 64))):
                    at = rng.randrange(min(len(data), 4096) if k % 2 else len(data))
                    data[at:at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, rng.randbytes(8)))
                with open(f"{self.folder}/{name}", "wb") as f:
                    f.write(data)
            for name, archive in (("stripped.program", "damaged.a"), ("damaged", "runtime"), ("damaged", "damaged.a")):
                r = self.scan(name, f"{self.folder}/{archive}")
                self.assertIn(r.returncode, (0, 1), f"round {k}: {name} {archive}: {r.stderr}")

    def test_the_version_of_the_tool_chain_is_read(self):
        with open(f"{self.folder}/kernels", "wb") as f:
            f.write(b"x" * 99 + b"Cuda compilation tools, release 13.4, V13.4.92\nBased on NVVM")
        self.assertIn("toolkit '13.4.92'", self.scan("kernels", "/nonexistent").stdout)
        with open(f"{self.folder}/kernels", "wb") as f:
            f.write(b"Cuda compilation tools, release 13.4, V13.4")
        self.assertIn("toolkit '13.4'", self.scan("kernels", "/nonexistent").stdout)


if __name__ == "__main__":
    unittest.main()
