/* parse_prototype.c — parses pragmas, tuning directives and prototypes of indirect calls: PTX ISA 9.0, chapters 7 and 11. */
#include "ptx/parse/parser_internal.h"

/* Parse "nounroll"; after .pragma. */
void ptx_parse_pragma(ptx_parser *p, ptx_items *items)
{
	do {
		ptx_token t = p->tok;

		ptx_expect(p, PTX_TOK_STRING, ".pragma");
		if (items) {
			gpul_ptx_item *i = ptx_push(p, items);
			*i = (gpul_ptx_item){ GPUL_PTX_ITEM_PRAGMA, PTX_N(p->pragmas) };
		}
		*ptx_push(p, &p->pragmas) = p->status ? 0 : ptx_intern_tok(p, &t);
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';', "a pragma");
}

/* Parse one to three numbers such as "16, 2, 1"; missing numbers are set to 1. */
static void parse_triple(ptx_parser *p, int64_t triple[3])
{
	for (int i = 0; i < 3; i++)
		triple[i] = 1;
	for (int i = 0; i < 3; i++) {
		triple[i] = (int64_t)ptx_parse_integer(p, "a count");
		if (!ptx_accept(p, ','))
			return;
	}
}

/* Parse one tuning directive (.maxntid ...).  Returns false if the directive is not a tuning directive. */
static bool parse_tuning_word(ptx_parser *p, gpul_ptx_tuning *t)
{
	const struct {
		const char *text;
		int64_t *value;
		bool triple;
	} counts[] = {
		{ "maxntid", t->maxntid, true },
		{ "reqntid", t->reqntid, true },
		{ "reqnctapercluster", t->reqnctapercluster, true },
		{ "minnctapersm", &t->minnctapersm, false },
		{ "maxnctapersm", &t->maxnctapersm, false },
		{ "maxnreg", &t->maxnreg, false },
		{ "maxclusterrank", &t->maxclusterrank, false },
		{ "abi_preserve", &t->abi_preserve, false },
		{ "abi_preserve_control", &t->abi_preserve_control, false },
	};
	const struct {
		const char *text;
		bool *value;
	} flags[] = {
		{ "explicitcluster", &t->explicitcluster },
		{ "noreturn", &t->noreturn },
		{ "blocksareclusters", &t->blocksareclusters },
	};

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		if (!ptx_accept_dot(p, counts[i].text))
			continue;
		if (counts[i].triple)
			parse_triple(p, counts[i].value);
		else
			*counts[i].value = (int64_t)ptx_parse_integer(p, "a count");
		return true;
	}
	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (!ptx_accept_dot(p, flags[i].text))
			continue;
		*flags[i].value = true;
		return true;
	}
	return false;
}

bool ptx_at_module_statement(const ptx_token *t)
{
	static const char *const words[] = { "visible", "extern", "weak", "common", "entry", "func", "file", "section", "alias", "reg" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (ptx_tok_is(t, PTX_TOK_DOT, words[i]))
			return true;
	return ptx_at_variable(t);
}

void ptx_parse_tuning(ptx_parser *p, gpul_ptx_tuning *t)
{
	t->first_pragma = PTX_N(p->pragmas);
	while (p->tok.kind == PTX_TOK_DOT && !ptx_at_module_statement(&p->tok)) {
		if (ptx_accept_dot(p, "pragma"))
			ptx_parse_pragma(p, NULL);
		else if (!parse_tuning_word(p, t))
			ptx_fail_at(p, &p->tok, "unknown directive '.%.*s' of a function", (int)p->tok.bytes, p->tok.text);
	}
	t->n_pragmas = PTX_N(p->pragmas) - t->first_pragma;
}

gpul_ptx_tuning ptx_no_tuning(void)
{
	gpul_ptx_tuning t = {
		.minnctapersm = -1, .maxnctapersm = -1, .maxnreg = -1, .maxclusterrank = -1, .abi_preserve = -1, .abi_preserve_control = -1
	};

	for (int i = 0; i < 3; i++)
		t.maxntid[i] = t.reqntid[i] = t.reqnctapercluster[i] = -1;
	return t;
}

/* Parse "(.param .b32 _) _ (.param .b64 _) .noreturn;" after .callprototype. */
uint32_t ptx_parse_prototype(ptx_parser *p)
{
	gpul_ptx_func f = { .kind = GPUL_PTX_FUNC_PROTOTYPE, .definition = GPUL_PTX_NONE, .tuning = ptx_no_tuning(), .line = p->tok.line };
	uint32_t row = PTX_N(p->funcs);

	if (p->tok.kind == '(') {
		ptx_parse_params(p, &p->rets);
		f.rets = ptx_keep(p, p->rets, &f.n_rets);
	}
	f.name = ptx_expect_word(p, "'_'", NULL);
	if (p->tok.kind == '(') {
		ptx_parse_params(p, &p->params);
		f.params = ptx_keep(p, p->params, &f.n_params);
	}
	ptx_parse_tuning(p, &f.tuning);
	ptx_expect(p, ';', "a prototype");
	*ptx_push(p, &p->funcs) = f;
	return row;
}
