/* check.c — the invariants of each operation when the link generates it and when the fabric executes it, of each request that has ended,
 * and of the memory at the end. */
#include "tests/rdma/sim/sim.h"

#include <string.h>

/* ---- finding buffers and registrations ------------------------------------------------------ */

/* Return the buffer that contains [at, at + bytes); NULL: none. */
struct buffer *find_buffer(const struct sim *s, unsigned end, uint64_t at, uint64_t bytes)
{
	const struct end *e = &s->ends[end];

	for (unsigned i = 0; i < AREAS; i++) {
		const struct area *a = &e->areas[i];
		const uint64_t begin = (uint64_t)(uintptr_t)a->memory;
		uint32_t low = 0, high = a->n_buffers;
		struct buffer *b;

		if (at < begin || at >= begin + a->used)
			continue;
		while (low < high) { /* find the first buffer after `at` */
			const uint32_t middle = (low + high) / 2;

			if (e->buffers[a->buffers[middle]].at <= at)
				low = middle + 1;
			else
				high = middle;
		}
		if (!low)
			return NULL;
		b = &e->buffers[a->buffers[low - 1]];
		return at - b->at <= b->bytes && bytes <= b->bytes - (at - b->at) ? b : NULL;
	}
	return NULL;
}

struct registration *find_registration(struct sim *s, unsigned end, uint64_t key, uint64_t remote, uint64_t bytes)
{
	struct end *e = &s->ends[end];
	struct registration *r;

	if ((key & 0xff) >= e->n_registered)
		return NULL;
	r = &e->registered[key & 0xff];
	if (r->piece.remote_key != key || remote < r->piece.remote || remote - r->piece.remote > r->piece.bytes ||
	    bytes > r->piece.bytes - (remote - r->piece.remote))
		return NULL;
	return r;
}

/* True if [at, at + bytes) is in one staging buffer: 0 for sends, 1 for receives. */
static bool in_stage(const struct sim *s, const struct end *e, uint64_t at, uint64_t bytes, unsigned direction)
{
	const uint64_t segment = s->p.segment_bytes, set = e->desc.n_stages * segment;
	const uint64_t begin = (uint64_t)(uintptr_t)e->stages + direction * set;

	return at >= begin && at - begin < set && (at - begin) % segment + bytes <= segment;
}

/* ---- operations -------------------------------------------------------------------------------- */

static void check_id(struct sim *s, const struct end *e, const gpul_rdma_op *op)
{
	if (op->kind == GPUL_RDMA_OP_RECV || op->kind == GPUL_RDMA_OP_CONTROL)
		return;
	for (uint32_t i = 0; i < s->flying_room; i++) {
		const struct flying *f = &s->flying[i];

		if (f->used && f->end == e->index && f->op.id == op->id && f->op.kind != GPUL_RDMA_OP_RECV &&
		    f->op.kind != GPUL_RDMA_OP_CONTROL)
			wrong(s, "%c: two operations in flight have the id %llx", "AB"[e->index], (unsigned long long)op -> id);
	}
}

/* Check an operation that the link has generated. */
void check_taken(struct sim *s, struct end *e, const gpul_rdma_op *op)
{
	const bool write = op->kind == GPUL_RDMA_OP_WRITE || op->kind == GPUL_RDMA_OP_WRITE_IMM;

	if (op->kind > GPUL_RDMA_OP_CONTROL)
		wrong(s, "%c: an operation of kind %u", "AB"[e->index], op -> kind);
	if (op->qp >= s->p.n_qps)
		wrong(s, "%c: an operation for queue pair %u of %u", "AB"[e->index], op -> qp, s -> p.n_qps);
	if (s->reason[0])
		return;
	if (write && e->queues[op->qp].taken - e->queues[op->qp].retired >= e->desc.depth)
		wrong(s, "%c: more than %u operations in flight on queue pair %u", "AB"[e->index], e -> desc.depth, op->qp);
	if (write && op->flags & GPUL_RDMA_INLINE && op->bytes > e->desc.inline_bytes)
		wrong(s, "%c: %u bytes inline, at most %u", "AB"[e->index], op -> bytes, e -> desc.inline_bytes);
	if (write && !s->p.completes_in_order && !(op->flags & GPUL_RDMA_SIGNALED))
		wrong(s, "%c: an operation without a completion, but completions come in any order", "AB"[e->index]);
	if (write)
		check_local(s, e->index, op);
	if (s->p.strictly_checked)
		check_id(s, e, op);
}

/* Check that the source of a write is registered, and belongs to a request that has not ended. */
void check_local(struct sim *s, unsigned end, const gpul_rdma_op *op)
{
	const struct end *e = &s->ends[end];
	const unsigned index = op->local_key & 0xff;
	const struct registration *r = &e->registered[index < e->n_registered ? index : 0];
	const struct buffer *b;

	if (!op->bytes)
		return;
	if (r->piece.local_key != op->local_key || op->local < r->piece.at || op->local - r->piece.at > r->piece.bytes ||
	    op->bytes > r->piece.bytes - (op->local - r->piece.at)) {
		wrong(s, "%c: operation %llx reads %u bytes outside the registration of its key", "AB"[end], (unsigned long long)op -> id,
		      op -> bytes);
		return;
	}
	if (r->control)
		return;
	if (r->stages) {
		if (!in_stage(s, e, op->local, op->bytes, 0))
			wrong(s, "%c: operation %llx reads outside a staging buffer", "AB"[end], (unsigned long long)op -> id);
		return;
	}
	b = find_buffer(s, end, op->local, op->bytes);
	if (!b || (b->role != SEND_FROM && b->role != PUT_FROM))
		wrong(s, "%c: operation %llx reads memory that belongs to no send and no put", "AB"[end], (unsigned long long)op -> id);
	else if (b->owner->state != ACTIVE && !s->path_broken)
		wrong(s, "%c: operation %llx reads a buffer whose request has ended", "AB"[end], (unsigned long long)op -> id);
}

void check_copy(struct sim *s, unsigned end, const gpul_rdma_op *op)
{
	const bool in = op->kind == GPUL_RDMA_OP_COPY_IN;
	const struct buffer *b = find_buffer(s, end, op->remote, op->bytes);

	if (!in_stage(s, &s->ends[end], op->local, op->bytes, in))
		wrong(s, "%c: copy %llx of %u bytes is not in a staging buffer", "AB"[end], (unsigned long long)op -> id, op -> bytes);
	else if (!b || b->role != (in ? RECV_INTO : SEND_FROM))
		wrong(s, "%c: copy %llx of %u bytes is not in a buffer", "AB"[end], (unsigned long long)op -> id, op -> bytes);
	else if (b->owner->state != ACTIVE)
		wrong(s, "%c: copy %llx of a buffer whose request has ended", "AB"[end], (unsigned long long)op -> id);
}

/* Check the target of a write: it must be slots, a staging buffer, or a buffer whose request has not ended. */
void check_write(struct sim *s, unsigned to, const struct registration *r, uint64_t at, const gpul_rdma_op *op)
{
	const struct end *e = &s->ends[to];
	const unsigned long long id = op->id;
	const struct buffer *b;

	if (s->lenient)
		return;
	if (r->control) {
		const uint64_t slots = (uint64_t)(uintptr_t)e->control->slots;

		if (at < slots || at - slots + op->bytes > sizeof e->control->slots || (at - slots) % sizeof(gpul_rdma_slot) ||
		    op->bytes % sizeof(gpul_rdma_slot))
			wrong(s, "%c: operation %llx writes %u bytes, which are not slots", "AB"[!to], id, op -> bytes);
		return;
	}
	if (r->stages) {
		if (!in_stage(s, e, at, op->bytes, 1))
			wrong(s, "%c: operation %llx writes outside a staging buffer", "AB"[!to], id);
		return;
	}
	b = find_buffer(s, to, at, op->bytes);
	if (!b || b->role == SEND_FROM || b->role == PUT_FROM)
		wrong(s, "%c: operation %llx writes %u bytes outside the buffers", "AB"[!to], id, op -> bytes);
	else if (b->owner->state != ACTIVE)
		wrong(s, "%c: operation %llx writes into a buffer whose request %s", "AB"[!to], id,
		      b -> owner -> state == PLANNED ? "has not begun" : "has ended");
}

/* Data or the signal of a put arrives: check that puts of a lane arrive in order, and the signal of each last. */
void put_landed(struct sim *s, unsigned to, uint64_t at, const void *data, uint32_t bytes)
{
	struct buffer *b = find_buffer(s, to, at, bytes);
	struct work *w = b ? b->owner : NULL;
	struct end *from = &s->ends[!to];

	if (!b || (b->role != PUT_INTO && b->role != SIGNAL_INTO))
		return;
	if (w->put_number != from->lane_next[w->lane]) {
		wrong(s, "%c: put %u of lane %u arrives when put %u is expected", "AB"[!to], w -> put_number, w -> lane,
		      from -> lane_next[w->lane]);
		return;
	}
	if (b->role == PUT_INTO) {
		w->landed += bytes;
		w->effective = w->signal == NONE && w->landed == b->bytes;
	} else {
		if (w->landed != s->ends[to].buffers[w->to].bytes)
			wrong(s, "%c: the signal of put %u of lane %u arrives before its data", "AB"[!to], w -> put_number, w -> lane);
		if (memcmp(data, &w->value, 8) || bytes != 8)
			wrong(s, "%c: the signal of put %u of lane %u has a wrong value", "AB"[!to], w -> put_number, w -> lane);
		w->effective = true;
	}
	if (w->effective)
		from->lane_next[w->lane]++;
}

/* ---- requests and memory --------------------------------------------------------------------------- */

static bool all_are(const unsigned char *p, uint64_t bytes, unsigned char value)
{
	return !bytes || (p[0] == value && !memcmp(p, p + 1, bytes - 1));
}

/* Check the content of a buffer: the first `filled` bytes are those of its message, the rest is untouched. */
static void check_content(struct sim *s, unsigned end, const struct buffer *b, uint32_t filled)
{
	const unsigned char *p = (const unsigned char *)(uintptr_t)b->at;
	char text[64];
	uint32_t i = 0;

	if (memcmp(p, s->noise + b->noise, filled)) {
		while (p[i] == s->noise[b->noise + i])
			i++;
		wrong(s, "%c: wrong data in byte %u of the %u bytes at %s", "AB"[end], i, filled, name_place(s, end, b->at, text));
	}
	if (!all_are(p + filled, b->bytes - filled, UNTOUCHED))
		wrong(s, "%c: bytes behind the message of %u bytes at %s have changed", "AB"[end], filled, name_place(s, end, b->at, text));
}

static void check_received(struct sim *s, struct work *w)
{
	const struct end *e = &s->ends[w->end];

	for (unsigned i = 0; i < w->n_parts && !s->lenient; i++)
		check_content(s, w->end, &e->buffers[w->buffers[i]], e->buffers[w->buffers[i]].filled);
}

static void reuse(struct buffer *b)
{
	memset((void *)(uintptr_t)b->at, REUSED, b->bytes);
}

/* Check a request that has ended without an error; a buffer that was sent is then overwritten, as its owner may reuse it. */
void check_ended(struct sim *s, struct work *w, const uint64_t *bytes)
{
	struct end *e = &s->ends[w->end];

	switch (w->kind) {
	case SEND:
		if (bytes[0] != e->buffers[w->buffers[0]].bytes)
			wrong(s, "%c: a send of %u bytes reports %llu", "AB"[w->end], e -> buffers[w->buffers[0]].bytes,
			      (unsigned long long)bytes[0]);
		reuse(&e->buffers[w->buffers[0]]);
		return;
	case PUT:
		if (!s->lenient && (w->signal != NONE || e->buffers[w->buffers[0]].bytes) && !w->effective)
			wrong(s, "%c: put %u of lane %u has ended before it took effect", "AB"[w->end], w -> put_number, w -> lane);
		reuse(&e->buffers[w->buffers[0]]);
		return;
	case RECV:
		check_complete(s, w, bytes);
		for (unsigned i = 0; i < w->n_parts && !s->lenient; i++)
			if (bytes[i] != e->buffers[w->buffers[i]].filled)
				wrong(s, "%c: a receive of %u bytes reports %llu", "AB"[w->end], e -> buffers[w->buffers[i]].filled,
				      (unsigned long long)bytes[i]);
		if (!e->areas[w->area].small_writes_wait)
			check_received(s, w);
		return;
	default:
		if (w->proves)
			check_received(s, w->proves);
	}
}

static void check_buffer(struct sim *s, unsigned end, const struct buffer *b)
{
	const unsigned char *p = (const unsigned char *)(uintptr_t)b->at;
	const struct work *w = b->owner;
	char text[64];

	if (b->role == SEND_FROM || b->role == PUT_FROM) {
		if (w->state == ENDED ? !all_are(p, b->bytes, REUSED) : memcmp(p, s->noise + b->noise, b->bytes) != 0)
			wrong(s, "%c: the source at %s has changed", "AB"[end], name_place(s, end, b->at, text));
	} else if (w->state == PLANNED || w->state == REFUSED) {
		if (!all_are(p, b->bytes, UNTOUCHED))
			wrong(s, "%c: the buffer at %s has changed without a request", "AB"[end], name_place(s, end, b->at, text));
	} else if (w->state == ENDED && b->role == RECV_INTO) {
		check_content(s, end, b, b->filled);
	} else if (w->state == ENDED && b->role == PUT_INTO) {
		check_content(s, end, b, b->bytes);
	} else if (w->state == ENDED && b->role == SIGNAL_INTO && memcmp(p, &w->value, 8)) {
		wrong(s, "%c: the signal at %s is wrong", "AB"[end], name_place(s, end, b->at, text));
	}
}

/* Check all memory at the end of a run: each buffer, and the untouched bytes between buffers. */
void check_memory(struct sim *s)
{
	for (unsigned i = 0; i < ENDS; i++) {
		struct end *e = &s->ends[i];

		if (s->lenient && i != s->p.victim)
			continue;
		for (unsigned j = 0; j < AREAS && !s->reason[0]; j++) {
			const struct area *a = &e->areas[j];
			const unsigned char *at = a->memory;

			for (uint32_t k = 0; k <= a->n_buffers; k++) {
				const struct buffer *b = k < a->n_buffers ? &e->buffers[a->buffers[k]] : NULL;
				const unsigned char *next = b ? (const unsigned char *)(uintptr_t)b->at : a->memory + a->used + 64;

				if (!all_are(at, (uint64_t)(next - at), UNTOUCHED))
					wrong(s, "%c: bytes between two buffers of area %u have changed", "AB"[i], j);
				if (!b)
					break;
				if (!s->lenient)
					check_buffer(s, i, b);
				at = next + b->bytes;
			}
		}
	}
}
