/* worker_end.c — a worker's messages: it receives results, and sends contributions when they are packed. */
#include <string.h>

#include "lab/sparse/sparse_internal.h"

/* ---- contributions -------------------------------------------------------------------------------------------------- */

/* True if the next contribution may be sent: it is packed, the buffer of its head is free, and that of the result is empty. */
static bool may_contribute(const gpul_comm_sparse *s, const struct stream *t)
{
	const struct arrival *a = &t->arrivals[t->contribution.round % 2];

	return !a->full && a->batch <= s->batches_done && t->n_puts[t->contribution.round % 2] == 0 &&
	       gpul_sparse_packed(s, t, t->contribution.first, t->contribution.n);
}

static gpul_status send_contribution(gpul_comm_sparse *s, uint32_t stream, gpul_error *err)
{
	struct stream *t = &s->streams[stream];
	const gpul_sparse_contribution *c = &t->contribution;
	const struct head head = { .next = c->next, .reach = c->reach };
	const size_t n_bytes = HEAD_BYTES + c->n * sizeof(uint32_t);
	const size_t data_at = gpul_sparse_inbox_at(s, t->slot, s->rank) + s->layout.contribution_head;
	const size_t from = s->layout.heads_at + ((size_t)stream * 2 + c->round % 2 + 1) * s->layout.contribution_head - n_bytes;
	const size_t signal = (size_t)((unsigned char *)&s->steps->contributions[t->slot][s->rank] - (unsigned char *)s->steps);
	gpul_status st = GPUL_OK;

	memcpy(s->area.cpu + from, &head, sizeof head);
	memcpy(s->area.cpu + from + HEAD_BYTES, s->index + t->first + c->first, c->n * sizeof(uint32_t));
	if (c->n)
		st = gpul_sparse_put(s, t->aggregator, &s->packed[t->packed], gpul_sparse_packed_at(s, t, c->first),
				     (size_t)c->n * s->block_bytes, data_at, 0, 0, &t->n_puts[c->round % 2], err);
	return st ? st
		  : gpul_sparse_put(s, t->aggregator, &s->area, from, n_bytes, data_at - n_bytes, signal, STEP(s->call, c->round, c->n),
				    &t->n_puts[c->round % 2], err);
}

static gpul_status contribute(gpul_comm_sparse *s, uint32_t stream, gpul_error *err)
{
	struct stream *t = &s->streams[stream];
	struct slot *own = &s->slots[t->slot];
	gpul_error why = { 0 };
	gpul_status st;

	if (!t->waits || !may_contribute(s, t))
		return GPUL_OK;
	t->waits = false;
	s->n_events++;
	if (t->aggregator != s->rank)
		return send_contribution(s, stream, err);
	st = gpul_sparse_aggregator_take(&own->aggregator, s->rank, &t->contribution, s->index + t->first + t->contribution.first, &why);
	return st ? gpul_sparse_fail(s, &why, (int)s->rank, err) : GPUL_OK;
}

/* ---- results ---------------------------------------------------------------------------------------------------------- */

/* Append the n blocks of a result to the items of the next scatter kernel. */
static gpul_status list_items(gpul_comm_sparse *s, uint32_t stream, const uint32_t *index, uint32_t n, size_t data_at, gpul_error *err)
{
	gpul_error why = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		if (index[i] >= s->streams[stream].end || s->n_items == s->n_blocks) {
			gpul_fail(&why, GPUL_ECOMM, GPUL_COMM_RANK_FAILED,
				  "rank %u sent the sum of block %u: expected each of the %u blocks at most once",
				  s->streams[stream].aggregator, index[i], s->streams[stream].end);
			return gpul_sparse_fail(s, &why, (int)s->streams[stream].aggregator, err);
		}
		s->items[s->n_items++] = (gpul_sparse_item){ .from = s->area.gpu + data_at + (uint64_t)i * s->block_bytes,
							     .block = gpul_sparse_block_of(s, stream, index[i]) };
	}
	s->report.n_summed += n;
	return GPUL_OK;
}

gpul_status gpul_sparse_result_taken(gpul_comm_sparse *s, uint32_t stream, uint32_t n, gpul_error *err)
{
	struct stream *t = &s->streams[stream];
	const uint32_t round = t->worker.round;
	const size_t data_at = gpul_sparse_result_at(s, stream, round) + s->layout.result_head;
	const unsigned char *list = s->area.cpu + data_at - n * sizeof(uint32_t);
	struct head head;
	gpul_error why = { 0 };
	gpul_status st;

	memcpy(&head, list - HEAD_BYTES, sizeof head);
	st = gpul_sparse_worker_result(&t->worker, round, head.limit, &t->contribution, &why);
	if (st)
		return gpul_sparse_fail(s, &why, (int)t->aggregator, err);
	t->arrivals[round % 2].full = n > 0;
	t->waits = !t->worker.done;
	s->n_events++;
	return list_items(s, stream, (const uint32_t *)(const void *)list, n, data_at, err);
}

gpul_status gpul_sparse_work(gpul_comm_sparse *s, uint32_t stream, gpul_error *err)
{
	struct stream *t = &s->streams[stream];
	const uint64_t step = atomic_load_explicit(&s->steps->results[stream], memory_order_acquire);
	gpul_status st = GPUL_OK;

	if (t->aggregator != s->rank && !t->worker.done && !t->waits && step - STEP(s->call, t->worker.round, 0) <= s->n_ranks * s->most)
		st = gpul_sparse_result_taken(s, stream, STEP_N(step), err);
	return st ? st : contribute(s, stream, err);
}
