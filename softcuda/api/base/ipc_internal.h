/* ipc_internal.h — what goes from one process to another: 64 bytes that say where to look.
 *
 *      0      4    5         8     12    16        24      32         48          64
 *     ┌──────┬────┬─────────┬─────┬─────┬─────────┬───────┬──────────┬───────────┐
 *     │ GPUi │kind│ 0  0  0 │ pid │ fd  │ started │ bytes │ id       │ device's  │
 *     │      │    │         │     │     │         │       │ (random) │ UUID      │
 *     └──────┴────┴─────────┴─────┴─────┴─────────┴───────┴──────────┴───────────┘
 *
 * The owner has a memfd under that number; its name holds the id.  Who gets the 64 bytes opens
 * /proc/PID/fd/N, and takes the file only when name, size, seals and owner are right: so a handle
 * that is over, of a process number used again, or made up, is refused.  Nothing has a name that
 * outlives its process, and who may open it is decided by the kernel: the same user. */
#ifndef GPULOAD_SOFTCUDA_API_BASE_IPC_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_BASE_IPC_INTERNAL_H

#include "softcuda/api/base/state_internal.h"

enum ipc_kind { IPC_MEMORY = 'm', IPC_EVENT = 'e' };

struct ipc_handle {
	char magic[4];
	uint8_t kind, zero[3];
	int32_t pid, fd;
	uint64_t started;            /* when the process did, in clock ticks since boot */
	uint64_t bytes;              /* used of the file, which has whole pages */
	unsigned char id[16];
	unsigned char uuid[16];
};
_Static_assert(sizeof(struct ipc_handle) == sizeof(CUipcMemHandle), "as drawn");
_Static_assert(sizeof(struct ipc_handle) == sizeof(CUipcEventHandle), "as drawn");

struct ipc_file { /* of the process that made it; sealed: its size never changes */
	int fd;
	size_t bytes;
	unsigned char id[16];
};

/* soft_ipc_close().  CUDA_ERROR_OUT_OF_MEMORY; CUDA_ERROR_OPERATING_SYSTEM no more descriptors. */
CUresult soft_ipc_create(enum ipc_kind kind, size_t bytes, struct ipc_file *out);
void soft_ipc_close(struct ipc_file *f);
/* The 64 bytes to hand out. */
CUresult soft_ipc_describe(enum ipc_kind kind, const struct ipc_file *f,
			   const struct device *device, struct ipc_handle *out);
/* The file that h speaks of, close() it; -1: refused, and the log says why. */
int soft_ipc_open(enum ipc_kind kind, const struct ipc_handle *h);
bool soft_ipc_is_handle(enum ipc_kind kind, const struct ipc_handle *h);
bool soft_ipc_is_own(const struct ipc_handle *h);  /* this process made it */

#endif
