/* plan.h — chooses the algorithm, protocol and number of blocks of a call by its size.
 *
 *     table of gpuload comm tune, else the built-in table ─> options.algo, .proto, .n_blocks ─> is it possible here? ─> plan */
#ifndef GPULOAD_COMM_PLAN_H
#define GPULOAD_COMM_PLAN_H

#include <stdint.h>

#include "comm/types.h"
#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm_plan {
	gpul_comm_algo algo;        /* never AUTO */
	gpul_comm_proto proto;      /* never AUTO */
	unsigned n_blocks, n_threads;
	const char *reason;         /* where the choice comes from, in one phrase; valid as long as the communicator */
} gpul_comm_plan;

struct gpul_comm;

/** The plan of a call with that many bytes (the larger of the two buffers; send/recv: of one transfer).
 *
 * A rank's plan depends only on the arguments, the options and the table, so all ranks have the same.  Options that the call does
 * not have (one-shot broadcast, LL128 over host memory ...) are replaced by the next best; reason says so.  Any thread. */
gpul_comm_plan gpul_comm_plan_for(const struct gpul_comm *c, gpul_comm_call call, size_t bytes);

/* Use this plan for all following calls, to measure it; NULL: the table again.  reason is ignored.  An impossible choice is
 * replaced as in gpul_comm_plan_for().  Every rank must do the same, between calls. */
void gpul_comm_plan_force(struct gpul_comm *c, const gpul_comm_plan *plan);

/* Data bytes of a slot, of one block.  Any thread. */
size_t gpul_comm_slot_data(const struct gpul_comm *c, gpul_comm_proto proto);

/* The slowest transport between two ranks: NET, else HOST, else DEVICE; the tuning table has rows for it.  Any thread. */
gpul_comm_transport gpul_comm_transport_of(const struct gpul_comm *c);

/* Is there a kernel for this combination?  Any thread. */
bool gpul_comm_plan_exists(gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto);

/* Why a combination that exists cannot be used for calls of that many bytes in this communicator, as a phrase; NULL: it can.
 * Any thread. */
const char *gpul_comm_plan_obstacle(const struct gpul_comm *c, gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto,
				    size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
