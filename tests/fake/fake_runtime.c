/* fake_runtime.c — the failing driver with the additional calls of the mini runtime.  Each call uses a call
 * of the smaller table, or only counts. */
#include "tests/fake/fake_runtime.h"

#include <stdint.h>

static gpul_driver table;

static CUresult step(void)
{
	return table.cuCtxSynchronize();
}

static CUresult context_device(CUdevice *d)
{
	*d = 0;
	return step();
}

static CUresult priority_range(int *least, int *greatest)
{
	*least = *greatest = 0;
	return step();
}

static CUresult reset(CUdevice d)
{
	(void)d;
	return step();
}

static CUresult set_flags(CUdevice d, unsigned flags)
{
	(void)d, (void)flags;
	return step();
}

static CUresult state(CUdevice d, unsigned *flags, int *active)
{
	(void)d;
	*flags = 0;
	*active = 1;
	return step();
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	return table.cuMemcpyHtoD(to, (const void *)(uintptr_t)from, bytes);
}

static CUresult copy_async(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s)
{
	(void)s;
	return copy(to, from, bytes);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *c)
{
	(void)c;
	return step();
}

static CUresult copy_2d_async(const CUDA_MEMCPY2D *c, CUstream s)
{
	(void)s;
	return copy_2d(c);
}

static CUresult fill_2d(CUdeviceptr p, size_t pitch, unsigned char byte, size_t width, size_t height, CUstream s)
{
	(void)p, (void)pitch, (void)byte, (void)width, (void)height, (void)s;
	return step();
}

static CUresult alloc_pitch(CUdeviceptr *p, size_t *pitch, size_t width, size_t height, unsigned element)
{
	(void)element;
	*pitch = width;
	return table.cuMemAlloc(p, width * height);
}

static CUresult alloc_async(CUdeviceptr *p, size_t bytes, CUstream s)
{
	(void)s;
	return table.cuMemAlloc(p, bytes);
}

static CUresult free_async(CUdeviceptr p, CUstream s)
{
	(void)s;
	return table.cuMemFree(p);
}

static CUresult host_pointer(CUdeviceptr *p, void *host, unsigned flags)
{
	(void)flags;
	*p = (CUdeviceptr)(uintptr_t)host;
	return step();
}

static CUresult host_register(void *p, size_t bytes, unsigned flags)
{
	(void)p, (void)bytes, (void)flags;
	return step();
}

static CUresult host_unregister(void *p)
{
	(void)p;
	return step();
}

static CUresult pointer_attributes(unsigned n, CUpointer_attribute *which, void **values, CUdeviceptr p)
{
	(void)n, (void)which, (void)values, (void)p;
	return step();
}

static CUresult stream_with_priority(CUstream *s, unsigned flags, int priority)
{
	(void)priority;
	return table.cuStreamCreate(s, flags);
}

static CUresult wait_event(CUstream s, CUevent e, unsigned flags)
{
	(void)s, (void)e, (void)flags;
	return step();
}

static CUresult host_function(CUstream s, CUhostFn fn, void *user)
{
	CUresult r = step();

	(void)s;
	if (r == CUDA_SUCCESS)
		fn(user);
	return r;
}

static CUresult launch_ex(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
	return table.cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ, c->sharedMemBytes,
				    c->hStream, params, extra);
}

static CUresult occupancy(int *n, CUfunction f, int block, size_t shared_bytes, unsigned flags)
{
	(void)flags;
	return table.cuOccupancyMaxActiveBlocksPerMultiprocessor(n, f, block, shared_bytes);
}

const gpul_driver *fake_runtime_driver(int fail_at)
{
	table = *fake_driver(fail_at);
	table.cuCtxGetDevice = context_device;
	table.cuCtxGetStreamPriorityRange = priority_range;
	table.cuDevicePrimaryCtxReset = reset;
	table.cuDevicePrimaryCtxSetFlags = set_flags;
	table.cuDevicePrimaryCtxGetState = state;
	table.cuMemcpy = table.cuMemcpyDtoD = copy;
	table.cuMemcpyAsync = table.cuMemcpyDtoDAsync = copy_async;
	table.cuMemcpy2DUnaligned = copy_2d;
	table.cuMemcpy2DAsync = copy_2d_async;
	table.cuMemsetD2D8Async = fill_2d;
	table.cuMemAllocPitch = alloc_pitch;
	table.cuMemAllocAsync = alloc_async;
	table.cuMemFreeAsync = free_async;
	table.cuMemHostGetDevicePointer = host_pointer;
	table.cuMemHostRegister = host_register;
	table.cuMemHostUnregister = host_unregister;
	table.cuPointerGetAttributes = pointer_attributes;
	table.cuStreamCreateWithPriority = stream_with_priority;
	table.cuStreamWaitEvent = wait_event;
	table.cuLaunchHostFunc = host_function;
	table.cuLaunchKernelEx = launch_ex;
	table.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = occupancy;
	return &table;
}
