/* out.c — append text and numbers to a growing buffer; find the character set that the environment names. */
#include "cli/lib/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIRST_ROOM 4096

bool out_reserve(struct out *o, size_t n)
{
	size_t room = o->room ? o->room : FIRST_ROOM;
	char *at;

	if (o->room - o->n >= n)
		return !o->failed;
	while (room - o->n < n)
		room *= 2;
	at = o->failed ? NULL : realloc(o->at, room);
	if (!at) {
		o->failed = true;
		o->n = o->room; /* makes out_bytes() append nothing more, because some text is lost */
		return false;
	}
	o->at = at;
	o->room = room;
	return true;
}

/* Write the digits of value at the end of buf; returns the first digit. */
static const char *write_digits(uint64_t value, char buf[20])
{
	char *p = buf + 20;

	do
		*--p = (char)('0' + value % 10);
	while (value /= 10);
	return p;
}

void out_add(struct out *o, const char *fmt, ...)
{
	char buf[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf, sizeof buf, fmt, args);
	va_end(args);
	out_text(o, buf);
}

void out_drawing(struct out *o, const char *text)
{
	static const char *const glyphs[] = { "▶", ">", "◀", "<", "│", "|", "─", "-", "┌", "+",
					      "┐", "+", "└", "+", "┘", "+", "├", "+", "┤", "+" };
	enum { N = sizeof glyphs / sizeof *glyphs };

	if (locale_has_utf8()) {
		out_text(o, text);
		return;
	}
	while (*text) {
		size_t k = 0;

		while (k < N && strncmp(text, glyphs[k], strlen(glyphs[k])) != 0)
			k += 2;
		if (k < N)
			out_text(o, glyphs[k + 1]);
		else
			out_bytes(o, text, 1);
		text += k < N ? strlen(glyphs[k]) : 1;
	}
}

void out_u64(struct out *o, uint64_t value)
{
	char buf[20];
	const char *first = write_digits(value, buf);

	out_bytes(o, first, (size_t)(buf + sizeof buf - first));
}

void out_repeat(struct out *o, char c, size_t n)
{
	if (n && out_reserve(o, n)) {
		memset(o->at + o->n, c, n);
		o->n += n;
	}
}

void out_name(struct out *o, const char *name, size_t n)
{
	size_t first = o->n;

	out_bytes(o, name, n);
	for (size_t i = first; i < o->n; i++)
		if ((unsigned char)o->at[i] < ' ' || o->at[i] == 127)
			o->at[i] = '?';
}

void out_left(struct out *o, const char *text, size_t width)
{
	size_t n = strlen(text);

	out_bytes(o, text, n);
	out_repeat(o, ' ', n < width ? width - n : 0);
}

void out_right(struct out *o, uint64_t value, size_t width)
{
	char buf[20];
	const char *first = write_digits(value, buf);
	size_t n = (size_t)(buf + sizeof buf - first);

	out_repeat(o, ' ', n < width ? width - n : 0);
	out_bytes(o, first, n);
}

gpul_status out_flush(struct out *o, gpul_error *err)
{
	size_t n = o->n;

	o->n = 0;
	if (o->failed)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the output");
	errno = 0;
	if (n && fwrite(o->at, 1, n, stdout) != n)
		return gpul_fail(err, GPUL_ESYS, errno, "the output could not be written: %s", strerror(errno));
	return GPUL_OK;
}

void out_free(struct out *o)
{
	free(o->at);
	*o = (struct out){ 0 };
}

bool locale_has_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	const char *value = NULL, *set;

	for (size_t k = 0; k < 3 && !(value && *value); k++)
		value = secure_getenv(names[k]);
	set = value ? strchr(value, '.') : NULL;
	return set && (!strncasecmp(set, ".UTF-8", 6) || !strncasecmp(set, ".utf8", 5));
}
