/* rt_launch.c — launches kernels: from <<<>>> to cuLaunchKernel.
 *
 *     k<<<grid, block, shared, stream>>>(a, b)
 *        __cudaPushCallConfiguration(grid, block, shared, stream)
 *        k(a, b)                       the stub, with an array of the addresses of a and b
 *          __cudaPopCallConfiguration  gets the four values
 *          __cudaLaunchKernel          launches:
 *            registry: stub ─> CUkernel
 *            cuLaunchKernel(kernel, grid, block, shared, stream, addresses)
 *
 * Compiled a second time for per-thread default streams (rt_runtime_internal.h). */
#include "nvidia/cudart/rt_calls_internal.h"

static int device_limit(const gpul_driver *drv, CUdevice_attribute which, int ordinal)
{
	CUdevice device;
	int value = 0;

	return drv->cuDeviceGet(&device, ordinal) || drv->cuDeviceGetAttribute(&value, which, device) ? 0 : value;
}

/* Explain which limit of the device a grid or block exceeds; false: it exceeds none. */
static _Bool explain_extent(const gpul_driver *drv, int ordinal, const char *what, CUdevice_attribute which_x, dim3 d)
{
	/* In the enumeration CUdevice_attribute the limits of y and z follow the limit of x. */
	const unsigned size[3] = { d.x, d.y, d.z };

	for (int i = 0; i < 3; i++) {
		const int most = device_limit(drv, (CUdevice_attribute)((int)which_x + i), ordinal);

		if (size[i] && size[i] <= (unsigned)most)
			continue;
		(void)gpul_rt_fail(cudaErrorInvalidValue, "launch: %s.%c is %u; it must be from 1 to %d (device %d)", what, "xyz"[i],
				   size[i], most, ordinal);
		return 1;
	}
	return 0;
}

/* Report the result of a launch.  As in CUDA 13.0's runtime, the error for a grid or block that is too large is
 * cudaErrorInvalidValue.  With the software driver, which explains the error itself, nothing is added. */
static cudaError_t report_launch(const gpul_driver *drv, CUresult r, dim3 grid, dim3 block)
{
	const cudaError_t e = gpul_rt_record(drv, r, "cuLaunchKernel");
	const unsigned long long threads = (unsigned long long)block.x * block.y * block.z;
	int ordinal = 0, most;

	if (r != CUDA_ERROR_INVALID_VALUE || drv->interprets || gpul_rt_device(drv, &ordinal) ||
	    explain_extent(drv, ordinal, "gridDim", CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, grid) ||
	    explain_extent(drv, ordinal, "blockDim", CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, block))
		return e;
	most = device_limit(drv, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ordinal);
	if (threads > (unsigned)most)
		(void)gpul_rt_fail(cudaErrorInvalidValue,
				   "launch: a block of %ux%ux%u threads has %llu threads; it can have at most %d (device %d)", block.x,
				   block.y, block.z, threads, most, ordinal);
	return e;
}

/* Find the kernel to launch: that of a stub, or a CUkernel, for which the driver finds the CUfunction in the current context.  For
 * an unknown stub the error is cudaErrorInvalidResourceHandle, as in NVIDIA's runtime. */
static cudaError_t find_launch_kernel(const gpul_driver **drv, const void *stub, CUfunction *f)
{
	CUkernel kernel;
	cudaError_t e = gpul_rt_enter(drv);

	if (!e)
		e = gpul_rt_kernel(*drv, stub, cudaErrorInvalidResourceHandle, &kernel);
	if (!e)
		*f = (CUfunction)(void *)kernel;
	return e;
}

cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = find_launch_kernel(&drv, stub, &f);

	if (e)
		return e;
	if (shared_bytes > UINT32_MAX)
		return gpul_rt_fail(cudaErrorInvalidValue, "%zu bytes of shared memory exceed 4 GiB", shared_bytes);
	return report_launch(drv,
			     drv->cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared_bytes,
						 gpul_rt_stream(stream), args, NULL),
			     grid, block);
}

cudaError_t cudaLaunchCooperativeKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = find_launch_kernel(&drv, stub, &f);

	if (e)
		return e;
	if (shared_bytes > UINT32_MAX)
		return gpul_rt_fail(cudaErrorInvalidValue, "%zu bytes of shared memory exceed 4 GiB", shared_bytes);
	return report_launch(drv,
			     drv->cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared_bytes,
							    gpul_rt_stream(stream), args),
			     grid, block);
}

/* Launch attributes have the same number and layout in the runtime API and the driver API. */
_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute) &&
		       (int)cudaLaunchAttributeClusterDimension == (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
		       (int)cudaLaunchAttributeCooperative == (int)CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
	       "the launch attributes of both interfaces are equal");

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *stub, void **args)
{
	const gpul_driver *drv;
	CUlaunchConfig c;
	CUfunction f;
	cudaError_t e = find_launch_kernel(&drv, stub, &f);

	if (e)
		return e;
	if (!config || config->dynamicSmemBytes > UINT32_MAX)
		return gpul_rt_fail(cudaErrorInvalidValue, "the launch configuration is NULL, or has 4 GiB or more of shared memory");
	c = gpul_rt_config(config);
	c.hStream = gpul_rt_stream(config->stream);
	return report_launch(drv, drv->cuLaunchKernelEx(&c, f, args, NULL), config->gridDim, config->blockDim);
}

/* ---- calls of generated code ------------------------------------------------------------- */

#ifdef GPUL_RT_PER_THREAD
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif

/* Launch a kernel.  `kernel` is the stub, because __cudaGetKernel() returns the stub as the handle. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}
