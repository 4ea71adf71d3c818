/* tensor_internal.h — tensor copies: the data that decode_tensor.c gives to run_tensor.c. */
#ifndef GPULOAD_SOFTCUDA_EXEC_TENSOR_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_TENSOR_INTERNAL_H

#include <string.h>

#include "softcuda/exec/async_internal.h"
#include "softcuda/exec/tensor_map.h"

enum tensor_reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_INC, REDUCE_DEC, REDUCE_AND, REDUCE_OR, REDUCE_XOR, N_REDUCTIONS };

struct tensor_copy {             /* insn->object of TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE */
	struct insn map, shared, barrier;   /* addresses, as in struct async_copy */
	opref at[GPUL_TENSOR_RANKS];        /* coordinates of the box's first element */
	uint8_t rank;
	uint16_t op[GPUL_TENSOR_TYPES];     /* reductions: the atomic operation on an element of this type, and its handler; */
	op_fn *step[GPUL_TENSOR_TYPES];     /* NULL: there is none */
	bool im2col;                 /* the map has to be of this mode */
	bool has_offsets;            /* im2col: added to the coordinates of all pixels, in the dimensions 1, 2 ... */
	opref offset[GPUL_TENSOR_RANKS - 2];
	bool multicast;
	opref ranks;                 /* multicast: bit r: to the block of rank r */
};

enum tensor_field { FIELD_ADDRESS, FIELD_RANK, FIELD_BOX, FIELD_DIMENSION, FIELD_STRIDE, FIELD_STEP, FIELD_TYPE, FIELD_SWIZZLE, FIELD_FILL,
		    FIELD_WITHOUT_EFFECT };

struct tensor_replace {          /* insn->object of TENSOR_MAP_REPLACE */
	struct insn map;         /* its address */
	opref value;             /* FIELD_ADDRESS and FIELD_STRIDE: 64 bits, else 32 */
	uint8_t field, dimension;
};

struct tensor_map_copy {         /* insn->object of TENSOR_MAP_COPY */
	struct insn to, from;
};

/* im2col: how many pixels there are in dimension d; not positive: the map is not possible. */
static inline int64_t tensor_pixels(const gpul_tensor_map *m, unsigned d)
{
	return ((int64_t)m->last[d] + 1 + m->upper[d - 1] - m->lower[d - 1] + m->step[d] - 1) / m->step[d];
}

enum { TENSOR_PIECE = 16 };

/* Bytes of the rows of shared memory in which a swizzle permutes pieces; a row of the box is not longer.  The map has a swizzle. */
static inline uint32_t tensor_swizzle_width(const gpul_tensor_map *m)
{
	return (uint32_t)TENSOR_PIECE << m->swizzle;
}

/* False: no call writes such a map, and tensormap.replace has changed a field to a wrong value. */
static inline bool tensor_map_is_valid(const gpul_tensor_map *m, unsigned rank, bool im2col)
{
	if (m->mark != GPUL_TENSOR_MAP_MARK || m->rank != rank || m->type >= GPUL_TENSOR_TYPES || m->swizzle > 3 || m->im2col != im2col)
		return false;
	if (m->swizzle && m->box[0] * gpul_tensor_type_bytes(m->type) > tensor_swizzle_width(m))
		return false;
	for (unsigned d = 0; d < rank; d++)
		if (!m->box[d] || m->box[d] > 256 || !m->step[d] || m->step[d] > 8 ||
		    (im2col && d && d + 1 < rank && tensor_pixels(m, d) <= 0))
			return false;
	return !im2col || (m->pixels && m->pixels <= 1024);
}

/* The part of the box that is copied, and its size in shared memory. */
struct tensor_box {
	const gpul_tensor_map *map;
	int64_t at[GPUL_TENSOR_RANKS];      /* 0 beyond the rank */
	int64_t offset[GPUL_TENSOR_RANKS];  /* im2col */
	uint32_t n[GPUL_TENSOR_RANKS];      /* elements in each dimension; 1 beyond the rank */
	uint32_t element_bytes, row_bytes, bytes;
};

static inline void measure_tensor_box(const gpul_tensor_map *m, struct tensor_box *out)
{
	out->map = m;
	memset(out->offset, 0, sizeof out->offset);
	out->element_bytes = gpul_tensor_type_bytes(m->type);
	out->bytes = out->element_bytes;
	for (unsigned d = 0; d < GPUL_TENSOR_RANKS; d++) {
		out->n[d] = d == 0 ? m->box[0] : m->im2col ? (d == 1 ? m->pixels : 1) : d < m->rank ? (m->box[d] + m->step[d] - 1u) / m->step[d] : 1;
		out->bytes *= out->n[d];
	}
	out->row_bytes = out->n[0] * out->element_bytes;
}

/* The coordinates of a lane's copy. */
static inline void place_tensor_box(const struct warp *w, const struct tensor_copy *c, unsigned lane, struct tensor_box *out)
{
	for (unsigned d = 0; d < GPUL_TENSOR_RANKS; d++)
		out->at[d] = d < c->rank ? S32(w, c->at[d])[lane] : 0;
	for (unsigned d = 0; c->has_offsets && d + 2 < c->rank; d++)
		out->offset[d + 1] = U16(w, c->offset[d])[lane];
}

/* 16-byte pieces are permuted within rows of 32, 64 or 128 bytes of shared memory by the address bits above, as for wgmma. */
static inline uint32_t tensor_swizzle(const gpul_tensor_map *m, uint32_t offset)
{
	return offset ^ (offset >> 3 & (m->swizzle ? tensor_swizzle_width(m) - TENSOR_PIECE : 0));
}

struct tensor_row {              /* of a box */
	uint64_t at;                 /* global address of its first element inside of the tensor */
	uint32_t skip, n, offset;    /* elements before it; elements inside; the row's offset in the box */
};

/* The coordinates of row `number` in dimensions 1, 2 ... */
static inline void tile_coordinates(const struct tensor_box *b, uint32_t number, int64_t c[GPUL_TENSOR_RANKS])
{
	for (unsigned d = 1; d < b->map->rank; d++) {
		c[d] = b->at[d] + (int64_t)(number % b->n[d]) * b->map->step[d];
		number /= b->n[d];
	}
}

/* Pixel `number` after the first: behind the last pixel of a dimension, the first one follows, at the next place in the next dimension. */
static inline void pixel_coordinates(const struct tensor_box *b, uint32_t number, int64_t c[GPUL_TENSOR_RANKS])
{
	const gpul_tensor_map *m = b->map;
	int64_t rest = number;

	for (unsigned d = 1; d + 1 < m->rank; d++) {
		const int64_t left = ((int64_t)m->last[d] + 1 + m->upper[d - 1] - b->at[d] + m->step[d] - 1) / m->step[d], all = tensor_pixels(m, d);

		if (rest < left) {
			c[d] = b->at[d] + rest * m->step[d] + b->offset[d];
			rest = 0;
		} else {
			rest -= left;
			c[d] = m->lower[d - 1] + rest % all * m->step[d] + b->offset[d];
			rest = rest / all + 1;
		}
	}
	c[m->rank - 1u] = b->at[m->rank - 1u] + rest * m->step[m->rank - 1u];
}

/* From a row to the next in shared memory: the rows of a swizzled box fill the width of the swizzle, as an H200 writes them. */
static inline uint32_t tensor_row_pitch(const struct tensor_box *b)
{
	return b->map->swizzle ? tensor_swizzle_width(b->map) : b->row_bytes;
}

/* Row `number` of the box. */
static inline struct tensor_row tensor_row_of(const struct tensor_box *b, uint32_t number)
{
	const gpul_tensor_map *m = b->map;
	struct tensor_row r = { .at = m->address, .offset = number * tensor_row_pitch(b) };
	int64_t first = b->at[0] < 0 ? -b->at[0] : 0, inside = (int64_t)m->last[0] + 1 - b->at[0], at[GPUL_TENSOR_RANKS];
	bool out = false;

	(m->im2col ? pixel_coordinates : tile_coordinates)(b, number, at);
	for (unsigned d = 1; d < m->rank; d++) {
		const int64_t c = at[d];

		out |= c < 0 || c > (int64_t)m->last[d];
		r.at += (uint64_t)c * m->stride[d - 1];
	}
	inside = inside < (int64_t)b->n[0] ? inside : (int64_t)b->n[0];
	first = first < (int64_t)b->n[0] ? first : (int64_t)b->n[0];
	r.skip = out ? 0 : (uint32_t)first;
	r.n = out || inside <= first ? 0 : (uint32_t)(inside - first);
	r.at += (uint64_t)(b->at[0] + first) * b->element_bytes;
	return r;
}

#endif
