/* put.h — puts that kernels request through a FIFO: a handler and a progress function for a proxy (proxy/proxy.h).
 *
 *     kernel: push "put this span, then raise that step" ──> proxy: gpul_rdma_put_handle ──> gpul_rdma_put
 *     kernel: sync <── release <── gpul_rdma_put_progress <── the peer's fabric has acknowledged both writes
 *                                                        peer's kernel: waits until the step has its value
 *
 * The proxy needs release_later: a trigger is released when its put has ended, so after a kernel's sync, the source can be
 * reused.  Triggers of one lane with the same route take effect in their order.  Triggers are released in the order in
 * which the proxy took them out, so a slow peer on one route delays the release of puts on other routes. */
#ifndef GPULOAD_RDMA_PUT_PUT_H
#define GPULOAD_RDMA_PUT_PUT_H

#include "proxy/proxy.h"
#include "rdma/put/put_layout.h"
#include "rdma/rdma.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_rdma_putter gpul_rdma_putter; /* opaque; the struct is defined in put.c */

enum { GPUL_RDMA_PUT_TIMEOUT_MS = 30000 };

/* The target of the puts of one route.  Different routes must not use the same step words.  If the connection has several queue
 * pairs, different lanes must not use the same step words either, because writes to one word by two queue pairs are not ordered. */
typedef struct gpul_rdma_put_route {
	gpul_rdma_conn *conn;         /* from now on, only the proxy's thread may use the connection */
	const gpul_rdma_region *from; /* offsets of sources begin at its start; at most GPUL_RDMA_PUT_FROM_END bytes */
	gpul_rdma_remote to;          /* offsets of destinations begin at its start; at most GPUL_RDMA_PUT_TO_END bytes: divide
					  * larger memory among several routes */
	gpul_rdma_remote steps;       /* the peer's step words: n_steps words of 8 bytes */
	unsigned n_steps;             /* number of steps, at most GPUL_RDMA_PUT_NO_STEP */
} gpul_rdma_put_route;

/* The times of a put, for a trace.  The observer is called on the proxy's thread. */
typedef struct gpul_rdma_put_event {
	unsigned lane;
	uint64_t position;                       /* position of the trigger in its lane */
	uint64_t popped_ns, posted_ns, ended_ns; /* in gpul_clock_ns(): when the handler got the put, when the
						   * backend accepted it, and when it was acknowledged */
} gpul_rdma_put_event;
typedef void gpul_rdma_put_observer(void *context, const gpul_rdma_put_event *event);

typedef struct gpul_rdma_putter_desc {
	const gpul_rdma_put_route *routes; /* copied */
	unsigned n_routes;                 /* number of routes, at most GPUL_RDMA_PUT_ROUTES */
	int timeout_ms;                    /* time-out of each put; 0: GPUL_RDMA_PUT_TIMEOUT_MS; < 0: none */
	gpul_rdma_put_observer *observer;  /* called with the times of each put; NULL: none */
	void *observer_context;
} gpul_rdma_putter_desc;

/** Create the state of the handler.  Steps count from 0: their words must be 0 before the first put.
 *
 * @desc  copied, with its routes
 * @out   owned by the caller: gpul_rdma_putter_destroy(), after gpul_proxy_stop(); untouched on failure
 * @err   explains a failure
 * Errors  GPUL_EINVAL no route, or steps that do not fit into their memory, or are not aligned to 8 bytes, or memory that ends beyond
 *         the address space; GPUL_EUNSUPPORTED a staged region, or memory that is too large for the offsets in a trigger
 *         (put_layout.h); GPUL_ENOMEM
 * Threads any thread; the object then belongs to the proxy's thread */
gpul_status gpul_rdma_putter_create(const gpul_rdma_putter_desc *desc, gpul_rdma_putter **out, gpul_error *err);
void gpul_rdma_putter_destroy(gpul_rdma_putter *p); /* accepts NULL */

/** Start the puts of triggers; used as the proxy's handler for their kind.
 *
 * @context  a gpul_rdma_putter
 * @fifo     as in gpul_proxy_handler
 * @items    triggers of put_layout.h
 * @n        number of items
 * @err      explains a failure
 * Errors  GPUL_EINVAL an unknown route or step, a span outside of its region, or a trigger with a value that did not fit into its field
 *         (put_layout.h); then no put of that trigger is started.  The failure of a connection
 * Threads the proxy's thread */
gpul_status gpul_rdma_put_handle(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err);

/** Make progress on the connections of all routes, and release the triggers whose puts have ended; used as the proxy's
 * progress function.
 *
 * @context  a gpul_rdma_putter
 * @busy     set to true while puts are in flight
 * @err      explains a failure
 * Errors  the failure of a connection
 * Threads the proxy's thread */
gpul_status gpul_rdma_put_progress(void *context, bool *busy, gpul_error *err);

/* Return the number of puts that have ended since the start. */
uint64_t gpul_rdma_putter_ended(const gpul_rdma_putter *p);

#ifdef __cplusplus
}
#endif

#endif
