/* print_inst.c — prints operands and instructions, and appends text to a buffer. */
#include "ptx/print_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- appending text ---------------------------------------------------------------------- */

static bool grow_text(ptx_out *o, size_t n_bytes)
{
	size_t room = o->room ? o->room : 4096;

	while (room < o->n + n_bytes)
		room *= 2;
	char *text = realloc(o->text, room);
	if (!text) {
		o->failed = true;
		return false;
	}
	o->text = text;
	o->room = room;
	return true;
}

void ptx_put_bytes(ptx_out *o, const char *text, size_t n_bytes)
{
	size_t fits = n_bytes;

	if (o->failed)
		return;
	if (o->fixed) /* if the buffer is fixed, .n may already exceed its size */
		fits = o->n >= o->room ? 0 : o->room - o->n < n_bytes ? o->room - o->n : n_bytes;
	else if (o->room - o->n < n_bytes && !grow_text(o, n_bytes))
		return;
	if (fits)
		memcpy(o->text + o->n, text, fits);
	o->n += n_bytes;
}

void ptx_put(ptx_out *o, const char *text)
{
	ptx_put_bytes(o, text, strlen(text));
}

void ptx_put_unsigned(ptx_out *o, uint64_t u)
{
	char digits[20];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + u % 10);
	while (u /= 10);
	ptx_put_bytes(o, digits + at, sizeof digits - at);
}

void ptx_put_int(ptx_out *o, int64_t i)
{
	if (i < 0)
		ptx_put(o, "-");
	ptx_put_unsigned(o, i < 0 ? 0 - (uint64_t)i : (uint64_t)i);
}

void ptx_put_hex(ptx_out *o, const char *before, uint64_t u, int n_digits)
{
	char digits[16];

	for (int i = 0; i < n_digits; i++)
		digits[i] = "0123456789ABCDEF"[u >> 4 * (n_digits - 1 - i) & 15];
	ptx_put(o, before);
	ptx_put_bytes(o, digits, (size_t)n_digits);
}

void ptx_put_mod(ptx_out *o, unsigned mod)
{
	ptx_put(o, ".");
	ptx_put(o, gpul_ptx_mod_text(o->m, mod));
}

void ptx_put_offset(ptx_out *o, int64_t i)
{
	if (!i)
		return;
	ptx_put(o, "+");
	ptx_put_int(o, i);
}

/* ---- operands ---------------------------------------------------------------------------- */

static void put_selector(ptx_out *o, const gpul_ptx_operand *op)
{
	/* clang-format off */
	static const char *const texts[] = {
		[GPUL_PTX_SEL_X] = ".x",     [GPUL_PTX_SEL_Y] = ".y",
		[GPUL_PTX_SEL_Z] = ".z",     [GPUL_PTX_SEL_W] = ".w",
		[GPUL_PTX_SEL_B0] = ".b0",   [GPUL_PTX_SEL_B1] = ".b1",
		[GPUL_PTX_SEL_B2] = ".b2",   [GPUL_PTX_SEL_B3] = ".b3",
		[GPUL_PTX_SEL_H0] = ".h0",   [GPUL_PTX_SEL_H1] = ".h1",
		[GPUL_PTX_SEL_BYTES] = ".b", [GPUL_PTX_SEL_HALVES] = ".h",
		[GPUL_PTX_SEL_UNIFIED] = ".unified",
	};
	/* clang-format on */

	if (op->selector == GPUL_PTX_SEL_NONE)
		return;
	ptx_put(o, texts[op->selector]);
	if (op->selector == GPUL_PTX_SEL_BYTES || op->selector == GPUL_PTX_SEL_HALVES)
		ptx_put_hex(o, "", (uint64_t)op->value.i & UINT32_MAX, (int)(op->value.i >> 32));
}

static void put_register_name(ptx_out *o, uint32_t flat)
{
	const gpul_ptx_regs *row = gpul_ptx_reg_row(o->f, flat);

	ptx_put(o, gpul_ptx_name(o->m, row->name));
	if (row->ranged)
		ptx_put_unsigned(o, (flat - row->first) / row->vector);
}

static void put_register(ptx_out *o, const gpul_ptx_operand *op)
{
	if (op->negated)
		ptx_put(o, gpul_ptx_reg_row(o->f, op->index)->type == GPUL_PTX_MOD_PRED ? "!" : "-");
	put_register_name(o, op->index);
	put_selector(o, op);
	if (op->selector != GPUL_PTX_SEL_BYTES && op->selector != GPUL_PTX_SEL_HALVES)
		ptx_put_offset(o, op->value.i);
}

static gpul_ptx_str symbol_name(const ptx_out *o, const gpul_ptx_operand *op)
{
	switch (op->ref_kind) {
	case GPUL_PTX_REF_MODULE_VAR:
		return o->m->vars[op->index].name;
	case GPUL_PTX_REF_FUNC_VAR:
		return o->f->vars[op->index].name;
	case GPUL_PTX_REF_PARAM:
		return o->f->params[op->index].name;
	case GPUL_PTX_REF_RET:
		return o->f->rets[op->index].name;
	default:
		return o->m->funcs[op->index].name;
	}
}

static void put_children(ptx_out *o, const gpul_ptx_operand *op, const char *open, const char *between, const char *close)
{
	ptx_put(o, open);
	for (uint32_t i = 0; i < op->n_children; i++) {
		if (i)
			ptx_put(o, between);
		ptx_put_operand(o, &o->f->operands[op->first_child + i]);
		if (i == 0 && op->kind == GPUL_PTX_OP_ADDRESS)
			ptx_put_offset(o, op->value.i);
	}
	ptx_put(o, close);
}

void ptx_put_operand(ptx_out *o, const gpul_ptx_operand *op)
{
	switch (op->kind) {
	case GPUL_PTX_OP_REG:
		put_register(o, op);
		break;
	case GPUL_PTX_OP_SPECIAL:
		ptx_put(o, "%");
		ptx_put(o, gpul_ptx_special_text((gpul_ptx_special)op->index));
		break;
	case GPUL_PTX_OP_INT:
		ptx_put_int(o, op->value.i);
		break;
	case GPUL_PTX_OP_F32:
		ptx_put_hex(o, "0f", op->value.f32, 8);
		break;
	case GPUL_PTX_OP_F64:
		ptx_put_hex(o, "0d", op->value.f64, 16);
		break;
	case GPUL_PTX_OP_SYMBOL:
		ptx_put(o, gpul_ptx_name(o->m, symbol_name(o, op)));
		ptx_put_offset(o, op->value.i);
		break;
	case GPUL_PTX_OP_LABEL:
		ptx_put(o, gpul_ptx_name(o->m, o->f->labels[op->index].name));
		break;
	case GPUL_PTX_OP_ADDRESS:
		put_children(o, op, "[", ", ", "]");
		put_selector(o, op);
		break;
	case GPUL_PTX_OP_VECTOR:
		put_children(o, op, "{", ", ", "}");
		break;
	case GPUL_PTX_OP_PAIR:
		put_children(o, op, "", "|", "");
		break;
	case GPUL_PTX_OP_LIST:
		put_children(o, op, "(", ", ", ")");
		break;
	default:
		ptx_put(o, "_");
	}
}

/* ---- instructions ------------------------------------------------------------------------ */

void ptx_put_inst(ptx_out *o, const gpul_ptx_inst *in)
{
	if (in->guard != GPUL_PTX_NONE) {
		ptx_put(o, in->guard_negated ? "@!" : "@");
		put_register_name(o, in->guard);
		ptx_put(o, " ");
	}
	ptx_put(o, gpul_ptx_opcode_text((gpul_ptx_opcode)in->opcode));
	for (unsigned i = 0; i < in->n_mods; i++)
		ptx_put_mod(o, in->mods[i]);
	for (unsigned i = 0; i < in->n_operands; i++) {
		ptx_put(o, i ? ", " : " ");
		ptx_put_operand(o, &o->f->operands[in->first_operand + i]);
	}
	ptx_put(o, ";");
}

size_t gpul_ptx_print_inst(const gpul_ptx_module *m, const gpul_ptx_func *f, const gpul_ptx_inst *inst, char *buf, size_t buf_bytes)
{
	ptx_out o = { .text = buf, .room = buf_bytes ? buf_bytes - 1 : 0, .fixed = true, .m = m, .f = f };

	ptx_put_inst(&o, inst);
	if (buf_bytes)
		buf[o.n < o.room ? o.n : o.room] = 0;
	return o.n;
}
