/* client.h — for a process that attaches (the attacher): maps the memory that another process offers, as long as the lease lasts.
 *
 *     gpul_ipc_attach("weights") ──> gpul_ipc_client ── gpul_ipc_client_view() ──> pointers
 *             gpul_ipc_client_next(): OWNER_DIED, DETACHED            gpul_ipc_client_close() */
#ifndef GPULOAD_IPC_CLIENT_H
#define GPULOAD_IPC_CLIENT_H

#include "ipc/server.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_ipc_client gpul_ipc_client; /* opaque: the struct is defined in client_internal.h */

typedef struct gpul_ipc_client_options {
	const char *name;   /* the owner's name, see gpul_ipc_place(); NULL: fd is used */
	int fd;             /* a connected Unix socket (SEQPACKET); owned by the client from here on, even on failure */
	const int *devices; /* ordinals of the GPUs that get access; their contexts must be open, that of devices[0] current */
	unsigned n_devices; /* number of devices, at least 1 */
	bool read_only;     /* map the memory read-only */
} gpul_ipc_client_options;

/** Begin to attach: connect and send HELLO.  Then call gpul_ipc_client_next() until ATTACHED or REFUSED.
 *
 * @drv      borrowed
 * @options  copied
 * @out      owned by the caller: gpul_ipc_client_close(); untouched on failure
 * Errors  GPUL_EINVAL an invalid name, or no device; GPUL_ESYS native = ENOENT no such name, ECONNREFUSED its
 *         owner has ended; GPUL_EUNSUPPORTED the folder is not safe, or the owner is another user; GPUL_ENOMEM
 * Threads any thread may call; one object belongs to one thread at a time
 * Source  Linux unix(7), cmsg(3) */
gpul_status gpul_ipc_client_open(const gpul_driver *drv, const gpul_ipc_client_options *options, gpul_ipc_client **out, gpul_error *err);

/** Attach, and wait until the memory is mapped.
 *
 * @drv         borrowed
 * @options     copied
 * @timeout_ms  for the whole call; < 0: no time-out
 * @out         owned by the caller: gpul_ipc_client_close(); untouched on failure
 * Errors  as gpul_ipc_client_open(); GPUL_EUNSUPPORTED refused, with the owner's reason; GPUL_EFORMAT the owner sent
 *         something invalid; GPUL_ESYS native = ETIMEDOUT; GPUL_ECUDA the driver cannot map the memory */
gpul_status gpul_ipc_attach(const gpul_driver *drv, const gpul_ipc_client_options *options, int timeout_ms, gpul_ipc_client **out,
			    gpul_error *err);

/* A descriptor for poll() or epoll, which is readable when gpul_ipc_client_next() has something to do.  Borrowed. */
int gpul_ipc_client_fd(const gpul_ipc_client *c);

/** Continue attaching, or report what happened to the owner.
 *
 * @c           client
 * @timeout_ms  as gpul_ipc_server_next()
 * @out         filled; NONE after the time-out, or after a signal handler has run
 * Errors  as gpul_ipc_attach()
 * Threads one at a time */
gpul_status gpul_ipc_client_next(gpul_ipc_client *c, int timeout_ms, gpul_ipc_event *out, gpul_error *err);

/* Return the addresses of the memory; NULL before ATTACHED.  Valid as long as c. */
const gpul_ipc_view *gpul_ipc_client_view(const gpul_ipc_client *c);
/* Return the imported memory; NULL before ATTACHED.  Borrowed. */
gpul_mem *gpul_ipc_client_mem(const gpul_ipc_client *c);
/* Return the owner's interprocess event; NULL: it offers none.  Borrowed. */
CUevent gpul_ipc_client_gpu_event(const gpul_ipc_client *c);

/** Detach: wait for the GPU's work, unmap, send BYE.
 *
 * The memory is never unmapped while a kernel runs.  If the owner has ended, or the wait times out, the abort word
 * is set, and the wait is repeated once with the same time-out.
 *
 * @c                 freed in any case; NULL is fine
 * @drain_timeout_ms  time-out for the work of all contexts; < 0: no time-out
 * Errors  GPUL_ESYS native = ETIMEDOUT: kernels still run; the memory stays mapped until the process ends
 * Threads one at a time
 * Source  CUDA Driver API: cuCtxRecordEvent */
gpul_status gpul_ipc_client_close(gpul_ipc_client *c, int drain_timeout_ms, gpul_error *err);

/* ---- queries without attaching --------------------------------------------------------------- */

typedef struct gpul_ipc_share {
	pid_t pid; /* the owner's pid; 0: it is in another pid namespace */
	uid_t uid;
	gpul_mem_kind kind;
	size_t bytes, mapped_bytes;
	bool read_only;
	bool control;         /* the first page of the memory is the control page */
	int node;             /* NUMA node; only for host kinds */
	char device_uuid[16]; /* UUID of the owner's first GPU */
	char driver[8];       /* the owner's driver: "nvidia" or "soft" */
	uint64_t cpu, gpu;    /* addresses in the owner's process */
	uint64_t generation;
	unsigned char id[16];
	gpul_ipc_shape shape;
	unsigned n_peers;
	gpul_ipc_peer peers[GPUL_IPC_MAX_PEERS];
} gpul_ipc_share;

/** Query the owner of NAME for what it offers, and which peers are attached; needs no driver.
 *
 * @name        see gpul_ipc_place()
 * @timeout_ms  time-out for the whole call
 * @out         filled
 * Errors  as gpul_ipc_client_open(); GPUL_EFORMAT; GPUL_ESYS native = ETIMEDOUT: no reply within the time-out */
gpul_status gpul_ipc_request(const char *name, int timeout_ms, gpul_ipc_share *out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
