/* client.h — a peer's side: map the memory that another process offers, for as long as the lease lasts.
 *
 *     gpul_ipc_attach("weights") ──> gpul_ipc_client ── gpul_ipc_client_view() ──> pointers
 *             gpul_ipc_client_next(): OWNER_DIED, DETACHED            gpul_ipc_client_close() */
#ifndef GPULOAD_IPC_CLIENT_H
#define GPULOAD_IPC_CLIENT_H

#include "ipc/server.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_ipc_client gpul_ipc_client;  /* opaque: the struct lives in client.c */

typedef struct gpul_ipc_client_options {
	const char *name;      /* see gpul_ipc_place(); NULL: fd */
	int fd;                /* a connected Unix socket (SEQPACKET); the client's from here on, also on failure */
	const int *devices;    /* ordinals of the GPUs that get access; contexts open, that of devices[0] current */
	unsigned n_devices;    /* at least 1 */
	bool read_only;        /* map it for reading only */
} gpul_ipc_client_options;

/** Begin to attach: connect and say HELLO.  Then gpul_ipc_client_next() until ATTACHED or REFUSED.
 *
 * @drv      borrowed
 * @options  copied
 * @out      owned by the caller: gpul_ipc_client_close(); untouched on failure
 * Errors  GPUL_EINVAL a bad name, no device; GPUL_ESYS native = ENOENT no such name, ECONNREFUSED its
 *         owner is dead; GPUL_EUNSUPPORTED the folder is not safe, the other side is another user; GPUL_ENOMEM
 * Threads any thread may call; one object belongs to one thread at a time
 * Source  Linux unix(7), cmsg(3) */
gpul_status gpul_ipc_client_open(const gpul_driver *drv, const gpul_ipc_client_options *options,
				 gpul_ipc_client **out, gpul_error *err);

/** Open, and wait until it is attached.
 *
 * @drv         borrowed
 * @options     copied
 * @timeout_ms  for the whole of it; < 0: for ever
 * @out         owned by the caller: gpul_ipc_client_close(); untouched on failure
 * Errors  as gpul_ipc_client_open(); GPUL_EUNSUPPORTED refused: the owner's reason; GPUL_EFORMAT what came is
 *         not what was agreed; GPUL_ESYS native = ETIMEDOUT; GPUL_ECUDA the driver would not map it
 * Threads any thread may call
 * Source  - */
gpul_status gpul_ipc_attach(const gpul_driver *drv, const gpul_ipc_client_options *options, int timeout_ms,
			    gpul_ipc_client **out, gpul_error *err);

/* Readable when gpul_ipc_client_next() has something to do.  Borrowed. */
int gpul_ipc_client_fd(const gpul_ipc_client *c);

/** Go on with attaching, or hear of the owner.
 *
 * @c           client
 * @timeout_ms  as gpul_ipc_server_next()
 * @out         filled; NONE when the time is over, or a signal was handled
 * Errors  as gpul_ipc_attach()
 * Threads one at a time
 * Source  - */
gpul_status gpul_ipc_client_next(gpul_ipc_client *c, int timeout_ms, gpul_ipc_event *out, gpul_error *err);

/* Pointers; NULL before ATTACHED.  Lives as long as c. */
const gpul_ipc_view *gpul_ipc_client_view(const gpul_ipc_client *c);
/* The memory behind it; NULL before ATTACHED.  Borrowed. */
gpul_mem *gpul_ipc_client_mem(const gpul_ipc_client *c);
/* The owner's interprocess event, where it offers one; else NULL.  Borrowed. */
CUevent gpul_ipc_client_gpu_event(const gpul_ipc_client *c);

/** Detach: wait for the GPU's work, unmap, say goodbye.
 *
 * Memory is never taken from under a running kernel.  When the owner has died or the time is over, the abort
 * word is raised first, and it is waited for once more as long.
 *
 * @c                 freed in any case; NULL is fine
 * @drain_timeout_ms  how long the context's work may take; < 0: for ever
 * Errors  GPUL_ESYS native = ETIMEDOUT: kernels still run; the mapping is left to the end of the process
 * Threads one at a time
 * Source  CUDA Driver API: cuCtxRecordEvent */
gpul_status gpul_ipc_client_close(gpul_ipc_client *c, int drain_timeout_ms, gpul_error *err);

/* ---- looking without attaching --------------------------------------------------------------- */

typedef struct gpul_ipc_share {
	pid_t pid;               /* owner; 0: of another pid namespace */
	uid_t uid;
	gpul_mem_kind kind;
	size_t bytes, mapped_bytes;
	bool read_only;
	bool control;            /* its first page is the control page */
	int node;                /* host kinds */
	char device_uuid[16];    /* the owner's first GPU */
	char driver[8];          /* "nvidia", "soft" */
	uint64_t cpu, gpu;       /* where the owner mapped it */
	uint64_t generation;
	unsigned char id[16];
	gpul_ipc_shape shape;
	unsigned n_peers;
	gpul_ipc_peer peers[GPUL_IPC_MAX_PEERS];
} gpul_ipc_share;

/** Ask the owner of NAME what it offers and to whom; no driver is needed.
 *
 * @name        see gpul_ipc_place()
 * @timeout_ms  for the whole of it
 * @out         filled
 * Errors  as gpul_ipc_client_open(); GPUL_EFORMAT; GPUL_ESYS native = ETIMEDOUT: the owner does not answer
 * Threads any thread may call
 * Source  - */
gpul_status gpul_ipc_ask(const char *name, int timeout_ms, gpul_ipc_share *out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
