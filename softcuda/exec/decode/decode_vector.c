/* decode_vector.c — decodes mov.v2 and mov.v4, which copy between vector registers, lists in braces, and special registers. */
#include "softcuda/exec/decode/decode_internal.h"

/* The special registers that are vectors, and their elements. */
static const struct {
	uint16_t vector, element[4];
} special_vectors[] = {
#define VECTOR(name) \
	{ \
		GPUL_PTX_SREG_##name, \
		{ \
			GPUL_PTX_SREG_##name##_X, GPUL_PTX_SREG_##name##_Y, GPUL_PTX_SREG_##name##_Z, GPUL_PTX_SREG_##name##_W \
		} \
	}
	VECTOR(TID),       VECTOR(NTID),       VECTOR(CTAID),         VECTOR(NCTAID),
	VECTOR(CLUSTERID), VECTOR(NCLUSTERID), VECTOR(CLUSTER_CTAID), VECTOR(CLUSTER_NCTAID),
#undef VECTOR
};

/* Get element k of the source operand.  Returns false if the source is not a vector of n elements. */
static bool source_element(struct decoder *d, const gpul_ptx_operand *o, unsigned n, unsigned k, gpul_ptx_operand *out)
{
	if (gpul_operand_elements(d->f, o) == n) {
		*out = gpul_operand_element(d, o, k);
		return true;
	}
	for (size_t row = 0; o->kind == GPUL_PTX_OP_SPECIAL && n == 4 && row < sizeof special_vectors / sizeof special_vectors[0]; row++)
		if (special_vectors[row].vector == o->index) {
			*out = *o;
			out->index = special_vectors[row].element[k];
			return true;
		}
	return gpul_decode_fail(d, GPUL_EFORMAT, "a vector of %u elements is expected", n);
}

static enum op move_op(unsigned bytes)
{
	return bytes == 2 ? OP_MOV_16 : bytes == 4 ? OP_MOV_32 : bytes == 8 ? OP_MOV_64 : OP_NOP;
}

/* Decode mov of vectors.  All elements are read before one is written, so that mov.v2.b32 {a, b}, {b, a} exchanges a and b. */
bool gpul_decode_mov_vector(struct decoder *d)
{
	const unsigned n = gpul_vector_mod(d->in), type = gpul_type_mod(d->in), bytes = gpul_container_bytes(type);
	struct insn to[MAX_VECTOR] = { 0 };

	if (move_op(bytes) == OP_NOP || gpul_operand_elements(d->f, &d->operand[0]) != n)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a vector of %u elements of 16, 32 or 64 bits is expected", n);
	for (unsigned k = 0; k < n; k++) {
		gpul_ptx_operand one;
		opref from;

		if (!source_element(d, &d->operand[1], n, k, &one) || !gpul_operand_source(d, &one, type, false, &from) ||
		    !gpul_operand_temporary(d, bytes, &to[k].a) || !gpul_emit(d, move_op(bytes), &(struct insn){ .d = to[k].a, .a = from }))
			return false;
	}
	for (unsigned k = 0; k < n; k++) {
		const gpul_ptx_operand one = gpul_operand_element(d, &d->operand[0], k);

		if (!gpul_operand_dest(d, &one, type, false, &to[k].d) || !gpul_emit(d, move_op(bytes), &to[k]))
			return false;
	}
	return true;
}
