/* absent.c — queries about features that this driver does not have.  The true answer is "none": clients ask at
 * start-up and then do without.  refused_internal.h lists the calls that would use the features. */
#include "softcuda/api/stream/queue_internal.h"

#include <string.h>

/* ---- the memory of graphs ----------------------------------------------------------------------------------- */

EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (!value || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	memset(value, 0, sizeof(cuuint64_t));
	return CUDA_SUCCESS;
}

/* Only the highest sizes can be set, and only to 0, which they are. */
EXPORT CUresult cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
	struct device *d;
	cuuint64_t wanted;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (!value || (attribute != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attribute != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&wanted, value, sizeof wanted);
	return wanted ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGraphMemTrim(CUdevice dev)
{
	struct device *d;

	return soft_find_device(dev, &d);
}

/* ---- others ------------------------------------------------------------------------------------------------- */

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

/* A stream never belongs to a green context. */
EXPORT CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *out, CUgreenCtx *green)
{
	CUresult r = green ? cuStreamGetCtx(handle, out) : CUDA_ERROR_INVALID_VALUE;

	if (!r)
		*green = NULL;
	return r;
}

/* Without a profiler these calls succeed and have no effect, as in NVIDIA's driver. */
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
