/* launch.c — from <<<>>> to the driver's launch.
 *
 *     k<<<grid, block, shared, stream>>>(a, b)
 *        __cudaPushCallConfiguration(grid, block, shared, stream)
 *        k(a, b)                       the stub: takes the addresses of a and b,
 *          __cudaPopCallConfiguration  gets the four values back,
 *          __cudaLaunchKernel          and comes here
 *            registry: stub ─> CUkernel
 *            cuLaunchKernel(kernel, grid, block, shared, stream, addresses)
 *
 * Compiled twice (see runtime_internal.h). */
#include <string.h>

#include "loader/runtime/calls_internal.h"

static int limit(const gpul_driver *drv, CUdevice_attribute which, int ordinal)
{
	CUdevice device;
	int value = 0;

	return drv->cuDeviceGet(&device, ordinal) ||
			       drv->cuDeviceGetAttribute(&value, which, device)
		       ? 0
		       : value;
}

static _Bool within(const gpul_driver *drv, int ordinal, CUdevice_attribute which_x, dim3 d)
{
	/* The y and z limits follow x's in the enumeration. */
	const unsigned size[3] = { d.x, d.y, d.z };

	for (int i = 0; i < 3; i++) {
		CUdevice_attribute which = (CUdevice_attribute)((int)which_x + i);

		if (!size[i] || size[i] > (unsigned)limit(drv, which, ordinal))
			return 0;
	}
	return 1;
}

/* A wrong size is an invalid value, as CUDA 13.0's runtime has it too: say which. */
static cudaError_t launched(const gpul_driver *drv, CUresult r, dim3 grid, dim3 block)
{
	int ordinal = 0;
	unsigned long long threads = (unsigned long long)block.x * block.y * block.z;

	if (r != CUDA_ERROR_INVALID_VALUE || gpul_rt_device(drv, &ordinal))
		return gpul_rt_told(drv, r, "cuLaunchKernel");
	if (within(drv, ordinal, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, grid) &&
	    within(drv, ordinal, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, block) &&
	    threads <= (unsigned)limit(drv, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, ordinal))
		return gpul_rt_told(drv, r, "cuLaunchKernel");
	return gpul_rt_fail(cudaErrorInvalidValue,
			    "<<<(%u, %u, %u), (%u, %u, %u)>>> is beyond what device %d takes",
			    grid.x, grid.y, grid.z, block.x, block.y, block.z, ordinal);
}

/* A kernel for a launch; what is none might have been a handle, says NVIDIA's.  The driver takes a CUkernel wherever it takes a CUfunction to launch,
 * and finds the one of the current context itself. */
static cudaError_t begin(const gpul_driver **drv, const void *stub, CUfunction *f)
{
	CUkernel kernel;
	cudaError_t e = gpul_rt_enter(drv);

	if (!e)
		e = gpul_rt_kernel(*drv, stub, cudaErrorInvalidResourceHandle, &kernel);
	if (!e)
		*f = (CUfunction)(void *)kernel;
	return e;
}

cudaError_t cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args,
			     size_t shared_bytes, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = begin(&drv, stub, &f);

	if (e)
		return e;
	if (shared_bytes > UINT32_MAX)
		return gpul_rt_fail(cudaErrorInvalidValue, "%zu bytes of shared memory",
				    shared_bytes);
	return launched(drv,
			drv->cuLaunchKernel(f, grid.x, grid.y, grid.z, block.x, block.y,
					    block.z, (unsigned)shared_bytes,
					    gpul_rt_stream(stream), args, NULL),
			grid, block);
}

cudaError_t cudaLaunchCooperativeKernel(const void *stub, dim3 grid, dim3 block, void **args,
					size_t shared_bytes, cudaStream_t stream)
{
	const gpul_driver *drv;
	CUfunction f;
	cudaError_t e = begin(&drv, stub, &f);

	if (e)
		return e;
	if (shared_bytes > UINT32_MAX)
		return gpul_rt_fail(cudaErrorInvalidValue, "%zu bytes of shared memory",
				    shared_bytes);
	return launched(drv,
			drv->cuLaunchCooperativeKernel(f, grid.x, grid.y, grid.z, block.x,
						       block.y, block.z, (unsigned)shared_bytes,
						       gpul_rt_stream(stream), args),
			grid, block);
}

/* A launch attribute has the same number and the same bytes in both interfaces. */
_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute) &&
		       (int)cudaLaunchAttributeClusterDimension ==
			       (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
		       (int)cudaLaunchAttributeCooperative ==
			       (int)CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
	       "cudaLaunchAttribute is handed on as it is");

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *stub, void **args)
{
	const gpul_driver *drv;
	CUlaunchConfig c = { 0 };
	CUfunction f;
	cudaError_t e = begin(&drv, stub, &f);

	if (e)
		return e;
	if (!config || config->dynamicSmemBytes > UINT32_MAX)
		return gpul_rt_fail(cudaErrorInvalidValue,
				    "no launch configuration, or one with "
				    "4 GiB of shared memory or more");
	c.gridDimX = config->gridDim.x;
	c.gridDimY = config->gridDim.y;
	c.gridDimZ = config->gridDim.z;
	c.blockDimX = config->blockDim.x;
	c.blockDimY = config->blockDim.y;
	c.blockDimZ = config->blockDim.z;
	c.sharedMemBytes = (unsigned)config->dynamicSmemBytes;
	c.hStream = gpul_rt_stream(config->stream);
	memcpy(&c.attrs, &config->attrs, sizeof c.attrs);
	c.numAttrs = config->numAttrs;
	return launched(drv, drv->cuLaunchKernelEx(&c, f, args, NULL), config->gridDim,
			config->blockDim);
}

/* ---- the compiler's own calls ------------------------------------------------------------ */

#ifdef GPUL_RT_PER_THREAD
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif

/* The handle is the stub itself: see __cudaGetKernel(). */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args,
			       size_t shared_bytes, cudaStream_t stream)
{
	return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}
