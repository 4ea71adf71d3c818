/* worker.c — a worker of a stream: finds this rank's blocks below the limit that the aggregator has requested. */
#include "lab/sparse/protocol.h"

/* Make a contribution of the unsent blocks below w->limit. */
static gpul_sparse_contribution contribute(gpul_sparse_worker *w)
{
	gpul_sparse_contribution c = { .round = w->round, .first = w->n_sent };

	while (w->n_sent < w->n && w->index[w->n_sent] < w->limit)
		w->n_sent++;
	c.n = w->n_sent - c.first;
	c.next = w->n_sent < w->n ? w->index[w->n_sent] : w->end;
	c.reach = w->n - w->n_sent > w->most ? w->index[w->n_sent + w->most] : w->end;
	return c;
}

gpul_sparse_contribution gpul_sparse_worker_begin(gpul_sparse_worker *w, const uint32_t *index, uint32_t n, uint32_t end, uint32_t most)
{
	*w = (gpul_sparse_worker){ .index = index, .n = n, .end = end, .most = most };
	return contribute(w);
}

gpul_status gpul_sparse_worker_result(gpul_sparse_worker *w, uint32_t round, uint32_t limit, gpul_sparse_contribution *out, gpul_error *err)
{
	gpul_sparse_contribution c;

	if (w->done || round != w->round)
		return gpul_fail(err, GPUL_EFORMAT, 0, "received a result of round %u: expected %s %u", round,
				 w->done ? "none after round" : "round", w->round);
	if (limit == 0 && w->n_sent < w->n)
		return gpul_fail(err, GPUL_EFORMAT, 0, "the stream ends in round %u: expected a request for block %u", round,
				 w->index[w->n_sent]);
	if (limit == 0) {
		w->done = true;
		return GPUL_OK;
	}
	if (limit <= w->limit || limit > w->end)
		return gpul_fail(err, GPUL_EFORMAT, 0, "received a limit of %u in round %u: expected %u to %u", limit, round, w->limit + 1,
				 w->end);
	w->round++;
	w->limit = limit;
	c = contribute(w);
	if (c.n > w->most)
		return gpul_fail(err, GPUL_EFORMAT, 0, "received a limit of %u in round %u that requests %u blocks: expected at most %u",
				 limit, round, c.n, w->most);
	*out = c;
	return GPUL_OK;
}
