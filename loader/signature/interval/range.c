/* range.c — implements arithmetic on ranges of integers. */
#include "loader/signature/interval/range_internal.h"

__extension__ typedef __int128 wide; /* no sum or product of two int64_t overflows it */

static int64_t saturate(wide x)
{
	return x > RANGE_END ? RANGE_END : x < -RANGE_END ? -RANGE_END : (int64_t)x;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

gpul_range gpul_range_full(unsigned bits)
{
	if (bits >= 63)
		return gpul_range_of(-RANGE_END, RANGE_END);
	return gpul_range_of(-((int64_t)1 << (bits - 1)), ((int64_t)1 << bits) - 1);
}

gpul_range gpul_range_join(gpul_range a, gpul_range b)
{
	return gpul_range_of(smaller(a.lo, b.lo), larger(a.hi, b.hi));
}

gpul_range gpul_range_wrap(gpul_range r, unsigned bits)
{
	gpul_range full = gpul_range_full(bits);

	return r.lo < full.lo || r.hi > full.hi ? full : r;
}

gpul_range gpul_range_signed(gpul_range r, unsigned bits)
{
	int64_t half;

	if (bits >= 63)
		return r;
	half = (int64_t)1 << (bits - 1);
	if (r.hi < half)
		return r;
	if (r.lo >= half)
		return gpul_range_of(r.lo - 2 * half, r.hi - 2 * half);
	return gpul_range_of(-half, half - 1);
}

gpul_range gpul_range_unsigned(gpul_range r, unsigned bits)
{
	if (r.lo >= 0)
		return r;
	if (bits >= 63)
		return gpul_range_of(0, RANGE_END);
	if (r.hi < 0)
		return gpul_range_of(r.lo + ((int64_t)1 << bits), r.hi + ((int64_t)1 << bits));
	return gpul_range_of(0, ((int64_t)1 << bits) - 1);
}

gpul_range gpul_range_add(gpul_range a, gpul_range b)
{
	return gpul_range_of(saturate((wide)a.lo + b.lo), saturate((wide)a.hi + b.hi));
}

gpul_range gpul_range_negate(gpul_range a)
{
	return gpul_range_of(-a.hi, -a.lo);
}

gpul_range gpul_range_multiply(gpul_range a, gpul_range b)
{
	wide p[4] = { (wide)a.lo * b.lo, (wide)a.lo * b.hi, (wide)a.hi * b.lo, (wide)a.hi * b.hi };
	gpul_range r = gpul_range_of(saturate(p[0]), saturate(p[0]));

	for (int i = 1; i < 4; i++)
		r = gpul_range_join(r, gpul_range_of(saturate(p[i]), saturate(p[i])));
	return r;
}

/* True if r contains numbers beyond RANGE_END, which are not distinguished. */
static bool is_unbounded(gpul_range r)
{
	return r.lo <= -RANGE_END || r.hi >= RANGE_END;
}

gpul_range gpul_range_divide(gpul_range a, gpul_range b, unsigned bits)
{
	int64_t q[4];
	gpul_range r;

	if (b.lo <= 0 || is_unbounded(a))
		return gpul_range_full(bits);
	q[0] = a.lo / b.lo;
	q[1] = a.lo / b.hi;
	q[2] = a.hi / b.lo;
	q[3] = a.hi / b.hi;
	r = gpul_range_of(q[0], q[0]);
	for (int i = 1; i < 4; i++)
		r = gpul_range_join(r, gpul_range_of(q[i], q[i]));
	return r;
}

gpul_range gpul_range_remainder(gpul_range a, gpul_range b, unsigned bits)
{
	if (b.lo <= 0)
		return gpul_range_full(bits);
	return gpul_range_of(a.lo < 0 ? larger(a.lo, 1 - b.hi) : 0, a.hi > 0 ? smaller(a.hi, b.hi - 1) : 0);
}

gpul_range gpul_range_shift_left(gpul_range a, gpul_range count, unsigned bits)
{
	if (count.lo < 0 || count.hi > 61)
		return gpul_range_full(bits);
	return gpul_range_multiply(a, gpul_range_of((int64_t)1 << count.lo, (int64_t)1 << count.hi));
}

gpul_range gpul_range_shift_right(gpul_range a, gpul_range count, unsigned bits)
{
	int64_t least, most;

	if (count.lo < 0)
		count = gpul_range_of(0, 63);
	least = smaller(count.lo, 63);
	most = smaller(count.hi, 63);
	if (a.lo <= -RANGE_END || (a.hi >= RANGE_END && least == 0))
		return gpul_range_full(bits);
	if (a.hi >= RANGE_END) /* the number is unsigned and has 64 bits */
		return gpul_range_of(0, (int64_t)(UINT64_MAX >> least > (uint64_t)RANGE_END ? (uint64_t)RANGE_END : UINT64_MAX >> least));
	return gpul_range_of(a.lo >> (a.lo < 0 ? least : most), a.hi >> (a.hi < 0 ? most : least));
}

/* Return the least 2^k - 1 that is at least x. */
static int64_t mask_of(int64_t x)
{
	return x <= 0 ? 0 : (int64_t)(UINT64_MAX >> __builtin_clzll((uint64_t)x));
}

gpul_range gpul_range_and(gpul_range a, gpul_range b, unsigned bits)
{
	bool rounds = b.lo == b.hi && b.lo < 0 && ((-b.lo) & (-b.lo - 1)) == 0;

	if (a.lo >= 0 && b.lo >= 0)
		return gpul_range_of(0, smaller(a.hi, b.hi));
	if (rounds && !is_unbounded(a)) /* x & -4 rounds x down */
		return gpul_range_of(a.lo & b.lo, a.hi & b.lo);
	if (b.lo >= 0)
		return gpul_range_of(0, b.hi);
	if (a.lo >= 0)
		return gpul_range_of(0, a.hi);
	return gpul_range_full(bits);
}

gpul_range gpul_range_or(gpul_range a, gpul_range b, bool exclusive, unsigned bits)
{
	if (a.lo < 0 || b.lo < 0 || is_unbounded(a) || is_unbounded(b))
		return gpul_range_full(bits);
	return gpul_range_of(exclusive ? 0 : larger(a.lo, b.lo), smaller(mask_of(larger(a.hi, b.hi)), saturate((wide)a.hi + b.hi)));
}

gpul_range gpul_range_min_max(gpul_range a, gpul_range b, bool max)
{
	return max ? gpul_range_of(larger(a.lo, b.lo), larger(a.hi, b.hi)) : gpul_range_of(smaller(a.lo, b.lo), smaller(a.hi, b.hi));
}

int gpul_range_compare(uint16_t op, gpul_range a, gpul_range b)
{
	switch (op) {
	case GPUL_PTX_MOD_LT:
		return a.hi < b.lo ? 1 : a.lo >= b.hi ? 0 : -1;
	case GPUL_PTX_MOD_LE:
		return a.hi <= b.lo ? 1 : a.lo > b.hi ? 0 : -1;
	case GPUL_PTX_MOD_GT:
		return gpul_range_compare(GPUL_PTX_MOD_LT, b, a);
	case GPUL_PTX_MOD_GE:
		return gpul_range_compare(GPUL_PTX_MOD_LE, b, a);
	case GPUL_PTX_MOD_EQ:
		if (a.lo == a.hi && b.lo == b.hi && a.lo == b.lo)
			return 1;
		return a.hi < b.lo || b.hi < a.lo ? 0 : -1;
	case GPUL_PTX_MOD_NE:
		if (a.lo == a.hi && b.lo == b.hi && a.lo == b.lo)
			return 0;
		return a.hi < b.lo || b.hi < a.lo ? 1 : -1;
	default:
		return -1;
	}
}

gpul_range gpul_range_refine(uint16_t op, gpul_range a, gpul_range b)
{
	gpul_range r = a;

	switch (op) {
	case GPUL_PTX_MOD_LT:
		r.hi = smaller(r.hi, b.hi >= RANGE_END ? b.hi : b.hi - 1);
		break;
	case GPUL_PTX_MOD_LE:
		r.hi = smaller(r.hi, b.hi);
		break;
	case GPUL_PTX_MOD_GT:
		r.lo = larger(r.lo, b.lo <= -RANGE_END ? b.lo : b.lo + 1);
		break;
	case GPUL_PTX_MOD_GE:
		r.lo = larger(r.lo, b.lo);
		break;
	case GPUL_PTX_MOD_EQ:
		r = gpul_range_of(larger(r.lo, b.lo), smaller(r.hi, b.hi));
		break;
	case GPUL_PTX_MOD_NE:
		r.lo += b.lo == b.hi && r.lo == b.lo;
		r.hi -= b.lo == b.hi && r.hi == b.lo;
		break;
	default:
		break;
	}
	return r.lo > r.hi ? a : r;
}
