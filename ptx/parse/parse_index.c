/* parse_index.c — parses array[index], the address of an element: PTX ISA 9.0, 6.4.2.
 *
 * A constant index is an offset.  For a register, instructions that compute the address are inserted before the instruction,
 * because the module's data structures have no such operand.  As in ptxas, the index is the lower 32 bits of the register,
 * unsigned, whatever its type.
 *
 *     ld.global.f32 x, a[r+1];      add.u32 __index7, r, 1;
 *                                   mul.lo.u32 __index8, __index7, 4;               4: the size of an element of a
 *                                   mov.u64 __index9, a;
 *                                   mad.wide.u32 __index9, __index8, 1, __index9;
 *                                   ld.global.f32 x, [__index9];
 *
 * The offset also has 32 bits, so with 4-byte elements a[-1] is 0xFFFFFFFC bytes past a. */
#include "ptx/parse/parser_internal.h"

#include <stdio.h>

#include "ptx/vocabulary_internal.h"

/* Declare a register with a name that the text does not use.  Returns its flat number (see gpul_ptx_func). */
static uint32_t declare_register(ptx_parser *p, const ptx_token *where, uint16_t type)
{
	const uint32_t flat = p->func.n_flat_regs, row = PTX_N(p->regs);
	uint32_t name, number = flat, n;
	ptx_found f;
	char text[32];

	do
		n = (uint32_t)snprintf(text, sizeof text, "__index%u", number++);
	while (ptx_names_find(&p->names, text, n, &f));
	name = ptx_names_intern(&p->names, text, n);
	if (flat >= PTX_MAX_REGISTERS)
		ptx_fail_at(p, where, "a function can have at most %d registers", PTX_MAX_REGISTERS);
	else if (!name || !ptx_names_bind(&p->names, name, PTX_IS_REGS, row, 0))
		ptx_fail_memory(p);
	*ptx_push(p, &p->regs) = (gpul_ptx_regs){ .name = name, .type = type, .vector = 1, .first = flat, .count = 1, .scope = p->scope };
	*ptx_push(p, &p->items) = (gpul_ptx_item){ GPUL_PTX_ITEM_REGS, row };
	p->func.n_flat_regs++;
	return flat;
}

static gpul_ptx_operand register_of(uint32_t flat)
{
	return (gpul_ptx_operand){ .kind = GPUL_PTX_OP_REG, .index = flat };
}

static gpul_ptx_operand integer_of(int64_t i)
{
	return (gpul_ptx_operand){ .kind = GPUL_PTX_OP_INT, .value.i = i };
}

static void add_instruction(ptx_parser *p, const ptx_token *where, gpul_ptx_inst in, const gpul_ptx_operand *operands)
{
	in.guard = GPUL_PTX_NONE;
	in.first_operand = PTX_N(p->operands);
	in.line = where->line;
	in.column = (uint32_t)(where->text - where->line_start) + 1;
	in.loc = p->loc;
	for (unsigned k = 0; k < in.n_operands; k++)
		*ptx_push(p, &p->operands) = operands[k];
	*ptx_push(p, &p->items) = (gpul_ptx_item){ GPUL_PTX_ITEM_INST, PTX_N(p->insts) };
	*ptx_push(p, &p->insts) = in;
}

/* Return the type for the instruction that converts an index of this type to 32 bits; 0: the type is not an integer. */
static uint16_t index_type(unsigned type)
{
	if (type == GPUL_PTX_MOD_F16 || type == GPUL_PTX_MOD_F32 || type == GPUL_PTX_MOD_F64)
		return 0;
	switch (gpul_ptx_type_bytes(type)) {
	case 2:
		return GPUL_PTX_MOD_U16;
	case 4:
		return GPUL_PTX_MOD_U32;
	case 8:
		return GPUL_PTX_MOD_U64;
	default:
		return 0;
	}
}

/* Add instructions that compute the index in a 32-bit register, and return that register. */
static gpul_ptx_operand add_index(ptx_parser *p, const ptx_token *where, gpul_ptx_operand index, uint16_t type)
{
	const int64_t plus = index.value.i;

	index.value.i = 0;
	if (type != GPUL_PTX_MOD_U32) {
		const gpul_ptx_operand cvt[] = { register_of(declare_register(p, where, GPUL_PTX_MOD_B32)), index };

		add_instruction(p, where,
				(gpul_ptx_inst){ .opcode = GPUL_PTX_CVT, .n_mods = 2, .mods = { GPUL_PTX_MOD_U32, type }, .n_operands = 2 },
				cvt);
		index = cvt[0];
	}
	if (plus) {
		const gpul_ptx_operand add[] = { register_of(declare_register(p, where, GPUL_PTX_MOD_B32)), index, integer_of(plus) };

		add_instruction(p, where,
				(gpul_ptx_inst){ .opcode = GPUL_PTX_ADD, .n_mods = 1, .mods = { GPUL_PTX_MOD_U32 }, .n_operands = 3 }, add);
		index = add[0];
	}
	return index;
}

/* Add instructions that compute the address of element `index` of a symbol, and return the register with the address. */
static gpul_ptx_operand add_address(ptx_parser *p, const ptx_token *where, const gpul_ptx_operand *symbol, gpul_ptx_operand index,
				    uint16_t type, unsigned element_bytes)
{
	const gpul_ptx_operand low = add_index(p, where, index, type), offset = register_of(declare_register(p, where, GPUL_PTX_MOD_B32)),
			       address = register_of(declare_register(p, where, GPUL_PTX_MOD_B64));
	const gpul_ptx_operand mul[] = { offset, low, integer_of(element_bytes) }, mov[] = { address, *symbol },
			       mad[] = { address, offset, integer_of(1), address };

	add_instruction(p, where,
			(gpul_ptx_inst){
				.opcode = GPUL_PTX_MUL, .n_mods = 2, .mods = { GPUL_PTX_MOD_LO, GPUL_PTX_MOD_U32 }, .n_operands = 3 },
			mul);
	add_instruction(p, where, (gpul_ptx_inst){ .opcode = GPUL_PTX_MOV, .n_mods = 1, .mods = { GPUL_PTX_MOD_U64 }, .n_operands = 2 },
			mov);
	add_instruction(p, where,
			(gpul_ptx_inst){
				.opcode = GPUL_PTX_MAD, .n_mods = 2, .mods = { GPUL_PTX_MOD_WIDE, GPUL_PTX_MOD_U32 }, .n_operands = 4 },
			mad);
	return address;
}

/* Parse r or r+1 as an index.  Returns the type for its conversion, from index_type(). */
static uint16_t parse_index_register(ptx_parser *p, gpul_ptx_operand *index)
{
	const ptx_token where = p->tok;
	const gpul_ptx_regs *row;
	ptx_found f = { 0 };
	uint16_t type;

	ptx_next(p);
	if (p->status || !ptx_find_symbol(p, &where, &f))
		return 0;
	row = f.what == PTX_IS_REGS ? &p->regs.at[f.row] : NULL;
	type = row && row->vector == 1 ? index_type(row->type) : 0;
	if (!type) {
		ptx_fail_at(p, &where, "'%.*s' cannot be an index: expected a constant or an integer register", (int)where.bytes,
			    where.text);
		return 0;
	}
	*index = register_of(row->first + f.number);
	if (ptx_accept(p, '+'))
		index->value.i = (int64_t)ptx_parse_expr(p).bits;
	return type;
}

/* True if the instruction accesses the array element, as ld and st do. mov and cvta only take its address. */
static bool accesses_memory(unsigned opcode)
{
	return opcode == GPUL_PTX_LD || opcode == GPUL_PTX_LDU || opcode == GPUL_PTX_ST || opcode == GPUL_PTX_ATOM ||
	       opcode == GPUL_PTX_RED;
}

/* Parse a constant index, which may be negative, and return the offset of its element in bytes. */
static int64_t parse_constant_offset(ptx_parser *p, unsigned element_bytes)
{
	const ptx_token where = p->tok;
	const ptx_value v = ptx_parse_expr(p);

	if (v.kind != PTX_S64 && v.kind != PTX_U64)
		ptx_fail_at(p, &where, "an index must be an integer");
	return (uint32_t)(v.bits * element_bytes);
}

void ptx_parse_index(ptx_parser *p, gpul_ptx_operand *o)
{
	const ptx_token where = p->tok;
	gpul_ptx_operand index = { 0 }, base;
	const gpul_ptx_var *v = NULL;
	unsigned element_bytes;
	uint16_t type;

	if (o->ref_kind == GPUL_PTX_REF_MODULE_VAR)
		v = &p->module_vars.at[o->index];
	else if (o->ref_kind == GPUL_PTX_REF_FUNC_VAR)
		v = &p->func_vars.at[o->index];
	ptx_next(p);
	if (!v || v->space == GPUL_PTX_MOD_PARAM) {
		ptx_fail_at(p, &where, "only a variable can be indexed");
		return;
	}
	element_bytes = gpul_ptx_type_bytes(v->type) * v->vector;
	if (p->tok.kind != PTX_TOK_WORD || ptx_tok_is(&p->tok, PTX_TOK_WORD, "WARP_SZ")) {
		o->value.i = parse_constant_offset(p, element_bytes);
	} else {
		type = parse_index_register(p, &index);
		if (type)
			*o = add_address(p, &where, o, index, type, element_bytes);
	}
	ptx_expect(p, ']', "an index");
	if (!accesses_memory(p->opcode))
		return;
	base = *o;
	*o = (gpul_ptx_operand){ .kind = GPUL_PTX_OP_ADDRESS, .n_children = 1, .first_child = PTX_N(p->operands), .value.i = base.value.i };
	base.value.i = 0;
	*ptx_push(p, &p->operands) = base;
}
