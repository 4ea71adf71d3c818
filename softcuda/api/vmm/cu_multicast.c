/* cu_multicast.c — cuMulticast*: the calls of multicast objects.
 *
 * Source: CUDA Driver API, Multicast Object Management.  The calls were not compared with NVIDIA's driver, which needs an NVSwitch. */
#include "softcuda/api/vmm/cu_multicast_internal.h"

#include <stdlib.h>
#include <unistd.h>

static CUresult check_prop(const CUmulticastObjectProp *p)
{
	if (!p || p->flags || !p->numDevices || !p->size || p->size % VMM_GRANULARITY)
		return soft_refuse(
			CUDA_ERROR_INVALID_VALUE,
			"cuMulticastCreate: the object needs at least one device and a size that is a multiple of 2 MiB, and flags must "
			"be 0");
	if (p->numDevices > GPUL_EXEC_MAX_DEVICES)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMulticastCreate: %u devices are too many; at most %d are possible",
				   p->numDevices, GPUL_EXEC_MAX_DEVICES);
	if (p->handleTypes & CU_MEM_HANDLE_TYPE_FABRIC)
		return soft_answer(CUDA_ERROR_NOT_PERMITTED, "cuMulticastCreate: fabric handles are not supported");
	if (p->handleTypes & ~(unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMulticastCreate: handle types %#llx are not supported: use a file descriptor (1)", p->handleTypes);
	return CUDA_SUCCESS;
}

static void end_team(struct multicast *t)
{
	soft_teams_remove(t);
	soft_team_free(t);
}

CUresult soft_multicast_adopt(struct multicast *t, int fd, CUmemAllocationHandleType type, CUmemGenericAllocationHandle *out)
{
	struct memory *m = calloc(1, sizeof *m);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (m) {
		*m = (struct memory){
			.refs = 1, .fd = fd, .bytes = t->shared->bytes, .imported = true, .multicast = t, .multicast_end = end_team
		};
		m->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
		m->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
		m->prop.requestedHandleTypes = type;
		soft_lock();
		r = soft_memory_adopt(m, out);
		if (!r && t->is_shareable)
			soft_teams_add(t);
		soft_unlock();
	}
	if (r) {
		close(fd);
		soft_team_free(t);
		free(m);
	}
	return r;
}

EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	struct multicast *t;
	CUresult r = soft_check_initialised();
	int fd;

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	r = check_prop(prop);
	if (!r)
		r = soft_team_create(prop, &t, &fd);
	return r ? r : soft_multicast_adopt(t, fd, (CUmemAllocationHandleType)prop->handleTypes, out);
}

EXPORT CUresult cuMulticastGetGranularity(size_t *out, const CUmulticastObjectProp *prop, CUmulticastGranularity_flags option)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out || !prop || (option != CU_MULTICAST_GRANULARITY_MINIMUM && option != CU_MULTICAST_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	*out = VMM_GRANULARITY;
	return CUDA_SUCCESS;
}

/* Return the multicast object of a handle; NULL: the handle is not one, and *r is the error.  The caller holds the lock. */
static struct memory *find_multicast(CUmemGenericAllocationHandle handle, const char *call, CUresult *r)
{
	struct memory *m = soft_memory_find(handle);

	if (m && m->multicast)
		return m;
	*r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s: %#llx is not a handle of a multicast object", call, handle);
	return NULL;
}

static CUresult add_device(struct multicast *t, const struct device *d)
{
	struct shared_team *s = t->shared;
	CUuuid uuid;
	uint32_t row;

	if (soft_team_device(t, d) >= 0)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMulticastAddDevice: device %d is already in the team", d->ordinal);
	row = atomic_fetch_add(&s->n_devices_added, 1);
	if (row >= s->n_devices || row >= GPUL_EXEC_MAX_DEVICES)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMulticastAddDevice: the team already has all of its %u devices",
				   s->n_devices);
	soft_device_uuid(d, &uuid);
	for (size_t k = 0; k < sizeof s->device[row].uuid; k++)
		s->device[row].uuid[k] = (unsigned char)uuid.bytes[k];
	atomic_store(&s->device[row].state, ROW_READY);
	return CUDA_SUCCESS;
}

EXPORT CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice dev)
{
	CUresult r = soft_check_initialised();
	struct memory *m;

	if (r)
		return r;
	if (dev < 0 || dev >= soft.n_devices)
		return soft_refuse(CUDA_ERROR_INVALID_DEVICE, "cuMulticastAddDevice: device %d does not exist", dev);
	soft_lock();
	m = find_multicast(handle, "cuMulticastAddDevice", &r);
	if (m)
		r = add_device(m->multicast, &soft.device[dev]);
	soft_unlock();
	return r;
}

/* Like find_multicast(), after all devices were added.  Searches again after the wait, because the handle may have been released. */
static struct memory *find_complete(CUmemGenericAllocationHandle handle, const char *call, CUresult *r)
{
	struct memory *m = find_multicast(handle, call, r);

	if (!m)
		return NULL;
	soft_multicast_wait(m);
	return find_multicast(handle, call, r);
}

static CUresult bind_memory(struct multicast *t, struct memory *memory, const struct shared_binding *wanted)
{
	const unsigned long long bytes = wanted->bytes, offset = wanted->offset, memory_offset = wanted->memory_offset;
	int device;
	CUresult r;

	if (!bytes || bytes % VMM_GRANULARITY || offset % VMM_GRANULARITY || memory_offset % VMM_GRANULARITY)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMulticastBind: %llu bytes at offset %llu, memory at offset %llu: all three must be multiples "
				   "of 2 MiB",
				   bytes, offset, memory_offset);
	if (bytes > t->shared->bytes || offset > t->shared->bytes - bytes || bytes > memory->bytes || memory_offset > memory->bytes - bytes)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMulticastBind: %llu bytes are beyond the end of the object (%llu bytes) or of the memory (%zu bytes)",
				   bytes, (unsigned long long)t->shared->bytes, memory->bytes);
	if (memory->multicast || is_host_memory(memory))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMulticastBind: only memory of a device can be bound");
	if (t->is_shareable && !memory->imported && !memory->prop.requestedHandleTypes)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuMulticastBind: memory for a shareable multicast object must be shareable: set requestedHandleTypes");
	device = soft_team_device(t, &soft.device[memory->prop.location.id]);
	if (device < 0)
		return soft_refuse(CUDA_ERROR_INVALID_DEVICE, "cuMulticastBind: device %d, which has the memory, is not in the team",
				   memory->prop.location.id);
	r = soft_team_bind(t, (uint32_t)device, memory, wanted);
	if (!r)
		soft_team_map(t, NULL, 0); /* a failure is ignored here, and reported by cuMemSetAccess */
	return r;
}

EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory_handle,
				   size_t memory_offset, size_t bytes, unsigned long long flags)
{
	CUresult r = soft_check_initialised();
	struct memory *m, *memory;

	if (r)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	m = find_complete(handle, "cuMulticastBindMem", &r);
	if (m) {
		memory = soft_memory_find(memory_handle);
		r = memory ? bind_memory(m->multicast, memory,
					 &(struct shared_binding){ .offset = offset, .memory_offset = memory_offset, .bytes = bytes })
			   : CUDA_ERROR_INVALID_VALUE;
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr address, size_t bytes,
				    unsigned long long flags)
{
	CUresult r = soft_check_initialised();
	struct mapping *mapping;
	struct memory *m;

	if (r)
		return r;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	m = find_complete(handle, "cuMulticastBindAddr", &r);
	if (m) {
		mapping = soft_mapping_at(address);
		r = mapping ? bind_memory(m->multicast, mapping->memory,
					  &(struct shared_binding){
						  .offset = offset, .memory_offset = address - mapping->base, .bytes = bytes })
			    : soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuMulticastBindAddr: %#llx is not an address that cuMemMap has mapped",
					  address);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice dev, size_t offset, size_t bytes)
{
	CUresult r = soft_check_initialised();
	struct memory *m;
	int device;

	if (r)
		return r;
	if (dev < 0 || dev >= soft.n_devices)
		return CUDA_ERROR_INVALID_DEVICE;
	soft_lock();
	m = find_multicast(handle, "cuMulticastUnbind", &r);
	if (m) {
		device = soft_team_device(m->multicast, &soft.device[dev]);
		r = device < 0 ? soft_refuse(CUDA_ERROR_INVALID_DEVICE, "cuMulticastUnbind: device %d is not in the team", dev)
			       : soft_team_unbind(m->multicast, (uint32_t)device, offset, bytes);
	}
	if (m && !r) {
		m->refs++;                            /* keeps m alive, because soft_settle() releases the lock */
		soft_team_map(m->multicast, NULL, 0); /* marks the copies that are no longer bound */
		soft_settle(0, 0);
		soft_team_drop_copies(m->multicast);
		soft_memory_unref(m);
	}
	soft_unlock();
	return r;
}
