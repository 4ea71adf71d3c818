/* json_read.c — parse JSON text into a tree; all values and texts are in one block of memory.
 *
 * Only `gpuload dap` reads JSON, so a library (cJSON, jansson) would be an additional dependency for the sake of these few pages;
 * tests/fuzz/fuzz_json.c tests them with random input. */
#include "cli/lib/json/json_read.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

struct reader {
	const char *text;
	size_t n, at;
	struct json_value *values; /* start of the block: as many values as the text can have */
	size_t n_values;
	char *texts; /* the rest of the block: decoded strings */
	gpul_error *err;
};

static struct json_value *parse_value(struct reader *r, unsigned depth);

static struct json_value *fail_at(struct reader *r, const char *what)
{
	gpul_fail(r->err, GPUL_EFORMAT, (int)r->at, "JSON: byte %zu: %s", r->at, what);
	return NULL;
}

static char peek(struct reader *r)
{
	while (r->at < r->n && strchr(" \t\r\n", r->text[r->at]) && r->text[r->at])
		r->at++;
	return r->at < r->n ? r->text[r->at] : '\0';
}

static bool take(struct reader *r, char c)
{
	if (peek(r) != c)
		return false;
	r->at++;
	return true;
}

/* ---- texts ------------------------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Parse the four digits of \uXXXX; -1: they are invalid. */
static int parse_unit(struct reader *r)
{
	int unit = 0;

	for (unsigned k = 0; k < 4; k++, r->at++) {
		const int digit = r->at < r->n ? hex_digit(r->text[r->at]) : -1;

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static void put_utf8(struct reader *r, uint32_t c)
{
	if (c < 0x80) {
		*r->texts++ = (char)c;
		return;
	}
	if (c < 0x800) {
		*r->texts++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*r->texts++ = (char)(0xe0 | c >> 12);
		} else {
			*r->texts++ = (char)(0xf0 | c >> 18);
			*r->texts++ = (char)(0x80 | (c >> 12 & 63));
		}
		*r->texts++ = (char)(0x80 | (c >> 6 & 63));
	}
	*r->texts++ = (char)(0x80 | (c & 63));
}

/* Parse the part of an escape sequence after the backslash. */
static bool parse_escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char c = r->at < r->n ? r->text[r->at++] : '\0';
	const char *known = c ? strchr(from, c) : NULL;
	int unit, low;

	if (known) {
		*r->texts++ = to[known - from];
		return true;
	}
	unit = c == 'u' ? parse_unit(r) : -1;
	if (unit >= 0xd800 && unit < 0xdc00 && r->at + 6 <= r->n && r->text[r->at] == '\\' && r->text[r->at + 1] == 'u') {
		r->at += 2;
		low = parse_unit(r);
		unit = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) : -1;
	}
	if (unit < 0)
		return false;
	put_utf8(r, unit ? (uint32_t)unit : 0xfffd); /* replace U+0000, which would end the string, by U+FFFD */
	return true;
}

/* Parse the part of a string after the opening quote; NULL: the string is invalid. */
static const char *parse_text(struct reader *r)
{
	const char *begin = r->texts;

	while (r->at < r->n && r->text[r->at] != '"') {
		const unsigned char c = (unsigned char)r->text[r->at++];

		if (c < ' ' || (c == '\\' && !parse_escape(r)))
			return NULL;
		if (c != '\\')
			*r->texts++ = (char)c;
	}
	if (r->at == r->n)
		return NULL;
	r->at++;
	*r->texts++ = '\0';
	return begin;
}

/* ---- values ------------------------------------------------------------------------------------------------------------ */

static struct json_value *new_value(struct reader *r)
{
	return &r->values[r->n_values++];
}

static struct json_value *parse_members(struct reader *r, struct json_value *v, char end, unsigned depth)
{
	struct json_value **last = &v->first;

	if (take(r, end))
		return v;
	do {
		const char *key = NULL;

		if (v->kind == JSON_OBJECT && (!take(r, '"') || !(key = parse_text(r)) || !take(r, ':')))
			return fail_at(r, "a member is expected, such as \"name\": 1");
		*last = parse_value(r, depth + 1);
		if (!*last)
			return NULL;
		(*last)->key = key;
		last = &(*last)->next;
	} while (take(r, ','));
	return take(r, end) ? v : fail_at(r, end == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
}

static struct json_value *parse_number(struct reader *r, struct json_value *v)
{
	char digits[64];
	size_t n = 0;
	char *end;

	while (r->at + n < r->n && n + 1 < sizeof digits && strchr("+-.0123456789eE", r->text[r->at + n]) && r->text[r->at + n])
		n++;
	memcpy(digits, r->text + r->at, n);
	digits[n] = '\0';
	v->kind = JSON_NUMBER;
	v->number = strtod(digits, &end);
	if (!n || *end || *digits == '+')
		return fail_at(r, "a value is expected");
	r->at += n;
	return v;
}

static bool take_word(struct reader *r, const char *word)
{
	const size_t n = strlen(word);

	if (r->n - r->at < n || memcmp(r->text + r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

static struct json_value *parse_value(struct reader *r, unsigned depth)
{
	const char c = peek(r);
	struct json_value *v = new_value(r);

	if (depth > MAX_DEPTH)
		return fail_at(r, "more than 64 nested values");
	if (c == '{' || c == '[') {
		r->at++;
		v->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
		return parse_members(r, v, c == '{' ? '}' : ']', depth);
	}
	if (c == '"') {
		r->at++;
		v->kind = JSON_TEXT;
		v->text = parse_text(r);
		return v->text ? v : fail_at(r, "a string is not terminated, or contains an invalid escape");
	}
	if (take_word(r, "true"))
		v->kind = JSON_TRUE;
	else if (take_word(r, "false"))
		v->kind = JSON_FALSE;
	else if (!take_word(r, "null"))
		return parse_number(r, v);
	return v;
}

gpul_status json_parse(const char *text, size_t n, struct json_value **out, gpul_error *err)
{
	/* The block is large enough: each value takes at least one byte and a separator, or is inside another value; a decoded
	 * string is not longer than its JSON. */
	const size_t most = n / 2 + MAX_DEPTH + 4;
	char *block = n < SIZE_MAX / 64 ? calloc(1, most * sizeof(struct json_value) + n + 2) : NULL;
	struct reader r = { .text = text, .n = n, .values = (struct json_value *)(void *)block, .err = err };
	struct json_value *v;

	if (!block)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a JSON text of %zu bytes", n);
	r.texts = block + most * sizeof(struct json_value);
	v = parse_value(&r, 0);
	if (v && peek(&r))
		v = fail_at(&r, "text follows after the end of the JSON value");
	if (!v || r.at < n) {
		if (v)
			fail_at(&r, "text follows after the end of the JSON value");
		free(block);
		return GPUL_EFORMAT;
	}
	*out = v;
	return GPUL_OK;
}

void json_free(struct json_value *v)
{
	free(v); /* v is the first value in the block, so both have the same address */
}

/* ---- members ----------------------------------------------------------------------------------------------------------- */

const struct json_value *json_get(const struct json_value *v, const char *key)
{
	const struct json_value *m = v && v->kind == JSON_OBJECT ? v->first : NULL;

	while (m && strcmp(m->key, key) != 0)
		m = m->next;
	return m;
}

const char *json_get_text(const struct json_value *v, const char *key, const char *other)
{
	const struct json_value *m = json_get(v, key);

	return m && m->kind == JSON_TEXT ? m->text : other;
}

int64_t json_get_integer(const struct json_value *v, const char *key, int64_t other)
{
	const struct json_value *m = json_get(v, key);

	return m && m->kind == JSON_NUMBER && m->number > -9e15 && m->number < 9e15 ? (int64_t)m->number : other;
}

bool json_get_bool(const struct json_value *v, const char *key, bool other)
{
	const struct json_value *m = json_get(v, key);

	return m && (m->kind == JSON_TRUE || m->kind == JSON_FALSE) ? m->kind == JSON_TRUE : other;
}
