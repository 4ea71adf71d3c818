/* aggregator.c — the aggregator of a stream: collects the contributions of a round, merges their blocks, and requests the next blocks. */
#include "lab/sparse/protocol.h"

static void begin_round(gpul_sparse_aggregator *a)
{
	a->n_missing = a->n_ranks;
	for (uint32_t r = 0; r < a->n_ranks; r++)
		a->workers[r].has = false;
}

void gpul_sparse_aggregator_begin(gpul_sparse_aggregator *a, uint32_t n_ranks, uint32_t end, uint32_t most)
{
	*a = (gpul_sparse_aggregator){ .n_ranks = n_ranks, .end = end, .most = most };
	begin_round(a);
}

/* ---- contributions ------------------------------------------------------------------------------------------- */

/* Check that the blocks of a contribution are ascending, begin at the announced block `next`, and are below the limit of the round. */
static gpul_status check_blocks(const gpul_sparse_aggregator *a, uint32_t rank, const gpul_sparse_contribution *c, const uint32_t *index,
				gpul_error *err)
{
	const uint32_t announced = a->workers[rank].next;

	if (c->n > (a->round ? a->most : 0))
		return gpul_fail(err, GPUL_EFORMAT, 0, "rank %u sent %u blocks in round %u: expected at most %u", rank, c->n, a->round,
				 a->round ? a->most : 0);
	if (a->round && (c->n > 0) != (announced < a->limit))
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "rank %u sent %u blocks in round %u, which contradicts the limit %u and its announced next "
				 "block %u",
				 rank, c->n, a->round, a->limit, announced);
	for (uint32_t i = 0; i < c->n; i++)
		if (i == 0 ? index[0] != announced : index[i] <= index[i - 1])
			return gpul_fail(err, GPUL_EFORMAT, 0, "rank %u sent block %u in round %u at position %u: expected %s %u", rank,
					 index[i], a->round, i, i ? "a block after" : "block", i ? index[i - 1] : announced);
	if (c->n && index[c->n - 1] >= a->limit)
		return gpul_fail(err, GPUL_EFORMAT, 0, "rank %u sent block %u in round %u: expected blocks below %u", rank, index[c->n - 1],
				 a->round, a->limit);
	return GPUL_OK;
}

gpul_status gpul_sparse_aggregator_take(gpul_sparse_aggregator *a, uint32_t rank, const gpul_sparse_contribution *c, const uint32_t *index,
					gpul_error *err)
{
	gpul_status st;

	if (rank >= a->n_ranks || a->done || c->round != a->round || a->workers[rank].has)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "rank %u sent data for round %u: expected data of each rank once, for the current round %u", rank,
				 c->round, a->round);
	st = check_blocks(a, rank, c, index, err);
	if (st)
		return st;
	if (c->next < a->limit || c->next > a->end || c->reach > a->end || (c->next < a->end ? c->reach <= c->next : c->reach != a->end))
		return gpul_fail(err, GPUL_EFORMAT, 0, "rank %u: next = %u and reach = %u in round %u: expected %u <= next < reach <= %u",
				 rank, c->next, c->reach, a->round, a->limit, a->end);
	a->workers[rank].index = index;
	a->workers[rank].n = c->n;
	a->workers[rank].taken = 0;
	a->workers[rank].next = c->next;
	a->workers[rank].reach = c->reach;
	a->workers[rank].has = true;
	a->n_missing--;
	return GPUL_OK;
}

bool gpul_sparse_aggregator_ready(const gpul_sparse_aggregator *a)
{
	return !a->done && a->n_missing == 0;
}

/* ---- results --------------------------------------------------------------------------------------------------- */

bool gpul_sparse_aggregator_block(gpul_sparse_aggregator *a, uint32_t *block, int32_t *position)
{
	uint32_t least = a->end;

	for (uint32_t r = 0; r < a->n_ranks; r++)
		if (a->workers[r].taken < a->workers[r].n && a->workers[r].index[a->workers[r].taken] < least)
			least = a->workers[r].index[a->workers[r].taken];
	if (least == a->end)
		return false;
	for (uint32_t r = 0; r < a->n_ranks; r++) {
		const bool has = a->workers[r].taken < a->workers[r].n && a->workers[r].index[a->workers[r].taken] == least;

		position[r] = has ? (int32_t)a->workers[r].taken++ : -1;
	}
	*block = least;
	return true;
}

gpul_sparse_result gpul_sparse_aggregator_close(gpul_sparse_aggregator *a)
{
	gpul_sparse_result result = { .round = a->round };
	uint32_t next = a->end, reach = a->end;

	for (uint32_t r = 0; r < a->n_ranks; r++) {
		next = a->workers[r].next < next ? a->workers[r].next : next;
		reach = a->workers[r].reach < reach ? a->workers[r].reach : reach;
	}
	if (next == a->end) {
		a->done = true;
		return result;
	}
	a->round++;
	a->limit = result.limit = reach;
	begin_round(a);
	return result;
}
