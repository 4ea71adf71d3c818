/* cu_absent.c — queries about features that this driver does not have.  Their result is "none" or 0, so that programs that query
 * the features at start-up run without them.  cu_refused_internal.h lists the calls that use such features. */
#include "softcuda/api/stream/cu_queue_internal.h"

#include <string.h>

/* ---- other queries ------------------------------------------------------------------------------------------- */

EXPORT CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice dev)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (!supported || (unsigned)type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*supported = 0;
	return CUDA_SUCCESS;
}

/* The stream is never in a green context, so *green is NULL. */
EXPORT CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *out, CUgreenCtx *green)
{
	CUresult r = green ? cuStreamGetCtx(handle, out) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*green = NULL;
	return r;
}

/* As with NVIDIA's driver when no profiler is attached, these calls succeed and have no effect. */
EXPORT CUresult cuProfilerStart(void)
{
	struct context *ctx;
	CUresult r = soft_enter(&ctx);

	if (!r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuProfilerStop(void)
{
	return cuProfilerStart();
}
