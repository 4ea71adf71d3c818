/* rt_pool.c — memory pools, from which cudaMallocAsync allocates (in stream/rt_order.c).
 *
 * Source: CUDA Runtime API, Stream Ordered Memory Allocator. */
#include "nvidia/cudart/rt_runtime_internal.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps) && sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc) &&
		       sizeof(struct cudaMemLocation) == sizeof(CUmemLocation) &&
		       sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData) &&
		       (int)cudaMemPoolAttrUsedMemHigh == (int)CU_MEMPOOL_ATTR_USED_MEM_HIGH &&
		       (int)cudaMemHandleTypePosixFileDescriptor == (int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
		       (int)cudaMemLocationTypeHostNumaCurrent == (int)CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT,
	       "structures and numbers of both interfaces are the same");

static cudaError_t enter_device(const gpul_driver **drv, int ordinal, CUdevice *device)
{
	cudaError_t e = gpul_rt_enter(drv);

	return e ? e : gpul_rt_cu(*drv, cuDeviceGet(device, ordinal));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int ordinal)
{
	const gpul_driver *drv;
	CUdevice device;
	cudaError_t e = enter_device(&drv, ordinal, &device);

	return e ? e : gpul_rt_cu(drv, cuDeviceGetDefaultMemPool(pool, device));
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int ordinal)
{
	const gpul_driver *drv;
	CUdevice device;
	cudaError_t e = enter_device(&drv, ordinal, &device);

	return e ? e : gpul_rt_cu(drv, cuDeviceGetMemPool(pool, device));
}

cudaError_t cudaDeviceSetMemPool(int ordinal, cudaMemPool_t pool)
{
	const gpul_driver *drv;
	CUdevice device;
	cudaError_t e = enter_device(&drv, ordinal, &device);

	return e ? e : gpul_rt_cu(drv, cuDeviceSetMemPool(device, pool));
}

#if CUDART_VERSION >= 13000
GPUL_RT_FORWARD(cudaMemGetDefaultMemPool, (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
		cuMemGetDefaultMemPool(pool, (CUmemLocation *)(void *)location, (CUmemAllocationType)type))
GPUL_RT_FORWARD(cudaMemGetMemPool, (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
		cuMemGetMemPool(pool, (CUmemLocation *)(void *)location, (CUmemAllocationType)type))
GPUL_RT_FORWARD(cudaMemSetMemPool, (struct cudaMemLocation * location, enum cudaMemAllocationType type, cudaMemPool_t pool),
		cuMemSetMemPool((CUmemLocation *)(void *)location, (CUmemAllocationType)type, pool))
#endif

GPUL_RT_FORWARD(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *properties),
		cuMemPoolCreate(pool, (const CUmemPoolProps *)(const void *)properties))
GPUL_RT_FORWARD(cudaMemPoolDestroy, (cudaMemPool_t pool), cuMemPoolDestroy(pool))
GPUL_RT_FORWARD(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes_to_keep), cuMemPoolTrimTo(pool, bytes_to_keep))
GPUL_RT_FORWARD(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value),
		cuMemPoolSetAttribute(pool, (CUmemPool_attribute)which, value))
GPUL_RT_FORWARD(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr which, void *value),
		cuMemPoolGetAttribute(pool, (CUmemPool_attribute)which, value))
GPUL_RT_FORWARD(cudaMemPoolSetAccess, (cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t n),
		cuMemPoolSetAccess(pool, (const CUmemAccessDesc *)(const void *)list, n))

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *out, cudaMemPool_t pool, struct cudaMemLocation *location)
{
	const gpul_driver *drv;
	CUmemAccess_flags flags;
	CUmemLocation where;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out || !location)
		return gpul_rt_fail(cudaErrorInvalidValue, "a pointer argument is NULL");
	__builtin_memcpy(&where, location, sizeof where);
	if ((e = gpul_rt_cu(drv, cuMemPoolGetAccess(&flags, pool, &where))))
		return e;
	*out = (enum cudaMemAccessFlags)flags;
	return cudaSuccess;
}

/* ---- sharing with other processes -------------------------------------------------------- */

GPUL_RT_FORWARD(cudaMemPoolExportToShareableHandle,
		(void *out, cudaMemPool_t pool, enum cudaMemAllocationHandleType type, unsigned int flags),
		cuMemPoolExportToShareableHandle(out, pool, (CUmemAllocationHandleType)type, flags))
GPUL_RT_FORWARD(cudaMemPoolImportFromShareableHandle,
		(cudaMemPool_t * out, void *handle, enum cudaMemAllocationHandleType type, unsigned int flags),
		cuMemPoolImportFromShareableHandle(out, handle, (CUmemAllocationHandleType)type, flags))
GPUL_RT_FORWARD(cudaMemPoolExportPointer, (struct cudaMemPoolPtrExportData * out, void *p),
		cuMemPoolExportPointer((CUmemPoolPtrExportData *)(void *)out, gpul_rt_address(p)))

cudaError_t cudaMemPoolImportPointer(void **out, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data)
{
	const gpul_driver *drv;
	CUdeviceptr p = 0;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuMemPoolImportPointer(&p, pool, (CUmemPoolPtrExportData *)(void *)data))))
		return e;
	*out = (void *)(uintptr_t)p;
	return cudaSuccess;
}
