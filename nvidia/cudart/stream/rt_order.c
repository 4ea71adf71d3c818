/* rt_order.c — operations in a stream other than launches and copies, and waits for a stream.
 *
 * Compiled a second time for per-thread default streams (rt_runtime_internal.h). */
#include "nvidia/cudart/rt_runtime_internal.h"

GPUL_RT_FORWARD(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(gpul_rt_stream(stream)))
GPUL_RT_FORWARD(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery(gpul_rt_stream(stream)))
GPUL_RT_FORWARD(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
		cuStreamWaitEvent(gpul_rt_stream(stream), event, flags))
GPUL_RT_FORWARD(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, gpul_rt_stream(stream)))
GPUL_RT_FORWARD(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
		cuEventRecordWithFlags(event, gpul_rt_stream(stream), flags))
GPUL_RT_FORWARD(cudaLaunchHostFunc, (cudaStream_t stream, cudaHostFn_t fn, void *user), cuLaunchHostFunc(gpul_rt_stream(stream), fn, user))

/* ---- properties of a stream -------------------------------------------------------------- */

_Static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue) &&
		       (int)cudaStreamAttributePriority == (int)CU_STREAM_ATTRIBUTE_PRIORITY,
	       "the attributes of both interfaces are the same");

GPUL_RT_FORWARD(cudaStreamGetFlags, (cudaStream_t stream, unsigned int *flags), cuStreamGetFlags(gpul_rt_stream(stream), flags))
GPUL_RT_FORWARD(cudaStreamGetPriority, (cudaStream_t stream, int *priority), cuStreamGetPriority(gpul_rt_stream(stream), priority))
GPUL_RT_FORWARD(cudaStreamGetId, (cudaStream_t stream, unsigned long long *id), cuStreamGetId(gpul_rt_stream(stream), id))
#if CUDART_VERSION >= 12080
GPUL_RT_FORWARD(cudaStreamGetDevice, (cudaStream_t stream, int *ordinal), cuStreamGetDevice(gpul_rt_stream(stream), ordinal))
#endif
GPUL_RT_FORWARD(cudaStreamCopyAttributes, (cudaStream_t to, cudaStream_t from),
		cuStreamCopyAttributes(gpul_rt_stream(to), gpul_rt_stream(from)))
GPUL_RT_FORWARD(cudaStreamGetAttribute, (cudaStream_t stream, cudaStreamAttrID which, cudaStreamAttrValue *value),
		cuStreamGetAttribute(gpul_rt_stream(stream), (CUstreamAttrID)which, (CUstreamAttrValue *)(void *)value))
GPUL_RT_FORWARD(cudaStreamSetAttribute, (cudaStream_t stream, cudaStreamAttrID which, const cudaStreamAttrValue *value),
		cuStreamSetAttribute(gpul_rt_stream(stream), (CUstreamAttrID)which, (const CUstreamAttrValue *)(const void *)value))

/* ---- callbacks --------------------------------------------------------------------------- */

/* The callback expects a cudaError_t.  It can be called with a CUresult, which has the same number. */
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *user, unsigned int flags)
{
	const gpul_driver *drv;
	CUstreamCallback same;
	cudaError_t e = gpul_rt_enter(&drv);

	_Static_assert(sizeof same == sizeof callback && sizeof(cudaError_t) == sizeof(CUresult),
		       "both types of callback have equal arguments");
	__builtin_memcpy(&same, &callback, sizeof same);
	return e ? e : gpul_rt_cu(drv, cuStreamAddCallback(gpul_rt_stream(stream), same, user, flags));
}

/* ---- memory ------------------------------------------------------------------------------ */

GPUL_RT_FORWARD(cudaStreamAttachMemAsync, (cudaStream_t stream, void *p, size_t bytes, unsigned int flags),
		cuStreamAttachMemAsync(gpul_rt_stream(stream), gpul_rt_address(p), bytes, flags))

cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the address is NULL");
	if (bytes && (e = gpul_rt_cu(drv, cuMemAllocAsync(&p, bytes, gpul_rt_stream(stream)))))
		return e;
	*out = (void *)(uintptr_t)p;
	return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t stream)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || !p)
		return e;
	return gpul_rt_cu(drv, cuMemFreeAsync(gpul_rt_address(p), gpul_rt_stream(stream)));
}

cudaError_t cudaMallocFromPoolAsync(void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the address is NULL");
	if (bytes && (e = gpul_rt_cu(drv, cuMemAllocFromPoolAsync(&p, bytes, pool, gpul_rt_stream(stream)))))
		return e;
	*out = (void *)(uintptr_t)p;
	return cudaSuccess;
}
