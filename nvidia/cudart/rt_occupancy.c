/* rt_occupancy.c — computes how many blocks and clusters of a kernel fit on a multiprocessor or a device.
 *
 * Source: CUDA Runtime API, Occupancy. */
#include "nvidia/cudart/rt_runtime_internal.h"

static cudaError_t find_function(const gpul_driver **drv, const void *stub, CUfunction *f)
{
	cudaError_t e = gpul_rt_enter(drv);

	return e ? e : gpul_rt_function(*drv, stub, f);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n_blocks, const void *stub, int block, size_t shared_bytes,
								   unsigned int flags)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = find_function(&drv, stub, &f);

	if (e)
		return e;
	return gpul_rt_cu(drv, cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n_blocks, f, block, shared_bytes, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n_blocks, const void *stub, int block, size_t shared_bytes)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(n_blocks, stub, block, shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *stub, int n_blocks, int block)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = find_function(&drv, stub, &f);

	if (e)
		return e;
	return gpul_rt_cu(drv, cuOccupancyAvailableDynamicSMemPerBlock(bytes, f, n_blocks, block));
}

/* ---- clusters ---------------------------------------------------------------------------- */

static cudaError_t find_configured(const gpul_driver **drv, const void *stub, const cudaLaunchConfig_t *config, CUfunction *f,
				   CUlaunchConfig *out)
{
	cudaError_t e = find_function(drv, stub, f);

	if (e)
		return e;
	if (!config)
		return gpul_rt_fail(cudaErrorInvalidValue, "the launch configuration is NULL");
	*out = gpul_rt_config(config);
	out->hStream = config->stream;
	return cudaSuccess;
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int *out, const void *stub, const cudaLaunchConfig_t *config)
{
	const gpul_driver *drv;
	CUfunction f;
	CUlaunchConfig c;
	cudaError_t e = find_configured(&drv, stub, config, &f, &c);

	return e ? e : gpul_rt_cu(drv, cuOccupancyMaxPotentialClusterSize(out, f, &c));
}

cudaError_t cudaOccupancyMaxActiveClusters(int *out, const void *stub, const cudaLaunchConfig_t *config)
{
	const gpul_driver *drv;
	CUfunction f;
	CUlaunchConfig c;
	cudaError_t e = find_configured(&drv, stub, config, &f, &c);

	return e ? e : gpul_rt_cu(drv, cuOccupancyMaxActiveClusters(out, f, &c));
}
