/* rdma_internal.h — the structs of the objects of rdma.h, and the functions that rdma's files share.
 *
 *     rdma.c     open, close: the backend and its device, the cache of registrations, the watching thread
 *     region.c   registration of CPU and GPU memory
 *     setup.c    a connection's memory and queue pairs, before and after the exchange of HELLO and WELCOME
 *     rdma_connect.c  the connecting side        listen.c  the listening side
 *     conn.c     progress, close            request.c  isend, irecv, put, iflush, test, wait
 *     conns.c    records the failure of a connection, finds the connections of a device */
#ifndef GPULOAD_RDMA_RDMA_INTERNAL_H
#define GPULOAD_RDMA_RDMA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "memalloc/regcache.h"
#include "rdma/gpu/copies.h"
#include "rdma/oob/channel.h"
#include "rdma/oob/oob_watch.h"
#include "rdma/oob/oob_wire.h"
#include "rdma/rdma.h"

enum { OPS_PER_TURN = GPUL_RDMA_MAX_QPS * GPUL_RDMA_MAX_PIECES, EVENTS_PER_POLL = 64, TURNS_PER_CLOCK = 8 };

struct gpul_rdma {
	gpul_rdma_desc desc; /* with the defaults filled in; its strings are valid only during open */
	bool has_secret;
	unsigned char key[GPUL_SHA256_BYTES]; /* key derived from desc.secret */
	const gpul_rdma_backend *backend;
	void *device;
	gpul_rdma_device_info info;
	gpul_regcache *cache; /* cache of registrations of CPU memory for data; NULL: no cache */
	gpul_rdma_watch *watch;
	gpul_rdma_watched *events; /* the entry that watches the device's asynchronous events; NULL: the device has none */
	pthread_mutex_t lock;      /* protects conns */
	gpul_rdma_conn *conns;     /* list of the watched connections, which an event of the device may fail */
};

/* A registration, and the backend's token for it. */
struct registration {
	gpul_rdma_piece piece;
	void *token;
};

struct gpul_rdma_region {
	gpul_rdma *r;
	gpul_rdma_area area;
	const gpul_region *cached;          /* the cached region that contains the area; NULL: the registration is not from the cache */
	void *tokens[GPUL_RDMA_MAX_PIECES]; /* the backend's tokens, one for each piece; NULL: none */
};

struct gpul_rdma_conn {
	gpul_rdma *r;
	gpul_rdma_conn_info info;
	gpul_rdma_hello hello; /* the HELLO or WELCOME that this end has sent, with the negotiated values */
	void *path;
	gpul_rdma_link *link;
	gpul_rdma_control *control;
	gpul_rdma_piece slots_piece, control_piece, stages_piece, in_stages_piece; /* the peer may write to slots_piece and
										    * in_stages_piece */
	void *tokens[4];            /* the backend's tokens of these pieces, in this order; NULL: not registered */
	gpul_rdma_copies *copies;   /* copies between GPU memory and staging buffers; NULL: no staging */
	gpul_rdma_channel *channel; /* the socket; owned; watched after the set-up */
	gpul_rdma_watched *watched; /* entry in the list of the watching thread; NULL: not watched yet */
	gpul_rdma_conn *next;       /* next connection in the list r->conns */

	/* Operations that the link has generated, but that the backend has not accepted yet. */
	gpul_rdma_op ops[OPS_PER_TURN];
	unsigned n_ops, ops_done;
	unsigned turns; /* number of calls of turn() (conn.c) until the clock is read again */
	uint64_t begun_ns;
	bool broken; /* the path is broken, and the failure has been sent to the peer */

	atomic_bool failing;  /* failure is set; read without the lock */
	pthread_mutex_t lock; /* protects failure, which the watching thread may set */
	gpul_rdma_failure failure;
	bool peer_closed; /* the failure is that the peer has closed the connection, with the totals below */
	gpul_rdma_totals peer;
	int failed_fd; /* eventfd, readable after a failure */
};

/* ---- region.c ---- */

gpul_reg_ops gpul_rdma_reg_ops(gpul_rdma *r);

/* ---- setup.c ---- */

/* Create the local end of a connection with the values of *wish, and fill in c->hello; this does not contact the peer.  from: the
 * local address of the socket. */
gpul_status gpul_rdma_conn_create(gpul_rdma *r, const gpul_rdma_hello *wish, const struct sockaddr *from, gpul_rdma_conn **out,
				  gpul_error *err);
/* Fill in the values that this device proposes; the connecting side sends them. */
void gpul_rdma_wish(const gpul_rdma *r, gpul_rdma_hello *wish);
/* Fail with GPUL_EUNSUPPORTED if the peer's values do not fit this end. */
gpul_status gpul_rdma_check_peer(const gpul_rdma *r, const gpul_rdma_hello *peer, gpul_error *err);
/* Connect the queue pairs to those of the peer, and create the link (the protocol's state machine). */
gpul_status gpul_rdma_conn_join(gpul_rdma_conn *c, const gpul_rdma_hello *peer, gpul_error *err);
/* Finish the connection: c becomes the owner of the channel, and the watching thread watches it from now on. */
gpul_status gpul_rdma_conn_watch(gpul_rdma_conn *c, gpul_rdma_channel *channel, const gpul_rdma_hello *peer, gpul_error *err);

/* ---- conns.c ---- */

/* Add a connection to the list of watched connections of its device. */
void gpul_rdma_conn_remember(gpul_rdma_conn *c);
void gpul_rdma_conn_forget(gpul_rdma_conn *c);

/* Record a failure, from any thread; the first one is kept.  totals: those in the peer's BYE; NULL: no BYE has arrived. */
void gpul_rdma_conn_fail(gpul_rdma_conn *c, const gpul_rdma_failure *why, const gpul_rdma_totals *totals);
/* Get the totals of a peer that has closed the connection; false: the connection has failed for another reason, or not at all. */
bool gpul_rdma_conn_peer_closed(gpul_rdma_conn *c, gpul_rdma_totals *out);

#endif
