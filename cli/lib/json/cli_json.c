/* cli_json.c — write JSON members, elements, numbers and escaped strings. */
#include "cli/lib/json/cli_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/value.h"

#define ONES (UINT64_MAX / 255) /* a word with 1 in each byte */

/* Return the length in bytes of the UTF-8 sequence at p; 0: the bytes are not valid UTF-8 (RFC 3629 excludes overlong forms,
 * surrogates and code points above U+10FFFF). */
static size_t sequence_bytes(const unsigned char *p, size_t left)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	if (n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* Write the escape sequence of a byte that JSON does not allow in a string. */
static void out_escaped(struct out *o, unsigned char c)
{
	char buf[8];

	if (c == '"' || c == '\\') {
		out_bytes(o, (const char[]){ '\\', (char)c }, 2);
	} else if (c == '\n') {
		out_text(o, "\\n");
	} else if (c < ' ') {
		snprintf(buf, sizeof buf, "\\u%04x", c);
		out_text(o, buf);
	} else {
		out_text(o, "\\ufffd"); /* U+FFFD replaces bytes that are not UTF-8: file names may contain them, but JSON must not */
	}
}

/* Return 0x80 in each byte whose value in x is below n (n <= 128), and 0 in the others.  Only a test for 0 is reliable, because
 * bytes above the lowest 0x80 may be wrong. */
static uint64_t bytes_below(uint64_t x, uint64_t n)
{
	return (x - ONES * n) & ~x & ONES * 0x80;
}

/* True if none of the eight bytes at p needs an escape: all ASCII, no control character, quote or backslash. */
static bool is_plain(const char *p)
{
	uint64_t x;

	memcpy(&x, p, sizeof x);
	return !((x & ONES * 0x80) | bytes_below(x, ' ') | bytes_below(x ^ ONES * '"', 1) | bytes_below(x ^ ONES * '\\', 1));
}

static void out_quoted(struct out *o, const char *text, size_t n)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t done = 0, i = 0;

	out_bytes(o, "\"", 1);
	while (i < n) {
		size_t step = 0;

		if (n - i >= 8 && is_plain(text + i))
			step = 8;
		else if (p[i] >= ' ' && p[i] != '"' && p[i] != '\\')
			step = sequence_bytes(p + i, n - i);
		if (step) {
			i += step;
			continue;
		}
		out_bytes(o, text + done, i - done);
		out_escaped(o, p[i]);
		done = ++i;
	}
	out_bytes(o, text + done, n - done);
	out_bytes(o, "\"", 1);
}

/* Write what precedes a value: a comma, if needed, and the key, if there is one. */
static void begin_value(struct json *j, const char *key)
{
	if (j->comma)
		out_bytes(&j->out, ",", 1);
	if (key) {
		out_bytes(&j->out, "\"", 1);
		out_text(&j->out, key);
		out_bytes(&j->out, "\":", 2);
	}
	j->comma = true;
}

void json_begin(struct json *j, const char *key, char bracket)
{
	begin_value(j, key);
	out_bytes(&j->out, &bracket, 1);
	j->comma = false;
}

void json_end(struct json *j, char bracket)
{
	out_bytes(&j->out, &bracket, 1);
	j->comma = true;
}

void json_text(struct json *j, const char *key, const char *text)
{
	json_chars(j, key, text, strlen(text));
}

void json_chars(struct json *j, const char *key, const char *text, size_t n)
{
	begin_value(j, key);
	out_quoted(&j->out, text, n);
}

void json_u64(struct json *j, const char *key, uint64_t value)
{
	begin_value(j, key);
	out_u64(&j->out, value);
}

void json_i64(struct json *j, const char *key, int64_t value)
{
	begin_value(j, key);
	if (value < 0)
		out_bytes(&j->out, "-", 1);
	out_u64(&j->out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_double(struct json *j, const char *key, double value)
{
	char buf[32];

	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	snprintf(buf, sizeof buf, "%.15g", value);
	if (strtod(buf, NULL) != value)
		snprintf(buf, sizeof buf, "%.17g", value);
	begin_value(j, key);
	out_text(&j->out, buf);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin_value(j, key);
	out_text(&j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	begin_value(j, key);
	out_text(&j->out, "null");
}

void json_u32s(struct json *j, const char *key, const uint32_t *values, size_t n)
{
	json_begin(j, key, '[');
	for (size_t i = 0; i < n; i++)
		json_u64(j, NULL, values[i]);
	json_end(j, ']');
}

void json_element(struct json *j, const char *key, gpul_type t, const void *bytes)
{
	char text[VALUE_TEXT_BYTES];
	struct value v = value_load(t, bytes);

	value_print(t, bytes, text);
	begin_value(j, key);
	if (v.is_float && !isfinite(v.f))
		out_quoted(&j->out, text, strlen(text));
	else
		out_text(&j->out, text);
}

gpul_status json_print(struct json *j, gpul_error *err)
{
	gpul_status st;

	out_bytes(&j->out, "\n", 1);
	st = out_flush(&j->out, err);
	out_free(&j->out);
	j->comma = false;
	return st;
}
