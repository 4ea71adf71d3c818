/* parse_operand.c — parses operands, and resolves the names in them: PTX ISA 9.0, chapter 6.
 *
 * The children of an operand must be adjacent entries of func->operands, but they may have children themselves.  So
 * operands are first pushed to a stack, p->siblings; when a group of children is complete, it is popped and
 * moved to adjacent entries. */
#include "ptx/parse/parser_internal.h"

#include <stdio.h>
#include <string.h>

#include "ptx/vocabulary_internal.h"

static void push_operand(ptx_parser *p, const gpul_ptx_operand *o)
{
	*ptx_push(p, &p->siblings) = *o;
}

uint32_t ptx_place_siblings(ptx_parser *p, uint32_t first)
{
	uint32_t row = PTX_N(p->operands);

	if (p->status)
		return 0;
	for (uint32_t i = first; i < p->siblings.n; i++) {
		gpul_ptx_operand *o = ptx_push(p, &p->operands);

		*o = p->siblings.at[i];
		if (o->kind == GPUL_PTX_OP_LABEL && o->index == GPUL_PTX_NONE)
			p->unresolved.at[o->value.i].operand = row + i - first;
	}
	p->siblings.n = first;
	return row;
}

/* ---- names ------------------------------------------------------------------------------- */

/* Return the selector for an element of a vector register: .x .y .z .w or .r .g .b .a. 0: no such selector. */
static unsigned element_selector(const ptx_token *t)
{
	const char *at = t->bytes == 1 ? strchr("xyzwrgba", *t->text) : NULL;

	return at && *at ? GPUL_PTX_SEL_X + (unsigned)(at - "xyzwrgba") % 4 : 0;
}

/* Read a selector of the video instructions: .b0 .h1 .b3210 .h10.  Returns false if it is not such a selector. */
static bool video_selector(const ptx_token *t, gpul_ptx_operand *o)
{
	bool halves = t->text[0] == 'h';
	uint32_t n = t->bytes - 1;

	if (t->text[0] != 'b' && !halves)
		return false;
	if (n < 1 || n > (halves ? 2 : 4))
		return false;
	int64_t digits = 0;
	for (uint32_t i = 1; i <= n; i++) {
		if (t->text[i] < '0' || t->text[i] > (halves ? '3' : '7'))
			return false;
		digits = digits << 4 | (t->text[i] - '0');
	}
	if (n == 1 && digits <= (halves ? 1 : 3)) {
		o->selector = (uint8_t)((halves ? GPUL_PTX_SEL_H0 : GPUL_PTX_SEL_B0) + digits);
		return true;
	}
	o->selector = halves ? GPUL_PTX_SEL_HALVES : GPUL_PTX_SEL_BYTES;
	o->value.i = digits | (int64_t)n << 32;
	return true;
}

static void parse_selector(ptx_parser *p, const gpul_ptx_regs *row, gpul_ptx_operand *o)
{
	ptx_token t = p->tok;
	unsigned element = element_selector(&t);

	if (row->vector > 1 && element) {
		if (element - GPUL_PTX_SEL_X >= row->vector)
			ptx_fail_at(p, &t, "this vector register has only %u elements", row->vector);
		o->index += element - GPUL_PTX_SEL_X;
		o->selector = (uint8_t)element;
	} else if (row->vector > 1 || !video_selector(&t, o)) {
		ptx_fail_at(p, &t, "'.%.*s' is not a part of this register", (int)t.bytes, t.text);
	}
	ptx_next(p);
}

static void register_operand(ptx_parser *p, const ptx_found *f, gpul_ptx_operand *o)
{
	const gpul_ptx_regs *row = &p->regs.at[f->row];

	o->kind = GPUL_PTX_OP_REG;
	o->index = row->first + f->number * row->vector;
	if (p->tok.kind == PTX_TOK_DOT)
		parse_selector(p, row, o);
}

/* Parse a special register such as %tid.x. t is "%tid"; the current token is its selector, ".x". */
static bool special_operand(ptx_parser *p, const ptx_token *t, gpul_ptx_operand *o)
{
	char text[64];
	int row = -1;

	if (t->text[0] != '%')
		return false;
	if (p->tok.kind == PTX_TOK_DOT && t->bytes + p->tok.bytes < sizeof text) {
		int n = snprintf(text, sizeof text, "%.*s.%.*s", (int)t->bytes - 1, t->text + 1, (int)p->tok.bytes, p->tok.text);

		row = ptx_find_special(text, (uint32_t)n);
		if (row >= 0)
			ptx_next(p);
	}
	if (row < 0)
		row = ptx_find_special(t->text + 1, t->bytes - 1);
	o->kind = GPUL_PTX_OP_SPECIAL;
	o->index = (uint32_t)row;
	return row >= 0;
}

static void unresolved_operand(ptx_parser *p, const ptx_token *t, unsigned labels, gpul_ptx_operand *o)
{
	struct ptx_unresolved *u;

	o->kind = GPUL_PTX_OP_LABEL;
	o->index = GPUL_PTX_NONE;
	o->value.i = PTX_N(p->unresolved);
	u = ptx_push(p, &p->unresolved);
	*u = (struct ptx_unresolved){ .tok = *t, .labels = labels };
}

static void symbol_operand(const ptx_found *f, gpul_ptx_operand *o)
{
	static const uint8_t ref_of[] = {
		[PTX_IS_MODULE_VAR] = GPUL_PTX_REF_MODULE_VAR,
		[PTX_IS_FUNC_VAR] = GPUL_PTX_REF_FUNC_VAR,
		[PTX_IS_PARAM] = GPUL_PTX_REF_PARAM,
		[PTX_IS_RET] = GPUL_PTX_REF_RET,
		[PTX_IS_FUNC] = GPUL_PTX_REF_FUNC,
	};

	o->kind = GPUL_PTX_OP_SYMBOL;
	o->ref_kind = ref_of[f->what];
	o->index = f->row;
}

/* Parse a name: a register, special register, symbol, or label. labels: the kinds of label that are permitted; a label may be
 * declared later. */
static void parse_name(ptx_parser *p, unsigned labels, gpul_ptx_operand *o)
{
	ptx_token t = p->tok;
	ptx_found f;
	bool found = ptx_names_find(&p->names, t.text, t.bytes, &f);
	bool only_label = labels & PTX_LABEL(GPUL_PTX_LABEL_CODE);

	ptx_next(p);
	if (only_label || (found && labels && f.what == PTX_IS_LABEL))
		unresolved_operand(p, &t, labels, o);
	else if (found && f.what == PTX_IS_REGS)
		register_operand(p, &f, o);
	else if (found && f.what == PTX_IS_LABEL)
		ptx_fail_at(p, &t, "a label cannot be an operand here");
	else if (found)
		symbol_operand(&f, o);
	else if (special_operand(p, &t, o))
		;
	else if (labels)
		unresolved_operand(p, &t, labels, o);
	else
		ptx_find_symbol(p, &t, &f); /* fails, with a message that suggests a similar name */
}

/* Check that the operand may refer to labels of this kind; fail if not. */
static bool check_label_kind(ptx_parser *p, const struct ptx_unresolved *u, const ptx_found *f)
{
	if (f->what == PTX_IS_LABEL && u->labels & PTX_LABEL(p->labels.at[f->row].kind))
		return true;
	ptx_fail_at(p, &u->tok, "'%.*s' is not %s", (int)u->tok.bytes, u->tok.text,
		    u->labels & PTX_LABEL(GPUL_PTX_LABEL_CODE)            ? "a label to branch to"
		    : u->labels & PTX_LABEL(GPUL_PTX_LABEL_BRANCHTARGETS) ? "a list of .branchtargets"
									  : "a .callprototype or a list of .calltargets");
	return false;
}

/* When a scope ends, complete the operands, from `first` on, that refer to labels of this scope. at_end: complete all unresolved
 * operands. */
void ptx_resolve_labels(ptx_parser *p, size_t first, bool at_end)
{
	struct ptx_unresolved *rows = p->unresolved.at;
	size_t kept = first;

	for (size_t i = first; i < p->unresolved.n && !p->status; i++) {
		ptx_found f;
		bool found = ptx_names_find(&p->names, rows[i].tok.text, rows[i].tok.bytes, &f);

		if (!at_end && (!found || f.depth != p->names.depth)) {
			rows[kept++] = rows[i];
		} else if (!found) {
			ptx_find_symbol(p, &rows[i].tok, &f);
		} else if (check_label_kind(p, &rows[i], &f)) {
			gpul_ptx_operand *o = &p->operands.at[rows[i].operand];

			o->index = f.row;
			o->value.i = 0;
		}
	}
	p->unresolved.n = kept;
}

/* ---- operands ---------------------------------------------------------------------------- */

static void constant_operand(ptx_parser *p, gpul_ptx_operand *o)
{
	ptx_value v = ptx_parse_expr(p);

	switch (v.kind) {
	case PTX_F32:
		o->kind = GPUL_PTX_OP_F32;
		o->value.f32 = (uint32_t)v.bits;
		break;
	case PTX_F64:
		o->kind = GPUL_PTX_OP_F64;
		o->value.f64 = v.bits;
		break;
	default:
		o->kind = GPUL_PTX_OP_INT;
		o->value.i = (int64_t)v.bits;
	}
}

/* Parse the offset after a name: + 8, - 4, + -4 */
static int64_t parse_offset(ptx_parser *p)
{
	ptx_token where = p->tok;
	uint64_t offset = 0;

	while (p->tok.kind == '+' || p->tok.kind == '-') {
		/* The sign is part of the expression: a - 8 + 4 is a + (-8 + 4). */
		bool plus = p->tok.kind == '+';

		if (plus)
			ptx_next(p);
		ptx_value v = ptx_parse_expr(p);
		if (v.kind != PTX_S64 && v.kind != PTX_U64)
			ptx_fail_at(p, &where, "an offset must be an integer");
		offset += v.bits;
	}
	return (int64_t)offset;
}

/* Parse operands up to the closing bracket.  The opening bracket has been consumed. */
static void parse_children(ptx_parser *p, int close, const char *after, gpul_ptx_operand *o)
{
	uint32_t first = PTX_N(p->siblings);

	if (p->tok.kind != close)
		do
			ptx_parse_operand(p, 0);
		while (ptx_accept(p, ','));
	ptx_expect(p, close, after);
	o->n_children = PTX_N(p->siblings) - first;
	o->first_child = ptx_place_siblings(p, first);
}

/* Parse .unified after an address: a hint for ptxas that the address is the same in all threads. */
static void parse_unified_address(ptx_parser *p, gpul_ptx_operand *o)
{
	ptx_token where = p->tok;

	if (!ptx_accept_dot(p, "unified"))
		return;
	o->selector = GPUL_PTX_SEL_UNIFIED;
	if (p->opcode != GPUL_PTX_LD && p->opcode != GPUL_PTX_LDU && p->opcode != GPUL_PTX_ATOM)
		ptx_fail_at(p, &where, "only the address of ld, ldu or atom can be .unified");
}

/* Parse an address: [base + offset], and [map, {x, y}] of textures and tensors. */
static void parse_address(ptx_parser *p, gpul_ptx_operand *o)
{
	uint32_t first = PTX_N(p->siblings);
	gpul_ptx_operand base = { 0 };

	o->kind = GPUL_PTX_OP_ADDRESS;
	if (p->tok.kind == PTX_TOK_WORD && !ptx_tok_is(&p->tok, PTX_TOK_WORD, "WARP_SZ")) {
		parse_name(p, 0, &base);
		o->value.i = parse_offset(p);
	} else {
		constant_operand(p, &base);
	}
	push_operand(p, &base);
	while (ptx_accept(p, ','))
		ptx_parse_operand(p, 0);
	ptx_expect(p, ']', "an address");
	parse_unified_address(p, o);
	o->n_children = PTX_N(p->siblings) - first;
	o->first_child = ptx_place_siblings(p, first);
}

static void parse_name_operand(ptx_parser *p, unsigned labels, gpul_ptx_operand *o)
{
	if (p->tok.bytes == 1 && *p->tok.text == '_') {
		ptx_next(p);
		o->kind = GPUL_PTX_OP_SINK;
		return;
	}
	parse_name(p, labels, o);
	if (o->kind == GPUL_PTX_OP_REG && p->tok.kind == '+' && !o->value.i)
		o->value.i = parse_offset(p); /* ptxas accepts r+1 in an address, but not r-1 */
	if (o->kind != GPUL_PTX_OP_SYMBOL)
		return;
	if (p->tok.kind == '[')
		ptx_parse_index(p, o);
	else
		o->value.i = parse_offset(p);
}

static void parse_negated(ptx_parser *p, gpul_ptx_operand *o)
{
	ptx_token sign = p->tok;
	ptx_lexer before = p->lexer;

	ptx_next(p);
	if (p->tok.kind == PTX_TOK_WORD && !ptx_tok_is(&p->tok, PTX_TOK_WORD, "WARP_SZ")) {
		parse_name(p, 0, o);
		if (o->kind != GPUL_PTX_OP_REG)
			ptx_fail_at(p, &sign, "only a register or a constant can be negated");
		o->negated = true;
	} else if (!p->status) { /* the operand is a constant expression: go back, and parse it again with its sign */
		p->lexer = before;
		p->tok = sign;
		constant_operand(p, o);
	}
}

/* Parse one operand, or one half of a pair a|b. */
static void parse_single_operand(ptx_parser *p, unsigned labels, gpul_ptx_operand *o)
{
	switch (p->tok.kind) {
	case '{':
		ptx_next(p);
		o->kind = GPUL_PTX_OP_VECTOR;
		parse_children(p, '}', "the elements of a vector", o);
		break;
	case '[':
		ptx_next(p);
		parse_address(p, o);
		break;
	case '!':
	case '-':
		parse_negated(p, o);
		break;
	case PTX_TOK_WORD:
		if (!ptx_tok_is(&p->tok, PTX_TOK_WORD, "WARP_SZ")) {
			parse_name_operand(p, labels, o);
			break;
		}
		constant_operand(p, o);
		break;
	case PTX_TOK_INT:
	case PTX_TOK_F32:
	case PTX_TOK_F64:
	case '(':
	case '+':
	case '~':
		constant_operand(p, o);
		break;
	default:
		ptx_fail_at(p, &p->tok, "expected an operand");
	}
}

void ptx_parse_operand(ptx_parser *p, unsigned labels)
{
	uint32_t first = PTX_N(p->siblings);
	gpul_ptx_operand o = { 0 };

	if (!ptx_enter(p))
		return;
	parse_single_operand(p, labels, &o);
	push_operand(p, &o);
	if (ptx_accept(p, '|')) {
		gpul_ptx_operand second = { 0 }, pair = { .kind = GPUL_PTX_OP_PAIR, .n_children = 2 };

		parse_single_operand(p, 0, &second);
		push_operand(p, &second);
		pair.first_child = ptx_place_siblings(p, first);
		push_operand(p, &pair);
	}
	ptx_leave(p);
}

/* Parse an operand of a call, which may be a list ( a, b ). */
void ptx_parse_call_operand(ptx_parser *p)
{
	gpul_ptx_operand o = { .kind = GPUL_PTX_OP_LIST };

	if (p->tok.kind != '(') {
		ptx_parse_operand(p, PTX_LABEL(GPUL_PTX_LABEL_CALLTARGETS) | PTX_LABEL(GPUL_PTX_LABEL_CALLPROTOTYPE));
		return;
	}
	ptx_next(p);
	parse_children(p, ')', "an argument list", &o);
	push_operand(p, &o);
}
