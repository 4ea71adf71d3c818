/* fake_memory.c — the failing driver with the calls that shared memory needs. */
#include "tests/fake/fake_memory.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct physical { /* the object behind a CUmemGenericAllocationHandle */
	int fd;
	CUmemAllocationProp prop;
};

static CUmemAllocationProp made_last; /* the properties that an imported handle reports */

static void *pointer(CUdeviceptr at)
{
	return (void *)(uintptr_t)at;
}

static struct physical *physical(CUmemGenericAllocationHandle h)
{
	return (struct physical *)(uintptr_t)h;
}

static CUresult granularity(size_t *bytes, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags which)
{
	(void)prop, (void)which;
	*bytes = fake_behave()->granularity_bytes;
	return fake_step();
}

/* Create a handle for a file; the handle owns the descriptor. */
static CUresult new_handle(int fd, const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *out)
{
	struct physical *p = malloc(sizeof *p);

	if (!p || fd < 0) {
		free(p);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*p = (struct physical){ fd, *prop };
	*out = (CUmemGenericAllocationHandle)(uintptr_t)p;
	fake_count(FAKE_VMM, 1);
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult r = fake_step();
	int fd;

	(void)flags;
	if (r)
		return r;
	fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)) {
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	made_last = *prop;
	return new_handle(fd, prop, out);
}

static CUresult release(CUmemGenericAllocationHandle h)
{
	close(physical(h)->fd);
	free(physical(h));
	fake_count(FAKE_VMM, -1);
	return CUDA_SUCCESS;
}

static CUresult reserve(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	CUresult r = fake_step();
	void *p;

	(void)alignment, (void)hint, (void)flags;
	if (r)
		return r;
	p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*at = (CUdeviceptr)(uintptr_t)p;
	fake_count(FAKE_RESERVATION, 1);
	return CUDA_SUCCESS;
}

static CUresult address_free(CUdeviceptr at, size_t bytes)
{
	munmap(pointer(at), bytes);
	fake_count(FAKE_RESERVATION, -1);
	return CUDA_SUCCESS;
}

static CUresult map(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle h, unsigned long long flags)
{
	CUresult r = fake_step();
	struct stat is;

	(void)flags;
	if (r)
		return r;
	if (offset || fstat(physical(h)->fd, &is) || (size_t)is.st_size != bytes)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (mmap(pointer(at), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, physical(h)->fd, 0) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fake_count(FAKE_MAPPING, 1);
	return CUDA_SUCCESS;
}

static CUresult unmap(CUdeviceptr at, size_t bytes)
{
	(void)mmap(pointer(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	fake_count(FAKE_MAPPING, -1);
	return CUDA_SUCCESS;
}

static CUresult set_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t n)
{
	CUresult r = fake_step();

	if (r || !n)
		return r ? r : CUDA_ERROR_INVALID_VALUE;
	return mprotect(pointer(at), bytes, access[0].flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_READ | PROT_WRITE)
		       ? CUDA_ERROR_INVALID_VALUE
		       : CUDA_SUCCESS;
}

static CUresult properties(CUmemAllocationProp *prop, CUmemGenericAllocationHandle h)
{
	*prop = physical(h)->prop;
	return fake_step();
}

static CUresult export_handle(void *out, CUmemGenericAllocationHandle h, CUmemAllocationHandleType type, unsigned long long flags)
{
	CUresult r = fake_step();
	int fd;

	(void)flags;
	if (r)
		return r;
	if (!(physical(h)->prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
		memset(out, 'f', sizeof(CUmemFabricHandle));
		memcpy(out, &physical(h)->fd, sizeof physical(h)->fd);
		return CUDA_SUCCESS;
	}
	fd = fcntl(physical(h)->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

static CUresult import_handle(CUmemGenericAllocationHandle *out, void *from, CUmemAllocationHandleType type)
{
	CUresult r = fake_step();
	CUmemAllocationProp prop = made_last;
	int fd = (int)(intptr_t)from;

	if (r)
		return r;
	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		memcpy(&fd, from, sizeof fd);
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	if (fake_behave()->location.type)
		prop.location = fake_behave()->location;
	return new_handle(fcntl(fd, F_DUPFD_CLOEXEC, 0), &prop, out);
}

static CUresult can_access(int *can, CUdevice device, CUdevice peer)
{
	*can = device != peer && !fake_behave()->no_peer_access;
	return fake_step();
}

static CUresult enable_peer(CUcontext peer, unsigned flags)
{
	(void)peer, (void)flags;
	return fake_step();
}

static CUresult register_host(void *at, size_t bytes, unsigned flags)
{
	CUresult r = fake_step();

	(void)at, (void)bytes, (void)flags;
	if (!r)
		fake_count(FAKE_REGISTRATION, 1);
	return r;
}

static CUresult unregister_host(void *at)
{
	(void)at;
	fake_count(FAKE_REGISTRATION, -1);
	return CUDA_SUCCESS;
}

static CUresult device_pointer(CUdeviceptr *out, void *at, unsigned flags)
{
	(void)flags;
	*out = (CUdeviceptr)(uintptr_t)at;
	return fake_step();
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
	*base = at;
	*bytes = fake_behave()->range_bytes;
	return fake_step();
}

static CUresult ipc_get(CUipcMemHandle *out, CUdeviceptr at)
{
	memset(out, 0, sizeof *out);
	memcpy(out, &at, sizeof at);
	return fake_step();
}

static CUresult ipc_open(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
	CUresult r = fake_step();

	(void)flags;
	if (r)
		return r;
	memcpy(at, &handle, sizeof *at);
	fake_count(FAKE_IPC, 1);
	return CUDA_SUCCESS;
}

static CUresult ipc_close(CUdeviceptr at)
{
	(void)at;
	fake_count(FAKE_IPC, -1);
	return CUDA_SUCCESS;
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	CUresult r = fake_step();

	if (!r)
		memcpy(pointer(to), pointer(from), bytes);
	return r;
}

const gpul_driver *fake_memory_driver(int fail_at, CUresult with)
{
	static gpul_driver table;

	table = *fake_driver_failing(fail_at, with);
	table.cuMemGetAllocationGranularity = granularity;
	table.cuMemCreate = create;
	table.cuMemRelease = release;
	table.cuMemAddressReserve = reserve;
	table.cuMemAddressFree = address_free;
	table.cuMemMap = map;
	table.cuMemUnmap = unmap;
	table.cuMemSetAccess = set_access;
	table.cuMemGetAllocationPropertiesFromHandle = properties;
	table.cuMemExportToShareableHandle = export_handle;
	table.cuMemImportFromShareableHandle = import_handle;
	table.cuMemcpy = copy;
	table.cuDeviceCanAccessPeer = can_access;
	table.cuCtxEnablePeerAccess = enable_peer;
	table.cuMemHostRegister = register_host;
	table.cuMemHostUnregister = unregister_host;
	table.cuMemHostGetDevicePointer = device_pointer;
	table.cuMemGetAddressRange = address_range;
	table.cuIpcGetMemHandle = ipc_get;
	table.cuIpcOpenMemHandle = ipc_open;
	table.cuIpcCloseMemHandle = ipc_close;
	return &table;
}
