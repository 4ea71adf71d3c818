/* tensor_internal.h — tensor copies: the data that decode_tensor.c gives to run_tensor.c. */
#ifndef GPULOAD_SOFTCUDA_EXEC_TENSOR_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_TENSOR_INTERNAL_H

#include "softcuda/exec/async_internal.h"
#include "softcuda/exec/tensor_map.h"

enum tensor_reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_INC, REDUCE_DEC, REDUCE_AND, REDUCE_OR, REDUCE_XOR, N_REDUCTIONS };

struct tensor_copy {             /* insn->object of TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE */
	struct insn map, shared, barrier;   /* addresses, as in struct async_copy */
	opref at[GPUL_TENSOR_RANKS];        /* coordinates of the box's first element */
	uint8_t rank;
	uint16_t op[GPUL_TENSOR_TYPES];     /* reductions: the atomic operation on an element of this type, and its handler; */
	op_fn *step[GPUL_TENSOR_TYPES];     /* NULL: there is none */
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

/* False: no call writes such a map, and tensormap.replace has changed a field to a wrong value. */
static inline bool tensor_map_is_valid(const gpul_tensor_map *m, unsigned rank)
{
	if (m->mark != GPUL_TENSOR_MAP_MARK || m->rank != rank || m->type >= GPUL_TENSOR_TYPES || m->swizzle > 3)
		return false;
	for (unsigned d = 0; d < rank; d++)
		if (!m->box[d] || m->box[d] > 256 || !m->step[d] || m->step[d] > 8)
			return false;
	return true;
}

/* The part of the box that is copied, and its size in shared memory. */
struct tensor_box {
	const gpul_tensor_map *map;
	int64_t at[GPUL_TENSOR_RANKS];      /* 0 beyond the rank */
	uint32_t n[GPUL_TENSOR_RANKS];      /* elements in each dimension; 1 beyond the rank */
	uint32_t element_bytes, row_bytes, bytes;
};

static inline void measure_tensor_box(const gpul_tensor_map *m, struct tensor_box *out)
{
	out->map = m;
	out->element_bytes = gpul_tensor_type_bytes(m->type);
	out->bytes = out->element_bytes;
	for (unsigned d = 0; d < GPUL_TENSOR_RANKS; d++) {
		out->n[d] = d < m->rank ? (m->box[d] + m->step[d] - 1u) / m->step[d] : 1;
		out->bytes *= out->n[d];
	}
	out->row_bytes = out->n[0] * out->element_bytes;
}

enum { TENSOR_PIECE = 16 };

/* 16-byte pieces are permuted within rows of 32, 64 or 128 bytes of shared memory by the address bits above, as for wgmma. */
static inline uint32_t tensor_swizzle(const gpul_tensor_map *m, uint32_t offset)
{
	return offset ^ (offset >> 3 & (m->swizzle ? ((uint32_t)TENSOR_PIECE << m->swizzle) - TENSOR_PIECE : 0));
}

struct tensor_row {              /* of a box */
	uint64_t at;                 /* global address of its first element inside of the tensor */
	uint32_t skip, n, offset;    /* elements before it; elements inside; the row's offset in the box */
};

/* Row `number` of the box. */
static inline struct tensor_row tensor_row_of(const struct tensor_box *b, uint32_t number)
{
	const gpul_tensor_map *m = b->map;
	struct tensor_row r = { .at = m->address, .offset = number * b->row_bytes };
	int64_t first = b->at[0] < 0 ? -b->at[0] : 0, inside = (int64_t)m->last[0] + 1 - b->at[0];
	bool out = false;

	for (unsigned d = 1; d < m->rank; d++) {
		const int64_t c = b->at[d] + (int64_t)(number % b->n[d]) * m->step[d];

		number /= b->n[d];
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
