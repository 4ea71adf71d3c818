/* pointer.c — finds the kind of memory that an address belongs to. */
#include "rdma/gpu/pointer.h"

const char *gpul_rdma_pointer_kind_name(gpul_rdma_pointer_kind kind)
{
	static const char *const names[] = {
		[GPUL_RDMA_PAGEABLE] = "pageable host", [GPUL_RDMA_PINNED] = "pinned host", [GPUL_RDMA_HOST_NUMA] = "host-numa",
		[GPUL_RDMA_DEVICE] = "device",          [GPUL_RDMA_MANAGED] = "managed",
	};

	return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}

/* Find out whether memory from cuMemCreate() is in a GPU or in the host, by the properties of the allocation. */
static gpul_status find_mapped(const gpul_driver *drv, uint64_t at, gpul_rdma_pointer *p, gpul_error *err)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop = { 0 };
	gpul_status st;

	if (drv->cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)at) != CUDA_SUCCESS)
		return GPUL_OK; /* not memory from cuMemCreate(): nothing to add */
	st = gpul_cu(drv, err, cuMemGetAllocationPropertiesFromHandle(&prop, handle));
	(void)drv->cuMemRelease(handle);
	if (st)
		return st;
	p->mapped = true;
	p->kind = prop.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? GPUL_RDMA_DEVICE : GPUL_RDMA_HOST_NUMA;
	p->device = p->kind == GPUL_RDMA_DEVICE ? prop.location.id : -1;
	p->rdma_capable = p->kind == GPUL_RDMA_DEVICE && (p->rdma_capable || prop.allocFlags.gpuDirectRDMACapable);
	return GPUL_OK;
}

gpul_status gpul_rdma_pointer_find(const gpul_driver *drv, uint64_t at, gpul_rdma_pointer *out, gpul_error *err)
{
	/* The values have types of different sizes: each variable has room for the largest, and is 0 before the call. */
	uint64_t type = 0, managed = 0, capable = 0, ordinal = 0;
	CUpointer_attribute which[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
					CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	void *values[] = { &type, &managed, &capable, &ordinal };
	gpul_rdma_pointer p = { .kind = GPUL_RDMA_PAGEABLE, .device = -1 };
	gpul_status st = GPUL_OK;

	if (drv)
		st = gpul_cu(drv, err, cuPointerGetAttributes(4, which, values, (CUdeviceptr)at));
	if (st)
		return st;
	if (managed) {
		p.kind = GPUL_RDMA_MANAGED;
	} else if (type) {
		p.kind = type == CU_MEMORYTYPE_DEVICE ? GPUL_RDMA_DEVICE : GPUL_RDMA_PINNED;
		p.device = p.kind == GPUL_RDMA_DEVICE ? (int)ordinal : -1;
		p.rdma_capable = p.kind == GPUL_RDMA_DEVICE && capable;
		st = find_mapped(drv, at, &p, err);
	}
	if (!st)
		*out = p;
	return st;
}
