/* bench_calls.c — launches an empty kernel many times: the program that bench_calls.py runs with a log of its calls and without.
 *
 *     bench_calls [N]         prints the time of a launch in ns, of N launches (default 1000000)
 *     bench_calls N switch    calls cuCtxSetCurrent() instead, which takes a driver almost no time
 *
 * It finds the driver as most programs do: dlopen() and dlsym(). */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <cuda.h>

#include "core/clock.h"

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
			   ".visible .entry k(.param .u64 a, .param .u32 n) { ret; }\n";

#define CALLS(X) \
	X(cuInit) \
	X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuModuleLoadData) X(cuModuleGetFunction) X(cuLaunchKernel) X(cuCtxSynchronize)
#define X(name) static __typeof__(name) *p_##name;
CALLS(X)
#undef X

static int load_driver(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

#define X(name) \
	*(void **)&p_##name = driver ? dlsym(driver, #name) : NULL; \
	if (!p_##name) \
		return 0;
	CALLS(X)
#undef X
	return 1;
}

int main(int argc, char **argv)
{
	const long n = argc > 1 ? atol(argv[1]) : 1000000;
	unsigned long long a = 0;
	unsigned count = 0;
	void *args[] = { &a, &count };
	CUcontext context = NULL;
	CUmodule module = NULL;
	CUfunction f = NULL;
	uint64_t start;

	if (!load_driver() || p_cuInit(0) || p_cuDevicePrimaryCtxRetain(&context, 0) || p_cuCtxSetCurrent(context) ||
	    p_cuModuleLoadData(&module, text) || p_cuModuleGetFunction(&f, module, "k")) {
		puts("skipped: no driver with a device");
		return 77;
	}
	for (long i = 0; i < 1000; i++)
		p_cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL);
	p_cuCtxSynchronize();
	start = gpul_clock_ns();
	for (long i = 0; i < n && argc > 2; i++)
		if (p_cuCtxSetCurrent(context))
			return 1;
	for (long i = 0; i < n && argc <= 2; i++)
		if (p_cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL))
			return 1;
	if (argc <= 2 && p_cuCtxSynchronize())
		return 1;
	printf("%.1f\n", (double)(gpul_clock_ns() - start) / (double)n);
	return 0;
}
