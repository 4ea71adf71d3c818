/* ls_kernel.c — collect the registers, the memory and the signature of a kernel in a PTX file. */
#include "cli/ls/ls.h"

#include <stdlib.h>
#include <string.h>

static void count_registers(const gpul_ptx_func *f, struct ls_registers *out)
{
	for (uint32_t i = 0; i < f->n_regs; i++) {
		uint32_t n = f->regs[i].count * f->regs[i].vector;

		switch (gpul_ptx_type_bytes(f->regs[i].type)) {
		case 0:
			out->predicates += n;
			break;
		case 4:
			out->b32 += n;
			break;
		case 8:
			out->b64 += n;
			break;
		case 16:
			out->b128 += n;
			break;
		default:
			out->b16 += n;
			break; /* includes 8-bit types, because the narrowest register has 16 bits */
		}
	}
}

static void add_var(const gpul_ptx_var *v, struct ls_kernel *out)
{
	if (v->space == GPUL_PTX_MOD_SHARED)
		out->shared_bytes += v->bytes;
	else if (v->space == GPUL_PTX_MOD_LOCAL)
		out->local_bytes += v->bytes;
	else if (v->space == GPUL_PTX_MOD_CONST)
		out->const_bytes += v->bytes;
}

gpul_status ls_kernel(const gpul_ptx_module *m, const gpul_ptx_func *f, struct ls_kernel *out,
		      gpul_error *err)
{
	bool *seen = calloc(m->n_vars + 1u, sizeof *seen);

	if (!seen)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u variables", m->n_vars);
	*out = (struct ls_kernel){ .func = f };
	count_registers(f, &out->registers);
	for (uint32_t i = 0; i < f->n_vars; i++)
		add_var(&f->vars[i], out);
	for (uint32_t i = 0; i < f->n_operands; i++) {
		const gpul_ptx_operand *o = &f->operands[i];

		if (o->kind == GPUL_PTX_OP_SYMBOL && o->ref_kind == GPUL_PTX_REF_MODULE_VAR &&
		    !seen[o->index]) {
			seen[o->index] = true;
			add_var(&m->vars[o->index], out);
		}
	}
	free(seen);
	return gpul_signature_infer(m, f, &out->signature, err);
}

void ls_kernel_free(struct ls_kernel *k)
{
	gpul_signature_destroy(k->signature);
	*k = (struct ls_kernel){ 0 };
}
