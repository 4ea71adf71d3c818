/* here_internal.h — the description of this process (machine, driver, GPUs) that is sent to other processes. */
#ifndef GPULOAD_IPC_HERE_INTERNAL_H
#define GPULOAD_IPC_HERE_INTERNAL_H

#include "ipc/wire_internal.h"

/* Queried once and cached: getting all UUIDs from a driver takes longer than the whole handshake. */
struct gpul_ipc_here {
	const gpul_driver *drv;
	unsigned char boot_id[16];
	char driver[8];
	uint32_t can;                         /* what this process can map: the bits of wire_hello.can */
	unsigned n_gpus;                      /* number of GPUs, at most WIRE_MAX_GPUS */
	unsigned char gpu[WIRE_MAX_GPUS][16]; /* UUIDs, indexed by ordinal */
};

/** Describe this process, which uses the driver drv.
 *
 * @drv  borrowed; NULL: no driver, for queries only
 * @out  filled
 * Errors  GPUL_ECUDA; GPUL_ESYS no boot id: /proc is not mounted
 * Source  Linux proc_sys_kernel(5): random/boot_id */
gpul_status gpul_ipc_here_get(const gpul_driver *drv, struct gpul_ipc_here *out, gpul_error *err);

/* Find the index of the GPU with a UUID; -1: not found. */
int gpul_ipc_find_gpu(const unsigned char (*gpus)[16], unsigned n_gpus, const unsigned char uuid[16]);

/** Check whether the process that sent HELLO can map the offered memory.  Both sides call this.
 *
 * @hello  already checked
 * @share  already checked
 * Errors  GPUL_EUNSUPPORTED with the reason */
gpul_status gpul_ipc_here_fits(const struct wire_hello *hello, const struct wire_share *share, gpul_error *err);

#endif
