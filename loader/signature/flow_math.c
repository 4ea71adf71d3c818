/* flow_math.c — see flow_math_internal.h. */
#include "loader/signature/flow_math_internal.h"

#define TINY ((uint64_t)1 << 16) /* divided by this, a count of elements is next to nothing */

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > FLOW_ENDLESS - b ? FLOW_ENDLESS : a + b;
}

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t r;

	return __builtin_mul_overflow(a, b, &r) ? FLOW_ENDLESS : r;
}

/* Rounded up: what moved at all still moves. */
static uint64_t quotient(uint64_t a, uint64_t b)
{
	return a == FLOW_ENDLESS || b == 0 ? a : a / b + (a % b != 0);
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

gpul_flow gpul_flow_constant(int64_t value)
{
	return (gpul_flow){
		.seen = true, .constant = true, .value = value, .reach = magnitude(value)
	};
}

uint64_t gpul_flow_room(uint64_t a, uint64_t b)
{
	return a && (!b || a < b) ? a : b;
}

gpul_flow gpul_flow_either(gpul_flow a, gpul_flow b)
{
	if (!a.seen || !b.seen)
		return a.seen ? a : b;
	a.constant = a.constant && b.constant && a.value == b.value;
	a.base |= b.base;
	a.bound |= b.bound;
	a.linear |= b.linear;
	a.from |= b.from;
	a.flags |= b.flags;
	a.stride = max(a.stride, b.stride);
	a.start = max(a.start, b.start);
	a.outer = max(a.outer, b.outer);
	a.reach = max(a.reach, b.reach);
	a.room = gpul_flow_room(a.room, b.room);
	return a;
}

gpul_flow gpul_flow_opaque(gpul_flow a)
{
	return (gpul_flow){ .seen = a.seen, .from = a.from, .flags = FLOW_OPAQUE };
}

gpul_flow gpul_flow_neg(gpul_flow a)
{
	a.base = 0;
	a.constant = false;
	a.flags &= ~(uint32_t)FLOW_ADDRESS;
	return a;
}

/* What a value keeps of its parameters when another is added to it: n - 1 still bounds like n.
 */
static bool leaves_bound(gpul_flow other)
{
	return !other.linear &&
	       !(other.flags & ~(uint32_t)(FLOW_SIZES | FLOW_FEWER | FLOW_LESS));
}

static uint64_t added_base(const gpul_flow_program *p, gpul_flow a, gpul_flow b, bool subtract,
			   uint32_t *flags)
{
	if ((a.flags & FLOW_ADDRESS && !a.base) || (b.flags & FLOW_ADDRESS && !b.base))
		return 0; /* an index into a variable */
	if (!b.base)
		return a.base;
	if (subtract)
		return 0; /* a distance */
	if (!a.base || (!(a.base & p->firm) && b.base & p->firm))
		return b.base;
	if (a.base & p->firm && !(b.base & p->firm))
		return a.base;
	*flags |= FLOW_MIXED;
	return a.base | b.base;
}

gpul_flow gpul_flow_add(const gpul_flow_program *p, gpul_flow a, gpul_flow b, bool subtract)
{
	gpul_flow r = { .seen = a.seen && b.seen, .flags = a.flags | b.flags };
	int64_t v;

	if (a.constant && b.constant &&
	    !(subtract ? __builtin_sub_overflow(a.value, b.value, &v)
		       : __builtin_add_overflow(a.value, b.value, &v)))
		return gpul_flow_constant(v);
	if ((a.constant && a.value < 0) || (b.constant && b.value && (b.value < 0) != subtract))
		r.flags |= FLOW_LESS;
	r.base = added_base(p, a, b, subtract, &r.flags);
	r.bound = (leaves_bound(b) ? a.bound : 0) | (leaves_bound(a) ? b.bound : 0);
	r.linear = a.linear | b.linear;
	r.from = a.from | b.from;
	r.stride = sum(a.stride, b.stride);
	r.start = sum(a.start, b.start);
	r.outer = sum(a.outer, b.outer);
	r.reach = sum(a.reach, b.reach);
	r.room = gpul_flow_room(a.room, b.room);
	return r;
}

static gpul_flow scaled(gpul_flow a, uint64_t factor)
{
	a.base = 0;
	a.constant = false;
	if (factor != 1)
		a.bound = 0;
	a.stride = product(a.stride, factor);
	a.start = product(a.start, factor);
	a.outer = product(a.outer, factor);
	a.reach = product(a.reach, factor);
	return a;
}

gpul_flow gpul_flow_mul(gpul_flow a, gpul_flow b)
{
	gpul_flow r = { .seen = a.seen && b.seen, .flags = a.flags | b.flags };

	if (a.constant && b.constant) {
		int64_t v;

		if (!__builtin_mul_overflow(a.value, b.value, &v))
			return gpul_flow_constant(v);
		return gpul_flow_opaque(r);
	}
	if (a.constant || b.constant)
		return a.constant ? scaled(b, a.reach) : scaled(a, b.reach);
	r.linear = a.linear | b.linear;
	r.from = a.from | b.from;
	r.reach = product(a.reach, b.reach);
	if ((a.flags & FLOW_TID && b.flags & FLOW_LAUNCH) ||
	    (b.flags & FLOW_TID && a.flags & FLOW_LAUNCH))
		r.flags |= FLOW_SQUARE;
	if ((a.flags | b.flags) &
	    FLOW_SIZES) { /* sizes of block and grid do not count as a factor */
		r.stride = max(a.stride, b.stride);
		r.start = max(a.start, b.start);
		r.outer = max(a.outer, b.outer);
	} else {
		r.stride = max(product(a.stride, max(b.reach, 1)),
			       product(b.stride, max(a.reach, 1)));
		r.start = max(product(a.start, max(b.reach, 1)),
			      product(b.start, max(a.reach, 1)));
		r.outer = max(product(a.outer, max(b.reach, 1)),
			      product(b.outer, max(a.reach, 1)));
	}
	if (r.flags & FLOW_OUTER && r.flags & FLOW_NTID) { /* the first thread of the block */
		r.flags = (r.flags | FLOW_TID) & ~(uint32_t)FLOW_OUTER;
		r.start = max(r.start, r.outer);
		r.outer = 0;
	}
	return r;
}

gpul_flow gpul_flow_power(gpul_flow a)
{
	if (a.constant)
		return gpul_flow_constant(
			a.value >= 0 && a.value < 63 ? (int64_t)((uint64_t)1 << a.value) : 0);
	a.base = a.bound = 0;
	a.reach = a.reach < 63 ? (uint64_t)1 << a.reach : FLOW_ENDLESS;
	return a;
}

gpul_flow gpul_flow_divide(gpul_flow a, gpul_flow b)
{
	a.base = 0;
	if (a.constant || !b.constant || b.value <= 0) {
		a.constant = false;
		a.bound = a.linear =
			0; /* such as how often a loop turns: no index grows with it */
		a.from |= b.from;
		a.flags |= b.flags & (FLOW_DATA | FLOW_OPAQUE);
		if (b.flags & FLOW_SIZES) { /* how often a grid-stride loop turns */
			a.flags &= ~(uint32_t)FLOW_LAUNCH;
			a.stride = a.start = a.outer = 0;
		}
		return a;
	}
	if (b.reach >= TINY && (a.bound || a.stride == 1 || a.start == 1)) {
		/* the sign's correction when an integer is divided by a power of two: n >> 31
		 * >> 30 */
		a.bound = a.linear = 0;
		a.flags &= ~(uint32_t)FLOW_LAUNCH;
		a.stride = a.start = a.outer = 0;
		a.reach = 1;
		return a;
	}
	a.flags |= FLOW_FEWER;
	a.stride = quotient(a.stride, b.reach);
	a.start = quotient(a.start, b.reach);
	a.outer = quotient(a.outer, b.reach);
	a.reach = quotient(a.reach, b.reach);
	return a;
}

gpul_flow gpul_flow_remainder(gpul_flow a, gpul_flow b)
{
	a.base = a.bound = a.linear = 0;
	a.constant = false;
	a.from |= b.from;
	a.flags |= FLOW_FEWER | (b.flags & (FLOW_DATA | FLOW_OPAQUE));
	if (b.constant)
		a.reach = b.reach;
	return a;
}

/* -4, and 0x7ffffffc where the sign is known: down to a multiple. */
static bool rounds_down(int64_t mask)
{
	uint64_t end = (uint64_t)mask + ((uint64_t)mask & (0 - (uint64_t)mask));

	return mask < 0 || end == (uint64_t)1 << 31 || end == (uint64_t)1 << 32 ||
	       end == (uint64_t)1 << 63;
}

gpul_flow gpul_flow_and(gpul_flow a, gpul_flow b)
{
	if (a.constant && !b.constant)
		return gpul_flow_and(b, a);
	if (!b.constant)
		return gpul_flow_remainder(a, b);
	if (rounds_down(b.value)) {
		a.constant = false;
		return a;
	}
	b.bound = a.bound;
	a = gpul_flow_remainder(a, b);
	a.bound = b.bound; /* n & 3: how often the rest of an unrolled loop turns */
	return a;
}

gpul_flow gpul_flow_clamped(gpul_flow a, gpul_flow b)
{
	gpul_flow r = gpul_flow_either(a, b);

	r.base = r.linear = 0; /* min(n, m) is a bound as n is, and as m */
	if (r.flags & FLOW_INDEX)
		r.bound = 0;
	return r;
}

gpul_flow gpul_flow_resized(const gpul_flow_program *p, gpul_flow a, unsigned from_bytes)
{
	if (from_bytes * 8 < p->m->address_size)
		a.base = 0;
	return a;
}
