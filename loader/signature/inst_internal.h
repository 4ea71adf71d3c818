/* inst_internal.h — decodes one PTX instruction for the analyses of this folder. */
#ifndef GPULOAD_LOADER_SIGNATURE_INST_INTERNAL_H
#define GPULOAD_LOADER_SIGNATURE_INST_INTERNAL_H

#include "ptx/module.h"

static inline const gpul_ptx_operand *gpul_inst_operand(const gpul_ptx_func *f, const gpul_ptx_inst *in, unsigned i)
{
	return &f->operands[in->first_operand + i];
}

/* The operands of "call (rets), target, (args)"; NULL: the instruction does not have this operand. */
typedef struct gpul_inst_call {
	const gpul_ptx_operand *rets, *args, *target;
} gpul_inst_call;
gpul_inst_call gpul_inst_call_parts(const gpul_ptx_func *f, const gpul_ptx_inst *in);

/* The parts of a load, store or atomic operation; address is NULL for other instructions. */
typedef struct gpul_inst_access {
	const gpul_ptx_operand *address;
	const gpul_ptx_operand *value, *result; /* the stored value; the destination of a load */
	uint16_t type, space;                   /* values of gpul_ptx_mod */
	bool loads, stores, atomic;
	bool synchronizes; /* a load that may wait for another thread's store: ld.acquire, ld.volatile */
	uint8_t vector;
} gpul_inst_access;
gpul_inst_access gpul_inst_access_of(const gpul_ptx_func *f, const gpul_ptx_inst *in);

/* Return the i-th type of an instruction (cvt.f32.s32: F32, S32); GPUL_PTX_MOD_NONE: the instruction has fewer types. */
uint16_t gpul_inst_type(const gpul_ptx_inst *in, unsigned i);

/* True if the instruction writes operand 0. */
bool gpul_inst_writes(const gpul_ptx_inst *in);

#endif
