/* uses.c — finds out whether a program computes with a loaded register or only copies it.
 *
 * Compilers copy structures by vector loads, including the padding. So loading unwritten elements of a vector after the first is an
 * error only if an instruction other than a store uses their registers. The analysis ignores control flow: it looks at all uses in
 * the function. The analysis is needed rarely, and its result is cached. */
#include <pthread.h>

#include "softcuda/tools/memcheck/parts_internal.h"

enum { KEPT = 1024, MOVES_MOST = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* a cache of results; the address of the instruction selects the entry */
static struct answer {
	const struct insn *insn;
	uint32_t elements;
} answers[KEPT];

static bool contains(const gpul_ptx_func *f, const gpul_ptx_operand *o, uint32_t flat)
{
	bool found = o->kind == GPUL_PTX_OP_REG && o->index == flat;

	for (uint32_t k = 0; k < o->n_children && !found; k++)
		found = contains(f, &f->operands[o->first_child + k], flat);
	return found;
}

static bool is_computed(const gpul_ptx_func *f, uint32_t flat, unsigned n_moves);

/* Returns true if the instruction uses the register, except to store it, or to move it to a register that is only stored. */
static bool computes_with(const gpul_ptx_func *f, const gpul_ptx_inst *in, uint32_t flat, unsigned n_moves)
{
	const gpul_ptx_operand *o = &f->operands[in->first_operand];

	if (in->guard == flat)
		return true;
	for (unsigned k = 0; k < in->n_operands; k++) {
		const bool is_result = k == 0 &&
				       (o->kind == GPUL_PTX_OP_REG || o->kind == GPUL_PTX_OP_VECTOR || o->kind == GPUL_PTX_OP_PAIR);

		if (is_result || !contains(f, &o[k], flat) || (in->opcode == GPUL_PTX_ST && k > 0))
			continue;
		if (in->opcode != GPUL_PTX_MOV || o->kind != GPUL_PTX_OP_REG || o[k].kind != GPUL_PTX_OP_REG || n_moves == MOVES_MOST ||
		    is_computed(f, o->index, n_moves + 1))
			return true;
	}
	return false;
}

static bool is_computed(const gpul_ptx_func *f, uint32_t flat, unsigned n_moves)
{
	for (uint32_t k = 0; k < f->n_insts; k++)
		if (f->insts[k].n_operands && computes_with(f, &f->insts[k], flat, n_moves))
			return true;
	return false;
}

static uint32_t find_elements(const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);
	const gpul_ptx_func *f = code->ptx;
	const gpul_ptx_operand *to = in && in->n_operands ? &f->operands[in->first_operand] : NULL;
	uint32_t elements = 0;

	if (!to || to->kind != GPUL_PTX_OP_VECTOR)
		return UINT32_MAX;
	for (uint32_t k = 0; k < to->n_children && k < 32; k++) {
		const gpul_ptx_operand *e = &f->operands[to->first_child + k];

		if (e->kind == GPUL_PTX_OP_REG && is_computed(f, e->index, 0))
			elements |= 1u << k;
	}
	return elements;
}

uint32_t gpul_uses_elements(const struct func_code *code, const struct insn *i)
{
	struct answer *a = &answers[((uintptr_t)i / sizeof *i) % KEPT];
	uint32_t elements;

	pthread_mutex_lock(&lock);
	if (a->insn != i)
		*a = (struct answer){ i, find_elements(code, i) };
	elements = a->elements;
	pthread_mutex_unlock(&lock);
	return elements;
}

void gpul_uses_forget(void)
{
	pthread_mutex_lock(&lock);
	memset(answers, 0, sizeof answers);
	pthread_mutex_unlock(&lock);
}
