/* so_driver.c — a driver whose cuGetProcAddress() returns functions that it does not export, as a driver may. */
#include <cuda.h>
#include <string.h>

static CUresult version(int *out)
{
	*out = 12340;
	return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *out, size_t n_bytes)
{
	*out = 0x1000 + n_bytes;
	return CUDA_SUCCESS;
}

static CUresult synchronize(CUstream stream)
{
	return stream ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

static CUresult synchronize_thread(CUstream stream)
{
	return stream ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *symbol, void **pfn, int cuda_version, cuuint64_t flags);

CUresult cuDriverGetVersion(int *out)
{
	return version(out);
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cuda_version, cuuint64_t flags)
{
	CUresult (*synchronizes)(CUstream) = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM ? synchronize_thread : synchronize;
	CUresult (*allocates)(CUdeviceptr *, size_t) = allocate;

	(void)cuda_version;
	*pfn = NULL;
	if (!strcmp(symbol, "cuStreamSynchronize"))
		memcpy(pfn, &synchronizes, sizeof *pfn);
	else if (!strcmp(symbol, "cuMemAlloc") || !strcmp(symbol, "cuNewerThanThisHeader"))
		memcpy(pfn, &allocates, sizeof *pfn);
	return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
