/* order.c — operations in a stream other than launches and copies, and waiting for a stream.
 *
 * Compiled twice: runtime_internal.h has the reason. */
#include "loader/runtime/runtime_internal.h"

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuStreamSynchronize(gpul_rt_stream(stream)));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuStreamQuery(gpul_rt_stream(stream)));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuStreamWaitEvent(gpul_rt_stream(stream), event, flags));
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuStreamGetFlags(gpul_rt_stream(stream), flags));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuStreamGetPriority(gpul_rt_stream(stream), priority));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuEventRecord(event, gpul_rt_stream(stream)));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e
		 : gpul_rt_cu(drv,
			      cuEventRecordWithFlags(event, gpul_rt_stream(stream), flags));
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *user)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuLaunchHostFunc(gpul_rt_stream(stream), fn, user));
}

/* The callback's second argument is a cudaError_t in place of a CUresult with the same number. */
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
				  void *user, unsigned int flags)
{
	const gpul_driver *drv;
	CUstreamCallback same;
	cudaError_t e = gpul_rt_enter(&drv);

	_Static_assert(sizeof same == sizeof callback &&
			       sizeof(cudaError_t) == sizeof(CUresult),
		       "both types of callback have equal arguments");
	__builtin_memcpy(&same, &callback, sizeof same);
	return e ? e
		 : gpul_rt_cu(drv,
			      cuStreamAddCallback(gpul_rt_stream(stream), same, user, flags));
}

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
	return gpul_rt_cu(drv,
			  cuMemFreeAsync(gpul_rt_address(p), gpul_rt_stream(stream)));
}
