/* server_internal.h — the server's struct, and the state of each connection.
 *
 *             accept                HELLO                 READY
 *     FREE ──────────> GREETING ──────────> MAPPING ──────────> ATTACHED
 *      ^                  │ asks: INFO         │ time, REFUSED     │ BYE: DETACHED
 *      └──────────────────┴────────────────────┴───────────────────┘ its end: PEER_DIED */
#ifndef GPULOAD_IPC_SERVER_INTERNAL_H
#define GPULOAD_IPC_SERVER_INTERNAL_H

#include "ipc/here_internal.h"
#include "ipc/place_internal.h"
#include "ipc/server.h"
#include "ipc/socket_internal.h"

/* As many again as may be attached can be greeting; the oldest of them makes room. */
enum { N_CONNECTIONS = 2 * GPUL_IPC_MAX_PEERS };

enum peer_state { PEER_FREE, PEER_GREETING, PEER_MAPPING, PEER_ATTACHED };

struct peer {
	enum peer_state state;
	int socket;
	struct gpul_ipc_identity who;
	bool signs;             /* came by gpul_ipc_server_add(): who it is, its HELLO says */
	int slot;               /* -1: none yet */
	uint64_t deadline_ns;   /* of this step; 0: none */
	uint64_t since_ns;      /* accepted, then attached */
	struct wire_ready ready;
};

struct gpul_ipc_server {
	const gpul_driver *drv;
	gpul_mem *mem;
	struct gpul_ipc_lease_name name;
	int listener, epoll, timer;
	uint64_t timer_ns;         /* when it rings; 0: it does not */
	uint64_t listen_again_ns;  /* out of descriptors: accept none until then; 0: accepting */
	unsigned max_peers;
	uint64_t step_ns, map_ns;  /* how long HELLO and READY may take */
	CUevent event;             /* NULL: none is offered */
	int fd;                    /* the memory's, borrowed; -1: it goes by its handle */
	gpul_ipc_view view;
	struct wire_offer offer;
	uint64_t slots;            /* bit i: slot i is taken */
	struct peer peer[N_CONNECTIONS];
};

/* What can become ready: the high half of epoll_data.u64; the low one is a connection's number. */
enum source { SOURCE_LISTENER, SOURCE_TIMER, SOURCE_SOCKET, SOURCE_PROCESS };

/** Fill s->offer, s->fd, s->view and s->event; new is the control page then.
 *
 * @s        drv and mem are set
 * @options  the caller's
 * Errors  as gpul_ipc_server_create()
 * Threads one at a time
 * Source  CUDA Driver API: cuIpcGetEventHandle */
gpul_status gpul_ipc_offer_make(gpul_ipc_server *s, const gpul_ipc_server_options *options,
				gpul_error *err);

/* ---- epoll.c --------------------------------------------------------------------------------- */

/* Create the epoll descriptor and its timer. */
gpul_status gpul_ipc_epoll_open(gpul_ipc_server *s, gpul_error *err);
/* Watch fd for input; false: the kernel refused. */
bool gpul_ipc_epoll_add(gpul_ipc_server *s, int fd, enum source source, size_t index);
/* Stop watching fd: by hand, because closing it is not enough while a forked child holds a copy. */
void gpul_ipc_epoll_remove(gpul_ipc_server *s, int fd);
/* Accept new connections, or pause. */
void gpul_ipc_epoll_listen(gpul_ipc_server *s, bool on);
/* Set the timer to expire at at_ns, unless it expires earlier anyway. */
void gpul_ipc_epoll_set_timer(gpul_ipc_server *s, uint64_t at_ns);
/* GPUL_ESYS with "what: strerror(errno)". */
gpul_status gpul_ipc_sys_failed(const char *what, gpul_error *err);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/* Each returns with at most one event in *out, which is NONE before. */

/* A new connection: it is the server's from here on. */
void gpul_ipc_peer_begin(gpul_ipc_server *s, int socket, bool signs, gpul_ipc_event *out);
/* Its socket is readable; its process has ended; its time is over. */
void gpul_ipc_peer_readable(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out);
void gpul_ipc_peer_ended(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out);
void gpul_ipc_peer_late(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out);
/* Say BYE, if it is attached, and close. */
void gpul_ipc_peer_dismiss(gpul_ipc_server *s, struct peer *p);

#endif
