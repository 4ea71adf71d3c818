/* plain.c — vecadd with the CUDA driver API only, without gpuload.
 *
 *     plain FILE [N [f32]]     FILE: PTX or a cubin with vecadd (c = a + b) of doubles, or of floats
 *
 * bench_run.py compares `gpuload run` with this program.  It must run unchanged on the software driver:
 * LD_LIBRARY_PATH=build/softcuda build/tests/gpu/plain/plain tests/corpus/ptx/vecadd.sm_90.ptx
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(CUresult r, const char *call)
{
	const char *name = NULL;

	if (r == CUDA_SUCCESS)
		return 0;
	cuGetErrorName(r, &name);
	fprintf(stderr, "plain: %s: %s\n", call, name ? name : "an unknown error");
	return 1;
}

#define TRY(call) failed((call), #call)

static char *read_all(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text = calloc(1, 1 << 20);

	if (!f || !text || fread(text, 1, (1 << 20) - 1, f) == 0) {
		fprintf(stderr, "plain: cannot read %s\n", path);
		free(text);
		text = NULL;
	}
	if (f)
		fclose(f);
	return text;
}

static int vecadd(const char *code, size_t element, void *a, void *b, void *c, int n)
{
	size_t bytes = (size_t)n * element;
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr da, db, dc;

	if (TRY(cuInit(0)) || TRY(cuDeviceGet(&device, 0)) || TRY(cuDevicePrimaryCtxRetain(&context, device)) ||
	    TRY(cuCtxSetCurrent(context)) || TRY(cuModuleLoadData(&module, code)) || TRY(cuModuleGetFunction(&kernel, module, "vecadd")) ||
	    TRY(cuMemAlloc(&da, bytes)) || TRY(cuMemAlloc(&db, bytes)) || TRY(cuMemAlloc(&dc, bytes)) || TRY(cuMemcpyHtoD(da, a, bytes)) ||
	    TRY(cuMemcpyHtoD(db, b, bytes)) ||
	    TRY(cuLaunchKernel(kernel, (unsigned)(n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, (void *[]){ &da, &db, &dc, &n }, NULL)) ||
	    TRY(cuCtxSynchronize()) || TRY(cuMemcpyDtoH(c, dc, bytes)) || TRY(cuMemFree(da)) || TRY(cuMemFree(db)) || TRY(cuMemFree(dc)) ||
	    TRY(cuModuleUnload(module)) || TRY(cuDevicePrimaryCtxRelease(device)))
		return 1;
	return 0;
}

/* Write element i of v; element is the size of one element in bytes. */
static void put_element(void *v, size_t element, size_t i, double value)
{
	if (element == sizeof(float))
		((float *)v)[i] = (float)value;
	else
		((double *)v)[i] = value;
}

static double get_element(const void *v, size_t element, size_t i)
{
	return element == sizeof(float) ? (double)((const float *)v)[i] : ((const double *)v)[i];
}

static int run_vecadd(const char *code, size_t element, char *v, size_t n)
{
	char *b = v + n * element, *c = b + n * element;

	for (size_t i = 0; i < n; i++) {
		put_element(v, element, i, (double)i);
		put_element(b, element, i, 2 * (double)i);
	}
	if (vecadd(code, element, v, b, c, (int)n))
		return 1;
	for (size_t i = 0; i < n; i++)
		if (get_element(c, element, i) != 3.0 * (double)i) {
			fprintf(stderr, "plain: c[%zu] is %g, expected %g\n", i, get_element(c, element, i), 3.0 * (double)i);
			return 1;
		}
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 1024;
	size_t element = argc > 3 && strcmp(argv[3], "f32") == 0 ? sizeof(float) : sizeof(double);
	char *code = argc > 1 ? read_all(argv[1]) : NULL;
	char *v = n > 0 ? calloc(3 * (size_t)n, element) : NULL;
	int bad = 1;

	if (code && v)
		bad = run_vecadd(code, element, v, (size_t)n);
	free(v);
	free(code);
	return bad;
}
