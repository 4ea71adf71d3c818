/* range_internal.h — ranges of integers: what a register may hold in one launch, as computed with saturation.
 *
 * A range of a register of w bits contains a number for each value, equal to it modulo 2^w: u32 4294967295 may be in
 * a range as -1.  gpul_range_signed() and gpul_range_unsigned() give the numbers that a signed or an unsigned
 * instruction sees. */
#ifndef GPULOAD_LOADER_SIGNATURE_RANGE_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_RANGE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ptx/module.h"

#define RANGE_END ((int64_t)1 << 62) /* numbers from here on, and below its negative, are not told apart */

typedef struct gpul_range {
	int64_t lo, hi; /* both included; lo <= hi */
} gpul_range;

static inline gpul_range gpul_range_of(int64_t lo, int64_t hi)
{
	return (gpul_range){ lo, hi };
}

/* Every value of a register with so many bits. */
gpul_range gpul_range_full(unsigned bits);
/* The smallest range with the numbers of both. */
gpul_range gpul_range_join(gpul_range a, gpul_range b);
/* r if a register of so many bits can hold it without wrapping around, else the full range. */
gpul_range gpul_range_wrap(gpul_range r, unsigned bits);
gpul_range gpul_range_signed(gpul_range r, unsigned bits);
gpul_range gpul_range_unsigned(gpul_range r, unsigned bits);

gpul_range gpul_range_add(gpul_range a, gpul_range b);
gpul_range gpul_range_negate(gpul_range a);
gpul_range gpul_range_multiply(gpul_range a, gpul_range b);
/* The others accept the result of _signed() or _unsigned(); bits is the width of the result. */
gpul_range gpul_range_divide(gpul_range a, gpul_range b, unsigned bits);
gpul_range gpul_range_remainder(gpul_range a, gpul_range b, unsigned bits);
gpul_range gpul_range_shift_left(gpul_range a, gpul_range count, unsigned bits);
gpul_range gpul_range_shift_right(gpul_range a, gpul_range count, unsigned bits);
gpul_range gpul_range_and(gpul_range a, gpul_range b, unsigned bits);
gpul_range gpul_range_or(gpul_range a, gpul_range b, bool exclusive, unsigned bits);
gpul_range gpul_range_min_max(gpul_range a, gpul_range b, bool max);

/* Whether "a OP b" holds: 1 always, 0 never, -1 unknown.  op is GPUL_PTX_MOD_LT, LE, GT, GE, EQ or NE. */
int gpul_range_compare(uint16_t op, gpul_range a, gpul_range b);
/* The numbers of a for which "a OP b" can hold; a itself if there are none. */
gpul_range gpul_range_refine(uint16_t op, gpul_range a, gpul_range b);

#endif
