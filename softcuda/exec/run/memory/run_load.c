/* run_load.c — handlers of ld and prefetch. */
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/warp/access_internal.h"

/* Load the word at address (at + offset[l]) for each lane l.  Intrinsics are used because compilers generate no gather instruction;
 * it is faster here, because the offsets are already in memory. */
static inline void gather_32(uint32_t to[LANES], const uint8_t *at, const int32_t offset[LANES])
{
#if defined(__AVX512F__)
	for (unsigned l = 0; l < LANES; l += 16)
		_mm512_storeu_si512(to + l, _mm512_i32gather_epi32(_mm512_loadu_si512(offset + l), at, 1));
#elif defined(__AVX2__)
	for (unsigned l = 0; l < LANES; l += 8)
		_mm256_storeu_si256((__m256i *)(void *)(to + l),
				    _mm256_i32gather_epi32((const int *)(const void *)at,
							   _mm256_loadu_si256((const __m256i *)(const void *)(offset + l)), 1));
#else
	for (unsigned l = 0; l < LANES; l++)
		to[l] = *(const uint32_t __attribute__((may_alias)) *)(const void *)(at + offset[l]);
#endif
}

static inline void gather_64(uint64_t to[LANES], const uint8_t *at, const int32_t offset[LANES])
{
#if defined(__AVX512F__)
	for (unsigned l = 0; l < LANES; l += 8)
		_mm512_storeu_si512(to + l, _mm512_i32gather_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(offset + l)), at, 1));
#elif defined(__AVX2__)
	for (unsigned l = 0; l < LANES; l += 4)
		_mm256_storeu_si256((__m256i *)(void *)(to + l),
				    _mm256_i32gather_epi64((const long long *)(const void *)at,
							   _mm_loadu_si128((const __m128i *)(const void *)(offset + l)), 1));
#else
	for (unsigned l = 0; l < LANES; l++)
		to[l] = *(const uint64_t __attribute__((may_alias)) *)(const void *)(at + offset[l]);
#endif
}

/* Load the active lanes of register d.  One macro per kind of addresses (enum shape, access_internal.h); memory: type in memory. */
#define LOAD_SAME(w, d, memory, at) \
	do { \
		const memory same_ = *(const MEMORY_TYPE(memory) *)(const void *)(at); \
		SET_LANES(w, d, same_); \
	} while (0)
#define LOAD_GATHER(w, d, memory, at, offset) \
	do { \
		if (sizeof(memory) == 4) { \
			_Alignas(64) uint32_t raw_[LANES]; \
			gather_32(raw_, at, offset); \
			SET_LANES(w, d, (memory)raw_[l]); \
		} else if (sizeof(memory) == 8) { \
			_Alignas(64) uint64_t raw_[LANES]; \
			gather_64(raw_, at, offset); \
			SET_LANES(w, d, (memory)raw_[l]); \
		} else { \
			_Alignas(64) memory raw_[LANES]; \
			for (unsigned l = 0; l < LANES; l++) \
				raw_[l] = *(const MEMORY_TYPE(memory) *)(const void *)((at) + (offset)[l]); \
			SET_LANES(w, d, raw_[l]); \
		} \
	} while (0)

#define LOAD(name, memory, reg) \
	HANDLER(LD_##name) \
	{ \
		typedef MEMORY_TYPE(memory) cell; \
		reg *d = __builtin_assume_aligned(opptr(w, i->d), 64); \
		const cell *row; \
		struct access x; \
		switch (resolve(state_of(w), i, sizeof(cell), false, &x)) { \
		case SHAPE_ROW: \
			row = (const void *)x.at; \
			for (unsigned l = 0; l < LANES; l++) \
				d[l] = row[l]; \
			return i + 1; \
		case SHAPE_SAME: \
			LOAD_SAME(w, d, memory, x.at); \
			return i + 1; \
		case SHAPE_GATHER: \
			LOAD_GATHER(w, d, memory, x.at, x.offset); \
			return i + 1; \
		case SHAPE_EACH: \
			EACH_ACTIVE(l, w) \
			d[l] = *(const cell *)(uintptr_t)x.each[l]; \
			return i + 1; \
		default: \
			return x.stop; \
		} \
	}
GPUL_LOAD_KINDS(LOAD)

static inline unsigned load_bytes(uint32_t kind)
{
	static const uint8_t bytes[] = {
#define X(name, memory, reg) sizeof(memory),
		GPUL_LOAD_KINDS(X)
#undef X
	};

	return bytes[kind];
}

/* Copy one element from memory to one lane of a register. */
static inline void store_to_lane(struct warp *w, uint32_t kind, opref d, unsigned l, const void *from)
{
	switch (kind) {
#define X(name, memory, reg) \
	case KIND_##name: \
		((reg *)opptr(w, d))[l] = *(const MEMORY_TYPE(memory) *)from; \
		break;
		GPUL_LOAD_KINDS(X)
#undef X
	}
}

/* Load element e of each lane's vector; x->at is the address of lane 0's vector; with SHAPE_SAME, all lanes load that vector. */
static void load_element(struct warp *w, const struct insn *i, enum shape shape, const struct access *x, unsigned e)
{
	const opref to = OPLIST(w, i->d)[e];
	const unsigned n = i->n;

	switch (i->e) {
#define X(name, memory, reg) \
	case KIND_##name: { \
		const MEMORY_TYPE(memory) *from = (const void *)x->at; \
		reg *d = __builtin_assume_aligned(opptr(w, to), 64); \
		if (shape == SHAPE_SAME) \
			LOAD_SAME(w, d, memory, x->at + e * sizeof(memory)); \
		else if (shape == SHAPE_GATHER) \
			LOAD_GATHER(w, d, memory, x->at + e * sizeof(memory), x->offset); \
		else if (n == 2) \
			for (unsigned l = 0; l < LANES; l++) \
				d[l] = from[l * 2 + e]; \
		else if (n == 4) \
			for (unsigned l = 0; l < LANES; l++) \
				d[l] = from[l * 4 + e]; \
		else \
			for (unsigned l = 0; l < LANES; l++) \
				d[l] = from[l * n + e]; \
		break; \
	}
		GPUL_LOAD_KINDS(X)
#undef X
	}
}

/* Load a vector of four words for each lane; the vectors of all lanes are contiguous in memory. */
static void load_quads(struct warp *w, const opref *list, const quad *from)
{
	uint32_t *d[4];

	for (unsigned e = 0; e < 4; e++)
		d[e] = __builtin_assume_aligned(opptr(w, list[e]), 64);
	for (unsigned l = 0; l < LANES; l += 4) {
		const quad in[4] = { from[l], from[l + 1], from[l + 2], from[l + 3] };
		quad out[4];

		transpose_quads(in, out);
		for (unsigned e = 0; e < 4; e++)
			*(quad *)(void *)(d[e] + l) = out[e];
	}
}

HANDLER(LDV)
{
	const opref *list = OPLIST(w, i->d);
	unsigned bytes = load_bytes(i->e);
	struct access x;
	enum shape shape = resolve(state_of(w), i, bytes * i->n, false, &x);

	if (shape == SHAPE_FAULT)
		return x.stop;
	if (shape == SHAPE_ROW && i->n == 4 && i->e == KIND_U32_32) {
		load_quads(w, list, (const void *)x.at);
		return i + 1;
	}
	for (unsigned e = 0; e < i->n; e++) {
		if (shape != SHAPE_EACH)
			load_element(w, i, shape, &x, e);
		else
			EACH_ACTIVE(l, w)
		store_to_lane(w, i->e, list[e], l, (const uint8_t *)(uintptr_t)x.each[l] + e * bytes);
	}
	return i + 1;
}

/* ---- ordered loads: volatile, relaxed, acquire ------------------------------------------------- */

static void copy_relaxed(void *to, const void *from, unsigned bytes)
{
	switch (bytes) {
	case 1: {
		uint8_t v = __atomic_load_n((const MEMORY_TYPE(uint8_t) *)from, LOAD_ORDER);
		memcpy(to, &v, 1);
		break;
	}
	case 2: {
		uint16_t v = __atomic_load_n((const MEMORY_TYPE(uint16_t) *)from, LOAD_ORDER);
		memcpy(to, &v, 2);
		break;
	}
	case 4: {
		uint32_t v = __atomic_load_n((const MEMORY_TYPE(uint32_t) *)from, LOAD_ORDER);
		memcpy(to, &v, 4);
		break;
	}
	default: {
		uint64_t v = __atomic_load_n((const MEMORY_TYPE(uint64_t) *)from, LOAD_ORDER);
		memcpy(to, &v, 8);
		break;
	}
	}
}

/* Load n elements of one lane, from the last to the first; a vector of 16 bytes is loaded by one move instruction. */
static inline void load_lane(struct warp *w, const struct insn *i, const opref *list, unsigned bytes, unsigned n, unsigned l,
			     const uint8_t *from)
{
	_Alignas(16) uint8_t part[64];

	if (bytes * n == WHOLE_BYTES) {
		vector16 v = *(const volatile vector16 *)(const void *)from;
		memcpy(part, &v, 16);
	} else {
		for (unsigned e = n; e--;) {
			copy_relaxed(part + e * bytes, from + e * bytes, bytes);
			NEXT_ACCESS(memory_order_acquire);
		}
	}
	for (unsigned e = 0; e < n; e++)
		store_to_lane(w, i->e, list[e], l, part + e * bytes);
	NEXT_ACCESS(memory_order_acquire);
}

/* Load 16 bytes into n registers of type T for each lane in order[], beginning with the last lane of the array. */
#define LOAD_WHOLE(T, n) \
	do { \
		T *d[n], part[n]; \
		for (unsigned e = 0; e < (n); e++) \
			d[e] = opptr(w, list[e]); \
		for (unsigned k = n_lanes; k--;) { \
			vector16 v = *(const volatile vector16 *)(uintptr_t)x.each[order[k]]; \
			NEXT_ACCESS(memory_order_acquire); \
			memcpy(part, &v, 16); \
			for (unsigned e = 0; e < (n); e++) \
				d[e][order[k]] = part[e]; \
		} \
	} while (0)

/* Shorten the time slice of a warp that may be polling the word at this address. */
static inline void count_poll(struct warp_state *s, uint64_t at)
{
	const bool again = at == s->polled, several = s->w.mask & (s->w.mask - 1);

	s->polled = at;
	watch_word(s, at);
	s->repolls |= again;
	s->back_edges -= again && several ? WARP_POLL_COST : POLL_COST;
}

/* Return a hash of the registers of one lane. */
static inline uint64_t lane_digest(const struct warp *w, uint32_t kind, const opref *list, unsigned n, unsigned l)
{
	uint64_t digest = 0;

	for (unsigned e = 0; e < n; e++) {
		uint64_t v = 0;

		switch (kind) {
#define X(name, memory, reg) \
	case KIND_##name: \
		memcpy(&v, (const reg *)opptr(w, list[e]) + l, sizeof(reg)); \
		break;
			GPUL_LOAD_KINDS(X)
#undef X
		}
		digest = digest * 0x9e3779b97f4a7c15u + v;
	}
	return digest;
}

/* Ordered load to register d, or, if i->n is not 0, to a list of i->n registers.  Higher addresses are loaded first: see NEXT_ACCESS. */
HANDLER(LDO)
{
	struct warp_state *s = state_of(w);
	const unsigned bytes = load_bytes(i->e), n = i->n ? i->n : 1;
	const opref *list = i->n ? OPLIST(w, i->d) : &i->d;
	uint8_t order[LANES];
	unsigned n_lanes;
	struct access x;
	enum shape shape;
	uint64_t before;
	bool ascend;

	s->block->polls = true;
	shape = resolve(s, i, bytes * n, false, &x);
	if (shape == SHAPE_FAULT)
		return x.stop;
	ascend = addresses_ascend(shape, w->mask, &x);
	shape_to_pointers(shape, bytes * n, &x);
	count_poll(s, x.each[first_lane(w->mask)]);
	before = lane_digest(w, i->e, list, n, first_lane(w->mask));
	n_lanes = lanes_by_address(w->mask, ascend, &x, order);
	if (bytes * n == WHOLE_BYTES && i->e == KIND_U64_64)
		LOAD_WHOLE(uint64_t, 2);
	else if (bytes * n == WHOLE_BYTES && i->e == KIND_U32_32)
		LOAD_WHOLE(uint32_t, 4);
	else
		for (unsigned k = n_lanes; k--;)
			load_lane(w, i, list, bytes, n, order[k], (const uint8_t *)(uintptr_t)x.each[order[k]]);
	if (i->flags & FLAG_ACQUIRE)
		THREAD_FENCE(memory_order_acquire);
	s->stirs |= lane_digest(w, i->e, list, n, first_lane(w->mask)) != before;
	return i + 1;
}

/* Load a kernel parameter by its name, so that all lanes load from the same address.  Decoding has checked that the offset is valid. */
HANDLER(LD_PARAM)
{
	const uint8_t *from = state_of(w)->params + i->imm;
	unsigned bytes = load_bytes(i->e), n = i->n ? i->n : 1;
	const opref *list = i->n ? OPLIST(w, i->d) : &i->d;

	for (unsigned e = 0; e < n; e++) {
		switch (i->e) {
#define X(name, memory, reg) \
	case KIND_##name: { \
		reg v = *(const MEMORY_TYPE(memory) *)(const void *)(from + e * bytes); \
		reg *d = __builtin_assume_aligned(opptr(w, list[e]), 64); \
		SET_LANES(w, d, v); \
		break; \
	}
			GPUL_LOAD_KINDS(X)
#undef X
		}
	}
	return i + 1;
}

/* Prefetch hints have no effect; the address of a prefetch may even be invalid. */
HANDLER(PREFETCH)
{
	(void)w;
	return i + 1;
}
