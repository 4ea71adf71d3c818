/* access_internal.h — converts the address operand of an instruction to checked host pointers, for all 32 lanes together.
 *
 *     SHAPE_ROW     lane l accesses at[l * bytes]: one check for all lanes, then one copy
 *     SHAPE_SAME    all lanes access `at`: one check, then a broadcast
 *     SHAPE_GATHER  lane l accesses at[offset[l]]; inactive lanes have the offset of an active lane
 *     SHAPE_EACH    each[l] is the pointer of lane l, for active lanes only
 *     SHAPE_FAULT   the fault is recorded and the handler returns x->stop
 *
 * A misaligned address is a fault, as on a GPU, so the resulting pointers are aligned for their type. */
#ifndef GPULOAD_SOFTCUDA_EXEC_WARP_ACCESS_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_WARP_ACCESS_INTERNAL_H

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "softcuda/exec/warp/warp_internal.h"

enum shape { SHAPE_FAULT, SHAPE_ROW, SHAPE_SAME, SHAPE_GATHER, SHAPE_EACH };

struct access {
	uint8_t *at;
	const struct insn *stop;
	bool own_local; /* set only for stores: the lane stores to its own local memory */
	union {
		int32_t offset[LANES];
		uint64_t each[LANES];
	};
};

/* access.c: check the access of each lane, in any address space; report a fault if an access is not allowed. */
enum shape gpul_access_slow(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x);

/* access_multicast.c: handle a store that gpul_access_slow() does not allow.  If one of its addresses is a multicast address, store the
 * values of all active lanes, even with ordinary addresses, and set x->stop.  Returns false if nothing was stored, or after a fault. */
typedef uint64_t host_address_fn(struct warp_state *s, const struct insn *i, unsigned l, uint64_t at, unsigned bytes, bool write);
bool gpul_store_multicast(struct warp_state *s, const struct insn *i, unsigned bytes, host_address_fn *host_address, struct access *x);

/* Return `on` if bit l of mask is set, else `off`.  Both arguments are evaluated, so that a loop over lanes needs no branch. */
static inline uint64_t choose_by_bit(uint32_t mask, unsigned l, uint64_t on, uint64_t off)
{
	return mask >> l & 1 ? on : off;
}

/* Returns true if addresses wrap at 32 bits, even in 64-bit registers: in .shared, .local and .param, as on an H200. */
static inline bool wraps_at_32_bits(const struct insn *i)
{
	_Static_assert(SPACE_GLOBAL < SPACE_SHARED && SPACE_GENERIC < SPACE_SHARED, "the windows are last");
	return (i->flags & SPACE_MASK) >= SPACE_SHARED;
}

/* Return the constant that the instruction adds to the addresses of all lanes. */
static inline uint64_t address_offset(const struct warp_state *s, const struct insn *i)
{
	return (uint64_t)i->imm + (i->flags & FLAG_FRAME ? s->frame->local_offset : 0);
}

static inline uint64_t lane_address(const struct warp_state *s, const struct insn *i, unsigned l)
{
	uint64_t a = (i->flags & FLAG_ADDRESS_32 ? U32(&s->w, i->a)[l] : U64(&s->w, i->a)[l]) + address_offset(s, i);

	return wraps_at_32_bits(i) ? (uint32_t)a : a;
}

/* Return 64-bit values, to which the caller adds *offset to get the address of each lane; inactive lanes get that of an active lane. */
static inline const uint64_t *lane_addresses(const struct warp_state *s, const struct insn *i, uint64_t room[restrict LANES],
					     uint64_t *offset)
{
	const uint64_t *wide = U64(&s->w, i->a);
	const uint32_t *narrow = U32(&s->w, i->a), mask = s->w.mask;
	const unsigned first = first_lane(mask);
	const uint64_t add = address_offset(s, i), keep = wraps_at_32_bits(i) ? UINT32_MAX : UINT64_MAX;

	*offset = 0;
	if (i->flags & FLAG_ADDRESS_32) {
		for (unsigned l = 0; l < LANES; l++)
			room[l] = (choose_by_bit(mask, l, narrow[l], narrow[first]) + add) & keep;
	} else if (mask != ALL_LANES || wraps_at_32_bits(i)) {
		for (unsigned l = 0; l < LANES; l++)
			room[l] = (choose_by_bit(mask, l, wide[l], wide[first]) + add) & keep;
	} else {
		*offset = add;
		return wide;
	}
	return room;
}

static inline bool addresses_are_a_row(const uint64_t *a, unsigned bytes)
{
	uint64_t skew = 0, first = a[0];

	for (unsigned l = 0; l < LANES; l++)
		skew |= a[l] - first - (uint64_t)l * bytes;
	return !skew;
}

/* Returns true if a single check shows that all lanes may access [at, at + bytes); *host receives the host address of `at`. */
static inline bool span_allowed(struct warp_state *s, const struct insn *i, uint64_t at, uint64_t bytes, bool write, uint8_t **host)
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

/* Resolve 32-bit addresses in shared memory when all lanes are active, the most frequent case in inner loops.  They wrap at 32 bits. */
static inline enum shape resolve_shared(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x)
{
	const uint32_t *a = U32(&s->w, i->a), offset = (uint32_t)i->imm, first = a[0] + offset;
	const uint32_t last = s->shared_bytes - bytes; /* highest allowed offset */
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

/* Resolve addresses in local memory.  Each lane accesses its own local memory, which is at a constant distance from that of the
 * previous lane. Addresses wrap at 32 bits, even in wider registers. */
static inline enum shape resolve_local(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x)
{
	const uint64_t *wide = U64(&s->w, i->a);
	const uint32_t *narrow = U32(&s->w, i->a), mask = s->w.mask, stride = (uint32_t)s->local_stride;
	const unsigned first = first_lane(mask);
	const uint32_t offset = (uint32_t)address_offset(s, i), last = (uint32_t)s->local_bytes - bytes;
	uint32_t bad = 0;

	if (s->local_bytes < bytes || LANES * s->local_stride > INT32_MAX)
		return gpul_access_slow(s, i, bytes, write, x);
	if (i->flags & FLAG_ADDRESS_32)
		for (unsigned l = 0; l < LANES; l++)
			x->offset[l] = (int32_t)choose_by_bit(mask, l, narrow[l], narrow[first]);
	else
		for (unsigned l = 0; l < LANES; l++)
			x->offset[l] = (int32_t)choose_by_bit(mask, l, wide[l], wide[first]);
	for (unsigned l = 0; l < LANES; l++) {
		const uint32_t at = (uint32_t)x->offset[l] + offset;

		bad |= (uint32_t)(at > last) | (at & (bytes - 1));
		x->offset[l] = (int32_t)(at + l * stride);
	}
	if (bad)
		return gpul_access_slow(s, i, bytes, write, x);
	if (write)
		x->own_local = true;
	x->at = s->local;
	return SHAPE_GATHER;
}

/* Returns true if a generic address is in the lane's own local memory.  Call it before searching the memory table, which is slower. */
static inline bool in_own_local(const struct warp_state *s, unsigned l, uint64_t at, unsigned bytes)
{
	return bytes <= s->local_bytes && at - (uintptr_t)s->local - l * s->local_stride <= s->local_bytes - bytes;
}

/* Returns true if the address of each active lane is in the lane's own local memory, as with a pointer to a local variable. */
static inline bool all_in_own_local(const struct warp_state *s, const uint64_t *a, uint64_t offset, unsigned bytes, struct access *x)
{
	const uint32_t mask = s->w.mask;
	uint64_t bad = 0;

	if (LANES * s->local_stride > INT32_MAX)
		return false;
	for (unsigned l = 0; l < LANES; l++) {
		const uint64_t at = a[l] + offset;

		bad |= choose_by_bit(mask, l, in_own_local(s, l, at, bytes) ? at & (bytes - 1) : 1, 0);
		x->offset[l] = (int32_t)(at - (uintptr_t)s->local);
	}
	x->at = s->local;
	return !bad;
}

/* Resolve the address if only one lane is active, as in a block of one thread or after elect.sync. */
static inline enum shape resolve_one(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x)
{
	const unsigned l = first_lane(s->w.mask);
	const uint64_t at = lane_address(s, i, l);
	uint8_t *host;

	if (write && (i->flags & SPACE_MASK) == SPACE_LOCAL)
		x->own_local = true;
	if ((i->flags & SPACE_MASK) == SPACE_GENERIC && in_own_local(s, l, at, bytes) && !(at & (bytes - 1))) {
		if (write)
			x->own_local = true;
		x->each[l] = at;
		return SHAPE_EACH;
	}
	if (at & (bytes - 1) || !span_allowed(s, i, at, bytes, write, &host))
		return gpul_access_slow(s, i, bytes, write, x);
	x->each[l] = (uintptr_t)host + ((i->flags & SPACE_MASK) == SPACE_LOCAL ? l * s->local_stride : 0);
	return SHAPE_EACH;
}

/* Convert the addresses to offsets from the first address.  Returns false if an address differs from it by 1 GiB or more.  *lo, *hi:
 * least and greatest offset; *odd: OR of all addresses.  The code avoids 64-bit comparisons, because most CPUs have none for vectors. */
static inline bool addresses_are_near(const uint64_t *a, int32_t offset[restrict LANES], int32_t *lo, int32_t *hi, uint64_t *odd)
{
	const uint64_t first = a[0];
	uint64_t far = 0, bits = 0;
	int32_t least = 0, most = 0;

	for (unsigned l = 0; l < LANES; l++) {
		const uint64_t distance = a[l] - first;

		far |= distance + (1u << 30);
		bits |= a[l];
		offset[l] = (int32_t)distance;
	}
	for (unsigned l = 0; l < LANES; l++) {
		least = offset[l] < least ? offset[l] : least;
		most = offset[l] > most ? offset[l] : most;
	}
	*lo = least;
	*hi = most;
	*odd = bits;
	return !(far >> 31);
}

/* Returns true if the addresses are a row (SHAPE_ROW), and all lanes may access their part of it. */
static inline bool resolve_row(struct warp_state *s, const struct insn *i, const uint64_t *a, uint64_t offset, unsigned bytes, bool write,
			       struct access *x)
{
	return !((a[0] + offset) & (bytes - 1)) && addresses_are_a_row(a, bytes) &&
	       span_allowed(s, i, a[0] + offset, (uint64_t)bytes * LANES, write, &x->at);
}

/* Like resolve_any(), for 64-bit addresses in the range that the instruction accessed last; returns false if one is outside, or without
 * AVX-512.  Comparing each lane with the range takes fewer vector instructions than computing the least and the greatest address. */
static inline bool resolve_in_last_range(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x,
					 enum shape *shape)
{
#if defined(__AVX512F__)
	const struct range_slot *k = &s->cache->slot[i->src % RANGE_SLOTS];
	const uint32_t mask = s->w.mask;
	const uint64_t *a = U64(&s->w, i->a), room = k->end - k->base, add = address_offset(s, i), first = a[first_lane(mask)];
	const __m512i base = _mm512_set1_epi64((long long)(k->base - add)), last = _mm512_set1_epi64((long long)(room - bytes));
	const __m512i start = _mm512_set1_epi64((long long)first);
	__m512i bits = _mm512_set1_epi64((long long)add), differ = _mm512_setzero_si512();
	__mmask8 outside = 0;

	if (room < bytes || room > INT32_MAX || !slot_is_valid(s->cache, k, write))
		return false;
	for (unsigned l = 0; l < LANES; l += 8) {
		const __m512i at = _mm512_mask_loadu_epi64(start, (__mmask8)(mask >> l), a + l), from_first = _mm512_sub_epi64(at, start);

		outside |= _mm512_cmpgt_epu64_mask(_mm512_sub_epi64(at, base), last);
		bits = _mm512_or_si512(bits, at);
		differ = _mm512_or_si512(differ, from_first);
		_mm256_storeu_si256((__m256i *)(void *)(x->offset + l), _mm512_cvtepi64_epi32(from_first));
	}
	if (outside || _mm512_test_epi64_mask(bits, _mm512_set1_epi64(bytes - 1)))
		return false;
	x->at = (uint8_t *)(uintptr_t)(first + add);
	*shape = write || _mm512_test_epi64_mask(differ, differ) ? SHAPE_GATHER : SHAPE_SAME;
	return true;
#else
	(void)s, (void)i, (void)bytes, (void)write, (void)x, (void)shape;
	return false;
#endif
}

/* Resolve any addresses.  bytes: size and alignment of one lane's access, a power of two. */
static inline enum shape resolve_any(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x)
{
	uint64_t room[LANES], odd, offset;
	const unsigned first = first_lane(s->w.mask);
	const uint64_t *a = lane_addresses(s, i, room, &offset);
	int32_t lo, hi;
	enum shape shape;

	if ((i->flags & SPACE_MASK) == SPACE_GENERIC && in_own_local(s, first, a[first] + offset, bytes) &&
	    all_in_own_local(s, a, offset, bytes, x)) {
		if (write)
			x->own_local = true;
		return SHAPE_GATHER;
	}
	if ((i->flags & (SPACE_MASK | FLAG_ADDRESS_32)) != SPACE_GLOBAL && s->w.mask == ALL_LANES &&
	    resolve_row(s, i, a, offset, bytes, write, x))
		return SHAPE_ROW;
	if ((i->flags & SPACE_MASK) == SPACE_GENERIC && !(i->flags & FLAG_ADDRESS_32) &&
	    resolve_in_last_range(s, i, bytes, write, x, &shape))
		return shape;
	if (!addresses_are_near(a, x->offset, &lo, &hi, &odd) || (odd | offset) & (bytes - 1) ||
	    !span_allowed(s, i, a[0] + (uint64_t)(int64_t)lo + offset, (uint64_t)(hi - lo) + bytes, write, &x->at))
		return gpul_access_slow(s, i, bytes, write, x);
	x->at -= lo; /* from here on, x->at is the host address of lane 0's access, to which offset[] is relative */
	return lo == hi && !write ? SHAPE_SAME : SHAPE_GATHER;
}

static inline enum shape resolve(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x)
{
	enum shape shape;

	if ((i->flags & (SPACE_MASK | FLAG_ADDRESS_32)) == (SPACE_SHARED | FLAG_ADDRESS_32) && s->w.mask == ALL_LANES)
		return resolve_shared(s, i, bytes, write, x);
	/* the most frequent case comes first: a whole warp accesses a row of global memory by 64-bit addresses */
	if ((i->flags & (SPACE_MASK | FLAG_ADDRESS_32)) == SPACE_GLOBAL && s->w.mask == ALL_LANES &&
	    resolve_row(s, i, U64(&s->w, i->a), (uint64_t)i->imm, bytes, write, x))
		return SHAPE_ROW;
	if (!(s->w.mask & (s->w.mask - 1)))
		return resolve_one(s, i, bytes, write, x);
	if ((i->flags & SPACE_MASK) == SPACE_LOCAL)
		return resolve_local(s, i, bytes, write, x);
	if ((i->flags & (SPACE_MASK | FLAG_ADDRESS_32)) == SPACE_GLOBAL && resolve_in_last_range(s, i, bytes, write, x, &shape))
		return shape;
	return resolve_any(s, i, bytes, write, x);
}

/* Convert the result of resolve(), which must not be SHAPE_FAULT, to one pointer per lane, in x->each. */
static inline void shape_to_pointers(enum shape shape, unsigned bytes, struct access *x)
{
	const struct access found = *x;

	if (shape == SHAPE_EACH)
		return;
	for (unsigned l = 0; l < LANES; l++)
		x->each[l] = (uintptr_t)found.at + (shape == SHAPE_ROW ? l * bytes : shape == SHAPE_SAME ? 0 : (uint64_t)found.offset[l]);
}

/* Returns true if the addresses do not descend from lane to lane.  Call it before shape_to_pointers(). */
static inline bool addresses_ascend(enum shape shape, uint32_t mask, const struct access *x)
{
	uint64_t before = 0;
	bool descend = false;

	if (shape == SHAPE_GATHER)
		for (unsigned l = 1; l < LANES; l++)
			descend |= x->offset[l] < x->offset[l - 1];
	if (shape == SHAPE_EACH)
		for (uint32_t m = mask; m; m &= m - 1) {
			descend |= x->each[first_lane(m)] < before;
			before = x->each[first_lane(m)];
		}
	return !descend;
}

/* Set order[] to the active lanes, in ascending order of their addresses x->each, and return their number.  ascend: result of
 * addresses_ascend(). */
static inline unsigned lanes_by_address(uint32_t mask, bool ascend, const struct access *x, uint8_t order[LANES])
{
	static const uint8_t all[LANES] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
					    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };
	unsigned n = 0;

	if (ascend && mask == ALL_LANES) {
		memcpy(order, all, LANES);
		return LANES;
	}
	for (uint32_t m = mask; m; m &= m - 1) {
		const unsigned l = first_lane(m);
		unsigned k = n++;

		for (; k && x->each[order[k - 1]] > x->each[l]; k--)
			order[k] = order[k - 1];
		order[k] = (uint8_t)l;
	}
	return n;
}

/* Resolve the addresses to one pointer per active lane, in x->each.  Returns true after a fault. */
static inline bool resolve_each(struct warp_state *s, const struct insn *i, unsigned bytes, bool write, struct access *x)
{
	enum shape shape = resolve(s, i, bytes, write, x);

	if (shape != SHAPE_FAULT)
		shape_to_pointers(shape, bytes, x);
	return shape == SHAPE_FAULT;
}

#endif
