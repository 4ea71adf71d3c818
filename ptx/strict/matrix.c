/* matrix.c — checks the types and operands of mma: PTX ISA 9.0, 9.7.14.5.
 *
 *     mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3};
 *
 * The matrices are spread over the 32 lanes: d and c have m * n elements, a has m * k, b has k * n.  Elements of at most 16 bits are packed
 * into registers of 32 bits. */
#include "ptx/strict/strict_internal.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 32, QUADS = 4 /* m8n8k4 with .f16 computes four products at a time */ };

/* bits: size of an element in a register. group: a and b must have types of the same group; 0: not a type of a or b. sums: the
 * types that d and c may have. */
static const struct type {
	const char *name;
	unsigned char bits;
	char group;
	const char *sums;
} types[] = {
	{ "f16", 16, 'h', "f16 f32" }, { "bf16", 16, 'b', "f32" },    { "tf32", 32, 't', "f32" },    { "f64", 64, 'd', "f64" },
	{ "u8", 8, 'i', "s32" },       { "s8", 8, 'i', "s32" },       { "u4", 4, 'n', "s32" },       { "s4", 4, 'n', "s32" },
	{ "b1", 1, '1', "s32" },       { "e4m3", 8, '8', "f16 f32" }, { "e5m2", 8, '8', "f16 f32" }, { "e3m2", 8, '8', "f16 f32" },
	{ "e2m3", 8, '8', "f16 f32" }, { "e2m1", 8, '8', "f16 f32" }, { "f32", 32, 0, "" },          { "s32", 32, 0, "" },
};

static const struct type *find_type(const char *text)
{
	for (size_t i = 0; i < sizeof types / sizeof *types; i++)
		if (!strcmp(types[i].name, text))
			return &types[i];
	return NULL;
}

/* Read the types of d, a, b and c, and the sizes of the matrices.  Returns false if the instruction does not have four types. */
static bool read_form(const struct strict *s, const gpul_ptx_inst *in, const struct type *of[4], unsigned size[3])
{
	unsigned n = 0;

	for (unsigned i = 0; i < in->n_mods; i++) {
		const char *text = gpul_ptx_mod_text(s->m, in->mods[i]);
		const struct type *t = find_type(text);

		if (text[0] == 'm' && sscanf(text, "m%un%uk%u", &size[0], &size[1], &size[2]) == 3)
			continue;
		if (t && n == 4)
			return false;
		if (t)
			of[n++] = t;
	}
	return n == 4 && size[0];
}

/* Check that the layouts of a and b are .row.col.  any: all layouts are valid, as for m8n8k4 with .f16. */
static gpul_status check_layouts(struct strict *s, const gpul_ptx_inst *in, bool any)
{
	const char *layouts[2] = { "", "" };
	unsigned n = 0;

	for (unsigned i = 0; i < in->n_mods; i++) {
		const char *text = gpul_ptx_mod_text(s->m, in->mods[i]);

		if (strcmp(text, "row") && strcmp(text, "col"))
			continue;
		if (n == 2)
			return strict_fail_inst(s, in, "mma has more than two layouts: expected those of a and b, as in .row.col");
		layouts[n++] = text;
	}
	if (n < 2 || (!any && (strcmp(layouts[0], "row") || strcmp(layouts[1], "col"))))
		return strict_fail_inst(s, in, "mma needs the layouts of a and b: expected .row.col");
	return GPUL_OK;
}

gpul_status strict_check_matrix_types(struct strict *s, const gpul_ptx_inst *in)
{
	const struct type *of[4];
	unsigned size[3] = { 0 };

	if (!read_form(s, in, of, size))
		return strict_fail_inst(s, in, "mma needs a shape such as .m16n8k16, and four types: of the result, of a, of b and of c");
	if (!of[1]->group || of[1]->group != of[2]->group)
		return strict_fail_inst(s, in, "mma cannot multiply .%s by .%s", of[1]->name, of[2]->name);
	for (unsigned k = 0; k < 4; k += 3)
		if (!strstr(of[1]->sums, of[k]->name))
			return strict_fail_inst(s, in, "mma with .%s cannot have sums of type .%s: expected %s", of[1]->name, of[k]->name,
						of[1]->sums);
	if (of[0]->bits < of[3]->bits)
		return strict_fail_inst(s, in, "mma: the result is .%s, which is narrower than c, .%s", of[0]->name, of[3]->name);
	return check_layouts(s, in, of[1]->group == 'h' && size[0] == 8);
}

/* Return the number of registers of operand k: 0 is d, 1 is a, 2 is b, 3 is c. narrow: an element of type .e2m1 takes 4 bits;
 * otherwise it takes 8, of which some are unused. */
static unsigned count_registers(const struct type *t, unsigned k, const unsigned size[3], bool sparse, bool narrow)
{
	const unsigned bits = narrow && t->group == '8' ? 4 : t->bits;
	unsigned elements = k == 1 ? size[0] * size[2] / (sparse ? 2 : 1) : k == 2 ? size[2] * size[1] : size[0] * size[1], n;

	if (size[0] == 8 && size[2] == 4 && bits < 64)
		elements *= QUADS;
	n = bits < 32 ? elements / LANES * bits / 32 : elements / LANES;
	return n ? n : 1;
}

/* Return the type of a register operand; NONE: the operand is not a register. */
static unsigned element_type(const struct strict *s, const gpul_ptx_operand *o)
{
	return o->kind == GPUL_PTX_OP_REG ? gpul_ptx_reg_row(s->f, o->index)->type : GPUL_PTX_MOD_NONE;
}

static bool is_integer(unsigned type)
{
	return (type >= GPUL_PTX_MOD_U8 && type <= GPUL_PTX_MOD_U64) || (type >= GPUL_PTX_MOD_S8 && type <= GPUL_PTX_MOD_S64);
}

static gpul_status check_elements(struct strict *s, const gpul_ptx_inst *in, const gpul_ptx_operand *o, unsigned number,
				  const struct type *t)
{
	const gpul_ptx_operand *child = &s->f->operands[o->first_child];
	const unsigned bytes = t->bits == 64 ? 8 : 4;
	const bool is_float = !strcmp(t->name, "f32") || t->bits == 64;
	unsigned n_floats = 0;

	for (uint32_t i = 0; i < o->n_children; i++, child++) {
		const unsigned have = element_type(s, child);

		if (is_float && ((child->kind == GPUL_PTX_OP_INT && bytes == 4) || is_integer(have)))
			return strict_fail_inst(s, in, "mma: the elements of operand %u must have the type .%s", number, t->name);
		if (child->kind == GPUL_PTX_OP_REG && child->negated)
			return strict_fail_inst(s, in, "mma: operand %u must have registers without a sign", number);
		if (child->kind == GPUL_PTX_OP_SYMBOL)
			return strict_fail_inst(s, in, "mma: operand %u must have registers, not variables", number);
		if (have && have != GPUL_PTX_MOD_PRED && gpul_ptx_type_bytes(have) != bytes)
			return strict_fail_inst(s, in, "mma: operand %u must have registers of %u bits", number, bytes * 8);
		n_floats += have == GPUL_PTX_MOD_F32;
	}
	if (!is_float && n_floats == o->n_children)
		return strict_fail_inst(s, in, "mma: operand %u must have registers of type .b32, not .f32", number);
	return GPUL_OK;
}

gpul_status strict_check_matrix(struct strict *s, const gpul_ptx_inst *in, const gpul_ptx_operand *o, unsigned number)
{
	const struct type *of[4];
	unsigned size[3] = { 0 }, k = number - 1, n;
	bool sparse = strict_has_text(s, in, "sp") || strict_has_text(s, in, "sp::ordered_metadata");

	if (!read_form(s, in, of, size))
		return GPUL_OK;
	n = count_registers(of[k], k, size, sparse, strict_has_text(s, in, "kind::mxf4") || strict_has_text(s, in, "kind::mxf4nvf4"));
	if (o->kind == GPUL_PTX_OP_REG && (sparse || gpul_ptx_reg_row(s->f, o->index)->vector > 1))
		return GPUL_OK;
	if (o->kind != GPUL_PTX_OP_VECTOR)
		return strict_fail_inst(s, in, "mma: operand %u must be a vector of %u registers in braces", number, n);
	if (o->n_children != n)
		return strict_fail_inst(s, in, "mma: operand %u has %u registers: expected %u", number, o->n_children, n);
	return check_elements(s, in, o, number, of[k]);
}
