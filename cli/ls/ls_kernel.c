/* ls_kernel.c — collect the registers and the signature of a kernel in a PTX file. */
#include "cli/ls/ls.h"

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

gpul_status ls_kernel(const gpul_ptx_module *m, const gpul_ptx_func *f, const gpul_kernel_info *info, struct ls_kernel *out,
		      gpul_error *err)
{
	*out = (struct ls_kernel){ .func = f, .info = info };
	count_registers(f, &out->registers);
	return gpul_signature_infer(m, f, &out->signature, err);
}

void ls_kernel_free(struct ls_kernel *k)
{
	gpul_signature_destroy(k->signature);
	*k = (struct ls_kernel){ 0 };
}
