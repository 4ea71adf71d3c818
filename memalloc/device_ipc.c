/* device_ipc.c — memory of kind device-ipc: allocated by cuMemAlloc and shared by the cuIpc calls, for systems where
 * the virtual memory management calls (cuMemCreate) do not work. */
#include "memalloc/mem_internal.h"

#include <string.h>

/* The driver shares whole blocks of this size, so a smaller allocation would expose neighbouring allocations to the peer. */
enum { BLOCK_BYTES = 2 << 20 };

_Static_assert(sizeof(CUipcMemHandle) == sizeof(gpul_mem_handle), "both handle types have the same size");

/* Let a device's context access allocations of m's context.  The access stays enabled, because other code may rely on it. */
static gpul_status enable_peer(gpul_mem *m, CUdevice device, gpul_error *err)
{
	CUcontext peer = NULL;
	gpul_status st = mem_cu(m, err, cuDevicePrimaryCtxRetain(&peer, device));
	CUresult r;

	if (st)
		return st;
	st = mem_cu(m, err, cuCtxSetCurrent(peer));
	if (!st) {
		r = m->drv->cuCtxEnablePeerAccess(m->context, 0);
		if (r != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
			st = gpul_mem_cu_status(m, err, r, "cuCtxEnablePeerAccess");
		(void)m->drv->cuCtxSetCurrent(m->context);
	}
	(void)m->drv->cuDevicePrimaryCtxRelease(device); /* the context stays open, because the caller has retained it, too */
	return st;
}

static gpul_status enable_peers(gpul_mem *m, gpul_error *err)
{
	gpul_status st = gpul_mem_check_peers(m, m->handles[0], err);

	for (unsigned i = 1; !st && i < m->about.n_devices; i++)
		st = enable_peer(m, m->handles[i], err);
	return st;
}

static gpul_status create_device_ipc(gpul_mem *m, const gpul_mem_desc *desc, gpul_error *err)
{
	gpul_status st;

	(void)desc;
	st = gpul_mem_round(m, BLOCK_BYTES, err);
	if (!st)
		st = enable_peers(m, err);
	if (!st)
		st = mem_cu(m, err, cuMemAlloc(&m->gpu, m->about.mapped_bytes));
	return st;
}

/* Check that the opened address is the start of an allocation of at least the offered size. */
static gpul_status check_opened(gpul_mem *m, const gpul_mem_offer *offer, gpul_error *err)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	gpul_status st = mem_cu(m, err, cuMemGetAddressRange(&base, &bytes, m->gpu));

	if (st)
		return st;
	if (base != m->gpu || bytes < m->about.mapped_bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "the owner offered device-ipc memory of %zu bytes, but the allocation of its handle has %zu bytes",
				 offer->mapped_bytes, bytes);
	return GPUL_OK;
}

static gpul_status import_device_ipc(gpul_mem *m, const struct mem_source *from, gpul_error *err)
{
	CUipcMemHandle handle;
	gpul_status st;

	if (m->about.read_only)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "device-ipc memory cannot be mapped read-only (cuIpcOpenMemHandle): attach "
				 "for writing, or share it as kind device");
	st = gpul_mem_accept_size(m, from->offer, BLOCK_BYTES, err);
	if (!st)
		st = enable_peers(m, err);
	if (st)
		return st;
	memcpy(&handle, from->handle, sizeof handle);
	st = mem_cu(m, err, cuIpcOpenMemHandle(&m->gpu, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	if (st)
		return st;
	st = check_opened(m, from->offer, err);
	if (st)
		(void)m->drv->cuIpcCloseMemHandle(m->gpu);
	return st;
}

static gpul_status export_handle(gpul_mem *m, gpul_mem_handle *out, gpul_error *err)
{
	CUipcMemHandle handle;
	gpul_status st = mem_cu(m, err, cuIpcGetMemHandle(&handle, m->gpu));

	if (!st)
		memcpy(out, &handle, sizeof handle);
	return st;
}

static void destroy_device_ipc(gpul_mem *m)
{
	if (m->about.imported)
		(void)m->drv->cuIpcCloseMemHandle(m->gpu);
	else
		(void)m->drv->cuMemFree(m->gpu);
}

const struct mem_ops gpul_mem_device_ipc = {
	.has_handle = true,
	.create = create_device_ipc,
	.import = import_device_ipc,
	.export_handle = export_handle,
	.destroy = destroy_device_ipc,
};
