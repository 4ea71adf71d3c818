/* rt_range.c — allocates managed memory, and queries the advice that was given for its pages.  Advice and prefetching are in rt_managed.c.
 *
 * Source: CUDA Runtime API, Memory Management. */
#include "nvidia/cudart/rt_runtime_internal.h"

cudaError_t cudaMallocManaged(void **out, size_t bytes, unsigned int flags)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out || !bytes)
		return gpul_rt_fail(cudaErrorInvalidValue, "%s",
				    out ? "0 bytes of managed memory were requested" : "the pointer for the address is NULL");
	if ((e = gpul_rt_cu(drv, cuMemAllocManaged(&p, bytes, flags))))
		return e;
	*out = (void *)(uintptr_t)p;
	return cudaSuccess;
}

GPUL_RT_FORWARD(cudaMemRangeGetAttribute, (void *out, size_t out_bytes, enum cudaMemRangeAttribute which, const void *p, size_t bytes),
		cuMemRangeGetAttribute(out, out_bytes, (CUmem_range_attribute)which, gpul_rt_address(p), bytes))
GPUL_RT_FORWARD(cudaMemRangeGetAttributes,
		(void **out, size_t *out_bytes, enum cudaMemRangeAttribute *which, size_t n, const void *p, size_t bytes),
		cuMemRangeGetAttributes(out, out_bytes, (CUmem_range_attribute *)(void *)which, n, gpul_rt_address(p), bytes))
