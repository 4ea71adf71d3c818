/* cu_order.c — happens-before between the operations of streams, for observers of kernels (softcuda/tools).
 *
 * Observers look for races: launches in different streams can race even if one happens to end before the other begins. So they need to
 * know which operations an operation had to wait for, even after those have ended. For this, operations are numbered in each stream, and
 * each operation has a vector clock: for each other stream, the number of the last operation that it comes after. Without observers, no
 * clocks are recorded. All host threads share one clock, which includes all operations that the host has waited for. */
#include "softcuda/api/stream/cu_order_internal.h"

#include <stdlib.h>

#include "softcuda/exec/observer_internal.h"

static struct order *host; /* vector clock of all work that the host has waited for */

static bool is_observed(void)
{
	return soft.memory && gpul_exec_memory_observers(soft.memory);
}

void soft_order_drop(struct order *o)
{
	if (o && --o->refs == 0)
		free(o);
}

struct order *soft_order_ref(struct order *o)
{
	if (o)
		o->refs++;
	return o;
}

/* ---- joining vector clocks: they have few entries, one for each stream ------------------------------------------------ */

static void add_fact(struct order *to, uint64_t stream, uint64_t number)
{
	size_t k = 0;

	while (k < to->place.n && to->fact[k].stream != stream)
		k++;
	if (k == to->place.n) {
		to->fact[k] = (gpul_exec_order_fact){ stream, number };
		to->place.n++;
	} else if (to->fact[k].number < number) {
		to->fact[k].number = number;
	}
}

static void add_facts(struct order *to, const struct order *from)
{
	for (size_t k = 0; from && k < from->place.n; k++)
		add_fact(to, from->fact[k].stream, from->fact[k].number);
}

/* Create a vector clock with room for n facts (entries).  NULL: out of memory; observers then assume less ordering than there is. */
static struct order *new_order(size_t n)
{
	struct order *o = calloc(1, sizeof *o + (n + 1) * sizeof o->fact[0]);

	if (o) {
		o->refs = 1;
		o->place.after = o->fact;
	}
	return o;
}

static bool covers(const struct order *o, const struct order *from)
{
	for (size_t k = 0; k < from->place.n; k++) {
		size_t i = 0;

		while (i < o->place.n && o->fact[i].stream != from->fact[k].stream)
			i++;
		if (i == o->place.n || o->fact[i].number < from->fact[k].number)
			return false;
	}
	return true;
}

void soft_order_join(struct order **to, const struct order *from)
{
	struct order *joined;

	if (!from || (*to && covers(*to, from)))
		return;
	joined = new_order((*to ? (*to)->place.n : 0) + from->place.n);
	if (!joined)
		return;
	add_facts(joined, *to);
	add_facts(joined, from);
	soft_order_drop(*to);
	*to = joined;
}

void soft_order_host(const struct order *o)
{
	soft_order_join(&host, o);
}

void soft_order_set(struct order **to, struct order *from)
{
	soft_order_drop(*to);
	*to = soft_order_ref(from);
}

/* ---- operations -------------------------------------------------------------------------------------------------------- */

/* Compute the vector clock of the next operation of s, from the operations for which tie_all() (cu_queue.c) makes it wait. */
static struct order *order_before(struct stream *s, const struct op *after)
{
	struct context *ctx = s->ctx;
	struct order *o = NULL;

	soft_order_join(&o, host);
	soft_order_join(&o, s->order);
	soft_order_join(&o, after ? after->order : NULL);
	if (ctx->gate && s != ctx->gate)
		soft_order_join(&o, ctx->gate->order);
	if (s->blocking && s != ctx->legacy)
		soft_order_join(&o, ctx->legacy->order);
	if (s->blocking && s == ctx->legacy)
		for (struct link *i = ctx->streams.next; i != &ctx->streams; i = i->next) {
			struct stream *other = CONTAINER(i, struct stream, link);

			if (other->blocking)
				soft_order_join(&o, other->order);
		}
	return o;
}

/* Return a copy of the clock o with an added entry: operation `number` of the stream, to which the new clock belongs. */
static struct order *order_at(const struct order *o, uint64_t stream, uint64_t number)
{
	struct order *mine = new_order((o ? o->place.n : 0) + 1);

	if (!mine)
		return NULL;
	add_facts(mine, o);
	add_fact(mine, stream, number);
	mine->place.stream = stream;
	mine->place.number = number;
	return mine;
}

/* Compute the clocks of the operations of a graph: each operation is ordered only after those that it waits for. */
static void order_nodes(struct stream *s, struct op **op, size_t n, const struct op_wait *waits, size_t n_waits, struct order *before)
{
	for (size_t i = 0; i < n; i++) {
		struct order *mine = soft_order_ref(before);

		for (size_t k = 0; k < n_waits; k++)
			if (waits[k].later == i && waits[k].earlier < i)
				soft_order_join(&mine, op[waits[k].earlier]->order);
		op[i]->order = order_at(mine, s->id << ORDER_NODE_BITS | (i + 1), s->n_ordered);
		soft_order_drop(mine);
	}
}

void soft_order_submit(struct op **op, size_t n, const struct op_wait *waits, size_t n_waits, const struct op *after)
{
	struct stream *s = op[0]->stream;
	struct order *before;

	if (!is_observed())
		return;
	before = order_before(s, after);
	s->n_ordered++;
	if (n > 1)
		order_nodes(s, op, n, waits, n_waits, before);
	soft_order_drop(s->order);
	s->order = order_at(before, s->id << ORDER_NODE_BITS, s->n_ordered);
	if (n == 1)
		op[0]->order = soft_order_ref(s->order);
	soft_order_join(&s->ctx->order, s->order);
	soft_order_drop(before);
}
