/* protocol_link_internal.h — the state of one end, which protocol_link.c, send.c, recv.c and protocol_put.c share.
 *
 *     requests    1,024 entries: sends, receives, puts, flushes             protocol_request.c
 *     sends       queue of requests that wait for slots              send.c
 *     parts       ring of 256: a buffer that a message will fill     recv.c
 *     granted     ring of 256: a slot that this end has granted      recv.c
 *     queues      per queue pair: a ring of operations in flight     emit_op below, protocol_link.c (completions)
 *     stages      staging buffers, two sets                          send.c (out), recv.c (in)
 *
 * Counters run freely (uint32_t) from desc.first_counter; the index is the counter modulo the size of its ring, which is a power of
 * two.  Code compares two counters by their difference, so each may wrap around, and no value is special. */
#ifndef GPULOAD_RDMA_PROTOCOL_PROTOCOL_LINK_INTERNAL_H
#define GPULOAD_RDMA_PROTOCOL_PROTOCOL_LINK_INTERNAL_H

#include "rdma/protocol/protocol_link.h"

enum {
	SLOT_MASK = GPUL_RDMA_SLOTS - 1,
	REQUEST_MASK = GPUL_RDMA_REQUESTS - 1,
	MAX_STAGES = 64,
	NO_STAGE = 255,
	NO_REQUEST = GPUL_RDMA_REQUESTS,
	INDEX_BITS = 10, /* number of bits of a handle that hold the index; the bits above hold the generation */
	LAST_GENERATION = 0x3fffff,
	WINDOW = 32,     /* maximum number of segments of one message that are granted and have not arrived */
	RECV_BATCH = 32, /* number of receives that are reposted together; less than RECVS - SLOTS */
	GRANT_BATCH = 8, /* number of grants that are written together, as long as the peer has at least ENOUGH_GRANTS */
	ENOUGH_GRANTS = 16,
	SIGNAL_BYTES = 64 << 10, /* after this many bytes or operations without a completion, the next operation requests one */
	SIGNAL_OPS = 32,
	MAX_FLUSHES = 32,
	MOST_REPEATS = 64, /* repetitions of a grant become rarer, up to intervals of this many times repeat_ns */
};
static_assert(GPUL_RDMA_RECVS - GPUL_RDMA_SLOTS >= 2 * RECV_BATCH, "no arrival finds an empty queue");

enum request_kind { FREE, SEND, RECV, PUT, FLUSH };

struct request {
	uint8_t kind; /* a value of enum request_kind */
	bool ended;
	bool emitted;        /* SEND, PUT, FLUSH: gpul_rdma_link_take() has returned all its operations */
	uint8_t n_parts;     /* RECV: number of buffers (struct part) of the multi-receive */
	uint8_t parts_left;  /* RECV: number of these buffers that have not ended */
	uint16_t index;      /* index in the table of requests */
	uint32_t generation; /* upper bits of the handle: 1 to LAST_GENERATION */
	uint32_t ops_left;   /* SEND, PUT: number of operations and copies in flight */
	uint32_t tag;
	uint64_t deadline_ns, begun_ns;
	gpul_rdma_span span;
	union {
		struct {
			uint64_t taken;   /* bytes of the message for which slots have been taken */
			uint32_t message; /* number of the message, once it has a slot */
			bool has_slot;
		} send;
		struct {
			uint64_t bytes[GPUL_RDMA_MAX_PARTS];
		} recv;
		struct {
			gpul_rdma_remote to, signal;
			uint16_t qp;
			bool signal_left;
		} put;
	};
};

/* A buffer that a message fills: its segments are granted in order, and arrive in any order. */
struct part {
	gpul_rdma_span span;
	uint16_t request;
	uint8_t index, of; /* index of this buffer in its multi-receive, and the number of buffers of the multi-receive */
	bool over;         /* the last segment has arrived, at least in part, so no more grants are needed */
	bool ended;
	uint32_t tag;
	uint32_t granted, arrived; /* numbers of segments: granted to the peer, and arrived */
	uint32_t seen;             /* index of the highest segment with an immediate that has arrived, plus 1 */
	uint32_t needed;           /* number of segments of the message; UINT32_MAX: not known yet */
	uint32_t copies_left;
	uint64_t granted_bytes, received_bytes;
};

enum grant_state { GRANT_OPEN, GRANT_FULL, GRANT_RETURNED };

/* A slot that this end has granted to the peer. */
struct grant {
	uint8_t state; /* a value of enum grant_state */
	uint8_t stage;
	uint8_t behind; /* number of later slots of the same multi-receive */
	bool last;
	uint16_t stripes_left; /* bit i: the immediate of queue pair i has not arrived; 0 in state OPEN: no immediate has arrived */
	uint16_t part;         /* index of the struct part that the slot belongs to, in link.parts */
	uint32_t segment;      /* index of the segment in its message, from 0 */
	uint32_t room, bytes;  /* bytes granted, and bytes that have arrived */
	uint64_t offset;       /* offset of the segment in the buffer */
};

/* An operation in flight. */
struct flight {
	uint16_t request; /* the request of this operation; NO_REQUEST: the operation writes a grant */
	uint8_t stage;    /* staging buffer that the operation reads; NO_STAGE: none */
	bool done;        /* completed, while an earlier operation may still be in flight, if the fabric completes operations out of
			   * order */
};

struct queue {
	uint32_t posted, retired;
	uint32_t unsignaled, unsignaled_bytes;
	bool wants_signal;       /* an operation of a request has been posted without a completion */
	bool wants_delivery;     /* a put has been posted without a completion */
	uint32_t delivery_until; /* position after the last operation that completes only on delivery */
	bool put_busy;           /* on fabrics without order: a put is in flight, so the next one waits */
	uint32_t recvs_used;
	int last_op;            /* index of the queue pair's last operation in the ops of struct take; -1: none */
	struct flight *flights; /* ring of desc.depth entries */
};

/* A staging buffer of a send: the part of the message that it contains, and the slot that it will fill. */
struct out_stage {
	gpul_rdma_slot slot;
	uint16_t request;
	bool last;
	uint32_t bytes;
	uint64_t offset;
	uint32_t ops_left;
};

/* The free staging buffers, and the queues of staging buffers that wait for a copy or a post. */
struct stages {
	uint8_t free[MAX_STAGES];
	unsigned n_free;
	uint8_t copies[MAX_STAGES]; /* ring of the staging buffers whose copies are to be started */
	uint32_t copies_head, copies_tail;
	uint64_t copying; /* bit i: gpul_rdma_link_take() has returned the copy of buffer i, and the copy has not ended */
};

struct gpul_rdma_link {
	gpul_rdma_link_desc desc;
	gpul_rdma_failure failure;
	uint64_t now_ns, next_deadline_ns;
	uint32_t depth_mask;

	/* The state of sends: */
	uint16_t sends[GPUL_RDMA_REQUESTS];
	uint32_t sends_head, sends_tail;
	uint32_t next_slot;    /* sequence number of the next slot to take, from 1 */
	uint32_t group_taken;  /* bit i: a send has taken buffer i of the multi-receive at next_slot */
	bool has_message;      /* the slot before next_slot exists: one has been taken or skipped */
	bool in_message;       /* a send has taken some slots of its message, and needs more */
	bool buffer_ended;     /* the slot before next_slot was the last one of its buffer */
	uint16_t message;      /* message number of the slot before next_slot */
	uint32_t next_message; /* number of the next message without a slot, or of the first message of its multi-receive */
	struct stages out;
	struct out_stage out_stages[MAX_STAGES];
	uint8_t ready[MAX_STAGES]; /* ring of the elements of out_stages whose copy has ended */
	uint32_t ready_head, ready_tail;

	/* The state of receives: */
	struct part parts[GPUL_RDMA_SLOTS];
	uint32_t parts_head, parts_grant, parts_tail; /* positions in `parts`: of the next free element, of the next element to grant,
						       * and of the oldest element that has not ended */
	struct grant granted[GPUL_RDMA_SLOTS];
	uint32_t grants_head, grants_written, grants_tail; /* positions of the next slot to grant, of the next grant to write, and
							    * of the oldest grant that the peer may still use */
	uint32_t grants_known;           /* the highest value of grants_written, which goes back when grants are written again:
							    * the peer has no grant from this position on */
	uint32_t open_grants;            /* number of granted slots whose data has not arrived yet */
	uint32_t highest_arrived;        /* highest sequence number that has arrived */
	uint64_t received_ns, repeat_ns; /* time of the last arrival or repetition; interval until the next
							    * repetition of the grants */
	struct stages in;
	uint32_t in_grant[MAX_STAGES]; /* for each staging buffer, the grant that uses it */

	/* The state of puts and flushes: */
	uint16_t puts[GPUL_RDMA_REQUESTS], signals[GPUL_RDMA_REQUESTS], flushes[GPUL_RDMA_REQUESTS];
	uint32_t puts_head, puts_tail, signals_head, signals_tail, flushes_head, flushes_tail;
	unsigned flushes_in_flight;

	struct queue queues[GPUL_RDMA_MAX_QPS];
	struct request requests[GPUL_RDMA_REQUESTS + 1];
	uint16_t free_requests[GPUL_RDMA_REQUESTS];
	unsigned n_free_requests;
};

/* The id of an operation contains its class and, depending on the class, a queue pair and position, a request, or a staging buffer. */
enum id_class { ID_QUEUE, ID_FLUSH, ID_COPY_OUT, ID_COPY_IN };
#define MAKE_ID(class, high, low) ((uint64_t)(class) << 48 | (uint64_t)(high) << 32 | (uint32_t)(low))

/* The array that one call of gpul_rdma_link_take() fills with operations. */
struct take {
	gpul_rdma_op *ops;
	unsigned n, max;
};

static inline bool inside(const gpul_rdma_area *a, uint64_t at, uint64_t bytes)
{
	const gpul_rdma_piece *last = &a->pieces[a->n_pieces - 1];
	const uint64_t begin = a->pieces[0].at, all = last->at + last->bytes - begin;

	return at >= begin && at - begin <= all && bytes <= all - (at - begin);
}

/* Find the piece that contains an address; the end address of the area counts as part of the last piece. */
static inline const gpul_rdma_piece *piece_of(const gpul_rdma_area *a, uint64_t at)
{
	const gpul_rdma_piece *p = a->pieces;

	while (p < &a->pieces[a->n_pieces - 1] && at - p->at >= p->bytes)
		p++;
	return p;
}

/* Compute the number of stripes of a segment, and the size of every stripe except the last.  Both ends compute the same values. */
static inline unsigned stripes_of(const gpul_rdma_link_desc *d, uint32_t bytes, uint32_t *stripe_bytes)
{
	const uint32_t align = GPUL_RDMA_STRIPE_ALIGN;
	unsigned n = d->striping == GPUL_RDMA_SPLIT && d->n_qps > 1 ? bytes / d->stripe_bytes : 1;

	if (n <= 1) {
		*stripe_bytes = bytes;
		return 1;
	}
	if (n > d->n_qps)
		n = d->n_qps;
	*stripe_bytes = ((bytes + n - 1) / n + align - 1) / align * align;
	return (bytes + *stripe_bytes - 1) / *stripe_bytes;
}

static inline unsigned queue_of(const gpul_rdma_link *l, uint32_t sequence, unsigned stripe)
{
	/* The simpler (sequence + stripe) % n_qps could give two stripes the same queue pair when the sum wraps around. */
	return l->desc.n_qps == 1 ? 0 : (sequence % l->desc.n_qps + stripe) % l->desc.n_qps;
}

static inline unsigned room_of(const gpul_rdma_link *l, const struct queue *q)
{
	return l->desc.depth - (q->posted - q->retired);
}

/* ---- operations; inline, because each message needs them ----------------------------------------------- */

/* Request a completion for an operation; it also reports all earlier operations of its queue pair.  The completion of a DELIVERED
 * operation may come late, so the operations after it also wait for delivery: none of them may complete first. */
static inline void make_signaled(struct queue *q, gpul_rdma_op *op)
{
	op->flags |= GPUL_RDMA_SIGNALED;
	if (q->wants_delivery || (int32_t)(q->delivery_until - q->retired) > 0) {
		op->flags |= GPUL_RDMA_DELIVERED;
		q->delivery_until = q->posted;
	} else {
		q->delivery_until = q->retired;
	}
	q->unsignaled = q->unsignaled_bytes = 0;
	q->wants_signal = q->wants_delivery = false;
}

/* Append an operation for queue pair qp to the array of gpul_rdma_link_take(); the caller has checked that there is room. */
static inline gpul_rdma_op *emit_op(gpul_rdma_link *l, struct take *t, gpul_rdma_op_kind kind, unsigned qp, uint16_t request, uint8_t stage,
				    uint32_t bytes)
{
	struct queue *q = &l->queues[qp];
	gpul_rdma_op *op = &t->ops[t->n];

	*op = (gpul_rdma_op){ .kind = (uint8_t)kind, .qp = (uint16_t)qp, .bytes = bytes, .id = MAKE_ID(ID_QUEUE, qp, q->posted) };
	q->flights[q->posted++ & l->depth_mask] = (struct flight){ .request = request, .stage = stage };
	q->last_op = (int)t->n++;
	q->unsignaled++;
	q->unsignaled_bytes += bytes < SIGNAL_BYTES ? bytes : SIGNAL_BYTES;
	if (request != NO_REQUEST) {
		q->wants_signal = true;
		q->wants_delivery |= l->requests[request].kind == PUT; /* the peer receives no completion for a put, so only
								        * delivery shows its end */
	}
	if (!l->desc.completes_in_order || q->unsignaled_bytes >= SIGNAL_BYTES || q->unsignaled >= l->desc.depth / 4 ||
	    (q->wants_signal && q->unsignaled >= SIGNAL_OPS))
		make_signaled(q, op);
	return op;
}

/* ---- protocol_request.c ------------------------------------------------------------------------------------- */

/* Take a request from the free list; NULL: none is free. */
struct request *gpul_rdma_request_new(gpul_rdma_link *l, enum request_kind kind, uint64_t deadline_ns, gpul_rdma_request *out);

/* Convert a request that is in use to its handle, which is never 0.  gpul_rdma_request_find() converts a handle to its request;
 * NULL: there is none. */
gpul_rdma_request gpul_rdma_request_handle(const struct request *r);
struct request *gpul_rdma_request_find(gpul_rdma_link *l, gpul_rdma_request handle);

/* Note that an operation of a SEND or PUT has ended. */
void gpul_rdma_request_retired(gpul_rdma_link *l, struct request *r);
/* Fail with GPUL_EINVAL unless the span is inside its area. */
gpul_status gpul_rdma_check_span(const gpul_rdma_link *l, const gpul_rdma_span *span, gpul_error *err);

/* ---- send.c, recv.c, protocol_put.c: the steps of gpul_rdma_link_take(), and the ends of operations ----------- */

void gpul_rdma_take_sends(gpul_rdma_link *l, struct take *t);
void gpul_rdma_take_grants(gpul_rdma_link *l, struct take *t);
void gpul_rdma_take_receives(gpul_rdma_link *l, struct take *t);
void gpul_rdma_take_puts(gpul_rdma_link *l, struct take *t);
void gpul_rdma_arrived(gpul_rdma_link *l, unsigned qp, uint32_t imm);
void gpul_rdma_slots_arrived(gpul_rdma_link *l, const void *data, size_t n_bytes);
void gpul_rdma_stage_sent(gpul_rdma_link *l, unsigned stage);
void gpul_rdma_copied_out(gpul_rdma_link *l, unsigned stage);
void gpul_rdma_copied_in(gpul_rdma_link *l, unsigned stage);
void gpul_rdma_repeat_grants(gpul_rdma_link *l);

/* ---- the totals of an end that closes: sent in send.c, received in recv.c --------------------------------- */

uint32_t gpul_rdma_count_sent(const gpul_rdma_link *l);
uint32_t gpul_rdma_count_received(const gpul_rdma_link *l);

#endif
