/* test_json.c — the JSON writer and the text buffer below it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/lib/json/cli_json.h"

/* Check the text that was written, and free it. */
static void assert_written(struct json *j, const char *text)
{
	assert_false(j->out.failed);
	assert_int_equal(j->out.n, strlen(text));
	assert_memory_equal(j->out.at, text, strlen(text));
	out_free(&j->out);
	j->comma = false;
}

static void puts_commas_between_values(void **state)
{
	struct json j = { 0 };

	(void)state;
	json_begin(&j, NULL, '{');
	json_begin(&j, "none", '[');
	json_end(&j, ']');
	json_u32s(&j, "some", (const uint32_t[]){ 1, 0, UINT32_MAX }, 3);
	json_begin(&j, "inside", '{');
	json_bool(&j, "yes", true);
	json_null(&j, "nothing");
	json_end(&j, '}');
	json_end(&j, '}');
	assert_written(&j, "{\"none\":[],\"some\":[1,0,4294967295],"
			   "\"inside\":{\"yes\":true,\"nothing\":null}}");
}

static void writes_numbers_with_all_their_digits(void **state)
{
	struct json j = { 0 };

	(void)state;
	json_begin(&j, NULL, '[');
	json_u64(&j, NULL, UINT64_MAX);
	json_i64(&j, NULL, INT64_MIN);
	json_double(&j, NULL, 0.1);
	json_double(&j, NULL, 1.0 / 3);
	json_double(&j, NULL, (double)INFINITY);
	json_element(&j, NULL, GPUL_F64, &(double){ (double)NAN });
	json_element(&j, NULL, GPUL_U64, &(uint64_t){ UINT64_MAX });
	json_end(&j, ']');
	assert_written(&j, "[18446744073709551615,-9223372036854775808,0.1,0.33333333333333331,"
			   "null,\"nan\",18446744073709551615]");
}

static void escapes_control_characters_quotes_and_invalid_utf8(void **state)
{
	static const struct {
		const char *text, *json;
	} rows[] = {
		{ "", "\"\"" },
		{ "plain text of more than eight bytes", "\"plain text of more than eight bytes\"" },
		{ "a\"b\\c/d", "\"a\\\"b\\\\c/d\"" },
		{ "seven77\n\t\x01\x7f", "\"seven77\\n\\u0009\\u0001\x7f\"" },
		{ "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"" },
		/* Not UTF-8: a stray byte, a truncated sequence, an overlong form, a surrogate, a code point above U+10FFFF. */
		{ "\xff", "\"\\ufffd\"" },
		{ "\xe2\x82", "\"\\ufffd\\ufffd\"" },
		{ "\xc0\xaf", "\"\\ufffd\\ufffd\"" },
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct json j = { 0 };

		json_text(&j, NULL, rows[i].text);
		assert_written(&j, rows[i].json);
	}
}

/* The fast path tests eight bytes at once, so every byte value is tested at every position. */
static void escapes_every_byte_value_at_every_position(void **state)
{
	(void)state;
	for (int c = 1; c < 256; c++)
		for (size_t at = 0; at < 16; at++) {
			char text[17] = "xxxxxxxxxxxxxxxx";
			struct json j = { 0 };
			bool plain = c >= ' ' && c < 0x80 && c != '"' && c != '\\';

			text[at] = (char)c;
			json_text(&j, NULL, text);
			assert_true(plain == (j.out.n == 18));
			assert_true(!plain || memcmp(j.out.at + 1, text, 16) == 0);
			out_free(&j.out);
		}
}

static void pads_columns(void **state)
{
	struct json j = { 0 };

	(void)state;
	out_left(&j.out, "ab", 4);
	out_left(&j.out, "abcdef", 4);
	out_right(&j.out, 0, 3);
	out_right(&j.out, 12345, 3);
	out_name(&j.out, "a\x1b[1m\n\xc3\xa9", 8);
	assert_written(&j, "ab  abcdef  012345a?[1m?\xc3\xa9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_commas_between_values),
		cmocka_unit_test(writes_numbers_with_all_their_digits),
		cmocka_unit_test(escapes_control_characters_quotes_and_invalid_utf8),
		cmocka_unit_test(escapes_every_byte_value_at_every_position),
		cmocka_unit_test(pads_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
