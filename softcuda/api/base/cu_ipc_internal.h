/* cu_ipc_internal.h — the handle that one process (the owner) sends to another: 64 bytes that locate a file of the owner.
 *
 *      0      4    5         8     12    16        24      32         48          64
 *     ┌──────┬────┬─────────┬─────┬─────┬─────────┬───────┬──────────┬───────────┐
 *     │ GPUi │kind│ 0  0  0 │ pid │ fd  │ started │ bytes │ id       │ device's  │
 *     │      │    │         │     │     │         │       │ (random) │ UUID      │
 *     └──────┴────┴─────────┴─────┴─────┴─────────┴───────┴──────────┴───────────┘
 *
 * The owner has a memfd with the descriptor `fd`; the name of the memfd contains the id.  The other process opens /proc/PID/fd/N,
 * and accepts the file only if its name, size, seals and user are correct. So it refuses a handle that is stale or forged, or whose
 * pid now belongs to another process.  The file has no name in any file system, so nothing remains after the owner has ended.  The
 * kernel lets only processes of the same user open it. */
#ifndef GPULOAD_SOFTCUDA_API_BASE_CU_IPC_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_BASE_CU_IPC_INTERNAL_H

#include "softcuda/api/base/cu_state_internal.h"

enum ipc_kind { IPC_MEMORY = 'm', IPC_EVENT = 'e' };

struct ipc_handle {
	char magic[4];
	uint8_t kind, zero[3];
	int32_t pid, fd;
	uint64_t started; /* start time of the process, in clock ticks since boot */
	uint64_t bytes;   /* size of the content; the file is rounded up to whole pages */
	unsigned char id[16];
	unsigned char uuid[16];
};
_Static_assert(sizeof(struct ipc_handle) == sizeof(CUipcMemHandle), "as drawn");
_Static_assert(sizeof(struct ipc_handle) == sizeof(CUipcEventHandle), "as drawn");

struct ipc_file { /* a memfd; sealed, so that its size cannot change */
	int fd;
	size_t bytes;
	unsigned char id[16];
};

/* Create a file; the caller closes it with soft_ipc_close().  CUDA_ERROR_OPERATING_SYSTEM: the process has no free descriptor. */
CUresult soft_ipc_create(enum ipc_kind kind, size_t bytes, struct ipc_file *out);
void soft_ipc_close(struct ipc_file *f);
/* Fill in *out, the handle that is sent to other processes. */
CUresult soft_ipc_describe(enum ipc_kind kind, const struct ipc_file *f, const struct device *device, struct ipc_handle *out);
/* Open the file of h; the caller closes the descriptor.  -1: refused; the log gives the reason. */
int soft_ipc_open(enum ipc_kind kind, const struct ipc_handle *h);
bool soft_ipc_is_handle(enum ipc_kind kind, const struct ipc_handle *h);
bool soft_ipc_is_own(const struct ipc_handle *h); /* returns true if this process created the handle h */

#endif
