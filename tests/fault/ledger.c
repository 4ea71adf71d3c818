/* ledger.c — one number: up with every driver call that gives something, down with every one that takes it back. */
#include "tests/fault/ledger.h"

static gpul_driver below;
static int total;

int ledger_total(void)
{
	return total;
}

static CUresult gave(CUresult r)
{
	total += r == CUDA_SUCCESS;
	return r;
}

static CUresult took(CUresult r)
{
	total -= r == CUDA_SUCCESS;
	return r;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t n, const CUmemAllocationProp *p, unsigned long long flags)
{
	return gave(below.cuMemCreate(out, n, p, flags));
}

static CUresult import(CUmemGenericAllocationHandle *out, void *from, CUmemAllocationHandleType type)
{
	return gave(below.cuMemImportFromShareableHandle(out, from, type));
}

static CUresult retain(CUmemGenericAllocationHandle *out, void *at)
{
	return gave(below.cuMemRetainAllocationHandle(out, at));
}

static CUresult release(CUmemGenericAllocationHandle h)
{
	return took(below.cuMemRelease(h));
}

static CUresult reserve(CUdeviceptr *out, size_t n, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	return gave(below.cuMemAddressReserve(out, n, alignment, hint, flags));
}

static CUresult free_range(CUdeviceptr at, size_t n)
{
	return took(below.cuMemAddressFree(at, n));
}

static CUresult map(CUdeviceptr at, size_t n, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
	return gave(below.cuMemMap(at, n, offset, h, flags));
}

static CUresult unmap(CUdeviceptr at, size_t n)
{
	return took(below.cuMemUnmap(at, n));
}

static CUresult host_register(void *at, size_t n, unsigned flags)
{
	return gave(below.cuMemHostRegister(at, n, flags));
}

static CUresult host_unregister(void *at)
{
	return took(below.cuMemHostUnregister(at));
}

static CUresult open_memory(CUdeviceptr *out, CUipcMemHandle h, unsigned flags)
{
	return gave(below.cuIpcOpenMemHandle(out, h, flags));
}

static CUresult close_memory(CUdeviceptr at)
{
	return took(below.cuIpcCloseMemHandle(at));
}

static CUresult alloc(CUdeviceptr *out, size_t n)
{
	return gave(below.cuMemAlloc(out, n));
}

static CUresult free_memory(CUdeviceptr at)
{
	return took(below.cuMemFree(at));
}

static CUresult create_event(CUevent *out, unsigned flags)
{
	return gave(below.cuEventCreate(out, flags));
}

static CUresult open_event(CUevent *out, CUipcEventHandle h)
{
	return gave(below.cuIpcOpenEventHandle(out, h));
}

static CUresult destroy_event(CUevent e)
{
	return took(below.cuEventDestroy(e));
}

void ledger_wrap(gpul_driver *table)
{
	below = *table;
	table->cuMemCreate = create;
	table->cuMemImportFromShareableHandle = import;
	table->cuMemRetainAllocationHandle = retain;
	table->cuMemRelease = release;
	table->cuMemAddressReserve = reserve;
	table->cuMemAddressFree = free_range;
	table->cuMemMap = map;
	table->cuMemUnmap = unmap;
	table->cuMemHostRegister = host_register;
	table->cuMemHostUnregister = host_unregister;
	table->cuIpcOpenMemHandle = open_memory;
	table->cuIpcCloseMemHandle = close_memory;
	table->cuMemAlloc = alloc;
	table->cuMemFree = free_memory;
	table->cuEventCreate = create_event;
	table->cuIpcOpenEventHandle = open_event;
	table->cuEventDestroy = destroy_event;
}
