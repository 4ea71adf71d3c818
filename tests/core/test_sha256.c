/* test_sha256.c — the examples of FIPS 180-4, added as one piece and as several. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/sha256.h"

static void check(gpul_sha256 *s, const char *expected)
{
	unsigned char digest[GPUL_SHA256_BYTES];
	char text[2 * GPUL_SHA256_BYTES + 1];

	gpul_sha256_end(s, digest);
	for (int i = 0; i < GPUL_SHA256_BYTES; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	assert_string_equal(text, expected);
}

static const struct { const char *text, *digest; } examples[] = {
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
	{ "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
	  "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	  "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
};

static void the_examples_of_the_standard_have_the_expected_digests(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
		gpul_sha256 s;

		gpul_sha256_begin(&s);
		gpul_sha256_add(&s, examples[i].text, strlen(examples[i].text));
		check(&s, examples[i].digest);
	}
}

static void the_digest_does_not_depend_on_how_the_text_is_split(void **state)
{
	(void)state;
	const char *text = examples[3].text;

	for (size_t cut = 0; cut <= strlen(text); cut++) {
		gpul_sha256 s;

		gpul_sha256_begin(&s);
		gpul_sha256_add(&s, text, cut);
		gpul_sha256_add(&s, text + cut, strlen(text) - cut);
		check(&s, examples[3].digest);
	}
}

static void one_million_letters_a_have_the_digest_of_the_standard(void **state)
{
	(void)state;
	char block[1000];
	gpul_sha256 s;

	memset(block, 'a', sizeof block);
	gpul_sha256_begin(&s);
	for (int i = 0; i < 1000; i++)
		gpul_sha256_add(&s, block, sizeof block);
	check(&s, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_standard_have_the_expected_digests),
		cmocka_unit_test(the_digest_does_not_depend_on_how_the_text_is_split),
		cmocka_unit_test(one_million_letters_a_have_the_digest_of_the_standard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
