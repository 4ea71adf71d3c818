/* test_value.c — parsing, storing and printing numbers of every type. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/lib/value.h"

static void expect_text(gpul_type t, const char *text, const char *printed)
{
	unsigned char bytes[8];
	char buf[VALUE_TEXT_BYTES];
	gpul_error err = { 0 };

	if (value_parse(t, text, bytes, &err))
		fail_msg("%s=%s: %s", gpul_type_name(t), text, err.text);
	if (strcmp(value_print(t, bytes, buf), printed))
		fail_msg("%s=%s is printed as %s", gpul_type_name(t), text, buf);
}

static void expect_refused(gpul_type t, const char *text, const char *why)
{
	unsigned char bytes[8];
	gpul_error err = { 0 };

	assert_int_equal(value_parse(t, text, bytes, &err), GPUL_EINVAL);
	if (!strstr(err.text, why))
		fail_msg("%s=%s: expected '%s' in: %s", gpul_type_name(t), text, why, err.text);
}

static void parses_integers_of_every_width(void **state)
{
	(void)state;
	expect_text(GPUL_I8, "-128", "-128");
	expect_text(GPUL_U8, "255", "255");
	expect_text(GPUL_I16, "0x7fff", "32767");
	expect_text(GPUL_U16, "+65535", "65535");
	expect_text(GPUL_I32, "-2147483648", "-2147483648");
	expect_text(GPUL_U32, "0xFFFFFFFF", "4294967295");
	expect_text(GPUL_I64, "-9223372036854775808", "-9223372036854775808");
	expect_text(GPUL_U64, "18446744073709551615", "18446744073709551615");
	expect_text(GPUL_I32, "010", "10"); /* a leading zero does not mean octal */
	expect_text(GPUL_U32, "-0", "0");
}

static void refuses_numbers_out_of_range_and_shows_the_range(void **state)
{
	(void)state;
	expect_refused(GPUL_I8, "300", "300 is out of the range of i8 (-128 to 127)");
	expect_refused(GPUL_I8, "128", "(-128 to 127)");
	expect_refused(GPUL_U8, "-1", "(0 to 255)");
	expect_refused(GPUL_I64, "9223372036854775808", "9223372036854775807)");
	expect_refused(GPUL_U64, "18446744073709551616", "(0 to 18446744073709551615)");
	expect_refused(GPUL_F16, "65520", "out of the range of f16");
	expect_refused(GPUL_F32, "1e39", "out of the range of f32");
	expect_refused(GPUL_F64, "-1e400", "out of the range of f64");
}

static void refuses_text_that_is_not_a_number(void **state)
{
	(void)state;
	expect_refused(GPUL_I32, "", "not a whole number");
	expect_refused(GPUL_I32, "1.5", "not a whole number");
	expect_refused(GPUL_I32, "0x", "not a whole number");
	expect_refused(GPUL_I32, "--5", "not a whole number");
	expect_refused(GPUL_I32, " 5", "not a whole number");
	expect_refused(GPUL_I32, "5k", "not a whole number");
	expect_refused(GPUL_F64, "", "not a number");
	expect_refused(GPUL_F64, "1.5x", "not a number");
	expect_refused(GPUL_F64, " 1", "not a number");
}

static void prints_the_shortest_text_that_parses_back_to_the_number(void **state)
{
	(void)state;
	expect_text(GPUL_F32, "0.1", "0.1");
	expect_text(GPUL_F64, "0.1", "0.1");
	expect_text(GPUL_F64, "0.30000000000000004", "0.30000000000000004");
	expect_text(GPUL_F16, "0.1", "0.1");
	expect_text(GPUL_BF16, "0.1", "0.1");
	expect_text(GPUL_F64, "10", "10");
	expect_text(GPUL_F16, "65504", "65504");
	expect_text(GPUL_F32, "-1234500", "-1234500");
	expect_text(GPUL_F64, "1e16", "10000000000000000");
	expect_text(GPUL_F64, "1e17", "1e+17");
	expect_text(GPUL_F64, "1234567.25", "1234567.25");
	expect_text(GPUL_F32, "1e-07", "1e-07");
	expect_text(GPUL_F32, "-inf", "-inf");
	expect_text(GPUL_F64, "nan", "nan");
	expect_text(GPUL_F32, "-0", "-0");
	expect_text(GPUL_F64, "0x1p-3", "0.125");
}

static void rounds_to_16_bits_once_and_to_even(void **state)
{
	static const struct {
		gpul_type t;
		double f;
		uint16_t bits;
	} cases[] = {
		{ GPUL_F16, 1.0, 0x3c00 },
		{ GPUL_F16, -2.0, 0xc000 },
		{ GPUL_F16, 65504.0, 0x7bff },
		{ GPUL_F16, 65519.999, 0x7bff },
		{ GPUL_F16, 65520.0, 0x7c00 },
		{ GPUL_F16, 0x1p-24, 0x0001 },
		{ GPUL_F16, 0x1p-25, 0x0000 },
		{ GPUL_F16, 0x1.8p-24, 0x0002 },
		{ GPUL_F16, 0x1.ffcp-15, 0x0400 },
		{ GPUL_F16, 1.0 + 0x1p-11, 0x3c00 },
		{ GPUL_F16, 1.0 + 0x1p-11 + 0x1p-40, 0x3c01 }, /* a conversion through f32 would lose the last bit */
		{ GPUL_BF16, 1.0, 0x3f80 },
		{ GPUL_BF16, 0x1.fep127, 0x7f7f },
		{ GPUL_BF16, 0x1.ffp127, 0x7f80 },
		{ GPUL_BF16, 0x1p-133, 0x0001 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint16_t bits;

		value_store_float(cases[i].t, cases[i].f, &bits);
		if (bits != cases[i].bits)
			fail_msg("%s of %a: %#x, expected %#x", gpul_type_name(cases[i].t), cases[i].f, bits, cases[i].bits);
	}
}

/* Each text is just above or below the middle of two numbers, but its nearest double is the middle. */
static void rounds_decimal_text_to_a_narrow_type_once(void **state)
{
	(void)state;
	expect_text(GPUL_F32, "1.0000000596046447753906251", "1.0000001");
	expect_text(GPUL_F32, "1.00000005960464477539062500", "1");
	expect_text(GPUL_F32, "1.0000001788139343261718749", "1.0000001");
	expect_text(GPUL_F32, "-1.0000000596046447753906251", "-1.0000001");
	expect_text(GPUL_F32, "0x1.000001000000000000001p0", "1.0000001");
	expect_text(GPUL_F16, "1.00048828125000000000000001", "1.001");
	expect_text(GPUL_F16, "1.00048828125", "1");
	expect_text(GPUL_BF16, "1.00390625000000000000000001", "1.01");
	expect_text(GPUL_F32, "7.0064923216240853546186479164495806564013097093825788587853e-46", "0");
	expect_text(GPUL_F32, "7.0064923216240853546186479164495806564013097093825788587854e-46", "1e-45");
	expect_refused(GPUL_F32, "3.4028235677973366163753939545815e38", "out of the range of f32");
	expect_text(GPUL_F32, "3.4028235677973366163753939545813e38", "3.4028235e+38");
}

static void all_16_bit_floats_survive_a_round_trip(void **state)
{
	static const gpul_type types[] = { GPUL_F16, GPUL_BF16 };

	(void)state;
	for (int k = 0; k < 2; k++)
		for (uint32_t i = 0; i <= UINT16_MAX; i++) {
			uint16_t in = (uint16_t)i, out;
			struct value v = value_load(types[k], &in);

			if (v.f != v.f)
				continue; /* NaNs lose their payload */
			value_store_float(types[k], v.f, &out);
			assert_int_equal(out, in);
		}
}

static void parses_sizes_with_suffixes(void **state)
{
	size_t n;

	(void)state;
	assert_int_equal(value_parse_size("1024", 4, &n, NULL), GPUL_OK);
	assert_int_equal(n, 1024);
	assert_int_equal(value_parse_size("4K]", 2, &n, NULL), GPUL_OK);
	assert_int_equal(n, 4096);
	assert_int_equal(value_parse_size("1M", 2, &n, NULL), GPUL_OK);
	assert_int_equal(n, 1048576);
	assert_int_equal(value_parse_size("2G", 2, &n, NULL), GPUL_OK);
	assert_int_equal(n, (size_t)2 << 30);
	assert_int_equal(value_parse_size("", 0, &n, NULL), GPUL_EINVAL);
	assert_int_equal(value_parse_size("K", 1, &n, NULL), GPUL_EINVAL);
	assert_int_equal(value_parse_size("-1", 2, &n, NULL), GPUL_EINVAL);
	assert_int_equal(value_parse_size("1k", 2, &n, NULL), GPUL_EINVAL);
	assert_int_equal(value_parse_size("18446744073709551615K", 21, &n, NULL), GPUL_EINVAL);
}

static void parses_up_to_three_sizes_and_finds_a_fourth(void **state)
{
	size_t part[3] = { 0, 0, 2 };
	unsigned n;

	(void)state;
	assert_int_equal(value_parse_sizes("8", 1, part, &n, NULL), GPUL_OK);
	assert_true(n == 1 && part[0] == 8 && part[1] == 0 && part[2] == 2);
	assert_int_equal(value_parse_sizes("1K:1M:4,9:9", 7, part, &n, NULL), GPUL_OK); /* other text may follow the sizes */
	assert_true(n == 3 && part[0] == 1024 && part[1] == 1048576 && part[2] == 4);
	assert_int_equal(value_parse_sizes("1:2:3:x", 7, part, &n, NULL), GPUL_OK);
	assert_int_equal(n, 4);
	assert_int_equal(value_parse_sizes("1:", 2, part, &n, NULL), GPUL_EINVAL);
	assert_int_equal(value_parse_sizes("", 0, part, &n, NULL), GPUL_EINVAL);
}

static void an_option_that_is_not_given_keeps_its_number_and_time(void **state)
{
	uint64_t n = 7;
	int ms = 500;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(value_parse_count("--n", NULL, 1, 9, &n, NULL), GPUL_OK);
	assert_int_equal(value_parse_time("wait", NULL, &ms, NULL), GPUL_OK);
	assert_true(n == 7 && ms == 500);
	assert_int_equal(value_parse_count("--n", "9", 1, 9, &n, NULL), GPUL_OK);
	assert_int_equal(n, 9);
	assert_int_equal(value_parse_count("--n", "10", 1, 9, &n, &err), GPUL_EINVAL);
	assert_string_equal(err.text, "--n must be a number from 1 to 9, not '10'");
	assert_int_equal(value_parse_count("--n", "4K", 1, 9, &n, NULL), GPUL_EINVAL);
	assert_int_equal(value_parse_count("--n", "", 1, 9, &n, NULL), GPUL_EINVAL);
	assert_int_equal(value_parse_time("wait", "0", &ms, NULL), GPUL_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_integers_of_every_width),
		cmocka_unit_test(refuses_numbers_out_of_range_and_shows_the_range),
		cmocka_unit_test(refuses_text_that_is_not_a_number),
		cmocka_unit_test(prints_the_shortest_text_that_parses_back_to_the_number),
		cmocka_unit_test(rounds_to_16_bits_once_and_to_even),
		cmocka_unit_test(rounds_decimal_text_to_a_narrow_type_once),
		cmocka_unit_test(all_16_bit_floats_survive_a_round_trip),
		cmocka_unit_test(parses_sizes_with_suffixes),
		cmocka_unit_test(parses_up_to_three_sizes_and_finds_a_fourth),
		cmocka_unit_test(an_option_that_is_not_given_keeps_its_number_and_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
