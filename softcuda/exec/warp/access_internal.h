/* access_internal.h — from an instruction's address operand to checked host pointers, 32 lanes at once.
 *
 *     SHAPE_ROW     lane l's bytes are at[l * bytes]: one check of both ends, then one copy
 *     SHAPE_SAME    all lanes want the bytes at `at`: one check, then a broadcast
 *     SHAPE_GATHER  lane l's bytes are at[offset[l]]; lanes that do not run have somebody's offset
 *     SHAPE_EACH    each[l] is the pointer of lane l, for lanes that run
 *     SHAPE_FAULT   the fault is recorded and x->stop is what the handler returns
 *
 * Addresses of any misaligned lane fault, as on a GPU; so the pointers are aligned for their type. */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_ACCESS_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_ACCESS_INTERNAL_H

#include "softcuda/exec/warp/warp_internal.h"

enum shape { SHAPE_FAULT, SHAPE_ROW, SHAPE_SAME, SHAPE_GATHER, SHAPE_EACH };

struct access {
	uint8_t *at;
	const struct insn *stop;
	union {
		int32_t offset[LANES];
		uint64_t each[LANES];
	};
};

/* access.c: each lane by itself, in any space, with the fault's text if it comes to that. */
enum shape gpul_access_slow(struct warp_state *s, const struct insn *i, unsigned bytes, bool write,
			    struct access *x);

/* Both values are there to be read: the loop around needs no branch. */
static inline uint64_t pick(uint32_t mask, unsigned l, uint64_t on, uint64_t off)
{
	return mask >> l & 1 ? on : off;
}

/* All lanes' addresses as 64 bits; a lane that does not run has the address of one that does. */
static inline const uint64_t *lane_addresses(const struct warp_state *s, const struct insn *i,
					     uint64_t room[restrict LANES])
{
	const uint64_t *wide = U64(&s->w, i->a);
	const uint32_t *narrow = U32(&s->w, i->a), mask = s->w.mask;
	unsigned first = first_lane(mask);

	if (i->flags & FLAG_ADDRESS_32)
		for (unsigned l = 0; l < LANES; l++)
			room[l] = pick(mask, l, narrow[l], narrow[first]);
	else if (mask != ALL_LANES)
		for (unsigned l = 0; l < LANES; l++)
			room[l] = pick(mask, l, wide[l], wide[first]);
	else
		return wide;
	return room;
}

static inline bool in_a_row(const uint64_t *a, unsigned bytes)
{
	uint64_t skew = 0, first = a[0];

	for (unsigned l = 0; l < LANES; l++)
		skew |= a[l] - first - (uint64_t)l * bytes;
	return !skew;
}

/* [at, at + bytes) may be touched, in a space where that is one question; *host is where it lies. */
static inline bool span_allowed(struct warp_state *s, const struct insn *i, uint64_t at, uint64_t bytes, bool write,
				uint8_t **host)
{
	switch (i->flags & SPACE_MASK) {
	case SPACE_GLOBAL:
	case SPACE_GENERIC:
		*host = (uint8_t *)(uintptr_t)at;
		return range_covers(s->cache, i->src, at, bytes, write);
	case SPACE_SHARED:
		*host = s->shared + at;
		return at <= s->shared_bytes && bytes <= s->shared_bytes - at;
	case SPACE_LOCAL:
		*host = s->local + at;
		return at <= s->local_bytes && bytes <= s->local_bytes - at;
	default:
		return false;
	}
}

/* Shared memory by 32-bit addresses, the whole warp: what inner loops do.  Offsets wrap at 32 bits. */
static inline enum shape resolve_shared(struct warp_state *s, const struct insn *i, unsigned bytes, bool write,
					struct access *x)
{
	const uint32_t *a = U32(&s->w, i->a), offset = (uint32_t)i->imm, first = a[0] + offset;
	const uint32_t last = s->shared_bytes - bytes;  /* highest offset allowed */
	uint32_t bad = 0, skew = 0, differ = 0;

	if (s->shared_bytes < bytes)
		return gpul_access_slow(s, i, bytes, write, x);
	for (unsigned l = 0; l < LANES; l++) {
		uint32_t at = a[l] + offset;

		bad |= (uint32_t)(at > last) | (at & (bytes - 1));
		skew |= at - first - l * bytes;
		differ |= at ^ first;
		x->offset[l] = (int32_t)at;
	}
	if (bad)
		return gpul_access_slow(s, i, bytes, write, x);
	x->at = s->shared;
	if (skew && (differ || write))
		return SHAPE_GATHER;
	x->at += first;
	return skew ? SHAPE_SAME : SHAPE_ROW;
}

/* A generic address in the lane's own local memory: asked first, since such a one is in no table, which takes long to
 * find out. */
static inline bool in_own_local(const struct warp_state *s, unsigned l, uint64_t at, unsigned bytes)
{
	return bytes <= s->local_bytes && at - (uintptr_t)s->local - l * s->local_stride <= s->local_bytes - bytes;
}

/* All lanes that run do that: pointers to a thread's variables, as functions get them. */
static inline bool all_in_own_local(const struct warp_state *s, const uint64_t *a, uint64_t offset, unsigned bytes,
				    struct access *x)
{
	const uint32_t mask = s->w.mask;
	uint64_t bad = 0;

	if (LANES * s->local_stride > INT32_MAX)
		return false;
	for (unsigned l = 0; l < LANES; l++) {
		const uint64_t at = a[l] + offset;

		bad |= pick(mask, l, in_own_local(s, l, at, bytes) ? at & (bytes - 1) : 1, 0);
		x->offset[l] = (int32_t)(at - (uintptr_t)s->local);
	}
	x->at = s->local;
	return !bad;
}

/* One lane runs: a thread by itself, or the one that its warp elected. */
static inline enum shape resolve_one(struct warp_state *s, const struct insn *i, unsigned bytes, bool write,
				     struct access *x)
{
	const unsigned l = first_lane(s->w.mask);
	uint64_t at = (i->flags & FLAG_ADDRESS_32 ? U32(&s->w, i->a)[l] : U64(&s->w, i->a)[l]) + (uint64_t)i->imm;
	uint8_t *host;

	if (i->flags & FLAG_FRAME)
		at += s->frame->local_offset;
	if ((i->flags & SPACE_MASK) == SPACE_GENERIC && in_own_local(s, l, at, bytes) && !(at & (bytes - 1))) {
		x->each[l] = at;
		return SHAPE_EACH;
	}
	if (at & (bytes - 1) || !span_allowed(s, i, at, bytes, write, &host))
		return gpul_access_slow(s, i, bytes, write, x);
	x->each[l] = (uintptr_t)host + ((i->flags & SPACE_MASK) == SPACE_LOCAL ? l * s->local_stride : 0);
	return SHAPE_EACH;
}

/* bytes: of one lane, a power of two, so of its alignment too. */
static inline enum shape resolve_any(struct warp_state *s, const struct insn *i, unsigned bytes, bool write,
				     struct access *x)
{
	uint64_t room[LANES], stride = 0, lo, hi, odd = 0, offset = (uint64_t)i->imm;
	const unsigned first = first_lane(s->w.mask);
	const uint64_t *a = lane_addresses(s, i, room);

	if (i->flags & FLAG_FRAME)
		offset += s->frame->local_offset;
	if ((i->flags & SPACE_MASK) == SPACE_GENERIC && in_own_local(s, first, a[first] + offset, bytes) &&
	    all_in_own_local(s, a, offset, bytes, x))
		return SHAPE_GATHER;
	if ((i->flags & SPACE_MASK) == SPACE_LOCAL)
		stride = s->local_stride;
	else if (s->w.mask == ALL_LANES && !((a[0] + offset) & (bytes - 1)) && in_a_row(a, bytes) &&
		 span_allowed(s, i, a[0] + offset, (uint64_t)bytes * LANES, write, &x->at))
		return SHAPE_ROW;
	lo = hi = a[0];
	for (unsigned l = 0; l < LANES; l++) {
		lo = a[l] < lo ? a[l] : lo;
		hi = a[l] > hi ? a[l] : hi;
		odd |= a[l];
	}
	if ((odd | offset) & (bytes - 1) || hi - lo > INT32_MAX / 2 ||
	    !span_allowed(s, i, lo + offset, hi - lo + bytes, write, &x->at))
		return gpul_access_slow(s, i, bytes, write, x);
	if (lo == hi && !stride && !write)
		return SHAPE_SAME;
	for (unsigned l = 0; l < LANES; l++)
		x->offset[l] = (int32_t)(a[l] - lo);
	if (stride)
		for (unsigned l = 0; l < LANES; l++)
			x->offset[l] += (int32_t)(l * stride);
	return SHAPE_GATHER;
}

static inline enum shape resolve(struct warp_state *s, const struct insn *i, unsigned bytes, bool write,
				 struct access *x)
{
	if ((i->flags & (SPACE_MASK | FLAG_ADDRESS_32)) == (SPACE_SHARED | FLAG_ADDRESS_32) && s->w.mask == ALL_LANES)
		return resolve_shared(s, i, bytes, write, x);
	if (!(s->w.mask & (s->w.mask - 1)))
		return resolve_one(s, i, bytes, write, x);
	return resolve_any(s, i, bytes, write, x);
}

/* Any shape but a fault becomes pointers. */
static inline void pointers(enum shape shape, unsigned bytes, struct access *x)
{
	const struct access found = *x;

	if (shape == SHAPE_EACH)
		return;
	for (unsigned l = 0; l < LANES; l++)
		x->each[l] = (uintptr_t)found.at + (shape == SHAPE_ROW ? l * bytes : shape == SHAPE_SAME ? 0
						    : (uint64_t)found.offset[l]);
}

/* True: a fault. */
static inline bool resolve_each(struct warp_state *s, const struct insn *i, unsigned bytes, bool write,
				struct access *x)
{
	enum shape shape = resolve(s, i, bytes, write, x);

	if (shape != SHAPE_FAULT)
		pointers(shape, bytes, x);
	return shape == SHAPE_FAULT;
}

#endif
