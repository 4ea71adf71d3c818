/* lexer_skip.c — over the body of a function, 16 bytes at a time.
 *
 * Lists of kernels go over hundreds of megabytes of bodies: most of what costs time there is
 * finding what may matter, which is braces, what may hide braces, and .shared:
 *
 *     { } " /                   wherever they stand
 *     . s _ _ _ _ d blank       seven bytes apart: few others look so, and ld.shared.u32 does not
 *
 * gcc and clang make SSE2, NEON or what the machine has of the vectors below. */
#include <string.h>

#include "ptx/parse/lexer_internal.h"

enum { WIDE = 16, SHARED_BYTES = 7 /* of ".shared" */, LOOK_AHEAD = WIDE + SHARED_BYTES };

typedef unsigned char wide __attribute__((vector_size(WIDE)));
typedef signed char mask __attribute__((vector_size(WIDE))); /* -1: yes */

static wide load(const char *at)
{
	wide w;

	memcpy(&w, at, sizeof w);
	return w;
}

/* The first of 8 bytes of a mask that says yes, and one does. */
static int first_of(uint64_t yes)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_clzll(yes) / 8;
#else
	return __builtin_ctzll(yes) / 8;
#endif
}

/* Which of the 16 bytes, with 7 more behind them, may matter first; WIDE: none. */
static int may_matter(const char *at)
{
	wide w = load(at);
	mask stop = (mask)((w == '{') | (w == '}') | (w == '"') | (w == '/'));
	mask shared = (mask)((w == '.') & (load(at + 1) == 's') & (load(at + 6) == 'd') &
			     (load(at + SHARED_BYTES) <= ' '));
	uint64_t half[2];

	stop |= shared;
	memcpy(half, &stop, sizeof half);
	if (half[0])
		return first_of(half[0]);
	return half[1] ? 8 + first_of(half[1]) : WIDE;
}

static bool matters(const char *at, const char *end)
{
	return *at == '{' || *at == '}' || *at == '"' || *at == '/' ||
	       (*at == '.' && end - at > SHARED_BYTES && !memcmp(at, ".shared", SHARED_BYTES) &&
		(unsigned char)at[SHARED_BYTES] <= ' ');
}

static const char *find(const char *at, const char *end)
{
	while (end - at >= LOOK_AHEAD) {
		int i = may_matter(at);

		at += i;
		if (i == WIDE)
			continue;
		if (matters(at, end))
			return at;
		at++;
	}
	while (at < end && !matters(at, end))
		at++;
	return at;
}

static uint32_t count_lines(const char *at, const char *end)
{
	uint32_t n = 0;

	while (end - at >= WIDE) {
		wide sum = { 0 };

		/* 255 is what a byte of the sum holds */
		for (int i = 0; i < 255 && end - at >= WIDE; i++, at += WIDE)
			sum -= (wide)(load(at) == '\n');
		for (int i = 0; i < WIDE; i++)
			n += sum[i];
	}
	for (; at < end; at++)
		n += *at == '\n';
	return n;
}

/* Go on to a place further on, and know its line. */
static void move_to(ptx_lexer *l, const char *to)
{
	const char *newline = memrchr(l->at, '\n', (size_t)(to - l->at));

	if (newline) {
		l->line += count_lines(l->at, to);
		l->line_start = newline + 1;
	}
	l->at = to;
}

/* The end of what starts at '"' or '/': a string, a comment, or one byte that hides nothing; NULL: it
 * has no end. */
static const char *end_of_hidden(const char *at, const char *end)
{
	const char *close;

	if (*at == '"') {
		close = memchr(at + 1, '"', (size_t)(end - at - 1));
		return close ? close + 1 : NULL;
	}
	if (end - at >= 2 && at[1] == '/') {
		close = memchr(at, '\n', (size_t)(end - at));
		return close ? close : end;
	}
	if (end - at >= 2 && at[1] == '*') {
		close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
		return close ? close + 2 : NULL;
	}
	return at + 1;
}

/* Nothing but blanks stands between at and where a statement can start; from: the end of what is known
 * not to be part of this statement. */
static bool starts_statement(const char *at, const char *from)
{
	while (at > from && (unsigned char)at[-1] <= ' ')
		at--;
	return at == from || at[-1] == ';' || at[-1] == '{' || at[-1] == '}' || at[-1] == ':';
}

bool ptx_lexer_skip_body(ptx_lexer *l, unsigned *depth)
{
	const char *at = l->at, *from = at;
	bool shared = false;

	while ((at = find(at, l->end)) < l->end && !(*at == '}' && *depth == 0)) {
		if (*at == '.') {
			shared = starts_statement(at, from);
			if (shared)
				break;
			at++;
		} else if (*at == '{' || *at == '}') {
			*depth += *at == '{' ? 1 : -1u;
			at++;
		} else {
			const char *after = end_of_hidden(at, l->end);

			if (!after) /* the lexer says what is wrong with it */
				break;
			from = after > at + 1 ? after : from;
			at = after;
		}
	}
	move_to(l, at);
	return shared;
}
