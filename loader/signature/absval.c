/* absval.c — implements the join of abstract values, and the transfer functions of integer arithmetic. */
#include "loader/signature/absval_internal.h"

#define TINY ((uint64_t)1 << 16) /* a number of elements divided by this number, or by a larger one, is assumed to be 0 */

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	return a > AV_UNBOUNDED - b ? AV_UNBOUNDED : a + b;
}

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t r;

	if (a == AV_UNBOUNDED || b == AV_UNBOUNDED)
		return a && b ? AV_UNBOUNDED : 0;
	return __builtin_mul_overflow(a, b, &r) ? AV_UNBOUNDED : r;
}

/* Divide and round up, so that a stride above 0 stays above 0. */
static uint64_t quotient(uint64_t a, uint64_t b)
{
	return a == AV_UNBOUNDED || b == 0 ? a : a / b + (a % b != 0);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

gpul_absval gpul_absval_constant(int64_t value)
{
	return (gpul_absval){
		.defined = true, .constant = true, .value = value, .offset = value < 0 ? 0 - (uint64_t)value : (uint64_t)value
	};
}

static uint64_t smaller_array(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

gpul_absval gpul_absval_join(gpul_absval a, gpul_absval b)
{
	if (!a.defined || !b.defined)
		return a.defined ? a : b;
	a.constant = a.constant && b.constant && a.value == b.value;
	a.base |= b.base;
	a.bound |= b.bound;
	a.linear |= b.linear;
	a.loaded_from |= b.loaded_from;
	a.flags |= b.flags;
	a.stride = max(a.stride, b.stride);
	a.block_stride = max(a.block_stride, b.block_stride);
	a.outer_stride = max(a.outer_stride, b.outer_stride);
	a.offset = max(a.offset, b.offset);
	a.growth = max(a.growth, b.growth);
	a.array_bytes = smaller_array(a.array_bytes, b.array_bytes);
	return a;
}

gpul_absval gpul_absval_opaque(gpul_absval a)
{
	return (gpul_absval){ .defined = a.defined, .loaded_from = a.loaded_from, .flags = AV_OPAQUE };
}

gpul_absval gpul_absval_neg(gpul_absval a)
{
	a.base = 0;
	a.constant = false;
	a.flags &= ~(uint32_t)AV_ADDRESS;
	return a;
}

/* True if a value keeps its bound when `other` is added: n - 1 limits an index, just as n does. */
static bool keeps_bound(gpul_absval other)
{
	return !other.linear && !(other.flags & ~(uint32_t)(AV_SIZES | AV_NOT_UNIQUE | AV_NEGATIVE));
}

static uint64_t added_base(uint64_t pointers, gpul_absval a, gpul_absval b, bool subtract, uint32_t *flags)
{
	if ((a.flags & AV_ADDRESS && !a.base) || (b.flags & AV_ADDRESS && !b.base))
		return 0; /* one operand is the address of a variable, so the sum is an address in this variable */
	if (!b.base)
		return a.base;
	if (subtract)
		return 0; /* the difference is a distance between addresses */
	if (!a.base || (!(a.base & pointers) && b.base & pointers))
		return b.base;
	if (a.base & pointers && !(b.base & pointers))
		return a.base;
	*flags |= AV_TWO_BASES;
	return a.base | b.base;
}

gpul_absval gpul_absval_add(uint64_t pointers, gpul_absval a, gpul_absval b, bool subtract)
{
	gpul_absval r = { .defined = a.defined && b.defined, .flags = a.flags | b.flags };
	int64_t v;

	if (a.constant && b.constant &&
	    !(subtract ? __builtin_sub_overflow(a.value, b.value, &v) : __builtin_add_overflow(a.value, b.value, &v)))
		return gpul_absval_constant(v);
	if ((a.constant && a.value < 0) || (b.constant && b.value && (b.value < 0) != subtract))
		r.flags |= AV_NEGATIVE;
	r.base = added_base(pointers, a, b, subtract, &r.flags);
	r.bound = (keeps_bound(b) ? a.bound : 0) | (keeps_bound(a) ? b.bound : 0);
	r.linear = a.linear | b.linear;
	r.loaded_from = a.loaded_from | b.loaded_from;
	r.stride = saturating_add(a.stride, b.stride);
	r.block_stride = saturating_add(a.block_stride, b.block_stride);
	r.outer_stride = saturating_add(a.outer_stride, b.outer_stride);
	r.offset = saturating_add(a.offset, b.offset);
	r.growth = saturating_add(a.growth, b.growth);
	r.array_bytes = smaller_array(a.array_bytes, b.array_bytes);
	return r;
}

static gpul_absval multiply_by_constant(gpul_absval a, uint64_t factor)
{
	a.base = 0;
	a.constant = false;
	if (factor != 1)
		a.bound = 0;
	a.stride = product(a.stride, factor);
	a.block_stride = product(a.block_stride, factor);
	a.outer_stride = product(a.outer_stride, factor);
	a.offset = product(a.offset, factor);
	a.growth = product(a.growth, factor);
	return a;
}

gpul_absval gpul_absval_mul(gpul_absval a, gpul_absval b)
{
	gpul_absval r = { .defined = a.defined && b.defined, .flags = a.flags | b.flags };

	if (a.constant && b.constant) {
		int64_t v;

		if (!__builtin_mul_overflow(a.value, b.value, &v))
			return gpul_absval_constant(v);
		return gpul_absval_opaque(r);
	}
	if (a.constant || b.constant)
		return a.constant ? multiply_by_constant(b, a.offset) : multiply_by_constant(a, b.offset);
	r.linear = a.linear | b.linear;
	r.loaded_from = a.loaded_from | b.loaded_from;
	r.offset = product(a.offset, b.offset);
	r.growth = max(product(a.growth, max(b.offset, 1)), product(b.growth, max(a.offset, 1)));
	if ((a.flags & AV_TID && b.flags & AV_LAUNCH) || (b.flags & AV_TID && a.flags & AV_LAUNCH))
		r.flags |= AV_QUADRATIC;
	if ((a.flags | b.flags) & AV_SIZES) { /* multiplying by a block or grid size leaves the strides as they are */
		r.stride = max(a.stride, b.stride);
		r.block_stride = max(a.block_stride, b.block_stride);
		r.outer_stride = max(a.outer_stride, b.outer_stride);
	} else {
		r.stride = max(product(a.stride, max(b.offset, 1)), product(b.stride, max(a.offset, 1)));
		r.block_stride = max(product(a.block_stride, max(b.offset, 1)), product(b.block_stride, max(a.offset, 1)));
		r.outer_stride = max(product(a.outer_stride, max(b.offset, 1)), product(b.outer_stride, max(a.offset, 1)));
	}
	if (r.flags & AV_OUTER && r.flags & AV_NTID) { /* r is the index of the block's first thread */
		r.flags = (r.flags | AV_TID) & ~(uint32_t)AV_OUTER;
		r.block_stride = max(r.block_stride, r.outer_stride);
		r.outer_stride = 0;
	}
	return r;
}

gpul_absval gpul_absval_exp2(gpul_absval a)
{
	if (a.constant)
		return gpul_absval_constant(a.value >= 0 && a.value < 63 ? (int64_t)((uint64_t)1 << a.value) : 0);
	a.base = a.bound = 0;
	a.offset = a.offset < 63 ? (uint64_t)1 << a.offset : AV_UNBOUNDED;
	return a;
}

gpul_absval gpul_absval_divide(gpul_absval a, gpul_absval b)
{
	a.base = 0;
	if (a.constant || !b.constant || b.value <= 0) {
		a.constant = false;
		a.bound = a.linear = 0; /* the quotient is, for example, a number of loop iterations, which does not limit an index */
		a.loaded_from |= b.loaded_from;
		a.flags |= b.flags & (AV_LOADED | AV_OPAQUE);
		if (b.flags &
		    AV_SIZES) { /* the divisor is a block or grid size: the quotient counts the iterations of a grid-stride loop */
			a.flags &= ~(uint32_t)AV_LAUNCH;
			a.stride = a.block_stride = a.outer_stride = 0;
		}
		return a;
	}
	if (b.offset >= TINY && (a.bound || a.stride == 1 || a.block_stride == 1)) {
		/* compilers write n >> 31 >> 30 to correct the sign in a signed division by a power of two */
		a.bound = a.linear = 0;
		a.flags &= ~(uint32_t)AV_LAUNCH;
		a.stride = a.block_stride = a.outer_stride = 0;
		a.offset = 1;
		return a;
	}
	a.flags |= AV_NOT_UNIQUE;
	a.stride = quotient(a.stride, b.offset);
	a.block_stride = quotient(a.block_stride, b.offset);
	a.outer_stride = quotient(a.outer_stride, b.offset);
	a.offset = quotient(a.offset, b.offset);
	a.growth = quotient(a.growth, b.offset);
	return a;
}

gpul_absval gpul_absval_remainder(gpul_absval a, gpul_absval b)
{
	a.base = a.bound = a.linear = 0;
	a.constant = false;
	a.loaded_from |= b.loaded_from;
	a.flags |= AV_NOT_UNIQUE | (b.flags & (AV_LOADED | AV_OPAQUE));
	if (b.constant)
		a.offset = b.offset;
	return a;
}

/* True if x & mask rounds x down to a multiple of a power of two: mask is -4, for example, or 0x7ffffffc if x is never negative. */
static bool rounds_down(int64_t mask)
{
	uint64_t end = (uint64_t)mask + ((uint64_t)mask & (0 - (uint64_t)mask));

	return mask < 0 || end == (uint64_t)1 << 31 || end == (uint64_t)1 << 32 || end == (uint64_t)1 << 63;
}

gpul_absval gpul_absval_and(gpul_absval a, gpul_absval b)
{
	if (a.constant && !b.constant)
		return gpul_absval_and(b, a);
	if (!b.constant)
		return gpul_absval_remainder(a, b);
	if (rounds_down(b.value)) {
		a.constant = false;
		return a;
	}
	b.bound = a.bound;
	a = gpul_absval_remainder(a, b);
	a.bound = b.bound; /* keep the bound: n & 3 is the number of remaining iterations of an unrolled loop */
	return a;
}

gpul_absval gpul_absval_min_max(gpul_absval a, gpul_absval b)
{
	gpul_absval r = gpul_absval_join(a, b);

	r.base = r.linear = 0; /* the bounds are kept: min(n, m) limits an index by n and by m */
	if (r.flags & AV_INDEX)
		r.bound = 0;
	return r;
}
