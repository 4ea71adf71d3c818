/* mem.c — memory objects: checks their descriptions, calls the operations of their kind, and exports them. */
#include "memalloc/mem_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory_left.h"

/* The operations of each kind. */
static const struct mem_ops *const kinds[GPUL_MEM_N_KINDS] = {
	[GPUL_MEM_HOST_NUMA] = &gpul_mem_vmm_host, [GPUL_MEM_DEVICE] = &gpul_mem_vmm_device,
	[GPUL_MEM_MEMFD] = &gpul_mem_memfd,        [GPUL_MEM_SHM] = &gpul_mem_shm,
	[GPUL_MEM_PINNED] = &gpul_mem_pinned,      [GPUL_MEM_DEVICE_IPC] = &gpul_mem_device_ipc,
};

static const struct mem_ops *find_ops(gpul_mem_kind kind)
{
	return (unsigned)kind < GPUL_MEM_N_KINDS ? kinds[kind] : NULL;
}

/* ---- checks of a description ----------------------------------------------------- */

static gpul_status resolve_devices(gpul_mem *m, const gpul_mem_desc *desc, gpul_error *err)
{
	int n_there;
	gpul_status st;

	if (!desc->devices || desc->n_devices == 0 || desc->n_devices > GPUL_MEM_MAX_DEVICES)
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of devices is %u: expected 1 to %d", desc->devices ? desc->n_devices : 0,
				 GPUL_MEM_MAX_DEVICES);
	st = mem_cu(m, err, cuDeviceGetCount(&n_there));
	for (unsigned i = 0; !st && i < desc->n_devices; i++) {
		int device = desc->devices[i];

		if (device < 0 || device >= n_there)
			return gpul_fail(err, GPUL_EINVAL, device, "device %d does not exist: the %s driver has %d, numbered from 0",
					 device, m->drv->name, n_there);
		for (unsigned j = 0; j < i; j++)
			if (desc->devices[j] == device)
				return gpul_fail(err, GPUL_EINVAL, device, "device %d is listed twice", device);
		m->about.devices[i] = device;
		st = mem_cu(m, err, cuDeviceGet(&m->handles[i], device));
	}
	m->about.n_devices = desc->n_devices;
	m->about.device = desc->devices[0];
	return st;
}

static gpul_status check_description(const gpul_mem_desc *d, gpul_mem_kind kind, gpul_error *err)
{
	const char *name = gpul_mem_kind_name(kind);

	if (!find_ops(kind))
		return gpul_fail(err, GPUL_EINVAL, (int)kind, "unknown kind of memory: %d", (int)kind);
	if (d->bytes == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot allocate %s memory of 0 bytes: the size must be at least 1", name);
	if (d->read_only)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%s memory cannot be created with read_only, because no process could write it: read_only is "
				 "for imports",
				 name);
	if (kind == GPUL_MEM_PINNED && d->exportable)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "pinned memory cannot be shared with other processes: use host-numa, memfd "
				 "or shm");
	if (d->fabric && kind != GPUL_MEM_DEVICE)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s memory cannot have a fabric handle: only device memory can", name);
	return GPUL_OK;
}

/* ---- creating and freeing the object --------------------------------------------- */

static void free_object(gpul_mem *m)
{
	pthread_mutex_destroy(&m->export_lock);
	free(m);
}

/* Allocate an object, and set its devices and its context, which are the same for all kinds. */
static gpul_status new_object(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem_kind kind, gpul_mem **out, gpul_error *err)
{
	gpul_mem *m = calloc(1, sizeof *m);
	gpul_status st;

	if (!m)
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: cannot create a memory object");
	m->drv = drv;
	m->ops = find_ops(kind);
	m->fd = -1;
	m->about.kind = kind;
	m->about.node = -1;
	m->about.read_only = desc->read_only;
	pthread_mutex_init(&m->export_lock, NULL);
	st = resolve_devices(m, desc, err);
	if (!st)
		st = mem_cu(m, err, cuCtxGetCurrent(&m->context));
	if (!st && !m->context)
		st = gpul_fail(err, GPUL_EINVAL, 0, "no context is current on this thread: call gpul_context_open()");
	if (st)
		free_object(m);
	else
		*out = m;
	return st;
}

/* Set the alignment to the largest power of two that divides both addresses, but at most the granularity. */
static void find_alignment(gpul_mem *m)
{
	uint64_t both = (uint64_t)m->gpu | (uint64_t)(uintptr_t)m->cpu | m->about.granularity_bytes;

	m->about.alignment_bytes = (size_t)(both & -both);
}

/* Check that enough memory is left: all pages of host memory are allocated immediately, and the kernel kills a process that
 * allocates too much.  For device memory the driver checks.  create() refuses a size that overflows when it is rounded up. */
static gpul_status check_memory_left(const gpul_mem *m, gpul_error *err)
{
	char what[32];

	if ((!m->ops->on_host && m->about.kind != GPUL_MEM_PINNED) || m->about.bytes > PTRDIFF_MAX)
		return GPUL_OK;
	snprintf(what, sizeof what, "%s memory", gpul_mem_kind_name(m->about.kind));
	return gpul_memory_check(what, m->about.bytes, err);
}

gpul_status gpul_mem_create_kind(const gpul_driver *drv, const gpul_mem_desc *desc, gpul_mem_kind kind, gpul_mem **out, gpul_error *err)
{
	gpul_mem *m = NULL;
	gpul_status st = check_description(desc, kind, err);

	if (st)
		return st;
	st = new_object(drv, desc, kind, &m, err);
	if (st)
		return st;
	m->about.bytes = desc->bytes;
	m->about.exportable = desc->exportable || desc->fabric;
	if (m->ops->on_host)
		st = gpul_mem_find_node(m, desc->node, err);
	if (!st)
		st = check_memory_left(m, err);
	if (!st)
		st = m->ops->create(m, desc, err);
	if (st) {
		free_object(m);
		return st;
	}
	find_alignment(m);
	*out = m;
	return GPUL_OK;
}

/* Check that the offer came with a descriptor if its kind requires one, else with a handle. */
static gpul_status check_source(const struct mem_source *from, gpul_error *err)
{
	const struct mem_ops *ops = find_ops(from->offer->kind);
	const char *name = gpul_mem_kind_name(from->offer->kind);
	bool by_handle = from->offer->fabric || (ops && ops->has_handle);

	if (!ops)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the owner offered memory of unknown kind %d: use the same gpuload for both processes",
				 (int)from->offer->kind);
	if (!ops->import)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "%s memory cannot be shared with other processes, so it cannot be "
				 "imported",
				 name);
	if (from->offer->fabric && from->offer->kind != GPUL_MEM_DEVICE)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the owner offered %s memory with a fabric handle, but only device memory can have one", name);
	if (by_handle ? !from->handle || from->fd >= 0 : from->handle || from->fd < 0)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s memory must be sent with a %s and no other handle", name,
				 by_handle ? "handle" : "file descriptor");
	return GPUL_OK;
}

gpul_status gpul_mem_import(const gpul_driver *drv, const gpul_mem_offer *offer, int fd, const gpul_mem_handle *handle,
			    const gpul_mem_desc *desc, gpul_mem **out, gpul_error *err)
{
	const struct mem_source from = { .offer = offer, .fd = fd, .handle = handle };
	gpul_mem *m = NULL;
	gpul_status st = check_source(&from, err);

	if (st)
		return st;
	st = new_object(drv, desc, offer->kind, &m, err);
	if (st)
		return st;
	m->about.bytes = offer->bytes;
	m->about.imported = true;
	st = m->ops->import(m, &from, err);
	if (st) {
		free_object(m);
		return st;
	}
	find_alignment(m);
	*out = m;
	return GPUL_OK;
}

/* Make the memory's context current, because unregistering and the cuIpc calls need a context, and this thread may have none.
 * Returns the previous context, for leave_context(). */
static CUcontext enter_context(const gpul_mem *m)
{
	CUcontext before = NULL;

	(void)m->drv->cuCtxGetCurrent(&before);
	if (before != m->context)
		(void)m->drv->cuCtxSetCurrent(m->context);
	return before;
}

static void leave_context(const gpul_mem *m, CUcontext before)
{
	if (before != m->context)
		(void)m->drv->cuCtxSetCurrent(before);
}

void gpul_mem_destroy(gpul_mem *m)
{
	CUcontext before;

	if (!m)
		return;
	before = enter_context(m);
	m->ops->destroy(m);
	leave_context(m, before);
	free_object(m);
}

/* ---- getters --------------------------------------------------------------------- */

const gpul_mem_info *gpul_mem_about(const gpul_mem *m)
{
	return &m->about;
}

void *gpul_mem_cpu(const gpul_mem *m)
{
	return m->cpu;
}

CUdeviceptr gpul_mem_gpu(const gpul_mem *m)
{
	return m->gpu;
}

/* ---- export ---------------------------------------------------------------------- */

static gpul_status check_exportable(const gpul_mem *m, gpul_error *err)
{
	if (m->about.exportable)
		return GPUL_OK;
	return gpul_fail(err, GPUL_EINVAL, 0, "%s memory %s", gpul_mem_kind_name(m->about.kind),
			 m->about.imported ? "was imported: only its owner can export it"
					   : "cannot be exported: create it with gpul_mem_desc.exportable");
}

gpul_status gpul_mem_export_fd(gpul_mem *m, int *out, gpul_error *err)
{
	gpul_status st = check_exportable(m, err);

	if (st)
		return st;
	if (!m->ops->has_fd)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0, "%s memory has no file descriptor: use gpul_mem_export_handle()",
				 gpul_mem_kind_name(m->about.kind));
	pthread_mutex_lock(&m->export_lock);
	if (m->fd < 0)
		st = m->ops->export_fd(m, err);
	if (!st)
		*out = m->fd;
	pthread_mutex_unlock(&m->export_lock);
	return st;
}

gpul_status gpul_mem_export_handle(gpul_mem *m, gpul_mem_handle *out, gpul_error *err)
{
	CUcontext before;
	gpul_status st = check_exportable(m, err);

	if (st)
		return st;
	if (!m->fabric && !m->ops->has_handle)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "%s memory has no 64-byte handle: use gpul_mem_export_fd(), or create device memory "
				 "with fabric",
				 gpul_mem_kind_name(m->about.kind));
	before = enter_context(m);
	st = m->ops->export_handle(m, out, err);
	leave_context(m, before);
	return st;
}
