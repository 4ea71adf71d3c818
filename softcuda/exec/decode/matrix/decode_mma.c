/* decode_mma.c — decodes mma and wmma.mma: the shape and types in the modifiers become one or two tiles (matrix_internal.h). */
#include <stdio.h>

#include "softcuda/exec/decode/matrix/decode_matrix_internal.h"

static const struct {
	const char *text;
	uint8_t type;
} type_names[] = {
	{ "f16", MATRIX_F16 }, { "bf16", MATRIX_BF16 }, { "tf32", MATRIX_TF32 }, { "e4m3", MATRIX_E4M3 }, { "e5m2", MATRIX_E5M2 },
	{ "f32", MATRIX_F32 }, { "f64", MATRIX_F64 },   { "s8", MATRIX_S8 },     { "u8", MATRIX_U8 },     { "s4", MATRIX_S4 },
	{ "u4", MATRIX_U4 },   { "b1", MATRIX_B1 },     { "s32", MATRIX_S32 },
};

void gpul_matrix_mods(const struct decoder *d, struct matrix_mods *out)
{
	*out = (struct matrix_mods){ 0 };
	for (unsigned k = 0; k < d->in->n_mods; k++) {
		const char *text = gpul_ptx_mod_text(d->m, d->in->mods[k]);
		char rest;

		if (sscanf(text, "m%un%uk%u%c", &out->m, &out->n, &out->k, &rest) == 3)
			continue;
		if ((!strcmp(text, "row") || !strcmp(text, "col")) && out->n_layouts < 2)
			out->by_column[out->n_layouts++] = !strcmp(text, "col");
		for (size_t t = 0; t < sizeof type_names / sizeof type_names[0]; t++)
			if (!strcmp(text, type_names[t].text) && out->n_types < 4)
				out->type[out->n_types++] = type_names[t].type;
	}
}

unsigned gpul_matrix_register_type(unsigned type)
{
	return type == MATRIX_F64 ? GPUL_PTX_MOD_B64 : GPUL_PTX_MOD_B32;
}

bool gpul_matrix_registers(struct decoder *d, const gpul_ptx_operand *o, unsigned type, bool dest, opref *out, unsigned most, unsigned *n)
{
	*n = gpul_operand_elements(d->f, o);
	if (*n > most)
		return gpul_decode_fail(d, GPUL_EFORMAT, "%u registers are given; at most %u are expected", *n, most);
	for (unsigned k = 0; k < *n; k++) {
		const gpul_ptx_operand one = gpul_operand_is_list(d->f, o) ? gpul_operand_element(d, o, k) : *o;
		const unsigned reg = gpul_matrix_register_type(type);

		if (!(dest ? gpul_operand_dest(d, &one, reg, false, &out[k]) : gpul_operand_source(d, &one, reg, false, &out[k])))
			return false;
	}
	return true;
}

/* ---- struct mma_form: types, operation, numbers of registers ----------------------------------------------------- */

static bool is_f8(unsigned type)
{
	return type == MATRIX_E4M3 || type == MATRIX_E5M2;
}

static bool is_integer(unsigned type)
{
	return type >= MATRIX_S8 && type <= MATRIX_U4;
}

static bool is_float(unsigned type)
{
	return type >= MATRIX_F16 && type <= MATRIX_E5M2;
}

/* Return the number of elements of C or D that one register holds. */
static unsigned sums_in_register(unsigned type)
{
	return type == MATRIX_F16 ? 2 : 1;
}

unsigned gpul_matrix_x_registers(unsigned rows, unsigned k, unsigned type)
{
	return rows / 8 * k / (4 * matrix_elements(type));
}

static enum op operation_of(const struct mma_form *f)
{
	const unsigned a = f->x_type, b = f->y_type, c = f->c_type, d = f->d_type;
	const bool f32 = c == MATRIX_F32 && d == MATRIX_F32,
		   half = (c == MATRIX_F16 || c == MATRIX_F32) && (d == MATRIX_F16 || d == MATRIX_F32);

	if (a == MATRIX_F64 && b == a && c == a && d == a)
		return OP_MMA_F64;
	if (c == MATRIX_S32 && d == c && a == MATRIX_B1 && b == a)
		return OP_MMA_BITS;
	if (c == MATRIX_S32 && d == c && is_integer(a) && is_integer(b) && matrix_bits(a) == matrix_bits(b))
		return OP_MMA_INT;
	if ((a == MATRIX_F16 && b == a && half) || (is_f8(a) && is_f8(b) && half) ||
	    ((a == MATRIX_BF16 || a == MATRIX_TF32) && b == a && f32))
		return OP_MMA_FLOAT;
	return OP_NOP;
}

/* Set the types, the numbers of registers and the rounding of sums in *f, and the operation in *op. */
static bool set_form(struct decoder *d, const struct matrix_mods *m, unsigned rows, struct mma_form *f, enum op *op)
{
	const unsigned stored = f->sparse ? m->k / 2 : m->k;
	const unsigned groups = m->n_types == 4 ? stored / (4 * matrix_elements(m->type[1])) : 0;

	f->rows = (uint8_t)rows;
	f->k = (uint16_t)m->k;
	f->d_type = m->type[0];
	f->x_type = m->type[1];
	f->y_type = m->type[2];
	f->c_type = m->type[3];
	*op = operation_of(f);
	f->satfinite = has_mod(d, GPUL_PTX_MOD_SATFINITE);
	f->popc_and = has_mod(d, GPUL_PTX_MOD_AND);
	f->n_x = (uint8_t)gpul_matrix_x_registers(rows, stored, f->x_type);
	f->n_y = (uint8_t)gpul_matrix_x_registers(8, m->k, f->y_type);
	f->n_c = (uint8_t)(rows / 4 / sums_in_register(f->c_type));
	f->n_d = (uint8_t)(rows / 4 / sums_in_register(f->d_type));
	f->sum = (struct mma_sum){ .block = (uint8_t)(is_f8(f->x_type) ? m->k / 2 : m->k), .fraction_bits = 25, .bytes = is_f8(f->x_type) };
	if (*op == OP_NOP || (groups != 1 && groups != 2 && !(groups == 4 && *op == OP_MMA_F64)) ||
	    stored % (4 * matrix_elements(f->x_type)) || (f->sparse && rows == 8) || (rows == 8 && (groups != 1 || is_float(f->x_type))))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this combination of shape and types does not exist");
	return true;
}

static struct mma_form *new_form(struct decoder *d)
{
	return gpul_program_alloc(d->p, sizeof(struct mma_form), d->err);
}

/* ---- mma --------------------------------------------------------------------------------------------------------- */

static bool decode_quads(struct decoder *d, const struct matrix_mods *m, struct mma_form *f)
{
	unsigned n[4];
	struct mma_tile *t = &f->tile[0];

	f->d_type = m->type[0];
	f->c_type = m->type[3];
	f->a_by_column = m->by_column[0];
	f->b_by_row = !m->by_column[1];
	if (!gpul_matrix_registers(d, &d->operand[0], f->d_type, true, f->d, 8, &n[0]) ||
	    !gpul_matrix_registers(d, &d->operand[1], MATRIX_F16, false, t->x, 2, &n[1]) ||
	    !gpul_matrix_registers(d, &d->operand[2], MATRIX_F16, false, t->y, 2, &n[2]) ||
	    !gpul_matrix_registers(d, &d->operand[3], f->c_type, false, f->c, 8, &n[3]))
		return false;
	if (n[0] != 8 / sums_in_register(f->d_type) || n[1] != 2 || n[2] != 2 || n[3] != 8 / sums_in_register(f->c_type))
		return gpul_decode_fail(d, GPUL_EFORMAT, "the number of registers does not fit the shape");
	return gpul_emit(d, OP_MMA_QUADS, &(struct insn){ .object = f });
}

/* Decode the register with the sparsity metadata, and the constant that selects the lanes whose metadata are used. */
static bool set_sparsity(struct decoder *d, struct mma_form *f)
{
	const gpul_ptx_operand *selector = &d->operand[5];

	if (selector->kind != GPUL_PTX_OP_INT || selector->value.i < 0 || selector->value.i > 3)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the sparsity selector must be a constant from 0 to 3");
	f->selector = (uint8_t)selector->value.i;
	return gpul_operand_source(d, &d->operand[4], GPUL_PTX_MOD_B32, false, &f->metadata);
}

static bool is_sparse(const struct decoder *d)
{
	return d->in->n_mods && !strncmp(gpul_ptx_mod_text(d->m, d->in->mods[0]), "sp", 2);
}

bool gpul_decode_mma(struct decoder *d)
{
	struct mma_form *f = new_form(d);
	struct mma_tile *t = &f->tile[0];
	struct matrix_mods m;
	enum op op;
	unsigned n[4];

	if (!f)
		return false;
	gpul_matrix_mods(d, &m);
	if (has_mod(d, GPUL_PTX_MOD_SYNC) && m.m == 8 && m.n == 8 && m.k == 4 && m.n_types == 4 && m.n_layouts == 2 &&
	    m.type[1] == MATRIX_F16)
		return decode_quads(d, &m, f);
	f->sparse = is_sparse(d);
	if (!has_mod(d, GPUL_PTX_MOD_SYNC) || d->in->n_operands != (f->sparse ? 6 : 4) || m.n != 8 || (m.m != 8 && m.m != 16))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this variant of mma is not supported by the software driver");
	if (!set_form(d, &m, m.m, f, &op) || (f->sparse && !set_sparsity(d, f)) ||
	    !gpul_matrix_registers(d, &d->operand[0], f->d_type, true, t->d, 4, &n[0]) ||
	    !gpul_matrix_registers(d, &d->operand[1], f->x_type, false, t->x, 8, &n[1]) ||
	    !gpul_matrix_registers(d, &d->operand[2], f->y_type, false, t->y, 4, &n[2]) ||
	    !gpul_matrix_registers(d, &d->operand[3], f->c_type, false, t->c, 4, &n[3]))
		return false;
	if (n[0] != f->n_d || n[1] != f->n_x || n[2] != f->n_y || n[3] != f->n_c)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the number of registers does not fit the shape");
	f->n_tiles = 1;
	return gpul_emit(d, op, &(struct insn){ .object = f });
}

/* ---- wmma.mma ---------------------------------------------------------------------------------------------------- */

/* Divide a wmma shape into tiles of 16 x 8: m16n16 has two side by side, m32n8 two one above the other; m8n32 is computed as m32n8
 * transposed. */
bool gpul_wmma_shape(const struct matrix_mods *m, struct wmma_shape *out)
{
	*out = (struct wmma_shape){ .rows = m->m == 8 && m->n == 8 ? 8 : 16,
				    .n_tiles = m->m == 8 && m->n == 8 ? 1 : 2,
				    .swapped = m->m == 8 && m->n == 32,
				    .x_tiles = m->m == 32 || m->n == 32 };
	return (m->m == 16 && m->n == 16) || (m->m == 32 && m->n == 8) || out->swapped || out->n_tiles == 1;
}

/* Set the registers of one tile, taken from the register lists of A, B, C and D. */
static void set_tile(struct mma_form *f, unsigned tile, const struct wmma_shape *s, const opref *a, const opref *b, const opref *c,
		     const opref *d)
{
	struct mma_tile *t = &f->tile[tile];
	const opref *x = s->swapped ? b : a, *y = s->swapped ? a : b;

	memcpy(t->x, x + (s->x_tiles ? tile * f->n_x : 0), f->n_x * sizeof *x);
	memcpy(t->y, y + (s->x_tiles ? 0 : tile * f->n_y), f->n_y * sizeof *y);
	memcpy(t->c, c + tile * f->n_c, f->n_c * sizeof *c);
	memcpy(t->d, d + tile * f->n_d, f->n_d * sizeof *d);
}

bool gpul_decode_wmma_mma(struct decoder *d)
{
	struct mma_form *f = new_form(d);
	struct matrix_mods m;
	struct wmma_shape s;
	enum op op;
	opref a[8] = { 0 }, b[8] = { 0 }, c[8] = { 0 }, to[8] = { 0 };
	unsigned n[4];

	if (!f)
		return false;
	gpul_matrix_mods(d, &m);
	if (m.n_types == 2) { /* the two types are those of D and C; A and B are f16 */
		m.type[3] = m.type[1];
		m.type[1] = m.type[2] = MATRIX_F16;
		m.n_types = 4;
	}
	if (!gpul_wmma_shape(&m, &s) || d->in->n_operands != 4)
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this variant of wmma is not supported by the software driver");
	if (!set_form(d, &m, s.rows, f, &op) || !gpul_matrix_registers(d, &d->operand[0], f->d_type, true, to, 8, &n[0]) ||
	    !gpul_matrix_registers(d, &d->operand[1], f->x_type, false, a, 8, &n[1]) ||
	    !gpul_matrix_registers(d, &d->operand[2], f->y_type, false, b, 8, &n[2]) ||
	    !gpul_matrix_registers(d, &d->operand[3], f->c_type, false, c, 8, &n[3]))
		return false;
	if (n[0] != s.n_tiles * f->n_d || n[3] != s.n_tiles * f->n_c)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the number of registers does not fit the shape");
	if (f->x_type == MATRIX_TF32)
		f->sum.block = 4; /* sm_90 executes wmma with .tf32 as two instructions, each of which adds 4 products */
	f->n_tiles = (uint8_t)s.n_tiles;
	for (unsigned tile = 0; tile < s.n_tiles; tile++)
		set_tile(f, tile, &s, a, b, c, to);
	return gpul_emit(d, op, &(struct insn){ .object = f });
}
