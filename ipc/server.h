/* server.h — the owner's side: offer one piece of memory to other processes.
 *
 *     gpul_mem ── gpul_ipc_server_create ──> NAME.sock ── connect, HELLO ──> OFFER + one fd ── READY ──> ATTACHED
 *
 * No thread is started: the program calls gpul_ipc_server_next() when gpul_ipc_server_fd() is readable, or lets
 * next() wait.  The open connection is the lease: its end, or the peer's death, ends it.  Nothing has a
 * name that a killed process could leave behind, but the socket file, which the next owner of NAME replaces. */
#ifndef GPULOAD_IPC_SERVER_H
#define GPULOAD_IPC_SERVER_H

#include "ipc/view.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_ipc_server gpul_ipc_server;  /* opaque: the struct lives in server.c */

typedef struct gpul_ipc_server_options {
	const char *name;      /* see gpul_ipc_place(); NULL: no socket file, only gpul_ipc_server_add() */
	bool control;          /* the first GPUL_IPC_CONTROL_BYTES of mem are the control page, and are reset */
	bool read_only;        /* peers may only read: keeps from accidents, not from a process that means harm,
				* since it is the same user's */
	size_t bytes;          /* the user's, behind the control page; 0: all that mem has */
	gpul_ipc_shape shape;
	unsigned max_peers;    /* 0: GPUL_IPC_MAX_PEERS */
	int step_timeout_ms;   /* how long a peer may take for each step of the handshake; 0: 1000.  Mapping
				* is allowed 1 ms more for each MiB */
	bool fabric;           /* offer memory made with desc.fabric by its fabric handle, not by a descriptor */
	bool gpu_event;        /* also offer an interprocess CUevent (cuIpcGetEventHandle) */
} gpul_ipc_server_options;

/** Start to offer.
 *
 * A socket file whose owner is dead is replaced: an flock on NAME.lock beside it tells.  Any other file, and a
 * socket of another program that is alive, is left alone.
 *
 * @drv      borrowed
 * @mem      borrowed, created with exportable; must outlive *out.  It is exported here, once
 * @options  copied
 * @out      owned by the caller: gpul_ipc_server_destroy(); untouched on failure
 * Errors  GPUL_EINVAL a bad name, memory that is not exportable or too small; GPUL_EUNSUPPORTED NAME is
 *         offered already by a living process: says by which; GPUL_ENOMEM; GPUL_ESYS; GPUL_ECUDA
 * Threads any thread may call; one object belongs to one thread at a time
 * Source  Linux unix(7), cmsg(3), flock(2), pidfd_open(2) */
gpul_status gpul_ipc_server_create(const gpul_driver *drv, gpul_mem *mem,
				   const gpul_ipc_server_options *options, gpul_ipc_server **out,
				   gpul_error *err);
/** Tell the peers that the lease is over (they see DETACHED), remove the socket file, free.  The memory stays
 * until the caller destroys it, and their mappings until they detach.  NULL is fine. */
void gpul_ipc_server_destroy(gpul_ipc_server *s);

/* Readable when gpul_ipc_server_next() has something to do: for poll(), epoll.  Borrowed. */
int gpul_ipc_server_fd(const gpul_ipc_server *s);

/** Serve what has come, and report one event.
 *
 * @s           server
 * @timeout_ms  wait at most so long for an event; 0: only what is there; < 0: for ever.  A peer that
 *              does nothing delays nobody
 * @out         filled; NONE when the time is over, or a signal was handled
 * Errors  GPUL_ESYS the socket itself broke; whatever a peer does is an event
 * Threads one at a time
 * Source  - */
gpul_status gpul_ipc_server_next(gpul_ipc_server *s, int timeout_ms, gpul_ipc_event *out, gpul_error *err);

/** Serve a connection that came another way: one end of socketpair(AF_UNIX, SOCK_SEQPACKET), say.
 *
 * @s   server
 * @fd  the server's from here on, also on failure
 * Errors  GPUL_EINVAL not a Unix socket of type SEQPACKET; GPUL_EUNSUPPORTED max_peers are there already;
 *         GPUL_ENOMEM; GPUL_ESYS
 * Threads one at a time
 * Source  Linux socketpair(2) */
gpul_status gpul_ipc_server_add(gpul_ipc_server *s, int fd, gpul_error *err);

/* The owner's own view of it; lives as long as s. */
const gpul_ipc_view *gpul_ipc_server_view(const gpul_ipc_server *s);
/* The interprocess event, with options.gpu_event; else NULL.  Borrowed. */
CUevent gpul_ipc_server_gpu_event(const gpul_ipc_server *s);

/* What is known of an attached peer. */
typedef struct gpul_ipc_peer {
	int slot;
	pid_t pid;
	uid_t uid;
	uint64_t cpu, gpu;       /* where it mapped the memory, as it said; 0: not */
	char device_uuid[16];    /* of the GPU it maps for */
	bool read_only;
	uint64_t attached_ms;    /* ago */
} gpul_ipc_peer;

/* Fill peers with at most room attached peers, by slot; returns how many there are. */
size_t gpul_ipc_server_peers(const gpul_ipc_server *s, gpul_ipc_peer *peers, size_t room);

/* Descriptors by which another thread (proxy.h) watches the peer in that slot: one that becomes readable when it lets go
 * or closes the connection, as a dying process soon does, and, where the system has it, its pidfd, for a connection that a
 * forked child holds open.  Copies: owned by the caller, close-on-exec, and good beyond the lease.  Returns their number;
 * 0: nobody is attached there, or no descriptor is left. */
unsigned gpul_ipc_server_peer_fds(const gpul_ipc_server *s, int slot, int fds[2]);

#ifdef __cplusplus
}
#endif

#endif
