/* decode_surface.c — decodes instructions on surfaces: suld, sust, sured.  PTX ISA 9.0, 9.7.11. */
#include "softcuda/exec/decode/decode_internal.h"
#include "softcuda/exec/texture/texture_form_internal.h"

/* Decode the registers that a surface instruction loads or stores; a .b8 value is in a 16-bit register. */
static bool surface_data(struct decoder *d, const gpul_ptx_operand *o, bool dest, unsigned type, struct texture_form *f)
{
	f->n = (uint8_t)gpul_vector_mod(d->in);
	f->bytes = (uint8_t)gpul_ptx_type_bytes(type);
	if (!f->bytes || f->bytes > 8 || f->n > 4 || gpul_operand_elements(d->f, o) != f->n)
		return gpul_decode_fail(d, GPUL_EFORMAT, "a vector of %u registers of 8 to 64 bits is expected", f->n);
	for (unsigned k = 0; k < f->n; k++) {
		const gpul_ptx_operand one = gpul_operand_is_list(d->f, o) ? gpul_operand_element(d, o, k) : *o;

		if (!(dest ? gpul_operand_dest(d, &one, type, true, &f->data[k]) : gpul_operand_source(d, &one, type, true, &f->data[k])))
			return false;
	}
	return true;
}

static bool surface_op(struct decoder *d, unsigned type, struct texture_form *f)
{
	static const struct {
		uint16_t mod;
		uint8_t op;
	} ops[] = {
		{ GPUL_PTX_MOD_ADD, SURFACE_ADD }, { GPUL_PTX_MOD_MIN, SURFACE_MIN }, { GPUL_PTX_MOD_MAX, SURFACE_MAX },
		{ GPUL_PTX_MOD_AND, SURFACE_AND }, { GPUL_PTX_MOD_OR, SURFACE_OR },
	};

	f->is_signed = type == GPUL_PTX_MOD_S32 || type == GPUL_PTX_MOD_S64;
	for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
		if (has_mod(d, ops[k].mod)) {
			f->op = ops[k].op;
			return true;
		}
	return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this operation is not supported by the software driver");
}

bool gpul_decode_surface(struct decoder *d)
{
	const bool load = d->in->opcode == GPUL_PTX_SULD, reduce = d->in->opcode == GPUL_PTX_SURED;
	const gpul_ptx_operand *at = &d->operand[load], *data = &d->operand[!load];
	const unsigned type = gpul_type_mod(d->in);
	struct texture_form *f = gpul_texture_form(d);

	if (!f || !gpul_texture_handle(d, at, f))
		return false;
	if (at->n_children != 2 || f->cube)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the coordinates of a surface of 1, 2 or 3 dimensions are expected");
	f->formatted = has_mod(d, GPUL_PTX_MOD_P);
	f->outside = has_mod(d, GPUL_PTX_MOD_CLAMP) ? OUTSIDE_CLAMP : has_mod(d, GPUL_PTX_MOD_ZERO) ? OUTSIDE_ZERO : OUTSIDE_TRAP;
	if (load && f->formatted)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "formatted loads are not supported by the software driver");
	if (reduce && !surface_op(d, type, f))
		return false;
	return gpul_texture_coordinates(d, child(d, at, 1), GPUL_PTX_MOD_S32, f) && surface_data(d, data, load, type, f) &&
	       gpul_emit(d,
			 load     ? OP_SULD
			 : reduce ? OP_SURED
				  : OP_SUST,
			 &(struct insn){ .object = f }) &&
	       gpul_operand_emit_pending(d);
}
