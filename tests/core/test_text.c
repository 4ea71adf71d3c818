/* test_text.c — edit distance and suggestions for misspelt names. */
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/text.h"

static void counts_edits(void **state)
{
	(void)state;
	assert_int_equal(gpul_text_distance("", ""), 0);
	assert_int_equal(gpul_text_distance("", "abc"), 3);
	assert_int_equal(gpul_text_distance("vecadd", "vecadd"), 0);
	assert_int_equal(gpul_text_distance("kitten", "sitting"), 3);
	assert_int_equal(gpul_text_distance("grdi", "grid"), 1); /* a swap is one edit */
	assert_int_equal(gpul_text_distance("grid", "gridd"), 1);
}

static void suggests_the_nearest_name_and_no_distant_one(void **state)
{
	static const char *const names[] = { "vecadd", "vecsub", "reduce", "x" };

	(void)state;
	assert_string_equal(gpul_text_nearest("vecad", names, 4), "vecadd");
	assert_string_equal(gpul_text_nearest("vecsbu", names, 4), "vecsub");
	assert_string_equal(gpul_text_nearest("re", names, 4), "reduce"); /* the only name with this prefix */
	assert_null(gpul_text_nearest("v", names, 4));                    /* two names have this prefix */
	assert_null(gpul_text_nearest("matmul", names, 4));
	assert_null(gpul_text_nearest("", names, 4));
	assert_null(gpul_text_nearest("vecadd", NULL, 0));
}

static void accepts_names_of_any_length(void **state)
{
	char a[1000], b[1000];
	const char *names[] = { b };

	(void)state;
	memset(a, 'a', sizeof a);
	memset(b, 'b', sizeof b);
	a[999] = b[999] = '\0';
	assert_int_equal(gpul_text_distance(a, b), 255);
	assert_null(gpul_text_nearest(a, names, 1));
}

/* A path of n bytes: "/dddd/dddd/.../kernel.cu". */
static const char *long_path(size_t n, const char *name)
{
	static char path[5000];
	size_t folder = n - strlen(name) - 1;

	for (size_t i = 0; i < folder; i++)
		path[i] = i % 9 ? 'd' : '/';
	snprintf(path + folder, sizeof path - folder, "/%s", name);
	return path;
}

static void a_message_with_a_long_path_keeps_what_is_wrong_and_what_to_do(void **state)
{
	static const size_t lengths[] = { 200, 240, 300, 1000, 4000 };
	static const char end[] = "/kernel.cu:7: the block has 2048 threads, but the device allows 1024: use --block 1024",
			  other[] = ": see b.cu";
	char text[12000];

	(void)state;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		snprintf(text, sizeof text, "%s:7: the block has 2048 threads, but the device allows 1024: use --block 1024",
			 long_path(lengths[i], "kernel.cu"));
		gpul_text_fit(text, 248);
		assert_true(strlen(text) < 248 && strlen(text) > 240);
		assert_memory_equal(text, "/dddddddd/", 10);
		assert_non_null(strstr(text, "..."));
		assert_string_equal(text + strlen(text) - strlen(end), end);
	}
	snprintf(text, sizeof text, "%s%s", long_path(500, "a.cu"), ": differs from ");
	snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", long_path(300, "b.cu"), other);
	gpul_text_fit(text, 248); /* both paths are shortened */
	assert_non_null(strstr(text, "/a.cu: differs from /dddddddd/"));
	assert_string_equal(text + strlen(text) - 15, "/b.cu: see b.cu");
}

static void a_path_with_blanks_loses_its_middle(void **state)
{
	char text[1000] = "/first";

	(void)state;
	for (int i = 0; i < 30; i++)
		strcat(text, "/my folder with blanks");
	strcat(text, "/x.cu: no such file");
	gpul_text_fit(text, 248);
	assert_int_equal(strlen(text), 247);
	assert_memory_equal(text, "/first/my folder", 16);
	assert_string_equal(text + strlen(text) - 19, "/x.cu: no such file");
}

static void a_long_sentence_is_cut_with_a_mark_between_characters(void **state)
{
	char text[400] = "";

	(void)state;
	for (int i = 0; i < 40; i++)
		strcat(text, "ab é ü ");
	for (size_t room = 64; room < 100; room++) {
		char copy[400];

		strcpy(copy, text);
		gpul_text_fit(copy, room);
		assert_true(strlen(copy) < room && strlen(copy) + 2 >= room);
		assert_string_equal(copy + strlen(copy) - 3, "...");
		assert_true((copy[strlen(copy) - 4] & 0xC0) != 0xC0); /* the text does not end within a UTF-8 character */
	}
	strcpy(text, "short");
	gpul_text_fit(text, 64);
	assert_string_equal(text, "short");
}

static void the_middle_is_cut_between_characters(void **state)
{
	char text[1000], mine[320];

	(void)state;
	for (size_t shift = 0; shift < 4; shift++) {
		memset(mine, 'x', shift);
		for (size_t i = 0; i < 100; i++)
			memcpy(mine + shift + 3 * i, "日", 4);
		snprintf(text, sizeof text, "%s: no such file", mine);
		gpul_text_fit(text, 100);
		assert_true(strlen(text) < 100);
		assert_true(((strstr(text, "...") - text) - (ptrdiff_t)shift) % 3 == 0);
		assert_memory_equal(strstr(text, "...") + 3, "日", 3);
		assert_string_equal(text + strlen(text) - 14, ": no such file");
	}
}

static void reads_numbers_of_bytes(void **state)
{
	static const char *const wrong[] = { "", "G", "-1", "1.5G", "8GB", "8g", " 8", "0x10", "99999999999999999999", "99999999T" };
	uint64_t n = 7;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(gpul_text_bytes(wrong[i], &n));
	assert_int_equal(n, 7);
	assert_true(gpul_text_bytes("4096", &n) && n == 4096);
	assert_true(gpul_text_bytes("3K", &n) && n == 3 << 10);
	assert_true(gpul_text_bytes("8G", &n) && n == 8ull << 30);
	assert_true(gpul_text_bytes("16777215T", &n) && n == 16777215ull << 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_edits),
		cmocka_unit_test(suggests_the_nearest_name_and_no_distant_one),
		cmocka_unit_test(accepts_names_of_any_length),
		cmocka_unit_test(reads_numbers_of_bytes),
		cmocka_unit_test(a_message_with_a_long_path_keeps_what_is_wrong_and_what_to_do),
		cmocka_unit_test(a_path_with_blanks_loses_its_middle),
		cmocka_unit_test(a_long_sentence_is_cut_with_a_mark_between_characters),
		cmocka_unit_test(the_middle_is_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
