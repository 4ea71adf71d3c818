/* rt_symbol.c — finds the address and size of a __device__ or __constant__ variable; rt_copy.c copies to and from it.
 *
 * Source: CUDA Runtime API, Memory Management. */
#include <stdint.h>

#include "nvidia/cudart/rt_runtime_internal.h"

static cudaError_t find_variable(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_variable(drv, symbol, address, bytes);
}

cudaError_t cudaGetSymbolAddress(void **out, const void *symbol)
{
	CUdeviceptr address = 0;
	size_t bytes = 0;
	cudaError_t e = find_variable(symbol, &address, &bytes);

	if (e)
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the address is NULL");
	*out = (void *)(uintptr_t)address;
	return cudaSuccess;
}

cudaError_t cudaGetSymbolSize(size_t *out, const void *symbol)
{
	CUdeviceptr address = 0;
	size_t bytes = 0;
	cudaError_t e = find_variable(symbol, &address, &bytes);

	if (e)
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the size is NULL");
	*out = bytes;
	return cudaSuccess;
}
