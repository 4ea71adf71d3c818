/* server_internal.h — the server's struct, the states of a connection, and the functions of its files.
 *
 *             accept                HELLO                 READY
 *     FREE ──────────> GREETING ──────────> MAPPING ──────────> ATTACHED
 *      ^                  │ query: INFO       │ time-out, REFUSED │ BYE: DETACHED
 *      └──────────────────┴────────────────────┴───────────────────┘ connection ends: PEER_DIED */
#ifndef GPULOAD_IPC_SERVER_INTERNAL_H
#define GPULOAD_IPC_SERVER_INTERNAL_H

#include "ipc/here_internal.h"
#include "ipc/name.h"
#include "ipc/server.h"
#include "ipc/socket_internal.h"

/* Room for 64 attached peers, and for 64 connections in the state GREETING.  If these are full, a new connection replaces the oldest. */
enum { N_CONNECTIONS = 2 * GPUL_IPC_MAX_PEERS };

enum peer_state { PEER_FREE, PEER_GREETING, PEER_MAPPING, PEER_ATTACHED };

struct peer {
	enum peer_state state;
	int socket;
	struct gpul_ipc_identity who;
	bool signs;           /* added by gpul_ipc_server_add(), so the peer sends its credentials with HELLO */
	int slot;             /* -1: no slot yet */
	uint64_t deadline_ns; /* deadline of this handshake step; 0: none */
	uint64_t since_ns;    /* time of accept(); once the peer is attached, the time of attaching */
	struct wire_ready ready;
};

struct gpul_ipc_server {
	const gpul_driver *drv;
	gpul_mem *mem;
	struct gpul_ipc_name name;
	int listener, epoll, timer;
	uint64_t timer_ns; /* when the timer expires; 0: not set */
	/* when to accept connections again, after the process ran out of descriptors; 0: connections are accepted now */
	uint64_t listen_again_ns;
	unsigned max_peers;
	uint64_t step_ns, map_ns; /* time-outs for HELLO and READY */
	CUevent event;            /* the interprocess event that is offered; NULL: none */
	int fd;                   /* the memory's descriptor, borrowed; -1: exported as a handle */
	gpul_ipc_view view;
	struct wire_offer offer;
	uint64_t slots; /* bit i: slot i is in use */
	struct peer peer[N_CONNECTIONS];
};

/* The source of an epoll event: the high half of epoll_data.u64.  The low half is the index of the connection. */
enum source { SOURCE_LISTENER, SOURCE_TIMER, SOURCE_SOCKET, SOURCE_PROCESS };

/** Fill in s->offer, s->fd, s->view and s->event, and initialise the control page.
 *
 * @s        drv and mem are set
 * @options  the caller's
 * Errors  as gpul_ipc_server_create()
 * Threads one at a time
 * Source  CUDA Driver API: cuIpcGetEventHandle */
gpul_status gpul_ipc_offer_make(gpul_ipc_server *s, const gpul_ipc_server_options *options, gpul_error *err);

/* ---- epoll.c --------------------------------------------------------------------------------- */

/* Create the epoll descriptor and its timer. */
gpul_status gpul_ipc_epoll_open(gpul_ipc_server *s, gpul_error *err);
/* Watch fd for input; false: the kernel refused. */
bool gpul_ipc_epoll_add(gpul_ipc_server *s, int fd, enum source source, size_t index);
/* Stop watching fd; closing fd is not enough while a forked child holds a copy. */
void gpul_ipc_epoll_remove(gpul_ipc_server *s, int fd);
/* Start or stop accepting new connections. */
void gpul_ipc_epoll_listen(gpul_ipc_server *s, bool on);
/* Set the timer to expire at at_ns, unless it is set to expire earlier. */
void gpul_ipc_epoll_set_timer(gpul_ipc_server *s, uint64_t at_ns);
/* Fail with GPUL_ESYS and the message "what: strerror(errno)". */
gpul_status gpul_ipc_sys_failed(const char *what, gpul_error *err);

/* ---- peer.c ---------------------------------------------------------------------------------- */

/* Each function below stores at most one event in *out, which the caller has set to NONE. */

/* Start to serve a new connection; takes ownership of the socket. */
void gpul_ipc_peer_begin(gpul_ipc_server *s, int socket, bool signs, gpul_ipc_event *out);
/* Handle a readable socket, the end of the peer's process, or a time-out. */
void gpul_ipc_peer_readable(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out);
void gpul_ipc_peer_ended(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out);
void gpul_ipc_peer_late(gpul_ipc_server *s, struct peer *p, gpul_ipc_event *out);
/* Send BYE if the peer has received the offer, and close the connection. */
void gpul_ipc_peer_dismiss(gpul_ipc_server *s, struct peer *p);

#endif
