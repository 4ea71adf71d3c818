/* plain.c — vecadd with nothing but NVIDIA's driver API: no gpuload in it at all.
 *
 *     plain FILE.ptx [N]
 *
 * What `gpuload run` is compared with, and what must run unchanged on the software driver:
 * LD_LIBRARY_PATH=build/softcuda build/tests/gpu/plain/plain tests/corpus/ptx/vecadd.sm_90.ptx
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

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

static char *read_text(const char *path)
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

static int vecadd(const char *ptx, double *a, double *b, double *c, int n)
{
	size_t bytes = (size_t)n * sizeof *a;
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction kernel;
	CUdeviceptr da, db, dc;

	if (TRY(cuInit(0)) || TRY(cuDeviceGet(&device, 0)) ||
	    TRY(cuDevicePrimaryCtxRetain(&context, device)) || TRY(cuCtxSetCurrent(context)) ||
	    TRY(cuModuleLoadData(&module, ptx)) ||
	    TRY(cuModuleGetFunction(&kernel, module, "vecadd")) ||
	    TRY(cuMemAlloc(&da, bytes)) || TRY(cuMemAlloc(&db, bytes)) ||
	    TRY(cuMemAlloc(&dc, bytes)) || TRY(cuMemcpyHtoD(da, a, bytes)) ||
	    TRY(cuMemcpyHtoD(db, b, bytes)) ||
	    TRY(cuLaunchKernel(kernel, (unsigned)(n + 255) / 256, 1, 1, 256, 1, 1, 0, NULL,
			       (void *[]){ &da, &db, &dc, &n }, NULL)) ||
	    TRY(cuCtxSynchronize()) || TRY(cuMemcpyDtoH(c, dc, bytes)) || TRY(cuMemFree(da)) ||
	    TRY(cuMemFree(db)) || TRY(cuMemFree(dc)) || TRY(cuModuleUnload(module)) ||
	    TRY(cuDevicePrimaryCtxRelease(device)))
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 1024;
	char *ptx = argc > 1 ? read_text(argv[1]) : NULL;
	double *v = n > 0 ? calloc(3 * (size_t)n, sizeof *v) : NULL;
	int bad = 1;

	if (ptx && v) {
		for (int i = 0; i < n; i++)
			v[i] = i, v[n + i] = 2 * i;
		bad = vecadd(ptx, v, v + n, v + 2 * (size_t)n, n);
		for (int i = 0; i < n && !bad; i++)
			if (v[2 * (size_t)n + (size_t)i] != 3.0 * i)
				bad = fprintf(stderr, "plain: c[%d] is %g, expected %g\n", i,
					      v[2 * (size_t)n + (size_t)i], 3.0 * i);
	}
	free(v);
	free(ptx);
	return bad != 0;
}
