/* protocol.h — decides which blocks a worker sends, and when an aggregator may sum them: state machines without I/O, clock or
 * allocation.
 *
 * A stream is a part of the blocks of a call.  Each rank is a worker of every stream, and the aggregator of some streams.
 *
 *     worker r                                                aggregator of the stream
 *        │ ── hello: next, reach ──────────────────────────────> │   round 0; from every worker
 *        │ <───────────────────────────── result 0: limit ────── │   limit = the smallest reach of all workers
 *        │ ── contribution 1: its blocks below limit, ─────────> │   from every worker, header only if it has no such block
 *        │    next, reach                                        │
 *        │ <── result 1: the sums of the blocks below limit, ─── │   to every worker
 *        │     the next limit                                    │   until next = end for all workers
 *
 *     next    the first non-zero block that the worker has not sent; end if there is none
 *     reach   the first block that its next contribution has no room for: at least next + 1 (end if next = end)
 *     limit   all non-zero blocks below limit are requested
 *
 * Blocks that are zero on all ranks are never sent: limit skips them.  OmniReduce requests one block at a time, the smallest `next`
 * of all workers.  Here a round has as many blocks as fit into a contribution of the worker with the most non-zero blocks, so that
 * messages are long at every density; with one block per contribution, this is OmniReduce's protocol.
 *
 * A result permits a worker to send the next contribution: the receiver decides, as everywhere in rdma/.  So the aggregator needs
 * only one buffer per worker.  A worker may hold back its contribution while it has no room for the result that follows; no other
 * permission is needed in this direction.
 *
 * Blocks are numbered from 0 within their stream. */
#ifndef GPULOAD_LAB_SPARSE_PROTOCOL_H
#define GPULOAD_LAB_SPARSE_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/bootstrap/job.h"
#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- worker ---------------------------------------------------------------------------------------------- */

/* A worker's message: its contribution to a round. */
typedef struct gpul_sparse_contribution {
	uint32_t round;       /* number of the round; 0: this is the hello, which contains no blocks */
	uint32_t n;           /* number of blocks in the contribution: index[first] to index[first + n - 1] of the worker */
	uint32_t first;       /* position of its first block in the worker's index[]; only the worker itself uses this */
	uint32_t next, reach; /* the worker's next and reach (defined above) after this contribution */
} gpul_sparse_contribution;

typedef struct gpul_sparse_worker {
	const uint32_t *index; /* borrowed: the worker's non-zero blocks, ascending */
	uint32_t n, end;       /* number of non-zero blocks; number of all blocks of the stream */
	uint32_t most;         /* largest number of blocks in a contribution */
	uint32_t n_sent, round, limit;
	bool done; /* no further contribution is requested */
} gpul_sparse_worker;

/* Begin a stream, and return the hello, which is to be sent to the aggregator. */
gpul_sparse_contribution gpul_sparse_worker_begin(gpul_sparse_worker *w, const uint32_t *index, uint32_t n, uint32_t end, uint32_t most);

/** Handle a result that has arrived, and get the contribution that the result requests.
 *
 * @w      not done
 * @round  round of the result
 * @limit  limit of the result; 0: the stream is done, and nothing is requested
 * @out    set, unless w->done is now true
 * Errors  GPUL_EFORMAT a result of another round, or an invalid limit
 * Threads one at a time
 * Source  J. Fei and others, Efficient Sparse Collective Communication and its Application to Accelerate Distributed Deep
 *         Learning (OmniReduce), SIGCOMM 2021 */
gpul_status gpul_sparse_worker_result(gpul_sparse_worker *w, uint32_t round, uint32_t limit, gpul_sparse_contribution *out,
				      gpul_error *err);

/* ---- aggregator ---------------------------------------------------------------------------------------------- */

typedef struct gpul_sparse_aggregator {
	uint32_t n_ranks, end, most;
	uint32_t round, limit; /* round number and limit of the next contributions */
	uint32_t n_missing;    /* contributions of this round that have not arrived */
	bool done;
	struct {
		const uint32_t *index; /* borrowed, until the round ends */
		uint32_t n, taken;
		uint32_t next, reach;
		bool has; /* the rank's contribution to this round has arrived */
	} workers[GPUL_COMM_MAX_RANKS];
} gpul_sparse_aggregator;

/* Begin a stream.  The next messages to handle are the hellos of the workers. */
void gpul_sparse_aggregator_begin(gpul_sparse_aggregator *a, uint32_t n_ranks, uint32_t end, uint32_t most);

/** Handle a contribution that has arrived.
 *
 * @a      not done
 * @rank   the worker that sent it
 * @c      the contribution; not trusted
 * @index  c->n blocks, not trusted; borrowed until gpul_sparse_aggregator_close()
 * Errors  GPUL_EFORMAT an invalid contribution: another round, blocks that are not ascending or
 *         not below the limit, a wrong value of c->next or c->reach.  The text names the rank
 * Threads one at a time */
gpul_status gpul_sparse_aggregator_take(gpul_sparse_aggregator *a, uint32_t rank, const gpul_sparse_contribution *c, const uint32_t *index,
					gpul_error *err);

/* True if all contributions of the round have arrived; the caller then sums them, and closes the round. */
bool gpul_sparse_aggregator_ready(const gpul_sparse_aggregator *a);

/* Get the next block, in ascending order, and its position in the contribution of each rank; -1: the rank does not have the block.
 * Returns false if there is no further block. */
bool gpul_sparse_aggregator_block(gpul_sparse_aggregator *a, uint32_t *block, int32_t *position);

/* A result, as it is sent to the workers. */
typedef struct gpul_sparse_result {
	uint32_t round;
	uint32_t limit; /* the workers send their blocks below this index in the next round; 0: the stream is done */
} gpul_sparse_result;

/* End the round when gpul_sparse_aggregator_block() has returned all blocks; the contributions are no longer used. */
gpul_sparse_result gpul_sparse_aggregator_close(gpul_sparse_aggregator *a);

#ifdef __cplusplus
}
#endif

#endif
