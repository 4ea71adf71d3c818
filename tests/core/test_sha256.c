/* test_sha256.c — the examples of FIPS 180-4, hashed in one piece and in several pieces; those of RFC 4231 for HMAC. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
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

static const struct {
	const char *text, *digest;
} examples[] = {
	{ "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
	{ "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
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

static void large_pieces_have_the_same_digest(void **state) /* with the CPU's SHA instructions, if it has them */
{
	enum { LETTERS = 1000000 };
	char *text = malloc(LETTERS);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', LETTERS);
	for (size_t cut = 0; cut <= LETTERS; cut += 99991) {
		gpul_sha256 s;

		gpul_sha256_begin(&s);
		gpul_sha256_add(&s, text, cut);
		gpul_sha256_add(&s, text + cut, LETTERS - cut);
		check(&s, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	}
	free(text);
}

static const struct {
	size_t key_bytes, text_bytes;
	int key_byte, text_byte;
	const char *key, *text, *digest;
} macs[] = {
	{ 20, 8, 0x0b, -1, NULL, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
	{ 4, 28, -1, -1, "Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
	{ 20, 50, 0xaa, 0xdd, NULL, NULL, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
	{ 25, 50, -1, 0xcd, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19", NULL,
	  "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
	{ 131, 54, 0xaa, -1, NULL, "Test Using Larger Than Block-Size Key - Hash Key First",
	  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
	{ 131, 152, 0xaa, -1, NULL,
	  "This is a test using a larger than block-size key and a larger than block-size data. "
	  "The key needs to be hashed before being used by the HMAC algorithm.",
	  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
};

static void macs_are_those_of_rfc_4231(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof macs / sizeof *macs; i++) {
		unsigned char key[256], text[256], digest[GPUL_SHA256_BYTES], other[GPUL_SHA256_BYTES];
		char hex[2 * GPUL_SHA256_BYTES + 1];
		gpul_hmac h;

		memset(key, macs[i].key_byte, sizeof key);
		memset(text, macs[i].text_byte, sizeof text);
		if (macs[i].key)
			memcpy(key, macs[i].key, macs[i].key_bytes);
		if (macs[i].text)
			memcpy(text, macs[i].text, macs[i].text_bytes);
		gpul_hmac_begin(&h, key, macs[i].key_bytes);
		gpul_hmac_add(&h, text, 3);
		gpul_hmac_add(&h, text + 3, macs[i].text_bytes - 3);
		gpul_hmac_end(&h, digest);
		for (int k = 0; k < GPUL_SHA256_BYTES; k++)
			snprintf(hex + 2 * k, 3, "%02x", digest[k]);
		assert_string_equal(hex, macs[i].digest);
		memcpy(other, digest, sizeof other);
		assert_true(gpul_sha256_same(digest, other));
		for (unsigned bit = 0; bit < 8 * sizeof other; bit++) {
			other[bit / 8] ^= (unsigned char)(1u << bit % 8);
			assert_false(gpul_sha256_same(digest, other));
			other[bit / 8] ^= (unsigned char)(1u << bit % 8);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_examples_of_the_standard_have_the_expected_digests),
		cmocka_unit_test(the_digest_does_not_depend_on_how_the_text_is_split),
		cmocka_unit_test(macs_are_those_of_rfc_4231),
		cmocka_unit_test(one_million_letters_a_have_the_digest_of_the_standard),
		cmocka_unit_test(large_pieces_have_the_same_digest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
