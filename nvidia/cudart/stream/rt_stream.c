/* rt_stream.c — creates, queries and destroys streams.  Operations in streams are in rt_order.c.
 *
 * Source: CUDA Runtime API, Stream Management. */
#include "nvidia/cudart/rt_runtime_internal.h"

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned int flags, int priority)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	_Static_assert(cudaStreamNonBlocking == CU_STREAM_NON_BLOCKING, "the flags of both interfaces are equal");
	return e ? e : gpul_rt_cu(drv, cuStreamCreateWithPriority(out, flags, priority));
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned int flags)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuStreamCreate(out, flags));
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
	return cudaStreamCreateWithFlags(out, cudaStreamDefault);
}

GPUL_RT_FORWARD(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))
GPUL_RT_FORWARD(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest), cuCtxGetStreamPriorityRange(least, greatest))
GPUL_RT_FORWARD(cudaCtxResetPersistingL2Cache, (void), cuCtxResetPersistingL2Cache())
