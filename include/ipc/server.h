/* server.h — for the process that allocated the memory (the owner): offers one memory object to other processes.
 *
 *     gpul_mem ── gpul_ipc_server_create ──> NAME.sock ── connect, HELLO ──> OFFER + one fd ── READY ──> ATTACHED
 *
 * No thread is started: the program calls gpul_ipc_server_next() when gpul_ipc_server_fd() is readable, or waits in that call.
 * The open connection is the lease: the lease ends when the connection is closed or the peer's process ends.  A killed owner
 * leaves only its socket file and lock file, and the next owner of NAME replaces both. */
#ifndef GPULOAD_IPC_SERVER_H
#define GPULOAD_IPC_SERVER_H

#include "ipc/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_ipc_server gpul_ipc_server; /* opaque: the struct is in server_internal.h */

typedef struct gpul_ipc_server_options {
	const char *name; /* see gpul_ipc_place(); NULL: no socket file, use gpul_ipc_server_add() */
	bool control;     /* the first GPUL_IPC_CONTROL_BYTES of mem become the control page, which is initialised */
	bool read_only;   /* peers map the memory read-only.  This prevents accidents, but no attacks: a peer is a process of the
			   * same user */
	size_t bytes;     /* size of the user's bytes, after the control page; 0: all of mem */
	gpul_ipc_shape shape;
	unsigned max_peers;  /* 0: GPUL_IPC_MAX_PEERS */
	int step_timeout_ms; /* time-out for each step of the handshake with a peer; 0 means 1000.  For mapping, 1 ms per MiB is added */
	bool fabric;         /* offer a fabric handle instead of a descriptor; mem was created with desc.fabric */
	bool gpu_event;      /* also offer an interprocess CUevent (cuIpcGetEventHandle) */
} gpul_ipc_server_options;

/** Start to offer memory.
 *
 * A socket file of an ended owner is replaced: an flock on NAME.lock shows whether the owner still runs.  Other
 * files, and sockets of other running programs, are not touched.
 *
 * @drv      borrowed
 * @mem      borrowed, created with exportable; must outlive *out.  Exported here, once
 * @options  copied
 * @out      owned by the caller: gpul_ipc_server_destroy(); untouched on failure
 * Errors  GPUL_EINVAL an invalid name, or memory that is not exportable or too small; GPUL_EUNSUPPORTED a running
 *         process offers NAME already (the message gives its pid); GPUL_ENOMEM; GPUL_ESYS; GPUL_ECUDA
 * Threads any thread may call; one object belongs to one thread at a time
 * Source  Linux unix(7), cmsg(3), flock(2), pidfd_open(2) */
gpul_status gpul_ipc_server_create(const gpul_driver *drv, gpul_mem *mem, const gpul_ipc_server_options *options, gpul_ipc_server **out,
				   gpul_error *err);
/** End all leases (the peers get DETACHED), remove the socket file, free s.  The memory exists until the caller
 * destroys it, and the peers' mappings until they detach.  NULL is fine. */
void gpul_ipc_server_destroy(gpul_ipc_server *s);

/* A descriptor for poll() or epoll, which is readable when gpul_ipc_server_next() has something to do.  Borrowed. */
int gpul_ipc_server_fd(const gpul_ipc_server *s);

/** Handle pending messages and time-outs, and report one event.
 *
 * @s           server
 * @timeout_ms  time-out for an event; 0: do not wait; < 0: no time-out.  A silent peer does not delay the others
 * @out         filled; NONE after the time-out, or after a signal handler has run
 * Errors  GPUL_ESYS epoll failed.  Failures of a peer are events, not errors
 * Threads one at a time */
gpul_status gpul_ipc_server_next(gpul_ipc_server *s, int timeout_ms, gpul_ipc_event *out, gpul_error *err);

/** Serve a connection that was not made through the socket file, such as one end of socketpair(AF_UNIX, SOCK_SEQPACKET).
 *
 * @s   server
 * @fd  owned by the server from here on, even on failure
 * Errors  GPUL_EINVAL not a Unix socket of type SEQPACKET; GPUL_EUNSUPPORTED max_peers are connected already;
 *         GPUL_ENOMEM; GPUL_ESYS
 * Threads one at a time
 * Source  Linux socketpair(2) */
gpul_status gpul_ipc_server_add(gpul_ipc_server *s, int fd, gpul_error *err);

/* Return the owner's view of the memory; valid as long as s. */
const gpul_ipc_view *gpul_ipc_server_view(const gpul_ipc_server *s);
/* Return the interprocess event; NULL without options.gpu_event.  Borrowed. */
CUevent gpul_ipc_server_gpu_event(const gpul_ipc_server *s);

/* An attached peer. */
typedef struct gpul_ipc_peer {
	int slot;
	pid_t pid;
	uid_t uid;
	uint64_t cpu, gpu;    /* addresses of the peer's mapping, as the peer reported them; 0: no address */
	char device_uuid[16]; /* UUID of the peer's first GPU */
	bool read_only;
	uint64_t attached_ms; /* time since the peer attached */
} gpul_ipc_peer;

/* Write the attached peers to `peers`, at most `room`, in the order of their slots; returns the number of all attached peers. */
size_t gpul_ipc_server_peers(const gpul_ipc_server *s, gpul_ipc_peer *peers, size_t room);

/* Get descriptors with which another thread (proxy.h) can watch the peer in a slot: its socket, which becomes
 * readable when the peer detaches or its process ends, and, where the system supports it, its pidfd, because a forked
 * child may keep the socket open.  They are close-on-exec duplicates, which the caller must close; they stay valid after the peer
 * has detached.
 * Returns their number; 0: no peer is attached in the slot, or the process has reached its limit of descriptors. */
unsigned gpul_ipc_server_peer_fds(const gpul_ipc_server *s, int slot, int fds[2]);

#ifdef __cplusplus
}
#endif

#endif
