/* rt_event.c — creates, queries, waits for and times events.  cudaEventRecord is in rt_order.c.
 *
 * Source: CUDA Runtime API, Event Management. */
#include "nvidia/cudart/rt_runtime_internal.h"

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned int flags)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	_Static_assert(cudaEventBlockingSync == CU_EVENT_BLOCKING_SYNC && cudaEventDisableTiming == CU_EVENT_DISABLE_TIMING,
		       "the flags of both interfaces are equal");
	return e ? e : gpul_rt_cu(drv, cuEventCreate(out, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
	return cudaEventCreateWithFlags(out, cudaEventDefault);
}

GPUL_RT_FORWARD(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
GPUL_RT_FORWARD(cudaEventQuery, (cudaEvent_t event), cuEventQuery(event))
GPUL_RT_FORWARD(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))
GPUL_RT_FORWARD(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end), cuEventElapsedTime(ms, start, end))

/* cudaEventElapsedTime() under the name that it has in CUDA 12.8 and 12.9. */
GPUL_RT_FORWARD(cudaEventElapsedTime_v2, (float *ms, cudaEvent_t start, cudaEvent_t end), cuEventElapsedTime(ms, start, end))
