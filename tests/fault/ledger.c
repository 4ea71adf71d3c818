/* ledger.c — count driver objects: each call that creates an object adds 1, each call that frees one subtracts 1. */
#include "tests/fault/ledger.h"

static gpul_driver below;
static int total;

int ledger_total(void)
{
	return total;
}

static CUresult count_created(CUresult r)
{
	total += r == CUDA_SUCCESS;
	return r;
}

static CUresult count_freed(CUresult r)
{
	total -= r == CUDA_SUCCESS;
	return r;
}

static CUresult create_physical(CUmemGenericAllocationHandle *out, size_t n, const CUmemAllocationProp *p, unsigned long long flags)
{
	return count_created(below.cuMemCreate(out, n, p, flags));
}

static CUresult import_physical(CUmemGenericAllocationHandle *out, void *from, CUmemAllocationHandleType type)
{
	return count_created(below.cuMemImportFromShareableHandle(out, from, type));
}

static CUresult retain_physical(CUmemGenericAllocationHandle *out, void *at)
{
	return count_created(below.cuMemRetainAllocationHandle(out, at));
}

static CUresult release_physical(CUmemGenericAllocationHandle h)
{
	return count_freed(below.cuMemRelease(h));
}

static CUresult reserve_range(CUdeviceptr *out, size_t n, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	return count_created(below.cuMemAddressReserve(out, n, alignment, hint, flags));
}

static CUresult free_range(CUdeviceptr at, size_t n)
{
	return count_freed(below.cuMemAddressFree(at, n));
}

static CUresult map_range(CUdeviceptr at, size_t n, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
	return count_created(below.cuMemMap(at, n, offset, h, flags));
}

static CUresult unmap_range(CUdeviceptr at, size_t n)
{
	return count_freed(below.cuMemUnmap(at, n));
}

static CUresult host_register(void *at, size_t n, unsigned flags)
{
	return count_created(below.cuMemHostRegister(at, n, flags));
}

static CUresult host_unregister(void *at)
{
	return count_freed(below.cuMemHostUnregister(at));
}

static CUresult open_memory(CUdeviceptr *out, CUipcMemHandle h, unsigned flags)
{
	return count_created(below.cuIpcOpenMemHandle(out, h, flags));
}

static CUresult close_memory(CUdeviceptr at)
{
	return count_freed(below.cuIpcCloseMemHandle(at));
}

static CUresult alloc_memory(CUdeviceptr *out, size_t n)
{
	return count_created(below.cuMemAlloc(out, n));
}

static CUresult free_memory(CUdeviceptr at)
{
	return count_freed(below.cuMemFree(at));
}

static CUresult create_event(CUevent *out, unsigned flags)
{
	return count_created(below.cuEventCreate(out, flags));
}

static CUresult open_event(CUevent *out, CUipcEventHandle h)
{
	return count_created(below.cuIpcOpenEventHandle(out, h));
}

static CUresult destroy_event(CUevent e)
{
	return count_freed(below.cuEventDestroy(e));
}

void ledger_wrap(gpul_driver *table)
{
	below = *table;
	table->cuMemCreate = create_physical;
	table->cuMemImportFromShareableHandle = import_physical;
	table->cuMemRetainAllocationHandle = retain_physical;
	table->cuMemRelease = release_physical;
	table->cuMemAddressReserve = reserve_range;
	table->cuMemAddressFree = free_range;
	table->cuMemMap = map_range;
	table->cuMemUnmap = unmap_range;
	table->cuMemHostRegister = host_register;
	table->cuMemHostUnregister = host_unregister;
	table->cuIpcOpenMemHandle = open_memory;
	table->cuIpcCloseMemHandle = close_memory;
	table->cuMemAlloc = alloc_memory;
	table->cuMemFree = free_memory;
	table->cuEventCreate = create_event;
	table->cuIpcOpenEventHandle = open_event;
	table->cuEventDestroy = destroy_event;
}
