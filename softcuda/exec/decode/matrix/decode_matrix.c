/* decode_matrix.c — decodes ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store.
 *
 * wmma.load and wmma.store become ordinary loads and stores of each register's elements, so that their accesses are checked and
 * observed like all others. PTX does not define which lane holds which element; the layout here is that of sm_90. */
#include "softcuda/exec/decode/matrix/decode_matrix_internal.h"

/* ---- ldmatrix, stmatrix, movmatrix ----------------------------------------------------------------------------------- */

static unsigned space_in_mods(const struct decoder *d)
{
	for (unsigned k = 0; k < d->in->n_mods; k++)
		switch (d->in->mods[k]) {
		case GPUL_PTX_MOD_SHARED:
		case GPUL_PTX_MOD_SHARED__CTA:
			return SPACE_SHARED;
		case GPUL_PTX_MOD_GLOBAL:
			return SPACE_GLOBAL;
		default:
			break;
		}
	return SPACE_GENERIC;
}

static unsigned matrices_in_mods(const struct decoder *d)
{
	return has_mod(d, GPUL_PTX_MOD_X4) ? 4 : has_mod(d, GPUL_PTX_MOD_X2) ? 2 : 1;
}

static bool check_matrix_form(struct decoder *d, unsigned registers)
{
	if (!has_mod(d, GPUL_PTX_MOD_M8N8) || !has_mod(d, GPUL_PTX_MOD_B16))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "only matrices .m8n8 of .b16 are interpreted");
	return registers == matrices_in_mods(d) ||
	       gpul_decode_fail(d, GPUL_EFORMAT, "%u registers are given; one for each matrix is expected", registers);
}

static bool decode_matrix_access(struct decoder *d, bool store)
{
	const gpul_ptx_operand *list = &d->operand[store ? 1 : 0], *address = &d->operand[store ? 0 : 1];
	struct insn made = { .n = (uint8_t)matrices_in_mods(d), .e = has_mod(d, GPUL_PTX_MOD_TRANS) ? MATRIX_TRANSPOSED : 0 };
	opref reg[4];
	unsigned n;
	uint32_t at;

	if (!gpul_matrix_registers(d, list, MATRIX_F16, !store, reg, 4, &n) || !check_matrix_form(d, n) ||
	    !gpul_decode_address(d, address, space_in_mods(d), &made))
		return false;
	at = gpul_consts_list(&d->p->consts, reg, n);
	if (at == UINT32_MAX)
		return gpul_decode_fail(d, GPUL_ENOMEM, "no memory for constants");
	*(store ? &made.b : &made.d) = OPREF(BANK_CONSTS, at);
	return gpul_emit(d, store ? OP_STMATRIX : OP_LDMATRIX, &made);
}

bool gpul_decode_ldmatrix(struct decoder *d)
{
	return decode_matrix_access(d, false);
}

bool gpul_decode_stmatrix(struct decoder *d)
{
	return decode_matrix_access(d, true);
}

bool gpul_decode_movmatrix(struct decoder *d)
{
	struct insn made = { 0 };

	return gpul_operand_dest(d, &d->operand[0], GPUL_PTX_MOD_B32, false, &made.d) &&
	       gpul_operand_source(d, &d->operand[1], GPUL_PTX_MOD_B32, false, &made.a) && gpul_emit(d, OP_MOVMATRIX, &made);
}

/* ---- wmma.load, wmma.store: where the elements are -------------------------------------------------------------------- */

/* Which matrix elements a lane's registers hold: element e of register r in lane l has the coordinates outer = g + outer_at and
 * inner = width * t + inner_at + e, where g = l / 4 and t = l % 4, and r determines outer_at and inner_at. */
struct fragment {
	unsigned width;       /* distance in inner coordinates between lanes t and t + 1; 2 for C, even with one element per register */
	unsigned elements;    /* number of elements in a register */
	unsigned n_registers; /* number of registers whose elements differ; further registers hold copies of these elements */
	bool inner_is_row;    /* true: inner is the row of an element, outer its column; false: the reverse */
	unsigned bits;
};

static void place_of_register(const struct matrix_mods *m, const struct wmma_shape *s, char which, const struct fragment *f, unsigned r,
			      unsigned *outer_at, unsigned *inner_at)
{
	const bool x = which == (s->swapped ? 'b' : 'a');
	const unsigned rows = which != 'c' && !x ? 1 : s->rows / 8; /* number of groups of eight outer coordinates in a tile */
	const unsigned per_tile = which == 'c' ? s->rows / 4 / f->elements : gpul_matrix_x_registers(8 * rows, m->k, m->type[0]);
	const unsigned tile = r / per_tile, at = r % per_tile;

	if (which == 'c') {
		*outer_at = f->elements == 2 ? 8 * at : 8 * (at / 2);
		*inner_at = f->elements == 2 ? 0 : at % 2;
		*(s->x_tiles ? outer_at : inner_at) += tile * (s->x_tiles ? 16 : 8);
	} else {
		*outer_at = 8 * rows * tile + 8 * (at % rows);
		*inner_at = 4 * f->elements * (at / rows);
	}
}

static void describe_fragment(const struct matrix_mods *m, const struct wmma_shape *s, char which, struct fragment *f)
{
	const bool x = which == (s->swapped ? 'b' : 'a');

	f->bits = matrix_bits(m->type[0]);
	f->elements = matrix_elements(m->type[0]);
	if (which == 'c') {
		f->width = 2;
		f->n_registers = s->n_tiles * s->rows / 4 / f->elements;
		f->inner_is_row = s->swapped;
	} else {
		f->width = f->elements;
		f->n_registers = gpul_matrix_x_registers(x ? s->rows : 8, m->k, m->type[0]);
		f->n_registers *= x == s->x_tiles ? s->n_tiles : 1;
		f->inner_is_row = which == 'b';
	}
}

/* ---- addresses: base + outer * outer_step + inner * inner_step, where one step is the stride and the other step is 1 ----- */

struct rows_of_matrix {
	struct insn address; /* address.a: base plus the offset of the lane, which depends on g = lane / 4 and t = lane % 4 */
	bool inner_is_unit;  /* elements with consecutive inner coordinates are contiguous in memory */
	unsigned bits;
	opref stride;
	struct {
		unsigned multiple;
		opref a;
	} known[16]; /* registers that already hold address.a plus `multiple` strides */
	unsigned n_known;
};

static bool emit_word(struct decoder *d, enum op op, opref a, uint64_t b, opref *out)
{
	struct insn made = { .a = a };

	return gpul_operand_const(d, b, 4, &made.b) && gpul_operand_temporary(d, 4, &made.d) && gpul_emit(d, op, &made) &&
	       (*out = made.d, true);
}

/* Emit code that computes base + elements * bits / 8, the address of an element, in a temporary register. */
static bool emit_offset(struct decoder *d, const struct rows_of_matrix *m, opref base, opref elements, opref *out)
{
	const bool narrow = m->address.flags & FLAG_ADDRESS_32;
	struct insn add = { .a = base }, wide = { 0 };

	if (!(m->bits < 8 ? emit_word(d, OP_SHR_U32, elements, m->bits == 4 ? 1 : 3, &elements)
			  : emit_word(d, OP_MUL_32, elements, m->bits / 8, &elements)))
		return false;
	add.b = elements;
	if (!narrow) {
		wide.a = elements;
		if (!gpul_operand_temporary(d, 8, &wide.d) || !gpul_emit(d, OP_EXT_U32_64, &wide))
			return false;
		add.b = wide.d;
	}
	return gpul_operand_temporary(d, narrow ? 4 : 8, &add.d) && gpul_emit(d, narrow ? OP_ADD_32 : OP_ADD_64, &add) &&
	       (*out = add.d, true);
}

/* Emit code that adds a lane's offset to the base address: g + width * t, where either g or width * t is multiplied by the stride. */
static bool emit_lane_address(struct decoder *d, const struct fragment *f, struct rows_of_matrix *m)
{
	const gpul_ptx_operand lane = { .kind = GPUL_PTX_OP_SPECIAL, .index = GPUL_PTX_SREG_LANEID };
	opref id, outer, inner;
	struct insn mad = { .b = m->stride };

	if (!gpul_operand_source(d, &lane, GPUL_PTX_MOD_U32, false, &id) || !emit_word(d, OP_SHR_U32, id, 2, &outer) ||
	    !emit_word(d, OP_AND_32, id, 3, &inner) || !emit_word(d, OP_MUL_32, inner, f->width, &inner))
		return false;
	mad.a = m->inner_is_unit ? outer : inner;
	mad.c = m->inner_is_unit ? inner : outer;
	return gpul_operand_temporary(d, 4, &mad.d) && gpul_emit(d, OP_MAD_32, &mad) &&
	       emit_offset(d, m, m->address.a, mad.d, &m->address.a);
}

/* Emit code that computes the address of the element at outer_at, inner_at; *out receives this address as an operand. */
static bool element_address(struct decoder *d, struct rows_of_matrix *m, unsigned outer, unsigned inner, struct insn *out)
{
	const unsigned strides = m->inner_is_unit ? outer : inner, units = m->inner_is_unit ? inner : outer;
	opref product;
	unsigned k = 0;

	*out = m->address;
	out->imm += units * m->bits / 8;
	if (!strides)
		return true;
	while (k < m->n_known && m->known[k].multiple != strides)
		k++;
	if (k == m->n_known) {
		m->known[m->n_known++].multiple = strides;
		if (!emit_word(d, OP_MUL_32, m->stride, strides, &product) || !emit_offset(d, m, m->address.a, product, &m->known[k].a))
			return false;
	}
	out->a = m->known[k].a;
	return true;
}

/* ---- wmma.load, wmma.store: loads and stores of the elements --------------------------------------------------------- */

/* Emit a load or store for each element of a register, for elements that are not contiguous in memory. */
static bool emit_parts(struct decoder *d, struct rows_of_matrix *m, const struct fragment *f, unsigned outer, unsigned inner, bool store,
		       opref reg)
{
	const bool bytes = f->bits == 8;
	struct insn move = { .a = reg, .n = (uint8_t)f->elements };
	opref part[4];
	uint32_t at;

	for (unsigned k = 0; k < f->elements; k++)
		if (!gpul_operand_temporary(d, 2, &part[k]))
			return false;
	at = gpul_consts_list(&d->p->consts, part, f->elements);
	if (at == UINT32_MAX)
		return gpul_decode_fail(d, GPUL_ENOMEM, "no memory for constants");
	move.d = OPREF(BANK_CONSTS, at);
	if (store && !gpul_emit(d, bytes ? OP_UNPACK_4X8 : OP_UNPACK_2X16, &move))
		return false;
	for (unsigned k = 0; k < f->elements; k++) {
		struct insn one;

		if (!element_address(d, m, outer, inner + k, &one))
			return false;
		*(store ? &one.b : &one.d) = part[k];
		if (!gpul_emit(d, store ? (bytes ? OP_ST_8_16 : OP_ST_16_16) : bytes ? OP_LD_U8_16 : OP_LD_U16_16, &one))
			return false;
	}
	move.a = move.d;
	move.d = reg;
	for (unsigned k = 0; k < d->n_temps; k++) /* free the temporaries of the elements for the next register */
		for (unsigned e = 0; e < f->elements; e++)
			d->temps[k].used = d->temps[k].used && d->temps[k].ref != part[e];
	return store || gpul_emit(d, bytes ? OP_PACK_4X8 : OP_PACK_2X16, &move);
}

static bool emit_register(struct decoder *d, struct rows_of_matrix *m, const struct fragment *f, unsigned outer, unsigned inner, bool store,
			  opref reg)
{
	struct insn one;

	if (f->elements > 1 && !m->inner_is_unit)
		return emit_parts(d, m, f, outer, inner, store, reg);
	if (!element_address(d, m, outer, inner, &one))
		return false;
	*(store ? &one.b : &one.d) = reg;
	if (f->bits == 64)
		return gpul_emit(d, store ? OP_ST_64_64 : OP_LD_U64_64, &one);
	return gpul_emit(d, store ? OP_ST_32_32 : OP_LD_U32_32, &one);
}

/* Find the stride between rows (or columns): the last operand, or, if it is missing, the width (height) of the matrix. */
static bool find_stride(struct decoder *d, const struct matrix_mods *m, char which, bool by_column, opref *out)
{
	const unsigned rows = which == 'b' ? m->k : m->m, columns = which == 'a' ? m->k : m->n;

	if (d->in->n_operands > 2)
		return gpul_operand_source(d, &d->operand[2], GPUL_PTX_MOD_U32, false, out);
	return gpul_operand_const(d, by_column ? rows : columns, 4, out);
}

static bool decode_wmma_access(struct decoder *d, bool store)
{
	const gpul_ptx_operand *list = &d->operand[store ? 1 : 0], *address = &d->operand[store ? 0 : 1];
	const char which = store ? 'c' : gpul_ptx_mod_text(d->m, d->in->mods[1])[0];
	struct rows_of_matrix rows = { 0 };
	struct matrix_mods m;
	struct wmma_shape s;
	struct fragment f;
	opref reg[8];
	unsigned n;

	gpul_matrix_mods(d, &m);
	if (!gpul_wmma_shape(&m, &s) || m.n_types != 1 || !m.n_layouts || d->in->n_operands < 2 ||
	    (which != 'a' && which != 'b' && which != 'c'))
		return gpul_decode_fail(d, GPUL_EUNSUPPORTED, "this variant of wmma is not supported by the software driver");
	describe_fragment(&m, &s, which, &f);
	rows.bits = f.bits;
	rows.inner_is_unit = f.inner_is_row == m.by_column[0];
	if (f.bits < 8 && !rows.inner_is_unit)
		return gpul_decode_fail(d, GPUL_EFORMAT, "matrices of sub-byte types have the layouts .row and .col");
	if (!gpul_matrix_registers(d, list, m.type[0], !store, reg, 8, &n) ||
	    !gpul_decode_address(d, address, space_in_mods(d), &rows.address) || !find_stride(d, &m, which, m.by_column[0], &rows.stride) ||
	    !emit_lane_address(d, &f, &rows))
		return false;
	if (!f.n_registers || n % f.n_registers)
		return gpul_decode_fail(d, GPUL_EFORMAT, "the number of registers does not fit the shape");
	for (unsigned r = 0; r < n; r++) {
		unsigned outer, inner;

		place_of_register(&m, &s, which, &f, r % f.n_registers, &outer, &inner);
		if (!emit_register(d, &rows, &f, outer, inner, store, reg[r]))
			return false;
	}
	return true;
}

bool gpul_decode_wmma(struct decoder *d)
{
	if (has_mod(d, GPUL_PTX_MOD_LOAD))
		return decode_wmma_access(d, false);
	return has_mod(d, GPUL_PTX_MOD_STORE) ? decode_wmma_access(d, true) : gpul_decode_wmma_mma(d);
}
