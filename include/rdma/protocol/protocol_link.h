/* protocol_link.h — one end of a connection of the send path, as a state machine: no I/O, no clock, no allocation after create.
 *
 *      send, recv, put, flush ──> ┌────────┐ ──> take: operations for a backend (op.h)
 *      event: completion, arrival │  link  │
 *      copied: a staging copy     │        │ ──> test: requests that are done
 *      tick: the time             └────────┘ ──> failed: the first failure, which ends all requests
 *                                      ↑ reads the ring of slots, which the peer writes
 *
 * The same code runs over verbs, over libfabric and in a simulation (tests/rdma/sim).
 *
 * The receiver decides: a send waits until the peer has granted a slot for it.  Messages match in order: the n-th send of one
 * end fills the n-th receive of the other.  Only the buffers of a multi-receive are matched by tag, in any order.  A tag that
 * does not match, a message that is longer than its buffer, a missed deadline or an error of the fabric makes the link fail:
 * all requests end with the same failure, and the connection must be closed.
 *
 * The peer is not trusted.  What it writes and sends is checked against the grants of this end:
 * an event that a correct peer cannot cause makes the link fail, with a message that names the event.  No receive ends before
 * its message is complete, or writes outside its buffer. */
#ifndef GPULOAD_RDMA_PROTOCOL_PROTOCOL_LINK_H
#define GPULOAD_RDMA_PROTOCOL_PROTOCOL_LINK_H

#include "core/error.h"
#include "rdma/protocol/protocol_failure.h"
#include "rdma/protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_rdma_link gpul_rdma_link; /* opaque; the struct is defined in protocol_link_internal.h */

/* How a message uses several queue pairs. */
typedef enum gpul_rdma_striping {
	GPUL_RDMA_SPLIT,       /* each segment is divided among the queue pairs, in aligned stripes */
	GPUL_RDMA_ROUND_ROBIN, /* each segment is sent as a whole, by the next queue pair */
} gpul_rdma_striping;

/* Memory of a link that the fabric can access.  The peer writes the slots; the other members are sources of small writes. */
typedef struct gpul_rdma_control {
	gpul_rdma_slot slots[GPUL_RDMA_SLOTS] __attribute__((aligned(64)));  /* written by the peer: where this end may send */
	gpul_rdma_slot grants[GPUL_RDMA_SLOTS] __attribute__((aligned(64))); /* the slots that this end grants to the peer, from
									      * which they are written into the peer's `slots` */
	uint64_t steps[GPUL_RDMA_REQUESTS] __attribute__((aligned(64)));     /* the signal_values of puts in flight */
} gpul_rdma_control;

/* Both ends need the same n_qps, segment_bytes, stripe_bytes and striping: they agree on them when they connect. */
typedef struct gpul_rdma_link_desc {
	unsigned n_qps;         /* 1 to GPUL_RDMA_MAX_QPS */
	unsigned depth;         /* operations in flight per queue pair; a power of two, 64 to 4096 */
	uint32_t segment_bytes; /* 4096 to GPUL_RDMA_MAX_SEGMENT, a multiple of GPUL_RDMA_STRIPE_ALIGN */
	uint32_t stripe_bytes;  /* SPLIT: a segment is divided only into stripes of at least this size */
	gpul_rdma_striping striping;
	uint32_t inline_bytes;                              /* as the backend reports it (backend.h) */
	bool ordered, completes_in_order, unnamed_arrivals; /* as the backend reports them (backend.h) */
	bool control_datagrams;                             /* slots are sent by CONTROL operations, and repeated every repeat_ns */
	uint64_t repeat_ns;
	gpul_rdma_control *control; /* borrowed; registered, and all zeros */
	gpul_rdma_piece
		control_piece; /* registration of control->grants and ->steps; the peer gets a separate one of ->slots, which it writes */
	gpul_rdma_remote peer_slots; /* the peer's control->slots */
	void *stages;                /* 2 * n_stages staging buffers of segment_bytes, registered; NULL: no staged areas */
	gpul_rdma_piece stages_piece, in_stages_piece; /* registrations of the first half of `stages`, from which
					* this end sends, and of the second half, which the peer writes */
	unsigned n_stages;                             /* number of staging buffers per direction; GPUL_RDMA_MAX_PARTS to 64; 0: none */
	uint32_t first_counter;                        /* initial value of sequence numbers and other counters, equal
				        * at both ends; normally 0; tests begin near the wrap-around */
	uint32_t first_generation;                     /* initial generation of handles, 0 to 0x3fffff; 0 means 1; tests begin at others */
} gpul_rdma_link_desc;

/** Create the state of one end.
 *
 * @desc  copied; the memory that it points to is borrowed
 * @out   owned by the caller: gpul_rdma_link_destroy(); untouched on failure
 * Errors  GPUL_EINVAL a field is out of range; GPUL_ENOMEM
 * Threads a link belongs to one thread at a time; different links are independent */
gpul_status gpul_rdma_link_create(const gpul_rdma_link_desc *desc, gpul_rdma_link **out, gpul_error *err);
void gpul_rdma_link_destroy(gpul_rdma_link *l); /* accepts NULL */

/* A request: the handle of a send, receive, put or flush, until test has reported its end. 0: none. */
typedef uint32_t gpul_rdma_request;

/* A buffer of a message. */
typedef struct gpul_rdma_span {
	uint64_t at, bytes;         /* address inside the area, and size; 0 bytes are allowed */
	const gpul_rdma_area *area; /* borrowed until the request has ended */
} gpul_rdma_span;

/* Start a request.  Each returns GPUL_OK with *out = 0 when too many requests are in flight: call again after some have ended.
 * deadline_ns: absolute, in the time of gpul_rdma_link_tick(); 0: none.  Errors: GPUL_EINVAL the span is not inside its area, or
 * its size has more than 48 bits; the failure of the link. */

/** Send a message.
 *
 * @l     link
 * @span  the message; must not change until the request has ended
 * @tag   must be equal to the tag of the receive that it matches
 * @deadline_ns  absolute; 0: none
 * @out   request; 0: try again later
 * @err   explains a failure
 * Errors  GPUL_EINVAL; the failure of the link
 * Threads the link's thread */
gpul_status gpul_rdma_link_send(gpul_rdma_link *l, const gpul_rdma_span *span, uint32_t tag, uint64_t deadline_ns, gpul_rdma_request *out,
				gpul_error *err);

/* True if a send with this tag gets a slot immediately: no earlier send waits for slots, and the peer's next receive, or a free buffer of
 * its next multi-receive, has this tag.  A program whose sends are in another order than the peer's receives must keep a message
 * until this returns true, because a send whose tag does not match makes the link fail.  False after a failure. */
bool gpul_rdma_link_may_send(gpul_rdma_link *l, uint32_t tag);

/** Receive one message for each of n buffers.
 *
 * With n = 1, it receives the peer's next message.  With n > 1 (multi-receive), it receives the next n messages, each into
 * the buffer with its tag; each buffer then has at most segment_bytes, and the tags differ.
 *
 * @l      link
 * @spans  n buffers; a message may be shorter than its buffer
 * @tags   n tags
 * @n      1 to GPUL_RDMA_MAX_PARTS
 * @deadline_ns  absolute; 0: none
 * @out    request; 0: try again later
 * @err    explains a failure
 * Errors  GPUL_EINVAL; the failure of the link
 * Threads the link's thread */
gpul_status gpul_rdma_link_recv(gpul_rdma_link *l, const gpul_rdma_span *spans, const uint32_t *tags, unsigned n, uint64_t deadline_ns,
				gpul_rdma_request *out, gpul_error *err);

typedef struct gpul_rdma_put_desc {
	gpul_rdma_span from;     /* at most GPUL_RDMA_MAX_PUT bytes, in a registered (not staged) area; 0 bytes: only the signal */
	gpul_rdma_remote to;     /* target in the peer's memory; `bytes`: its size */
	gpul_rdma_remote signal; /* 8 bytes in the peer's memory, which get signal_value after the data; bytes 0: no signal */
	uint64_t signal_value;
	unsigned lane; /* puts of one lane take effect in order: lane % n_qps is the queue pair */
} gpul_rdma_put_desc;

/** Write into the peer's memory, then write a step: an 8-byte word there that a kernel or CPU thread of the peer waits for.
 *
 * The request ends when the fabric has acknowledged both writes.
 *
 * @l    link
 * @put  copied; the data must not change until the request has ended
 * @deadline_ns  absolute; 0: none
 * @out  request; 0: try again later
 * @err  explains a failure
 * Errors  GPUL_EINVAL; GPUL_EUNSUPPORTED the area is staged; the failure of the link
 * Threads the link's thread */
gpul_status gpul_rdma_link_put(gpul_rdma_link *l, const gpul_rdma_put_desc *put, uint64_t deadline_ns, gpul_rdma_request *out,
			       gpul_error *err);

/** Make data that has arrived visible to kernels: a fence after all writes that have arrived so far.
 *
 * @l     link
 * @span  arrived data; only its address is used
 * @deadline_ns  absolute; 0: none
 * @out   request; 0: try again later
 * @err   explains a failure
 * Errors  GPUL_EINVAL; the failure of the link
 * Threads the link's thread */
gpul_status gpul_rdma_link_flush(gpul_rdma_link *l, const gpul_rdma_span *span, uint64_t deadline_ns, gpul_rdma_request *out,
				 gpul_error *err);

/** Test whether a request has ended; if so, free it.
 *
 * @l        link
 * @request  a request of this link
 * @done     true: it has ended, and its handle may be reused
 * @bytes    received bytes of each part, or the sent bytes, when *done; NULL: not wanted
 * @err      explains a failure
 * Errors  GPUL_EINVAL no such request; the failure of the link, which ends all requests
 * Threads the link's thread */
gpul_status gpul_rdma_link_test(gpul_rdma_link *l, gpul_rdma_request request, bool *done, uint64_t *bytes, gpul_error *err);

/* True if gpul_rdma_link_take() has returned all operations of a send or put; for traces.  The request must not have been freed. */
bool gpul_rdma_link_emitted(const gpul_rdma_link *l, gpul_rdma_request request);

/* Write the operations that are possible now to ops, at most max (at least GPUL_RDMA_MAX_QPS * GPUL_RDMA_MAX_PIECES, so that a
 * segment with that many writes fits); the caller must execute each of them once, in this order.
 * Returns their number; 0 after a failure. */
unsigned gpul_rdma_link_take(gpul_rdma_link *l, gpul_rdma_op *ops, unsigned max);

/* Pass an event of the fabric, the time or a failure to the link.  A wrong event (an unknown
 * operation, a slot that was not granted) makes the link fail. */
void gpul_rdma_link_event(gpul_rdma_link *l, const gpul_rdma_event *event); /* event: a completion, an arrival or a datagram */
void gpul_rdma_link_tick(gpul_rdma_link *l, uint64_t now_ns);               /* checks the deadlines */
void gpul_rdma_link_fail(gpul_rdma_link *l, const gpul_rdma_failure *why);  /* the first failure is kept */

/* Return the failure of the link; status GPUL_OK: none.  Valid as long as l. */
const gpul_rdma_failure *gpul_rdma_link_failed(const gpul_rdma_link *l);

/* Count the received and the sent messages that have ended.  BYE carries these numbers to the peer; call it before the link is destroyed. */
gpul_rdma_totals gpul_rdma_link_totals(const gpul_rdma_link *l);

/* True if the peer's totals contain messages that have not arrived at this end yet, although receives are posted for them. */
bool gpul_rdma_link_lacks(const gpul_rdma_link *l, const gpul_rdma_totals *peer);

/** End the sends that the peer has received according to its totals, although the fabric has not acknowledged them.
 *
 * The peer is not trusted: if it claims to have received a message that has an operation in unposted, no send ends.  Afterwards, only
 * gpul_rdma_link_fail(), test and destroy may be called, because the operations of these sends may still be in flight.
 *
 * @l           link
 * @peer        totals of the peer, not trusted
 * @unposted    operations that were taken, but that the backend has not accepted
 * @n_unposted  their number
 * Threads the link's thread */
void gpul_rdma_link_peer_closed(gpul_rdma_link *l, const gpul_rdma_totals *peer, const gpul_rdma_op *unposted, unsigned n_unposted);

/* True while requests, operations or copies are in flight, or grants are waiting to be written. */
bool gpul_rdma_link_busy(const gpul_rdma_link *l);

#ifdef __cplusplus
}
#endif

#endif
