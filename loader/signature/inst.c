/* inst.c — decodes one PTX instruction: call, memory access, types, destination. */
#include "loader/signature/inst_internal.h"

gpul_inst_call gpul_inst_call_parts(const gpul_ptx_func *f, const gpul_ptx_inst *in)
{
	gpul_inst_call c = { 0 };
	unsigned i = 0;

	if (i < in->n_operands && gpul_inst_operand(f, in, i)->kind == GPUL_PTX_OP_LIST)
		c.rets = gpul_inst_operand(f, in, i++);
	if (i < in->n_operands)
		c.target = gpul_inst_operand(f, in, i++);
	if (i < in->n_operands && gpul_inst_operand(f, in, i)->kind == GPUL_PTX_OP_LIST)
		c.args = gpul_inst_operand(f, in, i);
	return c;
}

uint16_t gpul_inst_type(const gpul_ptx_inst *in, unsigned i)
{
	for (unsigned k = 0; k < in->n_mods; k++)
		if (in->mods[k] >= GPUL_PTX_MOD_B8 && in->mods[k] <= GPUL_PTX_MOD_PRED && i-- == 0)
			return in->mods[k];
	return GPUL_PTX_MOD_NONE;
}

static uint16_t state_space(const gpul_ptx_inst *in)
{
	for (unsigned k = 0; k < in->n_mods; k++)
		switch (in->mods[k]) {
		case GPUL_PTX_MOD_PARAM__ENTRY:
		case GPUL_PTX_MOD_PARAM__FUNC:
			return GPUL_PTX_MOD_PARAM;
		case GPUL_PTX_MOD_SHARED__CTA:
		case GPUL_PTX_MOD_SHARED__CLUSTER:
			return GPUL_PTX_MOD_SHARED;
		case GPUL_PTX_MOD_GLOBAL:
		case GPUL_PTX_MOD_SHARED:
		case GPUL_PTX_MOD_LOCAL:
		case GPUL_PTX_MOD_CONST:
		case GPUL_PTX_MOD_PARAM:
			return in->mods[k];
		default:
			break;
		}
	return GPUL_PTX_MOD_NONE;
}

static uint8_t vector_width(const gpul_ptx_inst *in)
{
	if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_V2))
		return 2;
	if (gpul_ptx_has_mod(in, GPUL_PTX_MOD_V4))
		return 4;
	return gpul_ptx_has_mod(in, GPUL_PTX_MOD_V8) ? 8 : 1;
}

gpul_inst_access gpul_inst_access_of(const gpul_ptx_func *f, const gpul_ptx_inst *in)
{
	gpul_inst_access a = { .type = gpul_inst_type(in, 0), .space = state_space(in), .vector = vector_width(in) };
	unsigned at = 0;

	switch (in->opcode) {
	case GPUL_PTX_ATOM:
		a.atomic = a.stores = true;
		/* fall through */
	case GPUL_PTX_LD:
	case GPUL_PTX_LDU:
		a.synchronizes = !a.atomic && (gpul_ptx_has_mod(in, GPUL_PTX_MOD_ACQUIRE) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_RELAXED) ||
					       gpul_ptx_has_mod(in, GPUL_PTX_MOD_VOLATILE) || gpul_ptx_has_mod(in, GPUL_PTX_MOD_MMIO));
		a.loads = true;
		at = 1;
		break;
	case GPUL_PTX_RED:
		a.atomic = a.loads = true;
		/* fall through */
	case GPUL_PTX_ST:
		a.stores = true;
		break;
	default:
		return a;
	}
	if (in->n_operands <= at || gpul_inst_operand(f, in, at)->kind != GPUL_PTX_OP_ADDRESS)
		return (gpul_inst_access){ 0 };
	a.address = gpul_inst_operand(f, in, at);
	a.result = at ? gpul_inst_operand(f, in, 0) : NULL;
	if (a.stores && in->n_operands > at + 1)
		a.value = gpul_inst_operand(f, in, at + 1);
	return a;
}

bool gpul_inst_writes(const gpul_ptx_inst *in)
{
	switch (in->opcode) {
	case GPUL_PTX_ST:
	case GPUL_PTX_RED:
	case GPUL_PTX_BRA:
	case GPUL_PTX_BRX:
	case GPUL_PTX_CALL:
	case GPUL_PTX_NANOSLEEP:
	case GPUL_PTX_PREFETCH:
	case GPUL_PTX_PREFETCHU:
	case GPUL_PTX_CP:
	case GPUL_PTX_STMATRIX:
	case GPUL_PTX_SUST:
	case GPUL_PTX_SURED:
		return false;
	case GPUL_PTX_BAR:
	case GPUL_PTX_BARRIER:
		return gpul_ptx_has_mod(in, GPUL_PTX_MOD_RED);
	default:
		return in->n_operands > 0;
	}
}
