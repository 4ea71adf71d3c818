/* decode_stack.c — decodes alloca, stacksave and stackrestore; and createpolicy, whose result (a cache policy) has no effect. */
#include "softcuda/exec/decode/decode_internal.h"

/* Decode alloca d, bytes{, alignment}.  The memory is freed when the function returns, or by stackrestore. */
bool gpul_decode_alloca(struct decoder *d)
{
	const unsigned type = gpul_type_mod(d->in);
	const gpul_ptx_operand *align = &d->operand[2];
	struct insn made = { .imm = 8, .n = (uint8_t)gpul_container_bytes(type) };

	if (d->in->n_operands == 3 && align->kind == GPUL_PTX_OP_INT)
		made.imm = align->value.i;
	if (made.n < 4 || made.imm < 1 || made.imm > 128 || (made.imm & (made.imm - 1)))
		return gpul_decode_fail(d, GPUL_EFORMAT, "a type of 32 or 64 bits and an alignment of 1 to 128 are expected");
	d->code->uses_stack = true;
	return gpul_operand_dest(d, &d->operand[0], type, false, &made.d) && gpul_operand_source(d, &d->operand[1], type, false, &made.a) &&
	       gpul_emit(d, OP_ALLOCA, &made);
}

bool gpul_decode_stack(struct decoder *d)
{
	const unsigned type = gpul_type_mod(d->in);
	struct insn made = { .n = (uint8_t)gpul_container_bytes(type) };

	if (made.n < 4)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a type of 32 or 64 bits is expected");
	if (d->in->opcode == GPUL_PTX_STACKSAVE)
		return gpul_operand_dest(d, &d->operand[0], type, false, &made.d) && gpul_emit(d, OP_STACKSAVE, &made);
	return gpul_operand_source(d, &d->operand[0], type, false, &made.a) && gpul_emit(d, OP_STACKRESTORE, &made);
}

/* Return the value of a cache policy, which PTX does not define.  It is the value that ptxas generates for a fraction of 1.0 (sm_90). */
static uint64_t policy_of(const struct decoder *d)
{
	for (unsigned k = 0; k < d->in->n_mods; k++)
		switch (d->in->mods[k]) {
		case GPUL_PTX_MOD_L2__EVICT_FIRST:
			return UINT64_C(0x12f0) << 48;
		case GPUL_PTX_MOD_L2__EVICT_LAST:
			return UINT64_C(0x14f0) << 48;
		case GPUL_PTX_MOD_L2__EVICT_NORMAL:
			return UINT64_C(0x16f0) << 48;
		default:
			break;
		}
	return UINT64_C(0x10f0) << 48;
}

bool gpul_decode_createpolicy(struct decoder *d)
{
	struct insn made = { 0 };

	return gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_B64, false, &made.d) && gpul_operand_const(d, policy_of(d), 8, &made.a) &&
	       gpul_emit(d, OP_MOV_64, &made);
}
