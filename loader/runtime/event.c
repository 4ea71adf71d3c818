/* event.c — create, query, wait for and time events.  cudaEventRecord is in order.c.
 *
 * Source: CUDA Runtime API, Event Management. */
#include "loader/runtime/runtime_internal.h"

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	_Static_assert(cudaEventBlockingSync == CU_EVENT_BLOCKING_SYNC &&
			       cudaEventDisableTiming == CU_EVENT_DISABLE_TIMING,
		       "the flags of both interfaces are equal");
	return e ? e : gpul_rt_cu(drv, cuEventCreate(out, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
	return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuEventDestroy(event));
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuEventElapsedTime(ms, start, end));
}
