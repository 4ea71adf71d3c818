/* run_ptx.c — runs a kernel from a PTX file, and compares this with a launch by the runtime's <<<>>>.
 *
 *     run_ptx [vecadd.ptx]
 *
 * Both ways launch the same kernel on the same buffers; the results must agree. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/context.h"
#include "loader/loader.h"
#include "vecadd.h"

enum { N = 1 << 16, BYTES = N * sizeof(double), LAUNCHES = 200 };

struct buffers {
	CUdeviceptr a, b, c;
};

/* Launch the kernel LAUNCHES times between two events; *ms is the total time. */
static gpul_status time_launches(const gpul_driver *drv, const gpul_kernel *kernel, struct buffers *buf, float *ms, gpul_error *err)
{
	int n = N;
	void *args[] = { &buf->a, &buf->b, &buf->c, &n };
	const size_t arg_bytes[] = { sizeof buf->a, sizeof buf->b, sizeof buf->c, sizeof n };
	gpul_launch_config config = { .grid = { (N + VECADD_BLOCK - 1) / VECADD_BLOCK, 1, 1 }, .block = { VECADD_BLOCK, 1, 1 } };
	CUevent start, stop;
	gpul_status st = gpul_cu(drv, err, cuEventCreate(&start, CU_EVENT_DEFAULT));

	if (st)
		return st;
	if ((st = gpul_cu(drv, err, cuEventCreate(&stop, CU_EVENT_DEFAULT))))
		goto destroy_start;
	st = gpul_kernel_launch(kernel, &config, args, arg_bytes, 4, err); /* not timed: the first launch is slower */
	if (st || (st = gpul_cu(drv, err, cuEventRecord(start, NULL))))
		goto destroy_stop;
	for (int i = 0; i < LAUNCHES && !st; i++)
		st = gpul_kernel_launch(kernel, &config, args, arg_bytes, 4, err);
	if (st || (st = gpul_cu(drv, err, cuEventRecord(stop, NULL))) || (st = gpul_cu(drv, err, cuEventSynchronize(stop))))
		goto destroy_stop;
	st = gpul_cu(drv, err, cuEventElapsedTime(ms, start, stop));
destroy_stop:
	drv->cuEventDestroy(stop);
destroy_start:
	drv->cuEventDestroy(start);
	return st;
}

/* Load the PTX file as a module, find the kernel in it, and time its launches. */
static gpul_status launch_from_ptx(const gpul_driver *drv, const char *ptx, struct buffers *buf, float *ms, gpul_error *err)
{
	gpul_module *module;
	const gpul_kernel *kernel;
	gpul_status st = gpul_module_load_file(drv, ptx, NULL, &module, err);

	if (st)
		return st;
	st = gpul_kernel_find(module, "vecadd", &kernel, err);
	if (!st)
		st = time_launches(drv, kernel, buf, ms, err);
	gpul_module_unload(module);
	return st;
}

static gpul_status allocate_buffers(const gpul_driver *drv, const double *a, const double *b, struct buffers *buf, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	if ((st = gpul_cu(drv, err, cuMemAlloc(&buf->a, BYTES))) || (st = gpul_cu(drv, err, cuMemAlloc(&buf->b, BYTES))) ||
	    (st = gpul_cu(drv, err, cuMemAlloc(&buf->c, BYTES))) || (st = gpul_cu(drv, err, cuMemcpyHtoD(buf->a, a, BYTES))))
		return st;
	return gpul_cu(drv, err, cuMemcpyHtoD(buf->b, b, BYTES));
}

static void free_buffers(const gpul_driver *drv, struct buffers *buf)
{
	const CUdeviceptr all[] = { buf->a, buf->b, buf->c };

	for (int i = 0; i < 3; i++)
		if (all[i])
			drv->cuMemFree(all[i]);
}

/* Compare the result with that of the host, and clear the buffer for the next launch.  Returns 0 if they are equal. */
static int check_result(const gpul_driver *drv, const char *who, struct buffers *buf, const double *a, const double *b, double *c,
			gpul_error *err)
{
	if (gpul_cu(drv, err, cuMemcpyDtoH(c, buf->c, BYTES)) || gpul_cu(drv, err, cuMemsetD8Async(buf->c, 0, BYTES, NULL)))
		return 1;
	for (int i = 0; i < N; i++)
		if (c[i] != a[i] + b[i]) {
			gpul_fail(err, GPUL_EFORMAT, 0, "%s: c[%d] is %g, expected %g", who, i, c[i], a[i] + b[i]);
			return 1;
		}
	return 0;
}

static int run_halves(const gpul_driver *drv, const char *ptx, struct buffers *buf, const double *a, const double *b, double *c,
		      gpul_error *err)
{
	float ms;

	if (launch_from_ptx(drv, ptx, buf, &ms, err) || check_result(drv, "driver API", buf, a, b, c, err))
		return 1;
	printf("driver API, from PTX: %.2f us a launch\n", (double)ms * 1e3 / LAUNCHES);
#ifdef HAVE_CUDART
	if (strcmp(drv->name, "nvidia") != 0) {
		printf("runtime, <<<>>>: skipped, NVIDIA's runtime works only with NVIDIA's "
		       "driver\n");
	} else {
		if (vecadd_by_runtime(buf->a, buf->b, buf->c, N, LAUNCHES, &ms)) {
			gpul_fail(err, GPUL_EUNSUPPORTED, 0, "the runtime's launch failed");
			return 1;
		}
		if (check_result(drv, "runtime", buf, a, b, c, err))
			return 1;
		printf("runtime, <<<>>>: %.2f us a launch\n", (double)ms * 1e3 / LAUNCHES);
	}
#else
	printf("runtime, <<<>>>: skipped, this program was built without nvcc\n");
#endif
	printf("results agree: all %d elements are equal to the host's\n", N);
	return 0;
}

int main(int argc, char **argv)
{
	static double a[N], b[N], c[N];
	const char *ptx = argc > 1 ? argv[1] : "vecadd.ptx";
	const gpul_driver *drv;
	gpul_context context = { 0 };
	struct buffers buf = { 0 };
	gpul_error err = { 0 };
	int bad = 1;

	for (int i = 0; i < N; i++) {
		a[i] = i;
		b[i] = 0.5 * i;
	}
	if (gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &err) == GPUL_OK && gpul_context_open(drv, 0, &context, &err) == GPUL_OK) {
		bad = allocate_buffers(drv, a, b, &buf, &err) || run_halves(drv, ptx, &buf, a, b, c, &err);
		free_buffers(drv, &buf);
		gpul_context_close(&context);
	}
	if (bad)
		fprintf(stderr, "run_ptx: %s\n", err.text);
	return bad;
}
