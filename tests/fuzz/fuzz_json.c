/* fuzz_json.c — libFuzzer target: reads any text as JSON, as a debug adapter receives it from an editor.
 *
 * The values of an accepted text are written as JSON again, and must then be read as the same values. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/json/json_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

enum { MOST_DEPTH = 65 };

static void require(int truth)
{
	if (!truth)
		abort();
}

/* ---- writing JSON, with only the escapes that JSON requires --------------------------------------------------------- */

static void write_text(FILE *to, const char *text)
{
	putc('"', to);
	for (; *text; text++) {
		const unsigned char c = (unsigned char)*text;

		if (c < ' ')
			fprintf(to, "\\u%04x", c);
		else
			fprintf(to, c == '"' || c == '\\' ? "\\%c" : "%c", c);
	}
	putc('"', to);
}

static size_t write_value(FILE *to, const struct json_value *v, unsigned depth)
{
	size_t n = 1;

	require(depth <= MOST_DEPTH);
	switch (v->kind) {
	case JSON_NULL:
		fputs("null", to);
		break;
	case JSON_FALSE:
		fputs("false", to);
		break;
	case JSON_TRUE:
		fputs("true", to);
		break;
	case JSON_NUMBER:
		fprintf(to, v->number > 1e308 ? "1e999" : v->number < -1e308 ? "-1e999" : "%.17g", v->number);
		break;
	case JSON_TEXT:
		write_text(to, v->text);
		break;
	case JSON_ARRAY:
	case JSON_OBJECT:
		putc(v->kind == JSON_ARRAY ? '[' : '{', to);
		for (const struct json_value *m = v->first; m; m = m->next) {
			require((m->key != NULL) == (v->kind == JSON_OBJECT));
			if (m->key) {
				write_text(to, m->key);
				putc(':', to);
			}
			n += write_value(to, m, depth + 1);
			if (m->next)
				putc(',', to);
		}
		putc(v->kind == JSON_ARRAY ? ']' : '}', to);
	}
	return n;
}

/* ---- comparing ---------------------------------------------------------------------------------------------------------- */

static void require_same(const struct json_value *a, const struct json_value *b)
{
	require(a->kind == b->kind && !a->key == !b->key && (!a->key || !strcmp(a->key, b->key)));
	if (a->kind == JSON_NUMBER)
		require(a->number == b->number || (a->number > 1e308 && b->number > 1e308) || (a->number < -1e308 && b->number < -1e308));
	if (a->kind == JSON_TEXT)
		require(!strcmp(a->text, b->text));
	for (a = a->first, b = b->first; a && b; a = a->next, b = b->next)
		require_same(a, b);
	require(!a && !b);
}

static void require_members(const struct json_value *v)
{
	for (const struct json_value *m = v->first; m && v->kind == JSON_OBJECT; m = m->next) {
		const struct json_value *found = json_get(v, m->key);

		require(found && !strcmp(found->key, m->key));
		require(found != m || m->kind != JSON_TEXT || json_get_text(v, m->key, NULL) == m->text);
		(void)json_get_integer(v, m->key, 0);
		(void)json_get_bool(v, m->key, false);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	struct json_value *v = NULL, *again = NULL;
	gpul_error err = { 0 };
	char *text = NULL;
	size_t n = 0;
	FILE *to;

	if (json_parse((const char *)data, n_bytes, &v, &err)) {
		require(!v && err.status == GPUL_EFORMAT && err.text[0] && err.native >= 0 && (size_t)err.native <= n_bytes);
		return 0;
	}
	to = open_memstream(&text, &n);
	require(to != NULL);
	require(write_value(to, v, 0) <= n_bytes);
	fclose(to);
	require(json_parse(text, n, &again, &err) == GPUL_OK);
	require_same(v, again);
	require_members(v);
	json_free(v);
	json_free(again);
	free(text);
	return 0;
}
