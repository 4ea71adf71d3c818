/* module.c — finds a function or a register in a finished module. */
#include "ptx/module.h"

#include <string.h>

const gpul_ptx_func *gpul_ptx_find_func(const gpul_ptx_module *m, const char *name)
{
	for (uint32_t i = 0; i < m->n_funcs; i++) {
		const gpul_ptx_func *f = &m->funcs[i];

		if (f->kind != GPUL_PTX_FUNC_PROTOTYPE && !strcmp(gpul_ptx_name(m, f->name), name))
			return f->definition == GPUL_PTX_NONE ? f : &m->funcs[f->definition];
	}
	return NULL;
}

const gpul_ptx_regs *gpul_ptx_reg_row(const gpul_ptx_func *f, uint32_t flat)
{
	uint32_t low = 0, high = f->n_regs;

	/* the entries are sorted by .first: find the last one whose .first is at most `flat` */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (f->regs[middle].first <= flat)
			low = middle;
		else
			high = middle;
	}
	return &f->regs[low];
}

void gpul_ptx_limit_registers(gpul_ptx_module *m, unsigned n_registers)
{
	for (uint32_t k = 0; n_registers && k < m->n_funcs; k++) {
		gpul_ptx_tuning *t = &m->funcs[k].tuning;

		if (m->funcs[k].kind == GPUL_PTX_FUNC_ENTRY && t->maxntid[0] <= 0 && t->reqntid[0] <= 0 && t->minnctapersm <= 0 &&
		    t->maxnreg <= 0)
			t->maxnreg = n_registers;
	}
}
