/* log_buckets.h — the buckets of a histogram with a logarithmic scale: 2^bits of them for each power of two.
 *
 *     bits 3:  0 1 2 3 4 5 6 7 | 8 9 .. 15 | 16-17 18-19 .. 30-31 | 32-35 .. 60-63 | ...
 *
 * The middle of a bucket differs from its values by at most 1/2^(bits+1) of them: 6 % with 3 bits, 1 % with 6. */
#ifndef GPULOAD_CORE_LOG_BUCKETS_H
#define GPULOAD_CORE_LOG_BUCKETS_H

#include <stdint.h>

/* Return the number of the bucket that has x.  Below 2^(bits+1), each value has its own. */
static inline unsigned gpul_log_bucket(uint64_t x, unsigned bits)
{
	const unsigned octave = x >> bits ? 64 - bits - (unsigned)__builtin_clzll(x) : 0;

	return octave ? (octave << bits) + (unsigned)(x >> (octave - 1)) - (1u << bits) : (unsigned)x;
}

/* Return the value in the middle of a bucket. */
static inline uint64_t gpul_log_bucket_middle(unsigned bucket, unsigned bits)
{
	const unsigned octave = bucket >> bits;
	const uint64_t inside = bucket & ((1u << bits) - 1);

	return octave ? (((UINT64_C(1) << bits) + inside) << (octave - 1)) + ((UINT64_C(1) << (octave - 1)) >> 1) : bucket;
}

#endif
