/* here_internal.h — what this process is: its machine, driver and GPUs, as it tells others. */
#ifndef GPULOAD_IPC_HERE_INTERNAL_H
#define GPULOAD_IPC_HERE_INTERNAL_H

#include "ipc/wire_internal.h"

/* Looked up once and kept: asking a driver for all its UUIDs takes longer than the whole
 * handshake. */
struct gpul_ipc_here {
	const gpul_driver *drv;
	unsigned char boot_id[16];
	char driver[8];
	uint32_t can;                         /* as in HELLO */
	unsigned n_gpus;                      /* that are told: at most WIRE_MAX_GPUS */
	unsigned char gpu[WIRE_MAX_GPUS][16]; /* by ordinal */
};

/** This process on that driver.
 *
 * @drv  borrowed; NULL: without a driver, which can only ask
 * @out  filled
 * Errors  GPUL_ECUDA; GPUL_ESYS no boot id: /proc is not there
 * Threads any thread may call
 * Source  Linux proc_sys_kernel(5): random/boot_id */
gpul_status gpul_ipc_here_get(const gpul_driver *drv, struct gpul_ipc_here *out,
			      gpul_error *err);

/* The ordinal of the GPU with that UUID; -1: not one of ours. */
int gpul_ipc_here_find(const struct gpul_ipc_here *here, const unsigned char uuid[16]);

/** Can a process that said HELLO map what is offered?  Each side asks.
 *
 * @hello  checked
 * @share  checked
 * Errors  GPUL_EUNSUPPORTED and what stands in the way
 * Threads any thread may call
 * Source  - */
gpul_status gpul_ipc_here_fits(const struct wire_hello *hello, const struct wire_share *share,
			       gpul_error *err);

#endif
