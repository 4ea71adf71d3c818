/* aggregator_end.c — an aggregator's messages: it receives contributions, and sends their sums to all ranks. */
#include <string.h>

#include "lab/sparse/sparse_internal.h"

static const uint32_t *list_of(const gpul_comm_sparse *s, size_t data_at, uint32_t n)
{
	return (const uint32_t *)(const void *)(s->area.cpu + data_at) - n;
}

/* ---- contributions -------------------------------------------------------------------------------------------------- */

static gpul_status take(gpul_comm_sparse *s, uint32_t slot, uint32_t rank, gpul_error *err)
{
	gpul_sparse_aggregator *a = &s->slots[slot].aggregator;
	const uint64_t step = atomic_load_explicit(&s->steps->contributions[slot][rank], memory_order_acquire);
	const size_t data_at = gpul_sparse_inbox_at(s, slot, rank) + s->layout.contribution_head;
	gpul_sparse_contribution c = { .round = a->round, .n = STEP_N(step) };
	struct head head;
	gpul_error why = { 0 };

	if (step - STEP(s->call, a->round, 0) > s->most)
		return GPUL_OK;
	memcpy(&head, (const unsigned char *)list_of(s, data_at, c.n) - HEAD_BYTES, sizeof head);
	c.next = head.next;
	c.reach = head.reach;
	s->n_events++;
	if (gpul_sparse_aggregator_take(a, rank, &c, list_of(s, data_at, c.n), &why))
		return gpul_sparse_fail(s, &why, (int)rank, err);
	return GPUL_OK;
}

/* ---- results ---------------------------------------------------------------------------------------------------------- */

/* Return the address of the n-th block of a rank's contribution; NULL if n is negative: the rank has not sent this block. */
static const void *block_at(const gpul_comm_sparse *s, uint32_t slot, uint32_t rank, int32_t n)
{
	const struct stream *t = &s->streams[slot * s->n_ranks + s->rank];

	if (n < 0)
		return NULL;
	if (rank == s->rank)
		return s->packed[t->packed].cpu + gpul_sparse_packed_at(s, t, t->contribution.first + (uint32_t)n);
	return s->area.cpu + gpul_sparse_inbox_at(s, slot, rank) + s->layout.contribution_head + (size_t)n * s->block_bytes;
}

/* Sum the blocks of the round to data_at in this rank's result buffer, with the list of blocks before them. Returns their number. */
static uint32_t sum_round(gpul_comm_sparse *s, uint32_t slot, size_t data_at, uint32_t *index)
{
	gpul_sparse_aggregator *a = &s->slots[slot].aggregator;
	const size_t elements = s->block_bytes / gpul_comm_dtype_bytes(s->dtype);
	int32_t position[GPUL_COMM_MAX_RANKS];
	const void *blocks[GPUL_COMM_MAX_RANKS];
	uint32_t n = 0;

	while (gpul_sparse_aggregator_block(a, &index[n], position)) {
		for (uint32_t r = 0; r < s->n_ranks; r++)
			blocks[r] = block_at(s, slot, r, position[r]);
		gpul_sparse_sum(s->area.cpu + data_at + (size_t)n++ * s->block_bytes, blocks, s->n_ranks, elements, s->dtype, s->op);
	}
	memcpy(s->area.cpu + data_at - n * sizeof(uint32_t), index, n * sizeof(uint32_t));
	return n;
}

static gpul_status send_results(gpul_comm_sparse *s, uint32_t slot, gpul_error *err)
{
	struct slot *own = &s->slots[slot];
	const uint32_t stream = slot * s->n_ranks + s->rank, round = own->aggregator.round;
	const size_t data_at = gpul_sparse_result_at(s, stream, round) + s->layout.result_head;
	const size_t signal = (size_t)((unsigned char *)&s->steps->results[stream] - (unsigned char *)s->steps);
	uint32_t index[MOST_RESULT + 1];
	const uint32_t n = sum_round(s, slot, data_at, index);
	const size_t head_bytes = HEAD_BYTES + n * sizeof(uint32_t);
	const struct head head = { .limit = gpul_sparse_aggregator_close(&own->aggregator).limit };
	gpul_status st = GPUL_OK;

	memcpy(s->area.cpu + data_at - head_bytes, &head, sizeof head);
	for (uint32_t d = 1; !st && d < s->n_ranks; d++)
		st = gpul_sparse_put(s, (s->rank + d) % s->n_ranks, &s->area, data_at - head_bytes, head_bytes + (size_t)n * s->block_bytes,
				     data_at - head_bytes, signal, STEP(s->call, round, n), &own->n_puts[round % 2], err);
	return st ? st : gpul_sparse_result_taken(s, stream, n, err);
}

gpul_status gpul_sparse_aggregate(gpul_comm_sparse *s, uint32_t slot, gpul_error *err)
{
	struct slot *own = &s->slots[slot];
	gpul_status st = GPUL_OK;

	if (own->aggregator.done)
		return GPUL_OK;
	for (uint32_t r = 0; !st && r < s->n_ranks; r++)
		if (s->links[r].conn && !own->aggregator.workers[r].has)
			st = take(s, slot, r, err);
	if (st || !gpul_sparse_aggregator_ready(&own->aggregator) || own->n_puts[own->aggregator.round % 2])
		return st;
	return send_results(s, slot, err);
}
