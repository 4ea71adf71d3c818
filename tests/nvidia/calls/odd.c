/* odd.c — a program that makes CUDA calls in unusual ways: test_calls.py runs it with a log.
 *
 *     odd CASE [N]      exit status 0: the calls had the same results as without a log */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

/* clang-format off */
#define CALLS(X) X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuCtxSetCurrent) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuLaunchHostFunc) \
	X(cuStreamSynchronize) X(cuOccupancyMaxPotentialBlockSize) X(cuDevicePrimaryCtxRetain)
/* clang-format on */
#define X(name) static __typeof__(name) *p_##name;
CALLS(X)
#undef X
static CUresult (*get_address)(const char *symbol, void **pfn, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status);

static void *driver;

static void load_driver(void)
{
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	if (!driver)
		exit(77);
#define X(name) *(void **)&p_##name = dlsym(driver, #name);
	CALLS(X)
#undef X
	*(void **)&get_address = dlsym(driver, "cuGetProcAddress_v2");
}

static void start_context(void)
{
	CUcontext context;

	if (p_cuInit(0) || p_cuDevicePrimaryCtxRetain(&context, 0) || p_cuCtxSetCurrent(context))
		exit(3);
}

static CUmodule load_module(void)
{
	static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry k() { ret; }\n";
	CUmodule module;

	if (p_cuModuleLoadData(&module, text))
		exit(3);
	return module;
}

/* ---- the cases ------------------------------------------------------------------------------- */

static int n_repeats = 10;

static void *call_often(void *unused)
{
	int version;

	for (int i = 0; i < n_repeats; i++)
		p_cuDriverGetVersion(&version);
	return unused;
}

static int run_threads(long n)
{
	pthread_t *threads = calloc((size_t)n, sizeof *threads);
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	for (long i = 0; i < n; i++)
		if (pthread_create(&threads[i], &small, call_often, NULL))
			return 3;
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}

static int run_fork(long n)
{
	int status = 0, failed = 0;

	call_often(NULL);
	for (long i = 0; i < n; i++)
		if (!fork()) {
			call_often(NULL);
			_exit(0);
		}
	while (wait(&status) > 0)
		failed |= status;
	call_often(NULL);
	return failed;
}

static volatile int is_waiting;

static void die(void *unused)
{
	(void)unused;
	while (!is_waiting)
		usleep(1000);
	usleep(500000); /* long enough for the other thread to enter the call, even on a busy machine */
	abort();
}

static int run_crash(long n)
{
	(void)n;
	start_context();
	call_often(NULL);
	p_cuLaunchHostFunc(NULL, die, NULL);
	is_waiting = 1;
	return (int)p_cuStreamSynchronize(NULL);
}

static jmp_buf outside;

static size_t CUDA_CB leave(int block)
{
	longjmp(outside, block);
}

static int run_longjmp(long n)
{
	CUfunction f;
	int grid, block;

	(void)n;
	start_context();
	if (p_cuModuleGetFunction(&f, load_module(), "k"))
		return 3;
	if (!setjmp(outside))
		p_cuOccupancyMaxPotentialBlockSize(&grid, &block, f, leave, 0, 0);
	call_often(NULL);
	return 0;
}

static void call_in_handler(int signal_number)
{
	int version;

	(void)signal_number;
	p_cuDriverGetVersion(&version);
}

static int run_signals(long n)
{
	pid_t child;

	signal(SIGUSR1, call_in_handler);
	child = fork();
	if (!child) {
		for (long i = 0; i < n; i++) {
			kill(getppid(), SIGUSR1);
			usleep(100);
		}
		_exit(0);
	}
	while (waitpid(child, NULL, WNOHANG) == 0)
		call_often(NULL);
	return 0;
}

static int run_pointers(long n)
{
	CUfunction f;

	(void)n;
	start_context();
	if (p_cuModuleGetFunction(&f, load_module(), "a name that is not in it") != CUDA_ERROR_NOT_FOUND)
		return 1;
	return (int)p_cuModuleGetFunction(&f, load_module(), (const char *)(uintptr_t)16); /* crash: no memory is at 16 */
}

static int run_reopen(long n)
{
	for (long i = 0; i < n; i++) {
		call_often(NULL);
		dlclose(driver);
		load_driver();
	}
	return 0;
}

static int run_closed(long n)
{
	(void)n;
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	return call_often(NULL) != NULL;
}

static int run_address(long n)
{
	CUdriverProcAddressQueryResult status;
	void *old = NULL, *new = NULL, *thread = NULL, *none = &none, *itself = NULL;
	size_t pitch = 0;
	CUdeviceptr p = 0;

	(void)n;
	start_context();
	if (get_address("cuMemAllocPitch", &new, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status) || !new ||
	    get_address("cuMemFree", &old, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status) || !old ||
	    get_address("cuStreamSynchronize", &thread, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status) || !thread ||
	    get_address("cuGetProcAddress", &itself, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status) || !itself)
		return 3;
	get_address("cuNoSuchCall", &none, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
	if (((__typeof__(&cuMemAllocPitch))(uintptr_t)new)(&p, &pitch, 100, 2, 4) || ((__typeof__(&cuMemFree))(uintptr_t)old)(p))
		return 4;
	return (int)((__typeof__(&cuStreamSynchronize))(uintptr_t)thread)(NULL) || none ? 5 : 0;
}

static int run_exec(long n)
{
	call_often(NULL);
	if (!n)
		return 0;
	return execl("/proc/self/exe", "odd", "exec", "0", (char *)NULL);
}

static int late_calls;

__attribute__((destructor)) static void call_late(void)
{
	if (late_calls)
		call_often(NULL);
}

static int run_late(long n)
{
	(void)n;
	late_calls = 1;
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(long n);
	} cases[] = {
		{ "threads", run_threads }, { "fork", run_fork },         { "crash", run_crash },   { "longjmp", run_longjmp },
		{ "signals", run_signals }, { "pointers", run_pointers }, { "reopen", run_reopen }, { "closed", run_closed },
		{ "address", run_address }, { "exec", run_exec },         { "late", run_late },
	};

	load_driver();
	for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++)
		if (!strcmp(argv[1], cases[i].name))
			return cases[i].run(argc > 2 ? atol(argv[2]) : 0);
	return 2;
}
