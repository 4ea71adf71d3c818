/* decode_multimem.c — decodes multimem.ld_reduce, .st and .red (../multimem_internal.h). */
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/multimem_internal.h"

/* The operation for each modifier and type; type2 is a second type that has the same operation. */
static const struct {
	uint16_t mod, type, type2, operation;
} operations[] = {
#define M(x) GPUL_PTX_MOD_##x
	{ M(ADD), M(U32), M(S32), MULTIMEM_ADD_32 },
	{ M(ADD), M(U64), M(S64), MULTIMEM_ADD_64 },
	{ M(MIN), M(U32), 0, MULTIMEM_MIN_U32 },
	{ M(MAX), M(U32), 0, MULTIMEM_MAX_U32 },
	{ M(MIN), M(S32), 0, MULTIMEM_MIN_S32 },
	{ M(MAX), M(S32), 0, MULTIMEM_MAX_S32 },
	{ M(MIN), M(U64), 0, MULTIMEM_MIN_U64 },
	{ M(MAX), M(U64), 0, MULTIMEM_MAX_U64 },
	{ M(MIN), M(S64), 0, MULTIMEM_MIN_S64 },
	{ M(MAX), M(S64), 0, MULTIMEM_MAX_S64 },
	{ M(AND), M(B32), 0, MULTIMEM_AND_32 },
	{ M(AND), M(B64), 0, MULTIMEM_AND_64 },
	{ M(OR), M(B32), 0, MULTIMEM_OR_32 },
	{ M(OR), M(B64), 0, MULTIMEM_OR_64 },
	{ M(XOR), M(B32), 0, MULTIMEM_XOR_32 },
	{ M(XOR), M(B64), 0, MULTIMEM_XOR_64 },
	{ M(ADD), M(F32), 0, MULTIMEM_ADD_F32 },
	{ M(ADD), M(F64), 0, MULTIMEM_ADD_F64 },
	{ M(ADD), M(F16), M(F16X2), MULTIMEM_ADD_F16 },
	{ M(MIN), M(F16), M(F16X2), MULTIMEM_MIN_F16 },
	{ M(MAX), M(F16), M(F16X2), MULTIMEM_MAX_F16 },
	{ M(ADD), M(BF16), M(BF16X2), MULTIMEM_ADD_BF16 },
	{ M(MIN), M(BF16), M(BF16X2), MULTIMEM_MIN_BF16 },
	{ M(MAX), M(BF16), M(BF16X2), MULTIMEM_MAX_BF16 },
	{ M(ADD), M(E4M3X2), M(E4M3X4), MULTIMEM_ADD_E4M3 },
	{ M(MIN), M(E4M3X2), M(E4M3X4), MULTIMEM_MIN_E4M3 },
	{ M(MAX), M(E4M3X2), M(E4M3X4), MULTIMEM_MAX_E4M3 },
	{ M(ADD), M(E5M2X2), M(E5M2X4), MULTIMEM_ADD_E5M2 },
	{ M(MIN), M(E5M2X2), M(E5M2X4), MULTIMEM_MIN_E5M2 },
	{ M(MAX), M(E5M2X2), M(E5M2X4), MULTIMEM_MAX_E5M2 },
#undef M
};

static bool find_operation(struct decoder *d, struct multimem *m)
{
	const unsigned type = gpul_type_mod(d->in);
	const bool acc_f32 = has_mod(d, GPUL_PTX_MOD_ACC__F32), acc_f16 = has_mod(d, GPUL_PTX_MOD_ACC__F16);

	for (size_t k = 0; k < sizeof operations / sizeof operations[0]; k++) {
		const unsigned o = operations[k].operation;

		if ((operations[k].type != type && operations[k].type2 != type) || !has_mod(d, operations[k].mod))
			continue;
		m->operation = (uint8_t)o;
		m->widens = acc_f32 || acc_f16;
		return (acc_f32   ? o == MULTIMEM_ADD_F16 || o == MULTIMEM_ADD_BF16
			: acc_f16 ? o == MULTIMEM_ADD_E4M3 || o == MULTIMEM_ADD_E5M2
				  : true) ||
		       gpul_decode_fail(d, GPUL_EFORMAT, "this accumulation precision (.acc) is not available for this type");
	}
	return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this multimem operation is not supported");
}

/* gpul_type_mod() returns the type of the elements: the parser treats .acc::f32 as one modifier, so its f32 is not mistaken for a type. */
bool gpul_decode_multimem(struct decoder *d)
{
	const bool loads = has_mod(d, GPUL_PTX_MOD_LD_REDUCE), stores = has_mod(d, GPUL_PTX_MOD_ST);
	const enum op op = loads ? OP_MULTIMEM_LOAD : stores ? OP_MULTIMEM_STORE : OP_MULTIMEM_UPDATE;
	struct multimem *m;
	struct data data;

	if (!loads && !stores && !has_mod(d, GPUL_PTX_MOD_RED))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "only multimem.ld_reduce, .st and .red are interpreted");
	if (d->in->n_operands != 2)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the instruction needs 2 operands");
	m = gpul_program_alloc(d->p, sizeof *m, d->err);
	if (!m || !gpul_read_data(d, &d->operand[!loads], gpul_type_mod(d->in), &data) ||
	    !gpul_decode_address(d, &d->operand[loads], has_mod(d, GPUL_PTX_MOD_GLOBAL) ? SPACE_GLOBAL : SPACE_GENERIC, &m->address))
		return false;
	m->bytes = (uint8_t)(data.n * data.memory_bytes);
	if (data.n > sizeof m->data / sizeof m->data[0] || (m->bytes != 4 && m->bytes != 8 && m->bytes != 16))
		return gpul_decode_fail(d, GPUL_EFORMAT, "the vector has %u bytes; it must have 4, 8 or 16", data.n * data.memory_bytes);
	m->n = (uint8_t)data.n;
	m->reg_bytes = (uint8_t)data.reg_bytes;
	m->memory_bytes = (uint8_t)data.memory_bytes;
	if (data.reg_bytes < data.memory_bytes)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a %u-bit register is too narrow for this type", 8 * data.reg_bytes);
	memcpy(m->data, data.refs, data.n * sizeof m->data[0]);
	m->operation = MULTIMEM_NONE;
	return (stores || find_operation(d, m)) && gpul_emit(d, op, &(struct insn){ .object = m, .flags = m->address.flags });
}
