/* comm_data.h — the data of a checked call: the inputs of each rank, and the expected results.
 *
 *     seed, rank r ──> inputs[r]: COMM_DATA_PERIOD elements, repeated        each rank can compute those of all ranks
 *     inputs of all ranks ──> reduced: the result, repeated likewise         computed here, on the CPU, in another type
 *
 * The period is a prime, so data that arrives at a wrong place differs unless it is wrong by a multiple of the period.  Each checked
 * call uses a new seed, so that data of an earlier call is not accepted as correct.
 *
 * Integers, minima, maxima and copies must be exact.  Sums and products of floats must be within the error bound that holds for
 * every order of the operations (N. Higham, Accuracy and Stability of Numerical Algorithms, 4.2: |error| <= gamma(n - 1) times
 * the sum of the absolute values; gamma(k) = k u / (1 - k u), u the unit roundoff of the type). */
#ifndef GPULOAD_CLI_COMM_COMM_DATA_H
#define GPULOAD_CLI_COMM_COMM_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/bootstrap/job.h"
#include "comm/types.h"
#include "core/error.h"

enum { COMM_DATA_PERIOD = 65521 };

/* The call that is checked. */
struct comm_data_desc {
	gpul_comm_call call;
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	int rank, n_ranks, root;
	size_t count; /* the argument `count` of the collective */
	uint64_t seed;
};

struct comm_data {
	struct comm_data_desc desc;
	size_t element_bytes, period;               /* period: number of elements after which the inputs repeat; at most COMM_DATA_PERIOD */
	unsigned char *inputs[GPUL_COMM_MAX_RANKS]; /* the input of each rank: `period` elements */
	unsigned char *reduced;                     /* exact results; NULL: the results are not exact, or nothing is reduced */
	double *value, *bound;                      /* results of float sums and products: within value +- bound */
};

/** Compute the inputs and the results.
 *
 * @desc  copied
 * @out   owned by the caller: comm_data_free(); zeroed on failure
 * Errors  GPUL_ENOMEM */
gpul_status comm_data_create(const struct comm_data_desc *desc, struct comm_data *out, gpul_error *err);
void comm_data_free(struct comm_data *d); /* accepts a struct of zeros */

/* Write n elements of this rank's send buffer, beginning with element `first`. */
void comm_data_fill(const struct comm_data *d, size_t first, size_t n, void *out);

/* Compare n elements of this rank's recv buffer, beginning with element `first`; returns the number of wrong ones. */
uint64_t comm_data_check(const struct comm_data *d, size_t first, size_t n, const void *got);

/* Add n_bytes bytes to a hash, which begins as 0; n_bytes is a multiple of 8 except in the last call. */
uint64_t comm_data_hash(uint64_t hash, const void *bytes, size_t n_bytes);

#endif
