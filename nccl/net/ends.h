/* ends.h — listeners, and the two ends of a connection: set-up without blocking, and close.
 *
 *     receiver                                                      sender
 *     listen ── handle ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄ NCCL carries it ┄┄┄┄┄┄┄┄┄> connect ── a thread connects
 *     accept: not yet <───────────── each side proves the secret ── connect: not yet
 *     accept: a receiver                                            connect: a sender
 *
 * NCCL repeats connect() with the same handle until it gets a sender.  A handle comes from the peer, so it must not carry pointers of
 * this process; a table of the attempts that are running finds the attempt by device and handle. */
#ifndef GPULOAD_NCCL_NET_ENDS_H
#define GPULOAD_NCCL_NET_ENDS_H

#include <stdbool.h>

#include "nccl/net/context.h"
#include "nccl/net/requests.h"

typedef struct gpul_net_listener gpul_net_listener; /* opaque; the struct is defined in listener.c */

/* One end of a connection.  Only one thread at a time may use its requests; any thread may use its registrations. */
typedef struct gpul_net_end {
	gpul_net_context *context; /* reference to the context, released with this end */
	gpul_rdma *r;              /* device of the context, borrowed */
	gpul_rdma_conn *conn;
	bool sends;
	gpul_net_request *unposted;                  /* the last receive, if some of its buffers could not be posted yet; NULL: none */
	gpul_rdma_buffer later[GPUL_NCCL_MAX_RECVS]; /* the buffers of that receive */
	gpul_net_requests requests;
} gpul_net_end;

/** Listen.
 *
 * @context  the listener takes a reference
 * @device   index in the list of devices
 * @handle   receives the handle for the peer
 * @out      owned by the caller: gpul_net_listener_close(); untouched on failure
 * @err      explains a failure
 * Errors  as gpul_net_context_device() and gpul_rdma_listen() */
gpul_status gpul_net_listen(gpul_net_context *context, int device, unsigned char handle[GPUL_NCCL_HANDLE_BYTES], gpul_net_listener **out,
			    gpul_error *err);
void gpul_net_listener_close(gpul_net_listener *l);

/** Accept a connection if a peer with the secret has come.  Peers without it are refused, and do not delay others.
 *
 * @l    a listener; one thread at a time
 * @out  owned by the caller: gpul_net_end_close(); NULL: not yet, call again
 * @err  explains a failure
 * Errors  as gpul_rdma_accept(), but no ETIMEDOUT */
gpul_status gpul_net_accept(gpul_net_listener *l, gpul_net_end **out, gpul_error *err);

/** Connect to a listener.  The first call starts the attempt; the result of a later call with the same handle ends it.
 *
 * @context  the attempt and the connection take references
 * @device   index in the list of devices
 * @handle   handle of the peer; not trusted
 * @out      owned by the caller: gpul_net_end_close(); NULL: not yet, call again
 * @err      explains a failure
 * Errors  as gpul_net_handle_read(), gpul_net_context_device() and gpul_rdma_connect(); GPUL_EUNSUPPORTED the peer uses another
 *         backend; GPUL_ENOMEM */
gpul_status gpul_net_connect(gpul_net_context *context, int device, const unsigned char handle[GPUL_NCCL_HANDLE_BYTES], gpul_net_end **out,
			     gpul_error *err);

/* Abandon the attempts of a context whose results no caller will take.  Attempts that are still running free themselves when they end. */
void gpul_net_connects_abandon(const gpul_net_context *context);

/* Close a connection; the peer's requests end with an error.  NULL is fine. */
void gpul_net_end_close(gpul_net_end *e);

/* ---- functions that listener.c and connect.c share ---- */

/** Make an end of a connection.  It owns conn from now on, even on failure.
 *
 * @context  the end takes a reference
 * @r        device of conn
 * @conn     owned by the end
 * @sends    false: it receives
 * @out      owned by the caller; untouched on failure
 * @err      explains a failure
 * Errors  GPUL_ENOMEM */
gpul_status gpul_net_end_create(gpul_net_context *context, gpul_rdma *r, gpul_rdma_conn *conn, bool sends, gpul_net_end **out,
				gpul_error *err);

enum { GPUL_NET_SECRET_TEXT_BYTES = 65 };

/* Combine the secret of a handle and the job's secret, if there is one, into the secret of a connection. */
void gpul_net_secret_text(const gpul_net_handle *handle, const gpul_net_options *options, char out[GPUL_NET_SECRET_TEXT_BYTES]);

#endif
