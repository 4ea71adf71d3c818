/* tensor_internal.h — tensor copies: the structs that decode_tensor.c fills and run_tensor.c reads. */
#ifndef GPULOAD_SOFTCUDA_EXEC_TENSOR_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_TENSOR_INTERNAL_H

#include <string.h>

#include "softcuda/exec/async_internal.h"
#include "softcuda/exec/tensor_map.h"

enum tensor_reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_INC, REDUCE_DEC, REDUCE_AND, REDUCE_OR, REDUCE_XOR, N_REDUCTIONS };

/* insn->object of TENSOR_LOAD, TENSOR_STORE and TENSOR_REDUCE */
struct tensor_copy {
	struct insn map, shared, barrier; /* never executed; they hold address operands, as in struct async_copy */
	opref at[GPUL_TENSOR_RANKS];      /* coordinates of the box's first element */
	uint8_t rank;
	uint16_t op[GPUL_TENSOR_TYPES]; /* reductions: the atomic operation, indexed by the type of the elements */
	op_fn *step[GPUL_TENSOR_TYPES]; /* handler of op[type]; NULL: the reduction does not exist for this type */
	bool im2col;                    /* the tensor map must have im2col mode; false: tiled mode */
	/* im2col: the instruction has offsets; they are added to the coordinates W, H, D of each pixel */
	bool has_offsets;
	opref offset[GPUL_TENSOR_RANKS - 2];
	bool multicast;
	opref ranks; /* multicast: bit r is set if the block of rank r in the cluster receives a copy */
};

/* clang-format off */
enum tensor_field { FIELD_ADDRESS, FIELD_RANK, FIELD_BOX, FIELD_DIMENSION, FIELD_STRIDE, FIELD_STEP, FIELD_TYPE, FIELD_INTERLEAVE, FIELD_SWIZZLE,
		    FIELD_FILL, FIELD_WITHOUT_EFFECT };
/* clang-format on */

/* insn->object of TENSOR_MAP_REPLACE */
struct tensor_replace {
	struct insn map; /* address operand of the tensor map */
	opref value;     /* new value of the field: 64 bits for FIELD_ADDRESS and FIELD_STRIDE, otherwise 32 */
	uint8_t field, dimension;
};

/* insn->object of TENSOR_MAP_COPY */
struct tensor_map_copy {
	struct insn to, from;
};

enum { TENSOR_PIECE = 16 };

/* Return the index of the dimension W (width): 1, after the channels; or 0 if an element is a slice of channels (interleaved layout). */
static inline unsigned tensor_width_dimension(const gpul_tensor_map *m)
{
	return m->interleave ? 0 : 1;
}

/* Returns true if d is one of the dimensions W, H, D of an im2col map. */
static inline bool tensor_is_spatial(const gpul_tensor_map *m, unsigned d)
{
	return m->im2col && d >= tensor_width_dimension(m) && d + 2 < m->rank + tensor_width_dimension(m);
}

/* im2col: return the coordinate of the first pixel in a spatial dimension. */
static inline int64_t tensor_first_pixel(const gpul_tensor_map *m, unsigned d)
{
	return m->lower[d - tensor_width_dimension(m)];
}

static inline int64_t tensor_end_of_pixels(const gpul_tensor_map *m, unsigned d)
{
	return (int64_t)m->last[d] + 1 + m->upper[d - tensor_width_dimension(m)];
}

/* Return the number of pixels in dimension d from coordinate `from` on.  For an invalid map, it can be 0 or negative. */
static inline int64_t tensor_pixels(const gpul_tensor_map *m, unsigned d, int64_t from)
{
	return (tensor_end_of_pixels(m, d) - from + m->step[d] - 1) / m->step[d];
}

/* For a map with a swizzle, return the size of a row in which it permutes 16-byte pieces.  A row of the box is not longer. */
static inline uint32_t tensor_swizzle_width(const gpul_tensor_map *m)
{
	return (uint32_t)TENSOR_PIECE << m->swizzle;
}

static inline bool tensor_modes_are_valid(const gpul_tensor_map *m)
{
	if (m->swizzle > 3 || m->interleave > 2)
		return false;
	if (m->interleave)
		return m->rank >= 3 && (m->interleave == 1 || m->swizzle == 1);
	return !m->swizzle || m->box[0] * gpul_tensor_type_bytes(m->type) <= tensor_swizzle_width(m);
}

/* Returns false for an invalid map.  cuTensorMapEncode...() never creates one, but tensormap.replace can set a field to an invalid
 * value. */
static inline bool tensor_map_is_valid(const gpul_tensor_map *m, unsigned rank, bool im2col)
{
	if (m->mark != GPUL_TENSOR_MAP_MARK || m->rank != rank || m->type >= GPUL_TENSOR_TYPES || m->im2col != im2col ||
	    !tensor_modes_are_valid(m))
		return false;
	for (unsigned d = 0; d < rank; d++)
		if (!m->box[d] || m->box[d] > 256 || !m->step[d] || m->step[d] > 8 ||
		    (tensor_is_spatial(m, d) && tensor_pixels(m, d, tensor_first_pixel(m, d)) <= 0))
			return false;
	return !im2col || (m->pixels && m->pixels <= 1024);
}

/* The box of a tensor copy (the part of the tensor that it copies): position in the tensor, and size in shared memory. */
struct tensor_box {
	const gpul_tensor_map *map;
	int64_t at[GPUL_TENSOR_RANKS];     /* coordinates of the first element; 0 in dimensions beyond the rank */
	int64_t offset[GPUL_TENSOR_RANKS]; /* im2col: offset that is added to the coordinates of all pixels in each dimension */
	uint32_t n[GPUL_TENSOR_RANKS];     /* number of rows in each dimension; im2col: all are counted in dimension W */
	uint32_t row_elements, element_bytes, row_bytes;
	uint64_t rows;
};

/* Return the number of rows of a tiled map's box in dimension d. */
static inline uint32_t tile_rows(const gpul_tensor_map *m, unsigned d)
{
	if (d >= m->rank || d < tensor_width_dimension(m) || (m->interleave && d + 2u == m->rank))
		return 1;
	return (m->box[d] + m->step[d] - 1u) / m->step[d];
}

static inline void measure_tensor_box(const gpul_tensor_map *m, struct tensor_box *out)
{
	out->map = m;
	memset(out->offset, 0, sizeof out->offset);
	out->element_bytes = gpul_tensor_type_bytes(m->type);
	out->row_elements = m->interleave ? (uint32_t)TENSOR_PIECE * m->interleave / out->element_bytes : m->box[0];
	out->row_bytes = out->row_elements * out->element_bytes;
	out->rows = 1;
	for (unsigned d = 0; d < GPUL_TENSOR_RANKS; d++) {
		out->n[d] = !m->im2col ? tile_rows(m, d) : d == tensor_width_dimension(m) ? m->pixels : 1;
		out->rows *= out->n[d];
	}
}

/* Set the coordinates of the box that a lane copies. */
static inline void place_tensor_box(const struct warp *w, const struct tensor_copy *c, unsigned lane, struct tensor_box *out)
{
	for (unsigned d = 0; d < GPUL_TENSOR_RANKS; d++)
		out->at[d] = d < c->rank ? S32(w, c->at[d])[lane] : 0;
	for (unsigned d = 0; c->has_offsets && d + 2 < c->rank; d++)
		out->offset[d + tensor_width_dimension(out->map)] = U16(w, c->offset[d])[lane];
}

/* Apply the swizzle to an offset in shared memory: 16-byte pieces are permuted within rows of 32, 64 or 128 bytes, by the XOR of
 * their number with the offset's bits from bit 7 on, as for wgmma. */
static inline uint32_t tensor_swizzle(const gpul_tensor_map *m, uint32_t offset)
{
	return offset ^ (offset >> 3 & (m->swizzle ? tensor_swizzle_width(m) - TENSOR_PIECE : 0));
}

struct tensor_row {               /* a row of the box */
	uint64_t at;              /* global address of the row's first element that is inside of the tensor */
	uint32_t skip, n, offset; /* elements before the tensor, and inside of it; offset of the row in the box */
};

/* Tiled mode: compute the coordinates of row `number` of the box. */
static inline void tile_coordinates(const struct tensor_box *b, uint32_t number, int64_t c[GPUL_TENSOR_RANKS])
{
	for (unsigned d = 0; d < b->map->rank; d++) {
		c[d] = b->at[d] + (int64_t)(number % b->n[d]) * b->map->step[d];
		number /= b->n[d];
	}
}

/* im2col mode: compute the coordinates of the pixel that is `number` pixels after the first one, in row-major order: after the last
 * pixel of a dimension comes the first pixel of that dimension, one position further in the next dimension. */
static inline void pixel_coordinates(const struct tensor_box *b, uint32_t number, int64_t c[GPUL_TENSOR_RANKS])
{
	const gpul_tensor_map *m = b->map;
	int64_t rest = number;

	memcpy(c, b->at, sizeof b->at);
	for (unsigned d = tensor_width_dimension(m); tensor_is_spatial(m, d); d++) {
		const int64_t first = tensor_first_pixel(m, d), all = tensor_pixels(m, d, first), left = tensor_pixels(m, d, b->at[d]);

		if (rest < left) {
			c[d] = b->at[d] + rest * m->step[d] + b->offset[d];
			rest = 0;
		} else {
			rest -= left;
			c[d] = first + rest % all * m->step[d] + b->offset[d];
			rest = rest / all + 1;
		}
	}
	c[m->rank - 1u] += rest * m->step[m->rank - 1u];
}

/* Return the distance between rows in shared memory.  As on an H200, rows of a swizzled box are padded to the width of the swizzle;
 * the slices of an interleaved map are not padded. */
static inline uint32_t tensor_row_pitch(const struct tensor_box *b)
{
	return b->map->swizzle && !b->map->interleave ? tensor_swizzle_width(b->map) : b->row_bytes;
}

/* Compute which elements of a row are inside of the tensor.  In an interleaved map, a whole slice of channels is inside or outside. */
static inline void clip_tensor_row(const struct tensor_box *b, struct tensor_row *r)
{
	const int64_t n = b->row_elements;
	int64_t first = b->at[0] < 0 ? -b->at[0] : 0, inside = (int64_t)b->map->last[0] + 1 - b->at[0];

	if (b->map->interleave) {
		r->n = b->row_elements;
		return;
	}
	inside = inside < n ? inside : n;
	first = first < n ? first : n;
	r->skip = (uint32_t)first;
	r->n = inside <= first ? 0 : (uint32_t)(inside - first);
	r->at += (uint64_t)(b->at[0] + first) * b->element_bytes;
}

static inline struct tensor_row tensor_row_of(const struct tensor_box *b, uint32_t number)
{
	const gpul_tensor_map *m = b->map;
	struct tensor_row r = { .at = m->address, .offset = number * tensor_row_pitch(b) };
	int64_t at[GPUL_TENSOR_RANKS];
	bool out = false;

	(m->im2col ? pixel_coordinates : tile_coordinates)(b, number, at);
	for (unsigned d = tensor_width_dimension(m); d < m->rank; d++) {
		out |= at[d] < 0 || at[d] > (int64_t)m->last[d];
		r.at += (uint64_t)at[d] * (d ? m->stride[d - 1] : b->row_bytes);
	}
	if (!out)
		clip_tensor_row(b, &r);
	return r;
}

#endif
