/* base.c — random numbers, the queue of future events, and the trace. */
#include "tests/rdma/sim/sim.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers: splitmix64 --------------------------------------------------------- */

uint64_t random_bits(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint32_t below(struct rng *r, uint32_t n)
{
	return (uint32_t)((random_bits(r) >> 32) * n >> 32);
}

bool chance(struct rng *r, unsigned per_mille)
{
	return below(r, 1000) < per_mille;
}

uint64_t delay(struct rng *r, uint64_t typical_ns)
{
	uint64_t bits = random_bits(r), ns = (bits >> 32) * typical_ns >> 31;

	if ((bits & 63) == 0)
		ns *= 8ull << (bits >> 6 & 7);
	return ns + 1;
}

/* ---- reports ---------------------------------------------------------------------------- */

void wrong(struct sim *s, const char *fmt, ...)
{
	va_list args;

	if (s->reason[0])
		return;
	va_start(args, fmt);
	vsnprintf(s->reason, sizeof s->reason, fmt, args);
	va_end(args);
	if (s->trace)
		printf("%14.3f us   WRONG   %s\n", (double)s->now / 1e3, s->reason);
}

void trace(const struct sim *s, unsigned end, const char *fmt, ...)
{
	va_list args;

	if (!s->trace)
		return;
	printf("%14.3f us %c ", (double)s->now / 1e3, end < ENDS ? "AB"[end] : ' ');
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

/* Describe an address of one end, such as "area 1 + 4096" or "slots[3]". */
const char *name_place(const struct sim *s, unsigned end, uint64_t at, char text[64])
{
	const struct end *e = &s->ends[end];
	const uint64_t control = (uint64_t)(uintptr_t)e->control, stages = (uint64_t)(uintptr_t)e->stages;
	const uint64_t slots = control + offsetof(gpul_rdma_control, slots), slot_bytes = sizeof(gpul_rdma_slot);
	const uint64_t grants = control + offsetof(gpul_rdma_control, grants);
	const uint64_t steps = control + offsetof(gpul_rdma_control, steps), end_of_control = control + sizeof *e->control;

	snprintf(text, 64, "%c:unknown address", "AB"[end]);
	if (at >= control && at < end_of_control) {
		if (at >= steps)
			snprintf(text, 64, "%c:steps[%llu]", "AB"[end], (unsigned long long)(at - steps) / 8);
		else if (at >= grants)
			snprintf(text, 64, "%c:grants[%llu]", "AB"[end], (unsigned long long)((at - grants) / slot_bytes));
		else
			snprintf(text, 64, "%c:slots[%llu]", "AB"[end], (unsigned long long)((at - slots) / slot_bytes));
	}
	if (at >= stages && at < stages + STAGE_BYTES)
		snprintf(text, 64, "%c:stage %llu + %llu", "AB"[end], (unsigned long long)((at - stages) / s->p.segment_bytes),
			 (unsigned long long)((at - stages) % s->p.segment_bytes));
	for (unsigned i = 0; i < AREAS; i++) {
		const uint64_t area = (uint64_t)(uintptr_t)e->areas[i].memory;

		if (at >= area && at <= area + e->areas[i].used)
			snprintf(text, 64, "%c:area %u + %llu", "AB"[end], i, (unsigned long long)(at - area));
	}
	return text;
}

const char *name_op(const struct sim *s, unsigned end, const gpul_rdma_op *op, char text[256])
{
	static const char *const names[] = { "WRITE", "WRITE_IMM", "RECV", "FLUSH", "COPY_OUT", "COPY_IN", "CONTROL" };
	const bool copy = op->kind == GPUL_RDMA_OP_COPY_IN || op->kind == GPUL_RDMA_OP_COPY_OUT;
	char from[64], to[64] = "", imm[64] = "";
	uint64_t remote = op->remote;

	if (op->kind == GPUL_RDMA_OP_WRITE || op->kind == GPUL_RDMA_OP_WRITE_IMM) {
		const struct end *peer = &s->ends[!end];

		snprintf(to, sizeof to, "key 0x%llx", (unsigned long long)op->remote_key);
		for (unsigned i = 0; i < peer->n_registered; i++) {
			const gpul_rdma_piece *p = &peer->registered[i].piece;

			if (p->remote_key == op->remote_key && remote - p->remote <= p->bytes)
				name_place(s, !end, p->at + (remote - p->remote), to);
		}
	} else if (copy) {
		name_place(s, end, remote, to);
	}
	if (op->kind == GPUL_RDMA_OP_WRITE_IMM)
		snprintf(imm, sizeof imm, " imm slot %u bytes %u%s", GPUL_RDMA_IMM_SLOT(op->imm), GPUL_RDMA_IMM_BYTES(op->imm),
			 GPUL_RDMA_IMM_LAST(op->imm) ? " last" : "");
	snprintf(text, 256, "%s qp %u id %llx: %u bytes %s %s %s%s%s%s", op->kind < 7 ? names[op->kind] : "?", op->qp,
		 (unsigned long long)op->id, op->bytes, op->kind == GPUL_RDMA_OP_RECV ? "" : name_place(s, end, op->local, from),
		 op->kind == GPUL_RDMA_OP_COPY_OUT ? "<-"
		 : to[0]                           ? "->"
						   : "",
		 to, imm, op->flags & GPUL_RDMA_SIGNALED ? " signaled" : "", op->flags & GPUL_RDMA_INLINE ? " inline" : "");
	return text;
}

/* ---- future events: a binary heap, ordered by time, then by order of insertion -------------------- */

static bool is_before(const struct future *a, const struct future *b)
{
	return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

void *grow(void *array, uint32_t *room, size_t each)
{
	*room = *room ? *room * 2 : 1024;
	array = realloc(array, *room * each);
	if (!array)
		abort();
	return array;
}

void happen(struct sim *s, uint64_t ns, enum happening what, unsigned end, uint32_t index)
{
	const struct future f = { .ns = ns, .order = s->n_futures++, .what = (uint8_t)what, .end = (uint8_t)end, .index = index };
	uint32_t i = s->n_heap++;

	if (i == s->heap_room)
		s->heap = grow(s->heap, &s->heap_room, sizeof *s->heap);
	for (; i && is_before(&f, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = f;
}

bool next_future(struct sim *s, struct future *f)
{
	struct future last;
	uint32_t i = 0;

	if (!s->n_heap)
		return false;
	*f = s->heap[0];
	last = s->heap[--s->n_heap];
	for (uint32_t child = 1; child < s->n_heap; child = 2 * i + 1) {
		if (child + 1 < s->n_heap && is_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!is_before(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return true;
}

/* ---- pools -------------------------------------------------------------------------------- */

uint32_t new_flying(struct sim *s)
{
	uint32_t i;

	if (!s->n_free_flying) {
		const uint32_t before = s->flying_room;
		uint32_t room = before;

		s->flying = grow(s->flying, &s->flying_room, sizeof *s->flying);
		s->free_flying = grow(s->free_flying, &room, sizeof *s->free_flying);
		for (uint32_t n = s->flying_room; n-- > before;) {
			s->flying[n].used = false;
			s->flying[n].captured = NULL;
			s->free_flying[s->n_free_flying++] = n;
		}
	}
	i = s->free_flying[--s->n_free_flying];
	s->flying[i].used = true;
	s->flying[i].landed = s->flying[i].error = false;
	s->flying[i].landed_from = s->flying[i].landed_upto = 0;
	return i;
}

void end_flying(struct sim *s, uint32_t i)
{
	s->flying[i].used = false;
	free(s->flying[i].captured);
	s->flying[i].captured = NULL;
	s->free_flying[s->n_free_flying++] = i;
}

uint32_t new_item(struct sim *s, const struct inbox_item *item)
{
	uint32_t i;

	if (!s->n_free_items) {
		const uint32_t before = s->items_room;
		uint32_t room = before;

		s->items = grow(s->items, &s->items_room, sizeof *s->items);
		s->free_items = grow(s->free_items, &room, sizeof *s->free_items);
		for (uint32_t n = s->items_room; n-- > before;)
			s->free_items[s->n_free_items++] = n;
	}
	i = s->free_items[--s->n_free_items];
	s->items[i] = *item;
	return i;
}
