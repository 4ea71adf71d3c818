/* lexer.c — splits PTX text into tokens. */
#include "ptx/parse/lexer_internal.h"

#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/thread/thread.h"

enum { WORD = 1, DIGIT = 2, START = 4, HEX = 8 };

/* The class of each ASCII character, 16 in a row.  START: the character may begin a word. */
static const unsigned char class_of[256] = {
	0, 0,  0,  0,  0,  0,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0, 0, 0, 0, 0, 0,
	0, 0,  0,  0,  5,  4,  0,  0, 0, 0, 0, 0, 0, 0, 0, 0, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 0, 0, 0, 0, 0, 0,
	0, 13, 13, 13, 13, 13, 13, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,  5,  5,  5,  5,  5,  5,  5,  5,  5,  5, 0, 0, 0, 0, 5,
	0, 13, 13, 13, 13, 13, 13, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5,  5,  5,  5,  5,  5,  5,  5,  5,  5,  5, 0, 0, 0, 0, 0,
};

static bool has_class(char c, int classes)
{
	return class_of[(unsigned char)c] & classes;
}

void ptx_lexer_init(ptx_lexer *l, const char *text, size_t text_bytes)
{
	*l = (ptx_lexer){ .at = text, .end = text + text_bytes, .start = text, .line_start = text, .line = 1 };
}

static void count_line(ptx_lexer *l)
{
	l->line++;
	l->line_start = l->at;
}

static void skip_to_line_end(ptx_lexer *l)
{
	const char *nl = memchr(l->at, '\n', (size_t)(l->end - l->at));

	l->at = nl ? nl : l->end;
}

/* Skip a comment.  Returns false, and leaves the lexer at the first byte of the comment, if the comment has no end. */
static bool skip_block_comment(ptx_lexer *l)
{
	const ptx_lexer before = *l;

	for (l->at += 2; l->end - l->at >= 2;) {
		if (l->at[0] == '*' && l->at[1] == '/') {
			l->at += 2;
			return true;
		}
		if (*l->at++ == '\n')
			count_line(l);
	}
	*l = before;
	l->error = "this comment has no end: expected '*/'";
	return false;
}

/* True if a line marker of the C preprocessor begins here: # 12 "file.h", or #line 12 "file.h". */
static bool at_line_marker(const ptx_lexer *l)
{
	const char *c = l->at + 1;

	if (l->end - c >= 5 && !memcmp(c, "line ", 5))
		c += 5;
	while (c < l->end && (*c == ' ' || *c == '\t'))
		c++;
	return c < l->end && has_class(*c, DIGIT);
}

/* Skip blanks, comments and line markers.  Returns false if a comment has no end. */
static bool skip_blank(ptx_lexer *l)
{
	while (l->at < l->end) {
		char c = *l->at;

		if (c == '\n') {
			l->at++;
			count_line(l);
		} else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == 0x1a) {
			l->at++; /* some old editors end text files with 0x1a (Ctrl-Z) */
		} else if (c == '/' && l->end - l->at >= 2 && l->at[1] == '/') {
			skip_to_line_end(l);
		} else if (c == '/' && l->end - l->at >= 2 && l->at[1] == '*') {
			if (!skip_block_comment(l))
				return false;
		} else if (c == '#' && at_line_marker(l)) {
			skip_to_line_end(l);
		} else {
			return true;
		}
	}
	return true;
}

static void fail_token(ptx_lexer *l, ptx_token *t, const char *why)
{
	l->error = why;
	t->kind = PTX_TOK_ERROR;
}

static unsigned digit_value(char c)
{
	if (has_class(c, DIGIT))
		return (unsigned)(c - '0');
	return (unsigned)((c | 32) - 'a') + 10;
}

/* Read the digits at l->at.  A letter or digit that is not valid in the base is an error. */
static void read_digits(ptx_lexer *l, ptx_token *t, unsigned base)
{
	const char *first = l->at;
	uint64_t v = 0;

	for (; l->at < l->end && has_class(*l->at, HEX) && digit_value(*l->at) < base; l->at++) {
		if (v > (UINT64_MAX - digit_value(*l->at)) / base) {
			fail_token(l, t, "this number needs more than 64 bits");
			return;
		}
		v = v * base + digit_value(*l->at);
	}
	t->kind = PTX_TOK_INT;
	t->value = v;
	t->is_unsigned = v > INT64_MAX;
	if (l->at == first)
		fail_token(l, t, "this number has no digits");
	if (l->at < l->end && *l->at == 'U') {
		t->is_unsigned = true;
		l->at++;
	}
	if (l->at < l->end && has_class(*l->at, WORD))
		fail_token(l, t, "this is neither a number nor a name");
}

/* Read a floating-point number by its bits: 0f3F800000 or 0d3FF0000000000000.  All digits are required. */
static void read_float_bits(ptx_lexer *l, ptx_token *t, int kind, int n_digits)
{
	uint64_t v = 0;
	int n = 0;

	for (l->at += 2; l->at < l->end && has_class(*l->at, HEX); l->at++, n++)
		v = v << 4 | digit_value(*l->at);
	t->kind = kind;
	t->value = v;
	if (n != n_digits || (l->at < l->end && has_class(*l->at, WORD)))
		fail_token(l, t,
			   kind == PTX_TOK_F32 ? "0f must be followed by 8 hexadecimal digits"
					       : "0d must be followed by 16 hexadecimal digits");
}

/* Return the length of the decimal number at l->at if it has a '.' or an exponent, else 0. */
static size_t decimal_float_bytes(const ptx_lexer *l)
{
	const char *c = l->at;
	bool is_float = false;

	while (c < l->end && has_class(*c, DIGIT))
		c++;
	if (c < l->end && *c == '.' && c + 1 < l->end && !has_class(c[1], START)) {
		is_float = true;
		for (c++; c < l->end && has_class(*c, DIGIT);)
			c++;
	}
	if (c < l->end && (*c | 32) == 'e') {
		const char *e = c + 1;

		if (e < l->end && (*e == '+' || *e == '-'))
			e++;
		if (e < l->end && has_class(*e, DIGIT)) {
			is_float = true;
			for (c = e; c < l->end && has_class(*c, DIGIT);)
				c++;
		}
	}
	return is_float ? (size_t)(c - l->at) : 0;
}

/* The C locale for strtod(), because in some locales it would expect 1,5 for 1.5. */
static locale_t c_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void create_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static void read_decimal_float(ptx_lexer *l, ptx_token *t, size_t bytes)
{
	char copy[512]; /* a copy of the number, because strtod() needs a terminating NUL */
	fenv_t callers;
	double d;

	if (bytes >= sizeof copy) {
		fail_token(l, t, "this number has more than 500 characters");
		return;
	}
	memcpy(copy, l->at, bytes);
	copy[bytes] = 0;
	pthread_once(&once, create_c_locale);
	gpul_float_default(&callers); /* strtod() uses the rounding mode of fesetround(), so switch to the default mode */
	d = strtod_l(copy, NULL, c_locale);
	gpul_float_restore(&callers);
	memcpy(&t->value, &d, sizeof d);
	t->kind = PTX_TOK_F64;
	l->at += bytes;
	if (l->at < l->end && has_class(*l->at, WORD))
		fail_token(l, t, "this is neither a number nor a name");
}

/* True if a number begins with this dot: .5 is a number, .2d is a modifier. */
static bool is_float_from_dot(const ptx_lexer *l)
{
	const char *end = l->at + decimal_float_bytes(l);

	return end == l->end || !has_class(*end, WORD);
}

static void read_number(ptx_lexer *l, ptx_token *t)
{
	char second = l->end - l->at >= 2 ? l->at[1] : 0;
	size_t float_bytes;

	if (*l->at == '0' && (second | 32) == 'x') {
		l->at += 2;
		read_digits(l, t, 16);
	} else if (*l->at == '0' && (second | 32) == 'b') {
		l->at += 2;
		read_digits(l, t, 2);
	} else if (*l->at == '0' && (second | 32) == 'f') {
		read_float_bits(l, t, PTX_TOK_F32, 8);
	} else if (*l->at == '0' && (second | 32) == 'd') {
		read_float_bits(l, t, PTX_TOK_F64, 16);
	} else if ((float_bytes = decimal_float_bytes(l))) {
		read_decimal_float(l, t, float_bytes);
	} else {
		read_digits(l, t, *l->at == '0' ? 8 : 10);
	}
}

static void read_word(ptx_lexer *l, ptx_token *t)
{
	do
		l->at++;
	while (l->at < l->end && has_class(*l->at, WORD));
	t->kind = PTX_TOK_WORD;
	t->bytes = (uint32_t)(l->at - t->text);
}

/* Read a directive or modifier: .name, .name::name or .2d */
static void read_dot(ptx_lexer *l, ptx_token *t)
{
	t->text = ++l->at;
	for (;;) {
		while (l->at < l->end && has_class(*l->at, WORD))
			l->at++;
		if (l->end - l->at < 3 || l->at[0] != ':' || l->at[1] != ':' || !has_class(l->at[2], WORD))
			break;
		l->at += 2;
	}
	t->kind = PTX_TOK_DOT;
	t->bytes = (uint32_t)(l->at - t->text);
	if (!t->bytes)
		fail_token(l, t, "expected a name after the dot");
}

static void read_string(ptx_lexer *l, ptx_token *t)
{
	t->text = ++l->at;
	while (l->at < l->end && *l->at != '"' && *l->at != '\n') /* PTX strings have no escape sequences */
		l->at++;
	t->kind = PTX_TOK_STRING;
	t->bytes = (uint32_t)(l->at - t->text);
	if (l->at >= l->end || *l->at != '"') {
		t->text--;
		fail_token(l, t, "this string has no end: expected '\"' on the same line");
	} else if (memchr(t->text, 0, t->bytes)) {
		fail_token(l, t, "a string cannot contain a NUL byte");
	} else {
		l->at++;
	}
}

static void read_sign(ptx_lexer *l, ptx_token *t)
{
	static const struct {
		char text[3];
		int kind;
	} pairs[] = {
		{ "<<", PTX_TOK_SHL }, { ">>", PTX_TOK_SHR }, { "<=", PTX_TOK_LE },      { ">=", PTX_TOK_GE },
		{ "==", PTX_TOK_EQ },  { "!=", PTX_TOK_NE },  { "&&", PTX_TOK_AND_AND }, { "||", PTX_TOK_OR_OR },
	};

	t->bytes = 1;
	t->kind = (unsigned char)*l->at++;
	if (!strchr("{}[]()<>;,:@!|+-*/%^&=~?", t->kind) || !t->kind) {
		fail_token(l, t, "this character has no meaning in PTX");
		return;
	}
	if (l->at == l->end)
		return;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		if (t->kind != pairs[i].text[0] || *l->at != pairs[i].text[1])
			continue;
		t->kind = pairs[i].kind;
		t->bytes = 2;
		l->at++;
		return;
	}
}

void ptx_lexer_next(ptx_lexer *l, ptx_token *t)
{
	bool ok = skip_blank(l);

	t->text = l->at;
	t->bytes = 0;
	t->line = l->line;
	t->line_start = l->line_start;
	t->is_unsigned = false;
	if (!ok) {
		t->kind = PTX_TOK_ERROR;
		return;
	}
	if (l->at == l->end || (*l->at == 0 && l->at + 1 == l->end)) {
		t->kind = PTX_TOK_END;
		return;
	}
	char c = *l->at, next = l->end - l->at >= 2 ? l->at[1] : 0;
	if (has_class(c, START) && (c != '%' || has_class(next, WORD)))
		read_word(l, t);
	else if (has_class(c, DIGIT))
		read_number(l, t);
	else if (c == '.' && has_class(next, DIGIT) && is_float_from_dot(l))
		read_decimal_float(l, t, decimal_float_bytes(l));
	else if (c == '.')
		read_dot(l, t);
	else if (c == '"')
		read_string(l, t);
	else
		read_sign(l, t);
	if (!t->bytes && t->kind != PTX_TOK_STRING) /* the length of a string, which may be 0, is already set */
		t->bytes = (uint32_t)(l->at - t->text);
}
