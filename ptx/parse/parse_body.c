/* parse_body.c — parses the statements of a function body: PTX ISA 9.0, 4.2, 9 and 11. */
#include "ptx/parse/parser_internal.h"

#include "ptx/vocabulary_internal.h"

static void parse_block(ptx_parser *p);

static void push_item(ptx_parser *p, int kind, uint32_t index)
{
	gpul_ptx_item *i = ptx_push(p, &p->items);

	i->kind = (uint32_t)kind;
	i->index = index;
}

/* ---- instructions ------------------------------------------------------------------------ */

static void parse_mods(ptx_parser *p, gpul_ptx_inst *in)
{
	while (p->tok.kind == PTX_TOK_DOT) {
		if (in->n_mods == GPUL_PTX_MAX_MODS) {
			ptx_fail_at(p, &p->tok, "an instruction has at most %d modifiers", GPUL_PTX_MAX_MODS);
			return;
		}
		in->mods[in->n_mods++] = ptx_mod_of(p, &p->tok);
		ptx_next(p);
	}
}

static void check_operand_count(ptx_parser *p, const gpul_ptx_inst *in, const ptx_token *where)
{
	unsigned least, most;

	ptx_operand_limits(in->opcode, &least, &most);
	if (in->n_operands >= least && in->n_operands <= most)
		return;
	const char *name = gpul_ptx_opcode_text((gpul_ptx_opcode)in->opcode);
	if (least == most)
		ptx_fail_at(p, where, "%s requires %u operands, not %u", name, least, in->n_operands);
	else
		ptx_fail_at(p, where, "%s requires %u to %u operands, not %u", name, least, most, in->n_operands);
}

static void parse_operands(ptx_parser *p, gpul_ptx_inst *in)
{
	bool call = in->opcode == GPUL_PTX_CALL;
	unsigned labels = in->opcode == GPUL_PTX_BRA   ? PTX_LABEL(GPUL_PTX_LABEL_CODE)
			  : in->opcode == GPUL_PTX_BRX ? PTX_LABEL(GPUL_PTX_LABEL_BRANCHTARGETS)
						       : 0;
	unsigned n = 0;

	p->siblings.n = 0;
	if (p->tok.kind != ';')
		do {
			if (call)
				ptx_parse_call_operand(p);
			else
				ptx_parse_operand(p, labels);
		} while (++n <= UINT8_MAX && ptx_accept(p, ','));
	if (n > UINT8_MAX)
		ptx_fail_at(p, &p->tok, "an instruction has at most %d operands", UINT8_MAX);
	in->n_operands = (uint8_t)n;
	in->first_operand = ptx_place_siblings(p, 0);
}

static uint16_t opcode_of(ptx_parser *p, const ptx_token *t)
{
	int opcode = ptx_find_opcode(t->text, t->bytes);
	const char *near;

	if (opcode >= 0)
		return (uint16_t)opcode;
	near = ptx_near_opcode(t->text, t->bytes);
	ptx_fail_at(p, t, "unknown instruction '%.*s'%s%s%s", (int)t->bytes, t->text, near ? "; did you mean '" : "", near ? near : "",
		    near ? "'?" : "");
	return 0;
}

/* Parse the rest of an instruction.  Its opcode t has been consumed, and in->guard and guard_negated are set. */
static void parse_instruction(ptx_parser *p, const ptx_token *t, gpul_ptx_inst *in)
{
	in->line = t->line;
	in->column = (uint32_t)(t->text - t->line_start) + 1;
	in->loc = p->loc;
	in->opcode = p->opcode = opcode_of(p, t);
	parse_mods(p, in);
	parse_operands(p, in);
	if (p->tok.kind != ';' && !p->status)
		ptx_expect(p, ';', gpul_ptx_opcode_text((gpul_ptx_opcode)in->opcode));
	check_operand_count(p, in, t);
	ptx_accept(p, ';');
	push_item(p, GPUL_PTX_ITEM_INST, PTX_N(p->insts));
	*ptx_push(p, &p->insts) = *in;
}

/* Parse the guard @p or @!p of an instruction, after the '@'. */
static void parse_guarded(ptx_parser *p)
{
	gpul_ptx_inst in = { .guard_negated = ptx_accept(p, '!') };
	ptx_token where, opcode;
	ptx_found f = { 0 };

	ptx_expect_word(p, "a predicate register", &where);
	if (p->status || !ptx_find_symbol(p, &where, &f))
		return;
	const gpul_ptx_regs *row = f.what == PTX_IS_REGS ? &p->regs.at[f.row] : NULL;
	if (!row || row->type != GPUL_PTX_MOD_PRED) {
		ptx_fail_at(p, &where, "a guard must be a .pred register");
		return;
	}
	in.guard = row->first + f.number * row->vector;
	ptx_expect_word(p, "an instruction", &opcode);
	if (!p->status)
		parse_instruction(p, &opcode, &in);
}

/* ---- labels ------------------------------------------------------------------------------ */

/* Parse the list "a, b, c;" after .branchtargets or .calltargets. */
static void parse_targets(ptx_parser *p, gpul_ptx_label *l)
{
	p->siblings.n = 0;
	do
		ptx_parse_operand(p, l->kind == GPUL_PTX_LABEL_BRANCHTARGETS ? PTX_LABEL(GPUL_PTX_LABEL_CODE) : 0);
	while (ptx_accept(p, ','));
	l->n_targets = PTX_N(p->siblings);
	l->first_target = ptx_place_siblings(p, 0);
	ptx_expect(p, ';', "a list of targets");
}

/* Parse the rest of a label, whose name and ':' have been consumed.  A list of targets or a prototype may follow. */
static void parse_label(ptx_parser *p, const ptx_token *name)
{
	gpul_ptx_label l = {
		.name = ptx_intern_tok(p, name), .inst = PTX_N(p->insts), .scope = p->scope, .prototype = GPUL_PTX_NONE, .line = name->line
	};
	uint32_t row = PTX_N(p->labels);

	ptx_bind(p, name, l.name, PTX_IS_LABEL, row, 0);
	ptx_push(p, &p->labels);
	push_item(p, GPUL_PTX_ITEM_LABEL, row);
	if (ptx_accept_dot(p, "branchtargets")) {
		l.kind = GPUL_PTX_LABEL_BRANCHTARGETS;
		parse_targets(p, &l);
	} else if (ptx_accept_dot(p, "calltargets")) {
		l.kind = GPUL_PTX_LABEL_CALLTARGETS;
		parse_targets(p, &l);
	} else if (ptx_accept_dot(p, "callprototype")) {
		l.kind = GPUL_PTX_LABEL_CALLPROTOTYPE;
		l.prototype = ptx_parse_prototype(p);
	}
	if (!p->status)
		p->labels.at[row] = l;
}

/* Parse a statement that begins with a word: a label, or an instruction without a guard. */
static void parse_word(ptx_parser *p)
{
	gpul_ptx_inst in = { .guard = GPUL_PTX_NONE };
	ptx_token t = p->tok;

	ptx_next(p);
	if (ptx_accept(p, ':'))
		parse_label(p, &t);
	else
		parse_instruction(p, &t, &in);
}

/* ---- directives -------------------------------------------------------------------------- */

/* Parse the end of a .loc: ", function_name $L__info_string0 + 12, inlined_at 1 20 5". */
static void parse_loc_inlined(ptx_parser *p, gpul_ptx_loc *l)
{
	do {
		ptx_token t = p->tok;

		ptx_next(p);
		if (ptx_tok_is(&t, PTX_TOK_WORD, "function_name")) {
			l->function_label = ptx_expect_word(p, "a label of .debug_str", NULL);
			if (ptx_accept(p, '+'))
				l->function_offset = (uint32_t)ptx_parse_integer(p, "an offset");
		} else if (ptx_tok_is(&t, PTX_TOK_WORD, "inlined_at")) {
			l->at_file = (uint32_t)ptx_parse_integer(p, "a file number");
			l->at_line = (uint32_t)ptx_parse_integer(p, "a line");
			l->at_column = (uint32_t)ptx_parse_integer(p, "a column");
		} else {
			ptx_fail_at(p, &t, "expected function_name or inlined_at");
		}
	} while (ptx_accept(p, ','));
}

/* Parse "file line column" after .loc; no ';' follows. */
static void parse_loc(ptx_parser *p)
{
	gpul_ptx_loc l = { 0 };

	l.file = (uint32_t)ptx_parse_integer(p, "a file number");
	l.line = (uint32_t)ptx_parse_integer(p, "a line");
	l.column = (uint32_t)ptx_parse_integer(p, "a column");
	if (ptx_accept(p, ','))
		parse_loc_inlined(p, &l);
	ptx_accept(p, ';');
	p->loc = PTX_N(p->locs);
	push_item(p, GPUL_PTX_ITEM_LOC, p->loc);
	*ptx_push(p, &p->locs) = l;
}

static void parse_directive(ptx_parser *p)
{
	if (ptx_accept_dot(p, "loc"))
		parse_loc(p);
	else if (ptx_accept_dot(p, "reg"))
		ptx_parse_registers(p);
	else if (ptx_accept_dot(p, "pragma"))
		ptx_parse_pragma(p, &p->items);
	else if (ptx_at_variable(&p->tok))
		ptx_parse_variables(p, GPUL_PTX_STATIC);
	else if (ptx_accept_dot(p, "extern"))
		ptx_parse_variables(p, GPUL_PTX_EXTERN);
	else
		ptx_fail_at(p, &p->tok, "unknown directive '.%.*s' in a function body", (int)p->tok.bytes, p->tok.text);
}

/* ---- statements -------------------------------------------------------------------------- */

static void parse_statement(ptx_parser *p)
{
	switch (p->tok.kind) {
	case PTX_TOK_WORD:
		parse_word(p);
		break;
	case PTX_TOK_DOT:
		parse_directive(p);
		break;
	case '@':
		ptx_next(p);
		parse_guarded(p);
		break;
	case '{':
		parse_block(p);
		break;
	default:
		ptx_fail_at(p, &p->tok, "expected an instruction, a label or a directive");
	}
}

/* Parse { statements } as an inner scope.  The function body itself is scope 0. */
static void parse_block(ptx_parser *p)
{
	uint32_t row = PTX_N(p->scopes), parent = p->scope;
	size_t unresolved = p->unresolved.n;
	ptx_token open = p->tok;

	if (!ptx_enter(p))
		return;
	ptx_expect(p, '{', "a function");
	if (row)
		push_item(p, GPUL_PTX_ITEM_OPEN, row);
	gpul_ptx_scope *s = ptx_push(p, &p->scopes);
	s->parent = parent;
	s->open = row ? PTX_N(p->items) - 1 : 0;
	p->scope = row;
	ptx_names_open_scope(&p->names);
	while (p->tok.kind != '}' && !ptx_ended(p))
		parse_statement(p);
	if (p->tok.kind == PTX_TOK_END)
		ptx_fail_at(p, &open, "this '{' has no '}': the file is truncated");
	ptx_resolve_labels(p, unresolved, row == 0);
	ptx_expect(p, '}', "a body");
	ptx_names_close_scope(&p->names);
	if (!p->status)
		p->scopes.at[row].close = PTX_N(p->items);
	if (row)
		push_item(p, GPUL_PTX_ITEM_CLOSE, row);
	p->scope = parent;
	ptx_leave(p);
}

void ptx_parse_body(ptx_parser *p)
{
	p->in_body = true;
	if (p->skips_bodies)
		ptx_skip_body(p);
	else
		parse_block(p);
	p->in_body = false;
}
