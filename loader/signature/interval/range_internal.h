/* range_internal.h — saturating arithmetic on integer ranges: the values that a register may have in one launch.
 *
 * A range of a register of w bits contains, for each possible value, a number that is equal modulo 2^w: u32 4294967295 may be in a
 * range as -1. gpul_range_signed() and gpul_range_unsigned() convert to the numbers that a signed or an unsigned instruction sees. */
#ifndef GPULOAD_LOADER_SIGNATURE_INTERVAL_RANGE_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_INTERVAL_RANGE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ptx/module.h"

#define RANGE_END ((int64_t)1 << 62) /* numbers beyond this limit, in both directions, are not distinguished */

typedef struct gpul_range {
	int64_t lo, hi; /* both included; lo <= hi */
} gpul_range;

static inline gpul_range gpul_range_of(int64_t lo, int64_t hi)
{
	return (gpul_range){ lo, hi };
}

/* Return all values of a register of this many bits. */
gpul_range gpul_range_full(unsigned bits);
/* Return the smallest range that contains both a and b. */
gpul_range gpul_range_join(gpul_range a, gpul_range b);
/* Return r if a register of this many bits can hold it without wrapping, else the full range. */
gpul_range gpul_range_wrap(gpul_range r, unsigned bits);
gpul_range gpul_range_signed(gpul_range r, unsigned bits);
gpul_range gpul_range_unsigned(gpul_range r, unsigned bits);

gpul_range gpul_range_add(gpul_range a, gpul_range b);
gpul_range gpul_range_negate(gpul_range a);
gpul_range gpul_range_multiply(gpul_range a, gpul_range b);
/* The following functions expect results of gpul_range_signed() or gpul_range_unsigned().  bits: the width of the result. */
gpul_range gpul_range_divide(gpul_range a, gpul_range b, unsigned bits);
gpul_range gpul_range_remainder(gpul_range a, gpul_range b, unsigned bits);
gpul_range gpul_range_shift_left(gpul_range a, gpul_range count, unsigned bits);
gpul_range gpul_range_shift_right(gpul_range a, gpul_range count, unsigned bits);
gpul_range gpul_range_and(gpul_range a, gpul_range b, unsigned bits);
gpul_range gpul_range_or(gpul_range a, gpul_range b, bool exclusive, unsigned bits);
gpul_range gpul_range_min_max(gpul_range a, gpul_range b, bool max);

/* Compare two ranges: 1 if "a OP b" is always true, 0 if never, -1 if unknown.  op is GPUL_PTX_MOD_LT, LE, GT, GE, EQ or NE. */
int gpul_range_compare(uint16_t op, gpul_range a, gpul_range b);
/* Return the numbers of a for which "a OP b" can be true; a itself if there are none. */
gpul_range gpul_range_refine(uint16_t op, gpul_range a, gpul_range b);

#endif
