/* cu_vmm_handle.c — physical memory: cuMemCreate, and the calls on its handles.
 *
 * Each allocation is a memfd, sealed so that no process can change its size while others map it.  Pages of device memory are
 * allocated at their first access, although all bytes are counted immediately. Pages of host memory are allocated here, so that a
 * lack of memory makes cuMemCreate fail, instead of causing a SIGBUS later. */
#include "softcuda/api/vmm/cu_vmm_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/memory_left.h"

void soft_memory_unref(struct memory *m)
{
	if (--m->refs)
		return;
	if (!m->imported && !is_host_memory(m))
		soft.device[m->prop.location.id].allocated_bytes -= m->bytes;
	close(m->fd);
	if (m->multicast)
		m->multicast_end(m->multicast);
	soft_handle_free(m->handle);
	free(m);
}

CUresult soft_memory_adopt(struct memory *m, CUmemGenericAllocationHandle *out)
{
	if (!m->handle)
		m->handle = soft_handle_new(HANDLE_MEMORY, m);
	if (!m->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->n_releases++;
	*out = (uintptr_t)m->handle;
	return CUDA_SUCCESS;
}

struct memory *soft_memory_find(CUmemGenericAllocationHandle handle)
{
	struct memory *m = soft_handle_find(HANDLE_MEMORY, (void *)(uintptr_t)handle);

	return m && m->n_releases ? m : NULL;
}

/* ---- checks of the arguments of cuMemCreate ------------------------------------------- */

bool soft_numa_node_exists(int node)
{
	char path[64];

	snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
	return node == 0 || (node > 0 && access(path, F_OK) == 0);
}

static CUresult check_location(const CUmemAllocationProp *p)
{
	int id = p->location.id;

	switch (p->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return id >= 0 && id < soft.n_devices ? CUDA_SUCCESS
						      : soft_refuse(CUDA_ERROR_INVALID_DEVICE, "cuMemCreate: device %d does not exist", id);
	case CU_MEM_LOCATION_TYPE_HOST:
		return p->requestedHandleTypes ? soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemCreate: memory of location "
										       "HOST cannot be exported: use "
										       "HOST_NUMA")
					       : CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		return soft_numa_node_exists(id) ? CUDA_SUCCESS
						 : soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemCreate: NUMA node %d does not exist", id);
	default:
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemCreate: unknown location type %d", (int)p->location.type);
	}
}

static CUresult check_request(size_t bytes, const CUmemAllocationProp *p, unsigned long long flags)
{
	if (!bytes || bytes % VMM_GRANULARITY || flags)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMemCreate: %zu bytes, flags %llu: the size must be a multiple of 2 MiB, and flags must be 0", bytes,
				   flags);
	if (p->type != CU_MEM_ALLOCATION_TYPE_PINNED || p->win32HandleMetaData || p->allocFlags.gpuDirectRDMACapable || p->allocFlags.usage)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemCreate: allocation type %d or a flag is not supported", (int)p->type);
	if ((unsigned)p->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
		return soft_answer(CUDA_ERROR_NOT_PERMITTED, "cuMemCreate: fabric handles are not supported");
	if (p->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE && p->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemCreate: handle type %d is not supported: use a file descriptor (1)",
				   (int)p->requestedHandleTypes);
	return check_location(p);
}

/* ---- the pages -------------------------------------------------------------------------- */

/* Place the pages of a file on a NUMA node.  mbind() needs a mapping, but its policy is stored in the file, for all mappings. */
static CUresult place_on_node(int fd, size_t bytes, int node)
{
	enum { BITS = 8 * sizeof(unsigned long), WORDS = 16 };
	unsigned long mask[WORDS] = { 0 };
	void *pages;
	long r;

	if (!soft_numa_node_exists(1))
		return CUDA_SUCCESS; /* the machine has only one node */
	if (node >= WORDS * BITS)
		return CUDA_ERROR_INVALID_VALUE;
	mask[node / BITS] = 1ul << node % BITS;
	pages = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, fd, 0);
	if (pages == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = syscall(SYS_mbind, pages, bytes, MPOL_BIND, mask, WORDS * BITS + 1, 0);
	munmap(pages, bytes);
	return r == 0 ? CUDA_SUCCESS
		      : soft_refuse(CUDA_ERROR_NOT_PERMITTED, "cuMemCreate: cannot place memory on NUMA node %d: %s", node,
				    strerror(errno));
}

static CUresult fill_host_file(int fd, size_t bytes, const CUmemAllocationProp *p)
{
	gpul_error err = { 0 };
	CUresult r = CUDA_SUCCESS;

	if (bytes > soft.memory_bytes || gpul_memory_check("cuMemCreate", bytes, &err))
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s",
				   *err.text ? err.text : "cuMemCreate: the size exceeds the memory of the device");
	if (p->location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA)
		r = place_on_node(fd, bytes, p->location.id);
	if (!r && fallocate(fd, 0, 0, (off_t)bytes))
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate: %zu bytes: %s", bytes, strerror(errno));
	return r;
}

static CUresult create_memfd(size_t bytes, const CUmemAllocationProp *p, int *out)
{
	char name[160];
	int fd;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!soft_memory_name(MEMORY_OF_CREATE, &p->location, bytes, name, sizeof name))
		return CUDA_ERROR_OPERATING_SYSTEM;
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return soft_refuse(r, "cuMemCreate: no file descriptor for the memory: %s (ulimit -n)", strerror(errno));
	if (ftruncate(fd, (off_t)bytes)) {
		r = soft_refuse(r, "cuMemCreate: %zu bytes: %s", bytes, strerror(errno));
		goto close_fd;
	}
	r = p->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS : fill_host_file(fd, bytes, p);
	if (!r && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		r = CUDA_ERROR_OPERATING_SYSTEM;
	if (r)
		goto close_fd;
	*out = fd;
	return CUDA_SUCCESS;
close_fd:
	close(fd);
	return r;
}

/* ---- the calls -------------------------------------------------------------------------- */

/* Count the bytes before the memory is created, so that two threads cannot both allocate the last free bytes. */
static CUresult count_bytes(const CUmemAllocationProp *p, size_t bytes)
{
	struct device *d;
	gpul_error err = { 0 };
	CUresult r = CUDA_SUCCESS;

	if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_SUCCESS;
	if (soft.in_group && gpul_memory_check("cuMemCreate", bytes, &err))
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s", err.text);
	soft_lock();
	d = &soft.device[p->location.id];
	if (bytes > soft.memory_bytes || d->allocated_bytes > soft.memory_bytes - bytes)
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuMemCreate: %zu bytes were requested, but device %d has only %llu bytes free",
				bytes, d->ordinal, (unsigned long long)(soft.memory_bytes - d->allocated_bytes));
	else
		d->allocated_bytes += bytes;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop, unsigned long long flags)
{
	struct memory *m;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out || !prop)
		return CUDA_ERROR_INVALID_VALUE;
	r = check_request(bytes, prop, flags);
	if (!r)
		r = count_bytes(prop, bytes);
	if (r)
		return r;
	m = calloc(1, sizeof *m);
	if (m) {
		*m = (struct memory){ .refs = 1, .fd = -1, .bytes = bytes, .prop = *prop };
		m->prop.allocFlags.compressionType = 0;
		r = create_memfd(bytes, prop, &m->fd);
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	soft_lock();
	if (!r)
		r = soft_memory_adopt(m, out);
	if (r && m && m->fd >= 0) {
		soft_memory_unref(m);
	} else if (r) {
		if (prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE)
			soft.device[prop->location.id].allocated_bytes -= bytes;
		free(m);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct memory *m;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	m = soft_memory_find(handle);
	if (m) {
		m->n_releases--;
		soft_memory_unref(m);
	} else {
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMemRelease: %#llx is not a handle of memory, or it was released already",
				handle);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle)
{
	struct memory *m;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	m = out ? soft_memory_find(handle) : NULL;
	if (m)
		*out = m->prop;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out || !prop || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM && option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	*out = VMM_GRANULARITY;
	return CUDA_SUCCESS;
}
