/* run_store.c — handlers of st. */
#include "softcuda/exec/run/run_internal.h"
#include "softcuda/exec/warp/access_internal.h"

/* Resolve the addresses of a store.  The store counts as progress of the warp, unless it is to local memory, where a polling loop may
 * keep a counter. */
static inline enum shape resolve_store(struct warp *w, const struct insn *i, unsigned bytes, struct access *x)
{
	enum shape shape;

	x->own_local = false;
	shape = resolve(state_of(w), i, bytes, true, x);
	if (!x->own_local)
		state_of(w)->stirs = true;
	return shape;
}

#define STORE(name, memory, reg) \
	HANDLER(ST_##name) \
	{ \
		typedef MEMORY_TYPE(memory) cell; \
		const reg *b = __builtin_assume_aligned(opptr(w, i->b), 64); \
		cell *at; \
		struct access x; \
		switch (resolve_store(w, i, sizeof(cell), &x)) { \
		case SHAPE_ROW: \
			at = (void *)x.at; \
			for (unsigned l = 0; l < LANES; l++) \
				at[l] = (memory)b[l]; \
			return i + 1; \
		case SHAPE_GATHER: \
			at = (void *)x.at; \
			FOR_LANES(l, w, at[x.offset[l] / (int)sizeof(cell)] = (memory)b[l]); \
			return i + 1; \
		case SHAPE_EACH: \
			EACH_ACTIVE(l, w) \
			*(cell *)(uintptr_t)x.each[l] = (memory)b[l]; \
			return i + 1; \
		default: \
			return x.stop; \
		} \
	}
GPUL_STORE_KINDS(STORE)

enum store_kind {
#define X(name, memory, reg) KIND_##name,
	GPUL_STORE_KINDS(X)
#undef X
};

static inline unsigned store_bytes(uint32_t kind)
{
	static const uint8_t bytes[] = {
#define X(name, memory, reg) sizeof(memory),
		GPUL_STORE_KINDS(X)
#undef X
	};

	return bytes[kind];
}

/* Convert one lane of a register to the type in memory. */
static inline void load_from_lane(struct warp *w, uint32_t kind, opref b, unsigned l, void *to)
{
	switch (kind) {
#define X(name, memory, reg) \
	case KIND_##name: { \
		memory v = (memory)((const reg *)opptr(w, b))[l]; \
		memcpy(to, &v, sizeof v); \
		break; \
	}
		GPUL_STORE_KINDS(X)
#undef X
	}
}

static void store_relaxed(uint8_t *to, const uint8_t *part, unsigned bytes)
{
	uint64_t v = 0;

	memcpy(&v, part, bytes);
	switch (bytes) {
	case 1:
		__atomic_store_n((MEMORY_TYPE(uint8_t) *)to, (uint8_t)v, STORE_ORDER);
		break;
	case 2:
		__atomic_store_n((MEMORY_TYPE(uint16_t) *)(void *)to, (uint16_t)v, STORE_ORDER);
		break;
	case 4:
		__atomic_store_n((MEMORY_TYPE(uint32_t) *)(void *)to, (uint32_t)v, STORE_ORDER);
		break;
	default:
		__atomic_store_n((MEMORY_TYPE(uint64_t) *)(void *)to, v, STORE_ORDER);
		break;
	}
}

/* Store n elements of one lane, from the first to the last; a vector of 16 bytes is stored by one move instruction. */
static inline void store_lane(struct warp *w, const struct insn *i, const opref *list, unsigned bytes, unsigned n, unsigned l, uint8_t *to)
{
	_Alignas(16) uint8_t part[64];

	for (unsigned e = 0; e < n; e++)
		load_from_lane(w, i->e, list[e], l, part + e * bytes);
	NEXT_ACCESS(memory_order_release);
	if (bytes * n == WHOLE_BYTES) {
		vector16 v;
		memcpy(&v, part, 16);
		*(volatile vector16 *)(void *)to = v;
	} else {
		for (unsigned e = 0; e < n; e++) {
			store_relaxed(to + e * bytes, part + e * bytes, bytes);
			NEXT_ACCESS(memory_order_release);
		}
	}
}

/* Store 16 bytes from n registers of type T for each lane in order[], beginning with the first lane of the array. */
#define STORE_WHOLE(T, n) \
	do { \
		const T *b[n]; \
		T part[n]; \
		for (unsigned e = 0; e < (n); e++) \
			b[e] = opptr(w, list[e]); \
		for (unsigned k = 0; k < n_lanes; k++) { \
			vector16 v; \
			for (unsigned e = 0; e < (n); e++) \
				part[e] = b[e][order[k]]; \
			memcpy(&v, part, 16); \
			NEXT_ACCESS(memory_order_release); \
			*(volatile vector16 *)(uintptr_t)x->each[order[k]] = v; \
		} \
	} while (0)

/* Store the vectors of the active lanes in ascending order of addresses, because NCCL needs this order (NEXT_ACCESS). */
static void store_lanes(struct warp *w, const struct insn *i, enum shape shape, struct access *x)
{
	const unsigned bytes = store_bytes(i->e), n = i->n ? i->n : 1;
	const opref *list = i->n ? OPLIST(w, i->b) : &i->b;
	const bool ascend = addresses_ascend(shape, w->mask, x);
	uint8_t order[LANES];
	unsigned n_lanes;

	shape_to_pointers(shape, bytes * n, x);
	n_lanes = lanes_by_address(w->mask, ascend, x, order);
	if (bytes * n == WHOLE_BYTES && i->e == KIND_64_64)
		STORE_WHOLE(uint64_t, 2);
	else if (bytes * n == WHOLE_BYTES && i->e == KIND_32_32)
		STORE_WHOLE(uint32_t, 4);
	else
		for (unsigned k = 0; k < n_lanes; k++)
			store_lane(w, i, list, bytes, n, order[k], (uint8_t *)(uintptr_t)x->each[order[k]]);
}

/* Store a vector of four words for each lane; the vectors of all lanes are contiguous in memory. */
static void store_quads(struct warp *w, const opref *list, volatile quad *to)
{
	const uint32_t *b[4];

	for (unsigned e = 0; e < 4; e++)
		b[e] = __builtin_assume_aligned(opptr(w, list[e]), 64);
	for (unsigned l = 0; l < LANES; l += 4) {
		quad in[4], out[4];

		for (unsigned e = 0; e < 4; e++)
			in[e] = *(const quad *)(const void *)(b[e] + l);
		transpose_quads(in, out);
		for (unsigned k = 0; k < 4; k++) {
			NEXT_ACCESS(memory_order_release);
			to[l + k] = out[k];
		}
	}
}

HANDLER(STV)
{
	struct access x;
	enum shape shape = resolve_store(w, i, store_bytes(i->e) * i->n, &x);

	if (shape == SHAPE_FAULT)
		return x.stop;
	if (shape == SHAPE_ROW && i->n == 4 && i->e == KIND_32_32 && WHOLE_BYTES == 16) {
		store_quads(w, OPLIST(w, i->b), (void *)x.at);
		return i + 1;
	}
	store_lanes(w, i, shape, &x);
	return i + 1;
}

/* Handle volatile, relaxed and release stores. */
HANDLER(STO)
{
	struct access x;
	enum shape shape = resolve(state_of(w), i, store_bytes(i->e) * (i->n ? i->n : 1), true, &x);

	if (shape == SHAPE_FAULT)
		return x.stop;
	if (i->flags & FLAG_RELEASE)
		THREAD_FENCE(memory_order_release);
	store_lanes(w, i, shape, &x);
	/* only a store to a word that the warp has not accessed recently counts as progress, because polling loops may also store */
	watch_word(state_of(w), x.each[first_lane(w->mask)]);
	return i + 1;
}
