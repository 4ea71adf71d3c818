/* lexer_skip.c — skips a function body, 16 bytes at a time.
 *
 * A list of kernels skips hundreds of megabytes of bodies, so most time is spent on finding the few bytes that
 * need attention: braces, the start of a string or comment (which may hide braces), and .shared:
 *
 *     { } " /                   anywhere
 *     . s _ _ _ _ d blank       ".shared" is tested by three of its bytes and the blank; ld.shared.u32 does not match
 *
 * gcc and clang compile the vectors below to SSE2, NEON or whatever the machine has. */
#include <string.h>

#include "ptx/parse/lexer_internal.h"

enum { WIDE = 16, SHARED_BYTES = 7 /* number of bytes of ".shared" */, LOOK_AHEAD = WIDE + SHARED_BYTES };

typedef unsigned char wide __attribute__((vector_size(WIDE)));
/* result of comparing two vectors: each byte is -1 for true, 0 for false */
typedef signed char mask __attribute__((vector_size(WIDE)));

static wide load_16(const char *at)
{
	wide w;

	memcpy(&w, at, sizeof w);
	return w;
}

/* Return the index of the first true byte among the 8 bytes of a mask, of which at least one is true. */
static int first_of(uint64_t yes)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return __builtin_clzll(yes) / 8;
#else
	return __builtin_ctzll(yes) / 8;
#endif
}

/* Return the index of the first of 16 bytes that may need attention; WIDE: none.  The 7 bytes after them must be readable, too. */
static int first_candidate(const char *at)
{
	wide w = load_16(at);
	mask stop = (mask)((w == '{') | (w == '}') | (w == '"') | (w == '/'));
	mask shared = (mask)((w == '.') & (load_16(at + 1) == 's') & (load_16(at + 6) == 'd') & (load_16(at + SHARED_BYTES) <= ' '));
	uint64_t half[2];

	stop |= shared;
	memcpy(half, &stop, sizeof half);
	if (half[0])
		return first_of(half[0]);
	return half[1] ? 8 + first_of(half[1]) : WIDE;
}

static bool is_stop(const char *at, const char *end)
{
	return *at == '{' || *at == '}' || *at == '"' || *at == '/' ||
	       (*at == '.' && end - at > SHARED_BYTES && !memcmp(at, ".shared", SHARED_BYTES) && (unsigned char)at[SHARED_BYTES] <= ' ');
}

static const char *find_stop(const char *at, const char *end)
{
	while (end - at >= LOOK_AHEAD) {
		int i = first_candidate(at);

		at += i;
		if (i == WIDE)
			continue;
		if (is_stop(at, end))
			return at;
		at++;
	}
	while (at < end && !is_stop(at, end))
		at++;
	return at;
}

static uint32_t count_lines(const char *at, const char *end)
{
	uint32_t n = 0;

	while (end - at >= WIDE) {
		wide sum = { 0 };

		/* at most 255 vectors, so that no byte of the sum overflows */
		for (int i = 0; i < 255 && end - at >= WIDE; i++, at += WIDE)
			sum -= (wide)(load_16(at) == '\n');
		for (int i = 0; i < WIDE; i++)
			n += sum[i];
	}
	for (; at < end; at++)
		n += *at == '\n';
	return n;
}

/* Advance the lexer to `to`, and update its line number. */
static void move_lexer(ptx_lexer *l, const char *to)
{
	const char *newline = memrchr(l->at, '\n', (size_t)(to - l->at));

	if (newline) {
		l->line += count_lines(l->at, to);
		l->line_start = newline + 1;
	}
	l->at = to;
}

/* Return the end of the string or comment that begins at `at`, or of a '/' that begins no comment.  NULL: the string or comment has
 * no end. */
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

/* True if there are only blanks between the end of the previous statement and `at`.  The text before `from` is not read: it is a
 * comment or string, or was skipped before. */
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

	while ((at = find_stop(at, l->end)) < l->end && !(*at == '}' && *depth == 0)) {
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

			if (!after) /* stop here: the lexer reports the string or comment without an end as an error */
				break;
			from = after > at + 1 ? after : from;
			at = after;
		}
	}
	move_lexer(l, at);
	return shared;
}
