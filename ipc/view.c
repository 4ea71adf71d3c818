/* view.c — fills in the gpul_ipc_view of mapped memory, and gives the names of events. */
#include "ipc/wire_internal.h"

#include <string.h>

const char *gpul_ipc_event_name(gpul_ipc_event_kind kind)
{
	static const char *const names[] = {
		[GPUL_IPC_NONE] = "NONE",           [GPUL_IPC_ATTACHED] = "ATTACHED",     [GPUL_IPC_DETACHED] = "DETACHED",
		[GPUL_IPC_PEER_DIED] = "PEER_DIED", [GPUL_IPC_OWNER_DIED] = "OWNER_DIED", [GPUL_IPC_REFUSED] = "REFUSED",
	};

	return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "?";
}

gpul_ipc_view gpul_ipc_view_of(const gpul_driver *drv, const gpul_mem *mem, const struct wire_share *share, bool read_only)
{
	size_t offset = gpul_ipc_wire_data_offset(share);
	char *cpu = gpul_mem_cpu(mem);
	CUdeviceptr gpu = gpul_mem_gpu(mem);
	gpul_ipc_view v = {
		.drv = drv,
		.cpu = cpu ? cpu + offset : NULL,
		.gpu = gpu + offset,
		.bytes = share->bytes,
		.control = offset ? (void *)cpu : NULL,
		.control_gpu = offset ? gpu : 0,
		.read_only = read_only,
		.shape.n_dims = share->n_dims,
	};

	memcpy(v.shape.dtype, share->dtype, sizeof share->dtype);
	memcpy(v.shape.dim, share->dim, sizeof share->dim);
	return v;
}
