/* access_internal.h — from an instruction's address operand to checked host pointers, 32 lanes at once.
 *
 *     SHAPE_ROW   lane l's bytes are at[l * bytes]: one check of both ends, then one copy
 *     SHAPE_SAME  all lanes want the same bytes: one check, then a broadcast
 *     SHAPE_EACH  anything else: each[l] is lane l's pointer
 *     SHAPE_FAULT the fault is recorded and x->stop is what the handler returns
 *
 * Addresses of any misaligned lane fault, as on a GPU; so the pointers are aligned for their type. */
#ifndef GPULOAD_SOFTCUDA_EXEC_ACCESS_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_ACCESS_INTERNAL_H

#include "softcuda/exec/run_internal.h"

enum shape { SHAPE_FAULT, SHAPE_ROW, SHAPE_SAME, SHAPE_EACH };

struct access {
	uint8_t *at;
	const struct insn *stop;
	uint64_t each[LANES];
};

/* access.c: each lane by itself, in any space, with the fault's text if it comes to that. */
enum shape gpul_access_slow(struct warp_state *s, const struct insn *i, unsigned bytes, bool write,
			    struct access *x);

/* The lanes' addresses stand in a row, or are all the same; both for whole warps only. */
static inline bool in_a_row(const uint64_t *a, unsigned bytes)
{
	uint64_t skew = 0, first = a[0];

	for (unsigned l = 0; l < LANES; l++)
		skew |= a[l] - first - (uint64_t)l * bytes;
	return !skew;
}

static inline bool all_same(const uint64_t *a)
{
	uint64_t differ = 0, first = a[0];

	for (unsigned l = 0; l < LANES; l++)
		differ |= a[l] ^ first;
	return !differ;
}

/* [at, at + bytes) of a row or a broadcast may be touched; *host is where it lies. */
static inline bool span_allowed(struct warp_state *s, const struct insn *i, uint64_t at, uint64_t bytes,
				unsigned align, bool write, uint8_t **host)
{
	if (at & (align - 1))
		return false;
	switch (i->flags & SPACE_MASK) {
	case SPACE_GLOBAL:
	case SPACE_GENERIC:
		*host = (uint8_t *)(uintptr_t)at;  /* NOLINT: device addresses are host addresses */
		return range_covers(s->cache, i->src, at, bytes, write);
	case SPACE_SHARED:
		*host = s->shared + at;
		return at <= s->shared_bytes && bytes <= s->shared_bytes - at;
	default:
		return false;
	}
}

/* bytes: of one lane, a power of two, so of its alignment too. */
static inline enum shape resolve(struct warp_state *s, const struct insn *i, unsigned bytes, bool write,
				 struct access *x)
{
	uint64_t wide[LANES], lo, hi;
	const uint64_t *a;
	uint64_t offset = (uint64_t)i->imm, odd = 0;

	if (s->w.mask != ALL_LANES || (i->flags & SPACE_MASK) > SPACE_SHARED)
		return gpul_access_slow(s, i, bytes, write, x);
	if (i->flags & FLAG_ADDRESS_32) {
		const uint32_t *narrow = U32(&s->w, i->a);

		for (unsigned l = 0; l < LANES; l++)
			wide[l] = narrow[l];
		a = wide;
	} else {
		a = U64(&s->w, i->a);
	}
	if (in_a_row(a, bytes) &&
	    span_allowed(s, i, a[0] + offset, (uint64_t)bytes * LANES, bytes, write, &x->at))
		return SHAPE_ROW;
	if (!write && all_same(a) && span_allowed(s, i, a[0] + offset, bytes, bytes, write, &x->at))
		return SHAPE_SAME;
	lo = hi = a[0];
	for (unsigned l = 0; l < LANES; l++) {
		lo = a[l] < lo ? a[l] : lo;
		hi = a[l] > hi ? a[l] : hi;
		odd |= a[l];
	}
	if ((odd | offset) & (bytes - 1) ||
	    !span_allowed(s, i, lo + offset, hi - lo + bytes, bytes, write, &x->at))
		return gpul_access_slow(s, i, bytes, write, x);
	for (unsigned l = 0; l < LANES; l++)
		x->each[l] = (uintptr_t)x->at + (a[l] - lo);
	return SHAPE_EACH;
}

/* The memory's types: a kernel may read what it likes as what it likes. */
#define MEMORY_TYPE(type) type __attribute__((may_alias))

/* Sixteen bytes as one move, where the instruction set moves them whole (AVX, LSE2). */
typedef uint64_t vector16 __attribute__((vector_size(16), may_alias));

#endif
