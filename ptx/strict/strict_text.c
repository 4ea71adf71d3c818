/* strict_text.c — checks for characters that ptxas refuses, and for signs that the parser accepts but ptxas does not. */
#include "ptx/strict/strict_internal.h"

#include <ctype.h>
#include <string.h>

struct place {
	const char *at, *end, *line_start;
	uint32_t line;
};

static uint32_t column(const struct place *p)
{
	return (uint32_t)(p->at - p->line_start) + 1;
}

/* Refuse characters that are not ASCII everywhere, even in comments and strings. */
static gpul_status check_ascii(struct strict *s, struct place p)
{
	for (; p.at < p.end; p.at++) {
		if ((unsigned char)*p.at >= 0x80)
			return strict_fail(s, p.line, column(&p), "character 0x%02x: only ASCII characters are accepted, also in comments",
					   (unsigned char)*p.at);
		if (*p.at == '\n') {
			p.line++;
			p.line_start = p.at + 1;
		}
	}
	return GPUL_OK;
}

/* Return the end of the comment or string that begins at p->at; p->at if none begins there. */
static const char *skip_hidden(const struct place *p)
{
	const char *at = p->at, *close;
	size_t left = (size_t)(p->end - at);

	if (*at == '"')
		close = memchr(at + 1, '"', left - 1);
	else if (left > 1 && *at == '/' && at[1] == '/')
		return (close = memchr(at, '\n', left)) ? close : p->end;
	else if (left > 1 && *at == '/' && at[1] == '*')
		close = memmem(at + 2, left - 2, "*/", 2), close = close ? close + 1 : NULL;
	else
		return at;
	return close ? close + 1 : p->end;
}

/* True if the '-' at p->at follows a name in the instruction that begins at `start`, as in [r-4].  Directives, which begin with a
 * dot, are ignored, because a .section may contain differences of labels. */
static bool follows_name(const struct place *p, const char *start)
{
	const char *end = p->at, *at;

	while (start < end && isspace((unsigned char)*start))
		start++;
	if (!isalpha((unsigned char)*start) && *start != '@')
		return false;
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	at = end;
	while (at > start && (isalnum((unsigned char)at[-1]) || (at[-1] && strchr("_$%.", at[-1]))))
		at--;
	/* false if a constant precedes the '-' */
	if (at == end || isdigit((unsigned char)*at) || (end - at == 7 && !memcmp(at, "WARP_SZ", 7)))
		return false;
	while (at > start && isspace((unsigned char)at[-1]))
		at--;
	return at > start && strchr(",[({|", at[-1]); /* in bar.warp.sync -1, the word before '-' is part of the opcode */
}

gpul_status strict_check_text(struct strict *s, const char *text, size_t n_bytes)
{
	struct place p = { text, text + n_bytes, text, 1 };
	const char *start = text; /* start of the current instruction */
	gpul_status st = check_ascii(s, p);

	for (; !st && p.at < p.end; p.at++) {
		const char *after = skip_hidden(&p);

		for (; p.at < after; p.at++)
			if (*p.at == '\n') {
				p.line++;
				p.line_start = p.at + 1;
			}
		if (p.at >= p.end)
			break;
		if (*p.at == '\n') {
			p.line++;
			p.line_start = p.at + 1;
		} else if (*p.at == ';' || *p.at == '{' ||
			   (*p.at == ':' && p.at > text && p.at[-1] != ':' && p.at + 1 < p.end && p.at[1] != ':')) {
			start = p.at + 1;
		} else if (*p.at == '\v') {
			st = strict_fail(s, p.line, column(&p), "a vertical tab (0x0b) is not accepted between words");
		} else if (*p.at == '-' && follows_name(&p, start)) {
			st = strict_fail(s, p.line, column(&p),
					 "a name cannot be followed by '-': write a negative offset as in [name+-4]");
		}
	}
	return st;
}
