/* parse.c — module level, and the few steps that all the parser takes: PTX ISA 9.0, chapter 4. */
#include "ptx/parser_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/vocabulary_internal.h"

_Static_assert(sizeof(gpul_ptx_func) <= PTX_MAX_ROW_BYTES, "the largest row of ptx_push()");

/* ---- failing ----------------------------------------------------------------------------- */

static void stop(ptx_parser *p, gpul_status status)
{
	p->status = status;
	p->tok.kind = PTX_TOK_END;
}

void ptx_fail_memory(ptx_parser *p)
{
	if (p->status)
		return;
	stop(p, gpul_fail(p->err, GPUL_ENOMEM, 0, "%.100s: out of memory while parsing", p->file_name));
}

/* The line and a caret under the column, at most `width` bytes each; "" when that is too few. */
static void quote_line(const ptx_parser *p, const ptx_token *where, size_t width, char *out)
{
	const char *end = memchr(where->line_start, '\n', (size_t)(p->lexer.end - where->line_start));
	size_t line_bytes = (size_t)((end ? end : p->lexer.end) - where->line_start);
	size_t column = (size_t)(where->text - where->line_start), from = 0;

	*out = 0;
	if (width < 12)
		return;
	if (column >= width)   /* show what stands before the column, rather than after it */
		from = column - width / 2;
	if (line_bytes > from + width)
		line_bytes = from + width;
	*out++ = '\n';
	for (size_t i = from; i < line_bytes; i++) {
		unsigned char c = (unsigned char)where->line_start[i];

		*out++ = c == '\t' ? ' ' : c < 32 || c == 127 ? '?' : (char)c;
	}
	*out++ = '\n';
	for (size_t i = from; i < column; i++)
		*out++ = ' ';
	*out++ = '^';
	*out = 0;
}

void ptx_fail_at(ptx_parser *p, const ptx_token *where, const char *fmt, ...)
{
	char text[sizeof p->err->text], message[160];
	size_t name_bytes = strlen(p->file_name), skip = name_bytes > 60 ? name_bytes - 60 : 0;
	va_list ap;

	if (p->status)
		return;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	int n = snprintf(text, sizeof text, "%s%s:%u:%zu: %s", skip ? "..." : "", p->file_name + skip,
			 where->line, (size_t)(where->text - where->line_start) + 1, message);
	size_t left = sizeof text - (size_t)n;
	/* two line ends, the caret and a NUL */
	quote_line(p, where, left > 4 ? (left - 4) / 2 < 90 ? (left - 4) / 2 : 90 : 0, text + n);
	stop(p, gpul_fail(p->err, GPUL_EFORMAT, (int)(where->text - p->lexer.start), "%s", text));
}

/* ---- steps ------------------------------------------------------------------------------- */

void *ptx_push(ptx_parser *p, ptx_vec *v, size_t row_bytes)
{
	void *row = ptx_vec_push(v, row_bytes);

	if (row)
		return row;
	ptx_fail_memory(p);
	return p->no_row;
}

void ptx_next(ptx_parser *p)
{
	if (p->status)
		return;
	ptx_lexer_next(&p->lexer, &p->tok);
	if (p->tok.kind == PTX_TOK_ERROR)
		ptx_fail_at(p, &p->tok, "%s", p->lexer.error);
}

bool ptx_accept(ptx_parser *p, int kind)
{
	if (p->tok.kind != kind || p->status)
		return false;
	ptx_next(p);
	return true;
}

static const char *kind_text(int kind, char buf[4])
{
	switch (kind) {
	case PTX_TOK_END:
		return "the end of the file";
	case PTX_TOK_WORD:
		return "a name";
	case PTX_TOK_INT:
		return "an integer";
	case PTX_TOK_STRING:
		return "a string";
	default:
		snprintf(buf, 4, "'%c'", kind);
		return buf;
	}
}

/* "expected X after Y, found Z" */
static void fail_expected(ptx_parser *p, const char *what, const char *after)
{
	const ptx_token *t = &p->tok;

	if (t->kind == PTX_TOK_END)
		ptx_fail_at(p, t, "expected %s%s%s, found the end of the file", what,
			    after ? " after " : "", after ? after : "");
	else
		ptx_fail_at(p, t, "expected %s%s%s, found '%s%.*s'", what, after ? " after " : "",
			    after ? after : "", t->kind == PTX_TOK_DOT ? "." : "",
			    t->bytes < 40 ? (int)t->bytes : 40, t->text);
}

bool ptx_expect(ptx_parser *p, int kind, const char *after)
{
	char buf[4];

	if (ptx_accept(p, kind))
		return true;
	fail_expected(p, kind_text(kind, buf), after);
	return false;
}

bool ptx_tok_is(const ptx_token *t, int kind, const char *text)
{
	return t->kind == kind && !strncmp(text, t->text, t->bytes) && !text[t->bytes];
}

bool ptx_accept_dot(ptx_parser *p, const char *text)
{
	if (!ptx_tok_is(&p->tok, PTX_TOK_DOT, text))
		return false;
	ptx_next(p);
	return true;
}

bool ptx_ended(const ptx_parser *p)
{
	return p->tok.kind == PTX_TOK_END;
}

uint32_t ptx_intern_tok(ptx_parser *p, const ptx_token *t)
{
	uint32_t name = ptx_names_intern(&p->names, t->text, t->bytes);

	if (!name && t->bytes)
		ptx_fail_memory(p);
	return name;
}

uint32_t ptx_expect_word(ptx_parser *p, const char *what, ptx_token *where)
{
	uint32_t name = 0;

	if (where)
		*where = p->tok;
	if (p->tok.kind == PTX_TOK_WORD) {
		name = ptx_intern_tok(p, &p->tok);
		ptx_next(p);
	} else {
		fail_expected(p, what, NULL);
	}
	return name;
}

/* A modifier that the vocabulary lacks is kept by name. */
static uint16_t extra_mod(ptx_parser *p, const ptx_token *dot)
{
	uint32_t name = ptx_intern_tok(p, dot), n = p->extra_mods.n;

	for (uint32_t i = 0; i < n; i++)
		if (PTX_ROWS(gpul_ptx_str, p->extra_mods)[i] == name)
			return (uint16_t)(GPUL_PTX_MOD_EXTRA + i);
	if (n == 256) {
		ptx_fail_at(p, dot, "more than 256 different modifiers that gpuload does not know");
		return 0;
	}
	*(gpul_ptx_str *)ptx_push(p, &p->extra_mods, sizeof name) = name;
	return (uint16_t)(GPUL_PTX_MOD_EXTRA + n);
}

uint16_t ptx_mod_of(ptx_parser *p, const ptx_token *dot)
{
	int mod = ptx_find_mod(dot->text, dot->bytes);

	return mod > 0 ? (uint16_t)mod : extra_mod(p, dot);
}

void ptx_bind(ptx_parser *p, const ptx_token *where, uint32_t name, ptx_what what, uint32_t row,
	      uint32_t count)
{
	ptx_found f;

	if (p->status)
		return;
	bool taken = count ? ptx_names_find_range(&p->names, name, count, &f)
			   : ptx_names_find(&p->names, where->text, where->bytes, &f);
	if (taken && f.depth == p->names.depth)
		ptx_fail_at(p, where, "'%.*s' is declared twice in this scope", (int)where->bytes, where->text);
	else if (!ptx_names_bind(&p->names, name, what, row, count))
		ptx_fail_memory(p);
}

bool ptx_enter(ptx_parser *p)
{
	if (++p->nesting <= PTX_MAX_NESTING)
		return !p->status;
	ptx_fail_at(p, &p->tok, "nested deeper than %d", PTX_MAX_NESTING);
	return false;
}

void ptx_leave(ptx_parser *p)
{
	p->nesting--;
}

/* ---- module level ------------------------------------------------------------------------ */

/* .pragma "nounroll";  the word is taken. */
void ptx_parse_pragma(ptx_parser *p, ptx_vec *items)
{
	do {
		ptx_token t = p->tok;

		ptx_expect(p, PTX_TOK_STRING, ".pragma");
		if (items) {
			gpul_ptx_item *i = ptx_push(p, items, sizeof *i);
			*i = (gpul_ptx_item){ GPUL_PTX_ITEM_PRAGMA, p->pragmas.n };
		}
		*(gpul_ptx_str *)ptx_push(p, &p->pragmas, sizeof(gpul_ptx_str)) =
			p->status ? 0 : ptx_intern_tok(p, &t);
	} while (ptx_accept(p, ','));
	ptx_expect(p, ';', "a pragma");
}

/* .version 8.4: the lexer takes "8.4" for a number, so its text is read again here. */
static void parse_version(ptx_parser *p)
{
	ptx_token t = p->tok;
	const char *at = t.text, *end = t.text + t.bytes;
	uint32_t part[2] = { 0, 0 };

	ptx_expect(p, PTX_TOK_F64, ".version");
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

/* The sm_90a of a target. */
static void read_sm(ptx_parser *p, const ptx_token *t)
{
	uint32_t i = 3, sm = 0;

	for (; i < t->bytes && t->text[i] >= '0' && t->text[i] <= '9' && sm < 100000; i++)
		sm = sm * 10 + (uint32_t)(t->text[i] - '0');
	p->module.sm = sm;
	p->module.sm_suffix = i < t->bytes ? t->text[i] : 0;
	if (i == 3 || i + 1 < t->bytes)
		ptx_fail_at(p, t, "expected a target such as sm_90 or sm_90a");
}

/* .target sm_90, debug */
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
			read_sm(p, &t);
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
		ptx_fail_at(p, &t, ".address_size is 32 or 64");
	p->module.address_size = (uint32_t)t.value;
}

static void push_module_item(ptx_parser *p, int kind, uint32_t index)
{
	gpul_ptx_item *i = ptx_push(p, &p->module_items, sizeof *i);

	i->kind = (uint32_t)kind;
	i->index = index;
}

/* .file 1 "/path/kernel.cu", timestamp, size */
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
	push_module_item(p, GPUL_PTX_ITEM_FILE, p->files.n);
	*(gpul_ptx_file *)ptx_push(p, &p->files, sizeof f) = f;
}

/* .section .debug_str { ... }: the text between the braces is kept as it is. */
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
		ptx_fail_at(p, &open, "this '{' has no '}': the file is cut short");
	if (p->status)
		return;
	const char *dot = name.kind == PTX_TOK_DOT ? name.text - 1 : name.text;
	s.name = ptx_names_intern(&p->names, dot, (uint32_t)(name.text + name.bytes - dot));
	s.text = ptx_names_intern(&p->names, open.text + 1, (uint32_t)(p->tok.text - open.text - 1));
	if (memchr(open.text, 0, (size_t)(p->tok.text - open.text)))
		ptx_fail_at(p, &open, "a section cannot hold a NUL byte");
	if (!s.name || (!s.text && p->tok.text - open.text > 1))
		ptx_fail_memory(p);
	ptx_next(p);
	push_module_item(p, GPUL_PTX_ITEM_SECTION, p->sections.n);
	*(gpul_ptx_section *)ptx_push(p, &p->sections, sizeof s) = s;
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

/* .alias a, b; */
static void parse_alias(ptx_parser *p)
{
	gpul_ptx_alias a = { .alias = parse_function_name(p) };

	ptx_expect(p, ',', "the alias");
	a.aliasee = parse_function_name(p);
	ptx_expect(p, ';', ".alias");
	push_module_item(p, GPUL_PTX_ITEM_ALIAS, p->aliases.n);
	*(gpul_ptx_alias *)ptx_push(p, &p->aliases, sizeof a) = a;
}

/* .visible .entry ..., .extern .global ..., or without a linkage */
static void parse_linked(ptx_parser *p)
{
	static const struct { const char *text; gpul_ptx_linkage linkage; } words[] = {
		{ "visible", GPUL_PTX_VISIBLE }, { "extern", GPUL_PTX_EXTERN },
		{ "weak", GPUL_PTX_WEAK }, { "common", GPUL_PTX_COMMON },
	};
	gpul_ptx_linkage linkage = GPUL_PTX_STATIC;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (ptx_accept_dot(p, words[i].text))
			linkage = words[i].linkage;
	if (ptx_tok_is(&p->tok, PTX_TOK_DOT, "entry") || ptx_tok_is(&p->tok, PTX_TOK_DOT, "func"))
		ptx_parse_function(p, linkage);
	else if (ptx_at_variable(&p->tok))
		ptx_parse_variables(p, linkage);
	else
		fail_expected(p, "a directive such as .entry, .func or .global", NULL);
}

static void parse_module_statement(ptx_parser *p)
{
	static const struct { const char *text; void (*parse)(ptx_parser *p); } words[] = {
		{ "version", parse_version }, { "target", parse_target },
		{ "address_size", parse_address_size }, { "file", parse_file },
		{ "section", parse_section }, { "alias", parse_alias },
	};

	if (ptx_accept(p, ';'))
		return;
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
	ptx_next(p);
	if (!ptx_tok_is(&p->tok, PTX_TOK_DOT, "version"))
		ptx_fail_at(p, &p->tok, "this is not PTX: expected .version first");
	while (!ptx_ended(p))
		parse_module_statement(p);
	if (!p->status && !p->module.target)
		ptx_fail_at(p, &p->tok, "there is no .target");
}

/* Every row of a name learns which row has the body: rows of one name share their first. */
static void link_definitions(ptx_parser *p)
{
	gpul_ptx_func *rows = PTX_ROWS(gpul_ptx_func, p->funcs);

	for (uint32_t i = 0; i < p->funcs.n; i++) {
		const char *text = ptx_names_text(&p->names, rows[i].name);
		ptx_found f;

		if (rows[i].kind != GPUL_PTX_FUNC_PROTOTYPE &&
		    ptx_names_find(&p->names, text, (uint32_t)strlen(text), &f) && f.what == PTX_IS_FUNC)
			rows[i].definition = rows[f.row].definition;
	}
}

/* ---- building the module ----------------------------------------------------------------- */

/* The module takes over a finished table: copied to its exact size into the arena. */
static void *keep(ptx_parser *p, const ptx_vec *v, size_t row_bytes, uint32_t *n)
{
	void *copy = v->n ? ptx_arena_alloc(&p->arena, v->n * row_bytes) : NULL;

	*n = v->n;
	if (copy)
		memcpy(copy, v->rows, v->n * row_bytes);
	else if (v->n)
		ptx_fail_memory(p);
	return copy;
}

static void keep_names(ptx_parser *p, gpul_ptx_module *m)
{
	uint32_t n = ptx_names_count(&p->names);

	m->strings = ptx_arena_alloc(&p->arena, n * sizeof *m->strings);
	m->extra_mods = ptx_arena_alloc(&p->arena, (p->extra_mods.n + (size_t)1) * sizeof *m->extra_mods);
	if (!m->strings || !m->extra_mods) {
		ptx_fail_memory(p);
		return;
	}
	m->n_strings = n;
	for (uint32_t i = 0; i < n; i++)
		m->strings[i] = ptx_names_text(&p->names, i);
	m->n_extra_mods = p->extra_mods.n;
	for (uint32_t i = 0; i < m->n_extra_mods; i++)
		m->extra_mods[i] = m->strings[PTX_ROWS(gpul_ptx_str, p->extra_mods)[i]];
}

static gpul_ptx_module *build(ptx_parser *p)
{
	gpul_ptx_module *m = &p->module, *out;

	m->vars = keep(p, &p->module_vars, sizeof *m->vars, &m->n_vars);
	m->funcs = keep(p, &p->funcs, sizeof *m->funcs, &m->n_funcs);
	m->items = keep(p, &p->module_items, sizeof *m->items, &m->n_items);
	m->inits = keep(p, &p->inits, sizeof *m->inits, &m->n_inits);
	m->dims = keep(p, &p->dims, sizeof *m->dims, &m->n_dims);
	m->locs = keep(p, &p->locs, sizeof *m->locs, &m->n_locs);
	m->files = keep(p, &p->files, sizeof *m->files, &m->n_files);
	m->sections = keep(p, &p->sections, sizeof *m->sections, &m->n_sections);
	m->aliases = keep(p, &p->aliases, sizeof *m->aliases, &m->n_aliases);
	m->pragmas = keep(p, &p->pragmas, sizeof *m->pragmas, &m->n_pragmas);
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

static void free_parser(ptx_parser *p)
{
	ptx_vec *vecs[] = { &p->module_vars, &p->funcs, &p->module_items, &p->inits, &p->dims, &p->locs,
			    &p->files, &p->sections, &p->aliases, &p->pragmas, &p->extra_mods,
			    &p->param_names, &p->params, &p->rets, &p->func_vars, &p->regs, &p->labels,
			    &p->insts, &p->operands, &p->scopes, &p->items, &p->unresolved, &p->siblings };

	for (size_t i = 0; i < sizeof vecs / sizeof *vecs; i++)
		ptx_vec_free(vecs[i]);
	ptx_names_free(&p->names);
	ptx_arena_free(&p->arena);
}

gpul_status gpul_ptx_parse(const char *text, size_t text_bytes, const char *file_name,
			   gpul_ptx_module **out, gpul_error *err)
{
	ptx_parser p = { .file_name = file_name, .err = err };
	gpul_ptx_module *m = NULL;

	p.module.address_size = 32;   /* what a file says that says nothing */
	if (text_bytes > INT32_MAX)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%.100s: %zu bytes of PTX; 2 GiB are the limit",
				 file_name, text_bytes);
	ptx_vocabulary_init();
	ptx_lexer_init(&p.lexer, text, text_bytes);
	if (ptx_names_init(&p.names, &p.arena))
		parse_module(&p);
	else
		ptx_fail_memory(&p);
	if (!p.status) {
		link_definitions(&p);
		m = build(&p);
	}
	free_parser(&p);
	if (!p.status)
		*out = m;
	return p.status;
}

void gpul_ptx_module_destroy(gpul_ptx_module *m)
{
	if (!m)
		return;
	ptx_arena_free(m->storage);
	free(m->storage);
	free(m);
}
