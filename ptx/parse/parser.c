/* parser.c — handles tokens, error messages, table entries and names for all files of the parser. */
#include "ptx/parse/parser_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ptx/vocabulary_internal.h"

_Static_assert(sizeof(gpul_ptx_func) <= PTX_MAX_ROW_BYTES, "p->no_row must hold the largest row");

/* ---- errors ------------------------------------------------------------------------------ */

static void stop_parsing(ptx_parser *p, gpul_status status)
{
	p->status = status;
	p->tok.kind = PTX_TOK_END;
}

void ptx_fail_memory(ptx_parser *p)
{
	if (p->status)
		return;
	stop_parsing(p, gpul_fail(p->err, GPUL_ENOMEM, 0, "%s: out of memory while parsing", p->file_name));
}

/* Return the first byte of a token in the source.  It precedes .text by one for a directive (the '.') and for a string (the '"'). */
static const char *first_byte(const ptx_token *t)
{
	return t->text - (t->kind == PTX_TOK_DOT || t->kind == PTX_TOK_STRING);
}

/* Write the source line, and a caret below the column, at most `width` bytes of each; "" if width is too small. */
static void quote_line(const ptx_parser *p, const ptx_token *where, size_t width, char *out)
{
	const char *end = memchr(where->line_start, '\n', (size_t)(p->lexer.end - where->line_start));
	size_t line_bytes = (size_t)((end ? end : p->lexer.end) - where->line_start);
	size_t column = (size_t)(first_byte(where) - where->line_start), from = 0;

	*out = 0;
	if (width < 12)
		return;
	if (column >= width) /* if the line is too long, prefer the text before the column to the text after it */
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
	int n = snprintf(text, sizeof text, "%s%s:%u:%zu: %s", skip ? "..." : "", p->file_name + skip, where->line,
			 (size_t)(first_byte(where) - where->line_start) + 1, message);
	size_t left = sizeof text - (size_t)n;
	/* 4 bytes for two line ends, the caret and a NUL */
	quote_line(p, where, left > 4 ? (left - 4) / 2 < 90 ? (left - 4) / 2 : 90 : 0, text + n);
	stop_parsing(p, gpul_fail(p->err, GPUL_EFORMAT, (int)(first_byte(where) - p->lexer.start), "%s", text));
}

/* ---- table entries, tokens, names ----------------------------------------------------------------- */

void *ptx_row(ptx_parser *p, void *row)
{
	if (row)
		return row;
	ptx_fail_memory(p);
	memset(p->no_row, 0, sizeof p->no_row);
	return p->no_row;
}

void *ptx_copy(ptx_parser *p, const void *rows, size_t n, size_t row_bytes)
{
	void *copy = n && !p->status ? ptx_arena_alloc(&p->arena, n * row_bytes) : NULL;

	if (copy)
		memcpy(copy, rows, n * row_bytes);
	else if (n)
		ptx_fail_memory(p);
	return copy;
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
	case PTX_TOK_F32:
	case PTX_TOK_F64:
		return "a floating-point number";
	default: /* a one-character token; no caller expects another kind */
		snprintf(buf, 4, "'%c'", kind);
		return buf;
	}
}

/* Fail with the message "expected X after Y, found Z". */
void ptx_fail_expected(ptx_parser *p, const char *what, const char *after)
{
	const ptx_token *t = &p->tok;

	if (t->kind == PTX_TOK_END)
		ptx_fail_at(p, t, "expected %s%s%s, found the end of the file", what, after ? " after " : "", after ? after : "");
	else
		ptx_fail_at(p, t, "expected %s%s%s, found '%s%.*s'", what, after ? " after " : "", after ? after : "",
			    t->kind == PTX_TOK_DOT ? "." : "", t->bytes < 40 ? (int)t->bytes : 40, t->text);
}

bool ptx_expect(ptx_parser *p, int kind, const char *after)
{
	char buf[4];

	if (ptx_accept(p, kind))
		return true;
	ptx_fail_expected(p, kind_text(kind, buf), after);
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
		ptx_fail_expected(p, what, NULL);
	}
	return name;
}

/* Return the number for a modifier that is not in the vocabulary.  The module stores the modifier's name. */
static uint16_t extra_mod(ptx_parser *p, const ptx_token *dot)
{
	uint32_t name = ptx_intern_tok(p, dot), n = PTX_N(p->extra_mods);

	for (uint32_t i = 0; i < n; i++)
		if (p->extra_mods.at[i] == name)
			return (uint16_t)(GPUL_PTX_MOD_EXTRA + i);
	if (n == 256) {
		ptx_fail_at(p, dot, "more than 256 different unknown modifiers");
		return 0;
	}
	*ptx_push(p, &p->extra_mods) = name;
	return (uint16_t)(GPUL_PTX_MOD_EXTRA + n);
}

uint16_t ptx_mod_of(ptx_parser *p, const ptx_token *dot)
{
	int mod = ptx_find_mod(dot->text, dot->bytes);

	return mod > 0 ? (uint16_t)mod : extra_mod(p, dot);
}

void ptx_bind(ptx_parser *p, const ptx_token *where, uint32_t name, ptx_what what, uint32_t row, uint32_t count)
{
	ptx_found f;

	if (p->status)
		return;
	bool taken = count ? ptx_names_find_range(&p->names, name, count, &f) : ptx_names_find(&p->names, where->text, where->bytes, &f);
	if (where->bytes == 1 && *where->text == '_')
		ptx_fail_at(p, where, "'_' cannot be declared: as an operand it discards a result");
	else if (taken && f.depth == p->names.depth)
		ptx_fail_at(p, where, "'%.*s' is declared twice in this scope", (int)where->bytes, where->text);
	else if (!ptx_names_bind(&p->names, name, what, row, count))
		ptx_fail_memory(p);
}

bool ptx_find_symbol(ptx_parser *p, const ptx_token *t, ptx_found *found)
{
	if (ptx_names_find(&p->names, t->text, t->bytes, found))
		return true;
	const char *near = ptx_names_near(&p->names, t->text, t->bytes);
	ptx_fail_at(p, t, "'%.*s' is not declared%s%s%s", (int)t->bytes, t->text, near ? "; did you mean '" : "", near ? near : "",
		    near ? "'?" : "");
	return false;
}

bool ptx_enter(ptx_parser *p)
{
	if (++p->nesting <= PTX_MAX_NESTING)
		return !p->status;
	ptx_fail_at(p, &p->tok, "nested deeper than %d levels", PTX_MAX_NESTING);
	return false;
}

void ptx_leave(ptx_parser *p)
{
	p->nesting--;
}
