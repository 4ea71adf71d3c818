/* run_load.c — ld in all its forms. */
#include "softcuda/exec/access_internal.h"

#define LOAD(name, memory, reg)                                                             \
	HANDLER(LD_##name)                                                                  \
	{                                                                                   \
		typedef MEMORY_TYPE(memory) cell;                                           \
		reg *d = __builtin_assume_aligned(opptr(w, i->d), 64);                      \
		_Alignas(64) reg value[LANES];                                                           \
		const cell *at;                                                             \
		struct access x;                                                            \
		switch (resolve(state_of(w), i, sizeof(cell), false, &x)) {                 \
		case SHAPE_ROW:                                                             \
			at = (const void *)x.at;                                            \
			for (unsigned l = 0; l < LANES; l++)                                \
				d[l] = at[l];                                               \
			return i + 1;                                                       \
		case SHAPE_SAME:                                                            \
			value[0] = *(const cell *)(const void *)x.at;                       \
			EACH_LANE(w, d, value[0]);                                          \
			return i + 1;                                                       \
		case SHAPE_GATHER:                                                          \
			if (sizeof(cell) == 4) {                                            \
				_Alignas(64) uint32_t raw[LANES];                                     \
				gather_32(raw, x.at, x.offset);                             \
				EACH_LANE(w, d, (memory)raw[l]);                            \
			} else if (sizeof(cell) == 8) {                                     \
				_Alignas(64) uint64_t raw[LANES];                                     \
				gather_64(raw, x.at, x.offset);                             \
				EACH_LANE(w, d, (memory)raw[l]);                            \
			} else {                                                            \
				for (unsigned l = 0; l < LANES; l++)                        \
					value[l] = *(const cell *)(const void *)(x.at + x.offset[l]); \
				EACH_LANE(w, d, value[l]);                                  \
			}                                                                   \
			return i + 1;                                                       \
		case SHAPE_EACH:                                                            \
			EACH_ACTIVE(l, w)                                                   \
				d[l] = *(const cell *)(uintptr_t)x.each[l];                 \
			return i + 1;                                                       \
		default:                                                                    \
			return x.stop;                                                      \
		}                                                                           \
	}
GPUL_LOAD_KINDS(LOAD)

enum load_kind {
#define X(name, memory, reg) KIND_##name,
	GPUL_LOAD_KINDS(X)
#undef X
};

static inline unsigned kind_bytes(uint32_t kind)
{
	static const uint8_t bytes[] = {
#define X(name, memory, reg) sizeof(memory),
		GPUL_LOAD_KINDS(X)
#undef X
	};

	return bytes[kind];
}

/* One element from memory into one lane of a register. */
static inline void put(struct warp *w, uint32_t kind, opref d, unsigned l, const void *from)
{
	switch (kind) {
#define X(name, memory, reg)                                                                \
	case KIND_##name:                                                                   \
		((reg *)opptr(w, d))[l] = *(const MEMORY_TYPE(memory) *)from;               \
		break;
		GPUL_LOAD_KINDS(X)
#undef X
	}
}

/* A vector of n elements: element by element where its lanes' vectors stand in a row. */
#define LOAD_ELEMENTS(name, memory, reg)                                                    \
	case KIND_##name: {                                                                 \
		const MEMORY_TYPE(memory) *from = (const void *)at;                         \
		reg *d = __builtin_assume_aligned(opptr(w, list[e]), 64);                   \
		for (unsigned l = 0; l < LANES; l++)                                        \
			d[l] = from[l * i->n + e];                                          \
		break;                                                                      \
	}

static void load_row(struct warp *w, const struct insn *i, const uint8_t *at)
{
	const opref *list = OPLIST(w, i->d);

	for (unsigned e = 0; e < i->n; e++)
		switch (i->e) {
			GPUL_LOAD_KINDS(LOAD_ELEMENTS)
		}
}

HANDLER(LDV)
{
	const opref *list = OPLIST(w, i->d);
	unsigned bytes = kind_bytes(i->e);
	struct access x;

	if (w->mask == ALL_LANES && !(i->flags & FLAG_FRAME) &&
	    resolve(state_of(w), i, bytes * i->n, false, &x) == SHAPE_ROW) {
		load_row(w, i, x.at);
		return i + 1;
	}
	if (resolve_each(state_of(w), i, bytes * i->n, false, &x))
		return x.stop;
	for (unsigned e = 0; e < i->n; e++)
		EACH_ACTIVE(l, w)
			put(w, i->e, list[e], l, (const uint8_t *)(uintptr_t)x.each[l] + e * bytes);
	return i + 1;
}

/* ---- ordered loads: volatile, relaxed, acquire ------------------------------------------------- */

static void copy_relaxed(void *to, const void *from, unsigned bytes)
{
	switch (bytes) {
	case 1: {
		uint8_t v = __atomic_load_n((const MEMORY_TYPE(uint8_t) *)from, __ATOMIC_RELAXED);
		memcpy(to, &v, 1);
		break;
	}
	case 2: {
		uint16_t v = __atomic_load_n((const MEMORY_TYPE(uint16_t) *)from, __ATOMIC_RELAXED);
		memcpy(to, &v, 2);
		break;
	}
	case 4: {
		uint32_t v = __atomic_load_n((const MEMORY_TYPE(uint32_t) *)from, __ATOMIC_RELAXED);
		memcpy(to, &v, 4);
		break;
	}
	default: {
		uint64_t v = __atomic_load_n((const MEMORY_TYPE(uint64_t) *)from, __ATOMIC_RELAXED);
		memcpy(to, &v, 8);
		break;
	}
	}
}

/* d is one register, or a list of i->n; each element is one access, 16 bytes in all are one move. */
HANDLER(LDO)
{
	struct warp_state *s = state_of(w);
	unsigned bytes = kind_bytes(i->e), n = i->n ? i->n : 1;
	const opref *list = i->n ? OPLIST(w, i->d) : &i->d;
	struct access x;

	s->block->polls = true;
	s->back_edges -= POLL_COST;
	if (resolve_each(s, i, bytes * n, false, &x))
		return x.stop;
	EACH_ACTIVE(l, w) {
		_Alignas(16) uint8_t part[64];
		const uint8_t *from = (const uint8_t *)(uintptr_t)x.each[l];

		if (bytes * n == 16) {
			vector16 v = *(const volatile vector16 *)(const void *)from;
			memcpy(part, &v, 16);
		} else {
			for (unsigned e = 0; e < n; e++)
				copy_relaxed(part + e * bytes, from + e * bytes, bytes);
		}
		for (unsigned e = 0; e < n; e++)
			put(w, i->e, list[e], l, part + e * bytes);
	}
	if (i->flags & FLAG_ACQUIRE)
		THREAD_FENCE(memory_order_acquire);
	return i + 1;
}

/* A kernel's parameter by name: the same for all lanes, its place known when it was decoded. */
HANDLER(LD_PARAM)
{
	const uint8_t *from = state_of(w)->params + i->imm;
	unsigned bytes = kind_bytes(i->e), n = i->n ? i->n : 1;
	const opref *list = i->n ? OPLIST(w, i->d) : &i->d;

	for (unsigned e = 0; e < n; e++) {
		switch (i->e) {
#define X(name, memory, reg)                                                                \
		case KIND_##name: {                                                         \
			reg v = *(const MEMORY_TYPE(memory) *)(const void *)(from + e * bytes); \
			reg *d = __builtin_assume_aligned(opptr(w, list[e]), 64);           \
			EACH_LANE(w, d, v);                                                 \
			break;                                                              \
		}
			GPUL_LOAD_KINDS(X)
#undef X
		}
	}
	return i + 1;
}

/* Hints have no effect, and may name memory that is not there. */
HANDLER(PREFETCH)
{
	(void)w;
	return i + 1;
}
