/* reference.h — the data of the tests' calls, and their right results, computed without any code of comm/. */
#ifndef GPULOAD_TESTS_COMM_REFERENCE_H
#define GPULOAD_TESTS_COMM_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "comm/types.h"

/* Return random number n of a seed. */
uint64_t mix(uint64_t seed, uint64_t n);

/* Write elements first ... first + n - 1 of a rank's data.  Floats are from 0.5 to 2, with a random sign and mantissa, so that sums and
 * products of 8 ranks neither overflow nor vanish. */
void fill_elements(void *to, gpul_comm_dtype dtype, uint64_t seed, int rank, size_t first, size_t n);

/* Compare with fill_elements().  Returns the first element that differs, or n. */
size_t find_other_element(const void *got, gpul_comm_dtype dtype, uint64_t seed, int rank, size_t first, size_t n);

/* Compare with the reduction of these elements of all ranks: integers exactly; floats within the error bound of any order of the
 * operations, that is, (n_ranks - 1) roundings of values that are at most the sum of the absolute values.  Returns the first wrong
 * element, or n. */
size_t find_wrong_result(const void *got, gpul_comm_dtype dtype, gpul_comm_op op, uint64_t seed, int n_ranks, size_t first, size_t n);

/* Return a hash of a buffer, to compare the results of ranks and runs. */
uint64_t hash_bits(const void *data, size_t n_bytes);

#endif
