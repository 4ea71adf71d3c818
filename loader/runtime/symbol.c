/* symbol.c — where a __device__ or __constant__ variable is.  Copies to and from it are in
 * copy.c.
 *
 * Source: CUDA Runtime API, Memory Management. */
#include <stdint.h>

#include "loader/runtime/runtime_internal.h"

static cudaError_t find(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_variable(drv, symbol, address, bytes);
}

cudaError_t cudaGetSymbolAddress(void **out, const void *symbol)
{
	CUdeviceptr address = 0;
	size_t bytes = 0;
	cudaError_t e = find(symbol, &address, &bytes);

	if (e)
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "nowhere to write the address");
	*out = (void *)(uintptr_t)address;
	return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *out, const void *symbol)
{
	CUdeviceptr address = 0;
	size_t bytes = 0;
	cudaError_t e = find(symbol, &address, &bytes);

	if (e)
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "nowhere to write the size");
	*out = bytes;
	return cudaSuccess;
}
