/* rt_memory.c — allocates device memory and page-locked host memory.
 *
 * Source: CUDA Runtime API, Memory Management; Unified Addressing. */
#include "nvidia/cudart/rt_runtime_internal.h"

static cudaError_t fail_null_pointer(void)
{
	return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the result is NULL");
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out)
		return fail_null_pointer();
	if (bytes && (e = gpul_rt_cu(drv, cuMemAlloc(&p, bytes))))
		return e;
	*out = (void *)(uintptr_t)p; /* for 0 bytes, *out is NULL and the result is success */
	return cudaSuccess;
}

cudaError_t cudaMallocPitch(void **out, size_t *pitch, size_t width, size_t height)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out || !pitch)
		return fail_null_pointer();
	*pitch = 0;
	/* a multiple of 16 bytes, the widest access of a kernel */
	if (width && height && (e = gpul_rt_cu(drv, cuMemAllocPitch(&p, pitch, width, height, 16))))
		return e;
	*out = (void *)(uintptr_t)p;
	return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv); /* programs call cudaFree(0) to create the context */

	return e || !p ? e : gpul_rt_cu(drv, cuMemFree(gpul_rt_address(p)));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
	void *p = NULL;
	size_t pitch = 0;
	cudaError_t e;

	if (!out)
		return fail_null_pointer();
	e = cudaMallocPitch(&p, &pitch, extent.width, extent.height * extent.depth);
	if (!e)
		*out = (struct cudaPitchedPtr){ p, pitch, extent.width, extent.height };
	return e;
}

/* ---- page-locked host memory ------------------------------------------------------------- */

cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned int flags)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out)
		return fail_null_pointer();
	*out = NULL;
	_Static_assert(cudaHostAllocPortable == CU_MEMHOSTALLOC_PORTABLE && cudaHostAllocMapped == CU_MEMHOSTALLOC_DEVICEMAP &&
			       cudaHostAllocWriteCombined == CU_MEMHOSTALLOC_WRITECOMBINED,
		       "the flags of both interfaces are equal");
	return bytes ? gpul_rt_cu(drv, cuMemHostAlloc(out, bytes, flags)) : cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
	return cudaHostAlloc(out, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void *p)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e || !p ? e : gpul_rt_cu(drv, cuMemFreeHost(p));
}

cudaError_t cudaHostRegister(void *p, size_t bytes, unsigned int flags)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	_Static_assert(cudaHostRegisterPortable == CU_MEMHOSTREGISTER_PORTABLE && cudaHostRegisterMapped == CU_MEMHOSTREGISTER_DEVICEMAP,
		       "the flags of both interfaces are equal");
	return e ? e : gpul_rt_cu(drv, cuMemHostRegister(p, bytes, flags));
}

cudaError_t cudaHostUnregister(void *p)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuMemHostUnregister(p));
}

cudaError_t cudaHostGetDevicePointer(void **out, void *host, unsigned int flags)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out)
		return fail_null_pointer();
	e = gpul_rt_cu(drv, cuMemHostGetDevicePointer(&p, host, flags));
	if (!e)
		*out = (void *)(uintptr_t)p;
	return e;
}

cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuMemHostGetFlags(flags, host));
}

/* ---- queries ----------------------------------------------------------------------------- */

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e ? e : gpul_rt_cu(drv, cuMemGetInfo(free_bytes, total));
}

static enum cudaMemoryType memory_type(unsigned driver_type, unsigned managed)
{
	if (managed)
		return cudaMemoryTypeManaged;
	return driver_type == CU_MEMORYTYPE_HOST     ? cudaMemoryTypeHost
	       : driver_type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
						     : cudaMemoryTypeUnregistered;
}

/* The driver sets attributes that a pointer does not have to 0. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *p)
{
	unsigned type = 0, managed = 0;
	CUdeviceptr device_address = 0;
	void *host_address = NULL;
	int ordinal = 0;
	CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
					CU_POINTER_ATTRIBUTE_HOST_POINTER, CU_POINTER_ATTRIBUTE_IS_MANAGED,
					CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	void *values[] = { &type, &device_address, &host_address, &managed, &ordinal };
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out)
		return fail_null_pointer();
	e = gpul_rt_cu(drv, cuPointerGetAttributes(5, which, values, gpul_rt_address(p)));
	if (e)
		return e;
	/* set field by field, because the structure is larger in CUDA 13 than in CUDA 12 */
	out->type = memory_type(type, managed);
	out->device = type ? ordinal : cudaInvalidDeviceId;
	out->devicePointer = (void *)(uintptr_t)device_address;
	out->hostPointer = type ? host_address : (void *)(uintptr_t)p;
	return cudaSuccess;
}
