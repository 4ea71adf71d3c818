/* which.c — prints which image of a fatbin the driver selects, without gpuload.
 *
 *     which FILE.fatbin
 *
 * Prints the number that the kernel `which` of the selected image writes; on failure prints the driver's error and exits with status 1. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_BYTES = 16 << 20 };

static int failed(CUresult r, const char *call)
{
	const char *name = NULL;

	if (r == CUDA_SUCCESS)
		return 0;
	cuGetErrorName(r, &name);
	fprintf(stderr, "%s: %s\n", call, name ? name : "an unknown error");
	return 1;
}

#define TRY(call) failed((call), #call)

static int print_selected(const void *fatbin)
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction which;
	CUdeviceptr out;
	int number = 0;

	if (TRY(cuInit(0)) || TRY(cuDeviceGet(&device, 0)) || TRY(cuDevicePrimaryCtxRetain(&context, device)) ||
	    TRY(cuCtxSetCurrent(context)) || TRY(cuModuleLoadData(&module, fatbin)) || TRY(cuModuleGetFunction(&which, module, "which")) ||
	    TRY(cuMemAlloc(&out, sizeof number)) || TRY(cuLaunchKernel(which, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &out }, NULL)) ||
	    TRY(cuMemcpyDtoH(&number, out, sizeof number)) || TRY(cuMemFree(out)) || TRY(cuModuleUnload(module)) ||
	    TRY(cuDevicePrimaryCtxRelease(device)))
		return 1;
	printf("%d\n", number);
	return 0;
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
	void *fatbin = calloc(1, MOST_BYTES);
	int status = 2;

	if (f && fatbin && fread(fatbin, 1, MOST_BYTES, f) > 0)
		status = print_selected(fatbin);
	else
		fprintf(stderr, "usage: which FILE.fatbin; the file must be readable\n");
	if (f)
		fclose(f);
	free(fatbin);
	return status;
}
