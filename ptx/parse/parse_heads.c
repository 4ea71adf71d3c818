/* parse_heads.c — skips function bodies, and finds the .shared variables that they use. */
#include <string.h>

#include "ptx/parse/parser_internal.h"

/* ---- .shared variables of the module ------------------------------------------------------------
 *
 * nvcc declares a __shared__ array at module level.  The mangled names of such arrays have a long common prefix, so
 * each body is searched for that prefix. */

void ptx_note_shared(ptx_parser *p, uint32_t first)
{
	for (uint32_t i = first; i < p->module_vars.n; i++) {
		const gpul_ptx_var *v = &p->module_vars.at[i];
		const char *name = ptx_names_text(&p->names, v->name);
		uint32_t n = 0;

		if (v->space != GPUL_PTX_MOD_SHARED || !v->bytes)
			continue;
		if (!p->shared_prefix) {
			p->shared_prefix = name;
			p->shared_prefix_bytes = (uint32_t)strlen(name);
		}
		while (n < p->shared_prefix_bytes && p->shared_prefix[n] == name[n])
			n++;
		p->shared_prefix_bytes = n;
	}
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

/* Return the next position where one of the names may start.  NULL: there is none.  If the names have no common prefix, this is the
 * next word. */
static const char *find_candidate(const ptx_parser *p, const char *at, const char *end)
{
	if (p->shared_prefix_bytes)
		return memmem(at, (size_t)(end - at), p->shared_prefix, p->shared_prefix_bytes);
	while (at < end && !is_word(*at))
		at++;
	return at < end ? at : NULL;
}

/* True if `//` precedes `at` on the same line; at most 256 bytes are searched. */
static bool in_comment(const char *from, const char *at)
{
	const char *line;

	if (at - from > 256)
		from = at - 256;
	line = memrchr(from, '\n', (size_t)(at - from));
	line = line ? line : from;
	return memmem(line, (size_t)(at - line), "//", 2);
}

/* Add a .shared variable to the variables of the current function, unless it has been added before. */
static void add_shared(ptx_parser *p, uint32_t row)
{
	uint32_t func = PTX_N(p->funcs); /* 1 + index of the current function */
	const gpul_ptx_var v = p->module_vars.at[row];

	while (p->shared_in.n <= row && !p->status)
		ptx_push(p, &p->shared_in);
	if (p->status || v.space != GPUL_PTX_MOD_SHARED || p->shared_in.at[row] == func)
		return;
	p->shared_in.at[row] = func;
	*ptx_push(p, &p->func_vars) = v;
}

static void find_shared(ptx_parser *p, const char *from, const char *end)
{
	const char *at = from;

	while (!p->status && (at = find_candidate(p, at, end))) {
		bool starts = at == from || !is_word(at[-1]);
		uint32_t n = 0;
		ptx_found f;

		while (at + n < end && is_word(at[n]))
			n++;
		if (starts && !in_comment(from, at) && ptx_names_find(&p->names, at, n, &f) && f.what == PTX_IS_MODULE_VAR)
			add_shared(p, f.row);
		at += n; /* n is at least 1, because neither a name nor the prefix is empty */
	}
}

/* ---- skipping a body ----------------------------------------------------------------------- */

/* Move the lexer back to the first byte of the current token. */
static void unread_token(ptx_parser *p)
{
	p->lexer.at = p->tok.text - (p->tok.kind == PTX_TOK_DOT || p->tok.kind == PTX_TOK_STRING);
	p->lexer.line = p->tok.line;
	p->lexer.line_start = p->tok.line_start;
}

void ptx_skip_body(ptx_parser *p)
{
	const char *from = p->lexer.at;
	ptx_token open = p->tok;
	unsigned depth = 0;

	while (!p->status && ptx_lexer_skip_body(&p->lexer, &depth)) {
		ptx_next(p);
		ptx_parse_variables(p, GPUL_PTX_STATIC);
		if (!ptx_ended(p))
			unread_token(p);
	}
	if (p->heads_only && p->shared_prefix)
		find_shared(p, from, p->lexer.at);
	ptx_next(p);
	if (p->tok.kind == PTX_TOK_END)
		ptx_fail_at(p, &open, "this '{' has no '}': the file is truncated");
	ptx_expect(p, '}', "a body");
}
