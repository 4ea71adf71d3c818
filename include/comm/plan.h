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
	gpul_comm_algo algo;   /* never AUTO */
	gpul_comm_proto proto; /* never AUTO */
	unsigned n_blocks, n_threads;
	const char *reason; /* where the choice comes from, in one phrase; valid as long as the communicator */
} gpul_comm_plan;

struct gpul_comm;

/** Make the plan of a call with `bytes` bytes (the size of the larger buffer; send/recv: of one transfer).
 *
 * A rank's plan depends only on the arguments, the options and the table, so all ranks make the same plan.  Options that are
 * impossible for the call (one-shot broadcast, LL128 over host memory ...) are replaced by the next best choice; reason then
 * explains this.  Any thread may call. */
gpul_comm_plan gpul_comm_plan_for(const struct gpul_comm *c, gpul_comm_call call, size_t bytes);

/* Use this plan for all following calls, for measurements; NULL: use the table again.  reason is ignored.  An impossible choice is
 * replaced as in gpul_comm_plan_for().  Every rank must call this, between the same calls. */
void gpul_comm_plan_force(struct gpul_comm *c, const gpul_comm_plan *plan);

/* Return the number of data bytes in a slot of one block's channel.  Any thread may call. */
size_t gpul_comm_slot_data(const struct gpul_comm *c, gpul_comm_proto proto);

/* Return the slowest transport between any two ranks: NET, else HOST, else DEVICE; it selects the rows of the tuning table.  Any
 * thread may call. */
gpul_comm_transport gpul_comm_transport_of(const struct gpul_comm *c);

/* True if there is a kernel for this combination.  Any thread may call. */
bool gpul_comm_plan_exists(gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto);

/* Explain, in a phrase, why an existing combination cannot be used for calls of `bytes` bytes in this communicator; NULL: it
 * can.  Any thread may call. */
const char *gpul_comm_plan_obstacle(const struct gpul_comm *c, gpul_comm_call call, gpul_comm_algo algo, gpul_comm_proto proto,
				    size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
