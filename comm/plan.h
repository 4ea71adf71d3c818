/* plan.h — which algorithm, protocol and number of blocks a call uses, by its size. */
#ifndef GPULOAD_COMM_PLAN_H
#define GPULOAD_COMM_PLAN_H

#include "comm/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm_plan {
	gpul_comm_algo algo;        /* never AUTO */
	gpul_comm_proto proto;      /* never AUTO */
	unsigned n_blocks, n_threads;
	const char *reason;         /* where the choice comes from, in one phrase; static */
} gpul_comm_plan;

struct gpul_comm;

/** The plan of a call with that many bytes (the larger of the two buffers; send/recv: of one transfer).
 *
 * A rank's plan depends only on the arguments, the options and the table, so all ranks have the same.  Options that the
 * call does not have (one-shot broadcast, LL128 over host memory ...) are replaced by the next best; reason says so.
 * Any thread. */
gpul_comm_plan gpul_comm_plan_for(const struct gpul_comm *c, gpul_comm_call call, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
