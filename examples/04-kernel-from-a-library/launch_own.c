/* launch_own.c — launches a kernel of a shared library, by its name in the library's device code.
 *
 *     launch_own [libsmall.so]
 *
 * The program reads the library as a file, and does not run its host code. */
#include <stdio.h>

#include "driver/context.h"
#include "loader/loader.h"

enum { N = 1000, BLOCK = 128 };

static gpul_status check_result(const gpul_driver *drv, CUdeviceptr y, gpul_error *err)
{
	float host[N];
	gpul_status st = gpul_cu(drv, err, cuMemcpyDtoH(host, y, sizeof host));

	for (int i = 0; !st && i < N; i++)
		if (host[i] != 3.5f * (float)i)
			st = gpul_fail(err, GPUL_EFORMAT, i, "y[%d] is %g, expected %g", i, (double)host[i], 3.5 * i);
	if (!st)
		printf("small_axpy of a shared library: %d correct results\n", N);
	return st;
}

static gpul_status run_axpy(const gpul_driver *drv, const gpul_kernel *k, CUdeviceptr x, CUdeviceptr y, gpul_error *err)
{
	static const gpul_launch_config config = { .grid = { (N + BLOCK - 1) / BLOCK, 1, 1 }, .block = { BLOCK, 1, 1 } };
	float host[N], a = 2.5f;
	int n = N;
	void *args[] = { &a, &x, &y, &n };
	const size_t bytes[] = { 4, 8, 8, 4 };
	gpul_status st;

	for (int i = 0; i < N; i++)
		host[i] = (float)i;
	st = gpul_cu(drv, err, cuMemcpyHtoD(x, host, sizeof host));
	if (!st)
		st = gpul_cu(drv, err, cuMemcpyHtoD(y, host, sizeof host));
	if (!st)
		st = gpul_kernel_launch(k, &config, args, bytes, 4, err);
	return st ? st : check_result(drv, y, err);
}

static gpul_status load_and_run(const gpul_driver *drv, const char *path, gpul_error *err)
{
	gpul_module *m;
	const gpul_kernel *k;
	CUdeviceptr x = 0, y = 0;
	gpul_status st = gpul_module_load_file(drv, path, NULL, &m, err);

	if (st)
		return st;
	st = gpul_kernel_find(m, "small_axpy", &k, err);
	if (!st)
		st = gpul_cu(drv, err, cuMemAlloc(&x, N * sizeof(float)));
	if (!st)
		st = gpul_cu(drv, err, cuMemAlloc(&y, N * sizeof(float)));
	if (!st)
		st = run_axpy(drv, k, x, y, err);
	if (x)
		drv->cuMemFree(x);
	if (y)
		drv->cuMemFree(y);
	gpul_module_unload(m);
	return st;
}

int main(int argc, char **argv)
{
	const gpul_driver *drv;
	gpul_context context = { 0 };
	gpul_error err = { 0 };
	gpul_status st = gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err);

	if (!st)
		st = gpul_context_open(drv, 0, &context, &err);
	if (!st)
		st = load_and_run(drv, argc > 1 ? argv[1] : "./libsmall.so", &err);
	gpul_context_close(&context);
	if (st)
		fprintf(stderr, "launch_own: %s\n", err.text);
	return st != GPUL_OK;
}
