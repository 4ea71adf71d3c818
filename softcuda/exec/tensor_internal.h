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

#endif
