/* decode_wgmma.c — decodes wgmma.mma_async; and wgmma.fence, commit_group and wait_group, which do nothing, because mma_async is
 * executed synchronously. */
#include "softcuda/exec/decode/matrix/decode_matrix_internal.h"
#include "softcuda/exec/wgmma_internal.h"

static bool is_f8(unsigned type)
{
	return type == MATRIX_E4M3 || type == MATRIX_E5M2;
}

static bool types_fit(const struct wgmma_form *f)
{
	const bool half = f->a_type == MATRIX_F16 && f->b_type == MATRIX_F16, f8 = is_f8(f->a_type) && is_f8(f->b_type);
	const bool bytes = (f->a_type == MATRIX_S8 || f->a_type == MATRIX_U8) && (f->b_type == MATRIX_S8 || f->b_type == MATRIX_U8);

	switch (f->d_type) {
	case MATRIX_F16:
		return half || f8;
	case MATRIX_F32:
		return half || f8 || (f->a_type == f->b_type && (f->a_type == MATRIX_BF16 || f->a_type == MATRIX_TF32));
	case MATRIX_S32:
		return bytes || (f->a_type == MATRIX_B1 && f->b_type == MATRIX_B1);
	default:
		return false;
	}
}

/* Read immediate operand k; if the instruction has fewer operands, *out is `missing`. */
static bool small_constant(struct decoder *d, unsigned k, int64_t missing, int64_t *out)
{
	const gpul_ptx_operand *o = &d->operand[k];

	*out = k < d->in->n_operands ? o->value.i : missing;
	return k >= d->in->n_operands || o->kind == GPUL_PTX_OP_INT ||
	       gpul_decode_fail(d, GPUL_EFORMAT, "operand %u must be a constant", k + 1);
}

/* Decode the operands scale-d, the signs of A and B, and the transpose flags of the matrices in shared memory, in this order. */
static bool decode_scales(struct decoder *d, unsigned first, struct wgmma_form *f)
{
	int64_t value[4];
	const bool two_bytes = matrix_bits(f->a_type) == 16;
	gpul_ptx_operand always = { .kind = GPUL_PTX_OP_INT, .value.i = 1 };

	for (unsigned k = 0; k < 4; k++)
		if (!small_constant(d, first + 1 + k, k < 2 ? 1 : 0, &value[k]))
			return false;
	f->negate_a = value[0] == -1;
	f->negate_b = value[1] == -1;
	f->a_by_column = two_bytes && !f->a_in_registers && value[2] == 1;
	f->b_by_row = two_bytes && value[f->a_in_registers ? 2 : 3] == 1;
	if (d->in->n_operands > first)
		always = d->operand[first];
	return gpul_operand_source(d, &always, GPUL_PTX_MOD_PRED, false, &f->scale_d);
}

/* Decode the register with the sparsity metadata, and the constant that selects which two of every four lanes have it (1-byte
 * elements: all four do). */
static bool decode_sparsity(struct decoder *d, struct wgmma_form *f)
{
	const gpul_ptx_operand *selector = &d->operand[4];
	const int64_t most = matrix_bits(f->a_type) > 8;

	if (selector->kind != GPUL_PTX_OP_INT || selector->value.i < 0 || selector->value.i > most)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the sparsity selector must be a constant from 0 to %d", (int)most);
	f->selector = (uint8_t)selector->value.i;
	return gpul_operand_source(d, &d->operand[3], GPUL_PTX_MOD_B32, false, &f->metadata);
}

static bool decode_multiply(struct decoder *d)
{
	struct wgmma_form *f = gpul_program_alloc(d->p, sizeof *f, d->err);
	struct matrix_mods m;
	unsigned n, sums;

	if (!f)
		return false;
	gpul_matrix_mods(d, &m);
	if (has_mod(d, GPUL_PTX_MOD_SYNC) == 0 || d->in->mods[0] != GPUL_PTX_MOD_MMA_ASYNC || m.n_types < 3 || m.m != 64)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this variant of wgmma is not supported by the software driver");
	f->columns = (uint16_t)m.n;
	f->k = (uint16_t)m.k;
	f->d_type = m.type[0];
	f->a_type = m.type[1];
	f->b_type = m.type[2];
	f->sparse = !strcmp(gpul_ptx_mod_text(d->m, d->in->mods[1]), "sp");
	f->a_in_registers = gpul_operand_is_list(d->f, &d->operand[1]);
	f->satfinite = has_mod(d, GPUL_PTX_MOD_SATFINITE);
	f->sum = (struct mma_sum){ .block = (uint8_t)m.k, .fraction_bits = is_f8(f->a_type) ? 13 : 25, .short_result = is_f8(f->a_type) };
	if (!types_fit(f) || m.k * matrix_bits(f->a_type) != 8 * 16 * wgmma_b_pieces(f) || (f->sparse && f->a_type == MATRIX_B1) ||
	    m.n % 8 || !m.n || m.n > MAX_WGMMA_COLUMNS)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this combination of shape and types does not exist");
	sums = m.n / (f->d_type == MATRIX_F16 ? 4 : 2);
	if (!gpul_matrix_registers(d, &d->operand[0], f->d_type, true, f->d, MAX_WGMMA_SUMS, &n))
		return false;
	f->n_d = (uint8_t)n;
	if (n != sums)
		return gpul_decode_fail(d, GPUL_EFORMAT, "%u registers are given; %u are expected", n, sums);
	if (f->a_in_registers) {
		if (!gpul_matrix_registers(d, &d->operand[1], f->a_type, false, f->x, 4, &n))
			return false;
		if (n != 4)
			return gpul_decode_fail(d, GPUL_EFORMAT, "wgmma: matrix A in registers needs 4 registers");
	} else if (!gpul_operand_source(d, &d->operand[1], GPUL_PTX_MOD_B64, false, &f->a)) {
		return false;
	}
	return gpul_operand_source(d, &d->operand[2], GPUL_PTX_MOD_B64, false, &f->b) && (!f->sparse || decode_sparsity(d, f)) &&
	       decode_scales(d, f->sparse ? 5 : 3, f) &&
	       gpul_emit(d, f->d_type == MATRIX_S32 ? OP_WGMMA_INT : OP_WGMMA_FLOAT, &(struct insn){ .object = f });
}

bool gpul_decode_wgmma(struct decoder *d)
{
	if (has_mod(d, GPUL_PTX_MOD_FENCE) || has_mod(d, GPUL_PTX_MOD_COMMIT_GROUP) || has_mod(d, GPUL_PTX_MOD_WAIT_GROUP))
		return gpul_emit(d, OP_NOP, NULL);
	return decode_multiply(d);
}
