/* parse.c — parses the statements outside of functions, and builds the module: PTX ISA 9.0, chapters 4 and 11. */
#include "ptx/parse/parser_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/vocabulary_internal.h"

/* ---- module level ------------------------------------------------------------------------ */

/* Parse .version 8.4.  The lexer has read "8.4" as a floating-point number, so parse its text again. */
static void parse_version(ptx_parser *p)
{
	ptx_token t = p->tok;
	const char *at = t.text, *end = t.text + t.bytes;
	uint32_t part[2] = { 0, 0 };

	if (!ptx_accept(p, PTX_TOK_F64))
		ptx_fail_expected(p, "a version such as 8.4", ".version");
	if (p->status)
		return;
	for (int i = 0; i < 2; i++, at++)
		for (; at < end && *at >= '0' && *at <= '9' && part[i] < 1000; at++)
			part[i] = part[i] * 10 + (uint32_t)(*at - '0');
	if (at != end + 1 || end[-1] == '.')
		ptx_fail_at(p, &t, "expected a version such as 8.4");
	p->module.version_major = part[0];
	p->module.version_minor = part[1];
}

/* Parse a target such as sm_90a or compute_90a, whose number begins at text[start]. */
static void read_sm(ptx_parser *p, const ptx_token *t, uint32_t start)
{
	uint32_t i = start, sm = 0;

	for (; i < t->bytes && t->text[i] >= '0' && t->text[i] <= '9' && sm < 100000; i++)
		sm = sm * 10 + (uint32_t)(t->text[i] - '0');
	p->module.sm = sm;
	p->module.sm_suffix = i < t->bytes ? t->text[i] : 0;
	if (i == start || i + 1 < t->bytes)
		ptx_fail_at(p, t, "expected a target such as sm_90 or sm_90a");
}

/* Parse .target sm_90, debug */
static void parse_target(ptx_parser *p)
{
	char text[256];
	size_t n = 0;

	do {
		ptx_token t;

		ptx_expect_word(p, "a target such as sm_90", &t);
		if (p->status)
			return;
		if (n + t.bytes + 3 > sizeof text) {
			ptx_fail_at(p, &t, "more than %zu characters of targets", sizeof text);
			return;
		}
		if (t.bytes > 3 && !memcmp(t.text, "sm_", 3))
			read_sm(p, &t, 3);
		else if (t.bytes > 8 && !memcmp(t.text, "compute_", 8))
			read_sm(p, &t, 8);
		if (ptx_tok_is(&t, PTX_TOK_WORD, "debug"))
			p->module.debug = true;
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%.*s", n ? ", " : "", (int)t.bytes, t.text);
	} while (ptx_accept(p, ','));
	p->module.target = ptx_names_intern(&p->names, text, (uint32_t)n);
	if (!p->module.target)
		ptx_fail_memory(p);
}

static void parse_address_size(ptx_parser *p)
{
	ptx_token t = p->tok;

	ptx_expect(p, PTX_TOK_INT, ".address_size");
	if (t.value != 32 && t.value != 64)
		ptx_fail_at(p, &t, ".address_size must be 32 or 64");
	p->module.address_size = (uint32_t)t.value;
}

static void push_module_item(ptx_parser *p, int kind, uint32_t index)
{
	gpul_ptx_item *i = ptx_push(p, &p->module_items);

	i->kind = (uint32_t)kind;
	i->index = index;
}

/* Parse .file 1 "/path/kernel.cu", timestamp, size */
static void parse_file(ptx_parser *p)
{
	gpul_ptx_file f = { .number = (uint32_t)ptx_parse_integer(p, "a file number") };
	ptx_token t = p->tok;

	ptx_expect(p, PTX_TOK_STRING, ".file");
	if (!p->status)
		f.path = ptx_intern_tok(p, &t);
	if (ptx_accept(p, ',')) {
		f.timestamp = ptx_parse_integer(p, "a time stamp");
		ptx_expect(p, ',', "a time stamp");
		f.bytes = ptx_parse_integer(p, "a file size");
	}
	push_module_item(p, GPUL_PTX_ITEM_FILE, PTX_N(p->files));
	*ptx_push(p, &p->files) = f;
}

/* Parse .section .debug_str { ... }; the text between the braces is kept unchanged. */
static void parse_section(ptx_parser *p)
{
	ptx_token name = p->tok, open;
	gpul_ptx_section s = { 0 };

	if (name.kind != PTX_TOK_DOT && name.kind != PTX_TOK_WORD)
		ptx_fail_at(p, &name, "expected the name of a section");
	ptx_next(p);
	open = p->tok;
	ptx_expect(p, '{', "the name of a section");
	while (p->tok.kind != '}' && !ptx_ended(p))
		ptx_next(p);
	if (p->tok.kind != '}')
		ptx_fail_at(p, &open, "this '{' has no '}': the file is truncated");
	if (p->status)
		return;
	const char *dot = name.kind == PTX_TOK_DOT ? name.text - 1 : name.text;
	s.name = ptx_names_intern(&p->names, dot, (uint32_t)(name.text + name.bytes - dot));
	s.text = ptx_names_intern(&p->names, open.text + 1, (uint32_t)(p->tok.text - open.text - 1));
	if (memchr(open.text, 0, (size_t)(p->tok.text - open.text)))
		ptx_fail_at(p, &open, "a section cannot contain a NUL byte");
	if (!s.name || (!s.text && p->tok.text - open.text > 1))
		ptx_fail_memory(p);
	ptx_next(p);
	push_module_item(p, GPUL_PTX_ITEM_SECTION, PTX_N(p->sections));
	*ptx_push(p, &p->sections) = s;
}

static uint32_t parse_function_name(ptx_parser *p)
{
	ptx_found f = { 0 };
	ptx_token t;

	ptx_expect_word(p, "the name of a function", &t);
	if (p->status || !ptx_find_symbol(p, &t, &f))
		return 0;
	if (f.what != PTX_IS_FUNC)
		ptx_fail_at(p, &t, "'%.*s' is not a function", (int)t.bytes, t.text);
	return f.row;
}

/* Parse .alias a, b; */
static void parse_alias(ptx_parser *p)
{
	gpul_ptx_alias a = { .alias = parse_function_name(p) };

	ptx_expect(p, ',', "the alias");
	a.aliasee = parse_function_name(p);
	ptx_expect(p, ';', ".alias");
	push_module_item(p, GPUL_PTX_ITEM_ALIAS, PTX_N(p->aliases));
	*ptx_push(p, &p->aliases) = a;
}

/* Refuse registers and local variables that functions share: from PTX 3.0 on, ptxas compiles for the ABI, which lacks them. */
static void check_without_abi(ptx_parser *p, const ptx_token *where, const char *what)
{
	if (p->module.version_major >= 3)
		ptx_fail_at(p, where, "a %s outside of functions needs .version 2.3 or lower; this module has %u.%u", what,
			    p->module.version_major, p->module.version_minor);
}

static void parse_module_variables(ptx_parser *p, gpul_ptx_linkage linkage)
{
	uint32_t first = PTX_N(p->module_vars);
	ptx_token where = p->tok;

	ptx_parse_variables(p, linkage);
	for (uint32_t i = first; i < PTX_N(p->module_vars); i++)
		if (p->module_vars.at[i].space == GPUL_PTX_MOD_LOCAL)
			check_without_abi(p, &where, ".local");
	if (p->heads_only)
		ptx_note_shared(p, first);
}

/* Parse .reg outside of functions. */
static void parse_module_registers(ptx_parser *p, const ptx_token *where, gpul_ptx_linkage linkage)
{
	check_without_abi(p, where, ".reg");
	if (linkage == GPUL_PTX_WEAK || linkage == GPUL_PTX_COMMON)
		ptx_fail_at(p, where, "a register cannot be .weak or .common");
	p->scope = GPUL_PTX_NONE;
	ptx_parse_registers(p);
}

/* Parse a declaration that may begin with a linkage: .visible .entry ..., .extern .global ... */
static void parse_linked(ptx_parser *p)
{
	/* clang-format off */
	static const struct { const char *text; gpul_ptx_linkage linkage; } words[] = {
		{ "visible", GPUL_PTX_VISIBLE }, { "extern", GPUL_PTX_EXTERN },
		{ "weak", GPUL_PTX_WEAK }, { "common", GPUL_PTX_COMMON },
	};
	/* clang-format on */
	gpul_ptx_linkage linkage = GPUL_PTX_STATIC;
	ptx_token where;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (ptx_accept_dot(p, words[i].text))
			linkage = words[i].linkage;
	where = p->tok;
	if (ptx_tok_is(&p->tok, PTX_TOK_DOT, "entry") || ptx_tok_is(&p->tok, PTX_TOK_DOT, "func"))
		ptx_parse_function(p, linkage);
	else if (ptx_at_variable(&p->tok))
		parse_module_variables(p, linkage);
	else if (ptx_accept_dot(p, "reg"))
		parse_module_registers(p, &where, linkage);
	else
		ptx_fail_expected(p, "a directive such as .entry, .func or .global", NULL);
}

static void parse_module_statement(ptx_parser *p)
{
	static const struct {
		const char *text;
		void (*parse)(ptx_parser *p);
	} words[] = {
		{ "file", parse_file },
		{ "section", parse_section },
		{ "alias", parse_alias },
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!ptx_accept_dot(p, words[i].text))
			continue;
		words[i].parse(p);
		return;
	}
	if (ptx_accept_dot(p, "pragma"))
		ptx_parse_pragma(p, &p->module_items);
	else
		parse_linked(p);
}

static void parse_module(ptx_parser *p)
{
	if (p->lexer.end - p->lexer.at >= 3 && !memcmp(p->lexer.at, "\xEF\xBB\xBF", 3)) {
		p->tok = (ptx_token){ .text = p->lexer.at, .line_start = p->lexer.at, .line = 1 };
		ptx_fail_at(p, &p->tok,
			    "the file begins with a byte order mark (EF BB BF), which PTX does not allow: save it as UTF-8 without one");
		return;
	}
	ptx_next(p);
	if (!ptx_accept_dot(p, "version"))
		ptx_fail_at(p, &p->tok, "this is not PTX: expected .version first");
	parse_version(p);
	if (!ptx_accept_dot(p, "target"))
		ptx_fail_at(p, &p->tok, "expected .target after .version");
	parse_target(p);
	if (ptx_accept_dot(p, "address_size"))
		parse_address_size(p);
	while (!ptx_ended(p))
		parse_module_statement(p);
}

/* Set .definition in all entries of a function's name.  Before this, only the first entry of each name has it. */
static void link_definitions(ptx_parser *p)
{
	gpul_ptx_func *rows = p->funcs.at;

	for (uint32_t i = 0; i < p->funcs.n; i++) {
		const char *text = ptx_names_text(&p->names, rows[i].name);
		ptx_found f;

		if (rows[i].kind != GPUL_PTX_FUNC_PROTOTYPE && ptx_names_find(&p->names, text, (uint32_t)strlen(text), &f) &&
		    f.what == PTX_IS_FUNC)
			rows[i].definition = rows[f.row].definition;
	}
	for (uint32_t k = 0; k < p->aliases.n; k++) { /* an alias is a second name for the body of the aliasee */
		const gpul_ptx_alias *a = &p->aliases.at[k];
		const uint32_t body = rows[a->aliasee].definition;

		if (body == GPUL_PTX_NONE || rows[body].name != rows[a->aliasee].name)
			continue; /* an alias of an alias has no body, as in ptxas */
		for (uint32_t i = 0; i < p->funcs.n; i++)
			if (rows[i].kind != GPUL_PTX_FUNC_PROTOTYPE && rows[i].name == rows[a->alias].name)
				rows[i].definition = body;
	}
}

/* ---- building the module ----------------------------------------------------------------- */

void ptx_set_names(ptx_parser *p, gpul_ptx_module *m)
{
	const uint32_t n = ptx_names_count(&p->names);

	for (uint32_t i = m->n_strings; i < n; i++)
		m->strings[i] = ptx_names_text(&p->names, i);
	m->n_strings = n;
	for (uint32_t i = m->n_extra_mods; i < PTX_N(p->extra_mods); i++)
		m->extra_mods[i] = m->strings[p->extra_mods.at[i]];
	m->n_extra_mods = PTX_N(p->extra_mods);
}

static void keep_names(ptx_parser *p, gpul_ptx_module *m)
{
	m->strings = ptx_arena_alloc(&p->arena, ptx_names_count(&p->names) * sizeof *m->strings);
	m->extra_mods = ptx_arena_alloc(&p->arena, (p->extra_mods.n + (size_t)1) * sizeof *m->extra_mods);
	if (m->strings && m->extra_mods)
		ptx_set_names(p, m);
	else
		ptx_fail_memory(p);
}

static gpul_ptx_module *build_module(ptx_parser *p)
{
	gpul_ptx_module *m = &p->module, *out;

	m->vars = ptx_keep(p, p->module_vars, &m->n_vars);
	m->regs = ptx_keep(p, p->module_regs, &m->n_regs);
	m->funcs = ptx_keep(p, p->funcs, &m->n_funcs);
	m->items = ptx_keep(p, p->module_items, &m->n_items);
	m->inits = ptx_keep(p, p->inits, &m->n_inits);
	m->dims = ptx_keep(p, p->dims, &m->n_dims);
	m->locs = ptx_keep(p, p->locs, &m->n_locs);
	m->files = ptx_keep(p, p->files, &m->n_files);
	m->sections = ptx_keep(p, p->sections, &m->n_sections);
	m->aliases = ptx_keep(p, p->aliases, &m->n_aliases);
	m->pragmas = ptx_keep(p, p->pragmas, &m->n_pragmas);
	keep_names(p, m);
	out = malloc(sizeof *out);
	ptx_arena *arena = malloc(sizeof *arena);
	if (!out || !arena || p->status) {
		free(out);
		free(arena);
		ptx_fail_memory(p);
		return NULL;
	}
	*arena = p->arena;
	p->arena = (ptx_arena){ 0 };
	m->storage = arena;
	*out = *m;
	return out;
}

void ptx_free_parser(ptx_parser *p)
{
	gpul_array_free(&p->module_vars);
	gpul_array_free(&p->module_regs);
	gpul_array_free(&p->module_items);
	gpul_array_free(&p->funcs);
	gpul_array_free(&p->inits);
	gpul_array_free(&p->dims);
	gpul_array_free(&p->locs);
	gpul_array_free(&p->files);
	gpul_array_free(&p->sections);
	gpul_array_free(&p->aliases);
	gpul_array_free(&p->pragmas);
	gpul_array_free(&p->extra_mods);
	gpul_array_free(&p->params);
	gpul_array_free(&p->rets);
	gpul_array_free(&p->func_vars);
	gpul_array_free(&p->items);
	gpul_array_free(&p->param_names);
	gpul_array_free(&p->regs);
	gpul_array_free(&p->labels);
	gpul_array_free(&p->insts);
	gpul_array_free(&p->operands);
	gpul_array_free(&p->scopes);
	gpul_array_free(&p->unresolved);
	gpul_array_free(&p->siblings);
	gpul_array_free(&p->shared_in);
	gpul_array_free(&p->heads);
	ptx_names_free(&p->names);
	ptx_arena_free(&p->arena);
}

/* Find the address size of a text that is older than PTX ISA 2.3, which added .address_size: a kernel parameter of 64 bits shows
 * that nvcc compiled for 64-bit addresses. */
static uint32_t address_size_of_old_text(const ptx_parser *p)
{
	bool has_params = false;

	for (size_t i = 0; i < p->funcs.n; i++)
		for (uint32_t k = 0; k < p->funcs.at[i].n_params; k++) {
			const unsigned type = p->funcs.at[i].params[k].type;

			has_params = true;
			if (type == GPUL_PTX_MOD_U64 || type == GPUL_PTX_MOD_S64 || type == GPUL_PTX_MOD_B64)
				return 64;
		}
	return has_params ? 32 : 64;
}

gpul_status ptx_parse_text(ptx_parser *p, const char *text, size_t text_bytes)
{
	p->module.address_size = 64; /* the default of ptxas */
	if (text_bytes > INT32_MAX)
		return p->status = gpul_fail(p->err, GPUL_EFORMAT, 0, "%s: %zu bytes of PTX; the limit is 2 GiB", p->file_name, text_bytes);
	ptx_vocabulary_init();
	ptx_lexer_init(&p->lexer, text, text_bytes);
	if (ptx_names_init(&p->names, &p->arena))
		parse_module(p);
	else
		ptx_fail_memory(p);
	if (p->status)
		return p->status;
	link_definitions(p);
	if (p->module.version_major < 2 || (p->module.version_major == 2 && p->module.version_minor < 3))
		p->module.address_size = address_size_of_old_text(p);
	return GPUL_OK;
}

static gpul_status parse_whole(const char *text, size_t text_bytes, const char *file_name, bool heads_only, gpul_ptx_module **out,
			       gpul_error *err)
{
	ptx_parser p = { .file_name = file_name, .err = err, .heads_only = heads_only, .skips_bodies = heads_only };
	gpul_ptx_module *m = ptx_parse_text(&p, text, text_bytes) ? NULL : build_module(&p);

	ptx_free_parser(&p);
	if (!p.status)
		*out = m;
	return p.status;
}

gpul_status gpul_ptx_parse(const char *text, size_t text_bytes, const char *file_name, gpul_ptx_module **out, gpul_error *err)
{
	return parse_whole(text, text_bytes, file_name, false, out, err);
}

gpul_status gpul_ptx_parse_heads(const char *text, size_t text_bytes, const char *file_name, gpul_ptx_module **out, gpul_error *err)
{
	return parse_whole(text, text_bytes, file_name, true, out, err);
}
