/* module.c — find a function or a register in a finished module. */
#include "ptx/module.h"

#include <string.h>

const gpul_ptx_func *gpul_ptx_find_func(const gpul_ptx_module *m, const char *name)
{
	for (uint32_t i = 0; i < m->n_funcs; i++) {
		const gpul_ptx_func *f = &m->funcs[i];

		if (f->kind != GPUL_PTX_FUNC_PROTOTYPE &&
		    !strcmp(gpul_ptx_name(m, f->name), name))
			return f->definition == GPUL_PTX_NONE ? f : &m->funcs[f->definition];
	}
	return NULL;
}

const gpul_ptx_regs *gpul_ptx_reg_row(const gpul_ptx_func *f, uint32_t flat)
{
	uint32_t low = 0, high = f->n_regs;

	/* Rows are sorted by .first: find the last row that begins at or before flat. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (f->regs[middle].first <= flat)
			low = middle;
		else
			high = middle;
	}
	return &f->regs[low];
}
