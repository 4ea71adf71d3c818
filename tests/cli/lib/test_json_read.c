/* test_json_read.c — parses JSON of every kind, and refuses what is not JSON. */
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/lib/json/json_read.h"

static void reads_every_kind_of_value(void **state)
{
	static const char text[] =
		" {\"a\": -1.5e2, \"b\" : [1,true , null,{}], \"c\":\"x\\n\\u00e4\\ud83d\\ude00\\\"\", \"d\":{\"e\":false}, \"f\":[]} ";
	struct json_value *v;

	(void)state;
	assert_int_equal(json_parse(text, sizeof text - 1, &v, NULL), GPUL_OK);
	assert_int_equal(json_get_integer(v, "a", 0), -150);
	assert_int_equal(json_get(v, "b")->first->number, 1);
	assert_int_equal(json_get(v, "b")->first->next->kind, JSON_TRUE);
	assert_int_equal(json_get(v, "b")->first->next->next->kind, JSON_NULL);
	assert_int_equal(json_get(v, "b")->first->next->next->next->kind, JSON_OBJECT);
	assert_null(json_get(v, "b")->first->next->next->next->next);
	assert_string_equal(json_get_text(v, "c", ""), "x\n\xc3\xa4\xf0\x9f\x98\x80\"");
	assert_false(json_get_bool(json_get(v, "d"), "e", true));
	assert_null(json_get(v, "f")->first);
	assert_string_equal(json_get_text(v, "a", "other"), "other"); /* member "a" is not a text */
	assert_int_equal(json_get_integer(v, "none", 7), 7);
	assert_null(json_get(NULL, "a"));
	json_free(v);
}

static void refuses_what_is_not_json(void **state)
{
	static const char *const wrong[] = { "",         " ",         "{",   "[1,]",    "{\"a\"}",
					     "{\"a\":}", "{a:1}",     "\"x", "\"\\q\"", "\"\\ud83d\"x",
					     "01x",      "+1",        "1 2", "nul",     "[1}",
					     "\"a\nb\"", "\"\\u12\"", "-",   "tru",     "{\"a\":1,}" };
	struct json_value *v = NULL;

	(void)state;
	for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
		gpul_error err = { 0 };

		assert_int_equal(json_parse(wrong[k], strlen(wrong[k]), &v, &err), GPUL_EFORMAT);
		assert_non_null(strstr(err.text, "JSON: byte"));
		assert_null(v);
	}
}

static void refuses_deep_nesting_and_bytes_behind_the_value(void **state)
{
	char deep[400];
	struct json_value *v = NULL;

	(void)state;
	memset(deep, '[', sizeof deep);
	assert_int_equal(json_parse(deep, sizeof deep, &v, NULL), GPUL_EFORMAT);
	assert_int_equal(json_parse("1\0", 2, &v, NULL), GPUL_EFORMAT);
	memset(deep + 60, ']', 60);
	assert_int_equal(json_parse(deep, 120, &v, NULL), GPUL_OK);
	json_free(v);
}

/* Every proper prefix of a text is refused, and nothing after its end is read (a sanitizer would detect it). */
static void refuses_every_beginning_of_a_text(void **state)
{
	static const char text[] = "{\"seq\":1,\"arguments\":{\"lines\":[1,2],\"text\":\"\\u0041\\n\",\"ok\":true}}";
	struct json_value *v = NULL;

	(void)state;
	for (size_t n = 0; n < sizeof text - 1; n++)
		assert_int_equal(json_parse(text, n, &v, NULL), GPUL_EFORMAT);
	assert_int_equal(json_parse(text, sizeof text - 1, &v, NULL), GPUL_OK);
	json_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_kind_of_value),
		cmocka_unit_test(refuses_what_is_not_json),
		cmocka_unit_test(refuses_deep_nesting_and_bytes_behind_the_value),
		cmocka_unit_test(refuses_every_beginning_of_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
