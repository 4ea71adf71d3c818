/* test_cache_text.c — large texts in the disk cache: found as they were stored, compressed on disk; and the process's limit of file
 * sizes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/cache/cache.h"

static char folder[64]; /* a new folder for each test */

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/gpuload-cache-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	return setenv("GPULOAD_CACHE", folder, 1);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int remove_folder(void **state)
{
	(void)state;
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static gpul_cache_key *key_for(const char *name)
{
	gpul_cache_key *key = gpul_cache_key_create("test");

	assert_non_null(key);
	gpul_cache_key_add_text(key, name);
	return key;
}

static void store(const char *name, const char *text, size_t n)
{
	gpul_cache_key *key = key_for(name);

	gpul_cache_store_text(key, text, n);
	gpul_cache_key_destroy(key);
}

static bool is_found(const char *name, const char *text, size_t n)
{
	gpul_cache_key *key = key_for(name);
	char *found = NULL;
	size_t n_found = 0;
	const bool any = gpul_cache_find_text(key, &found, &n_found);

	gpul_cache_key_destroy(key);
	if (!any)
		return false;
	assert_int_equal(n_found, n);
	assert_memory_equal(found, text, n);
	assert_int_equal(found[n], 0);
	free(found);
	return true;
}

static uint64_t bytes_on_disk(void)
{
	gpul_cache_status status;

	gpul_cache_query(&status);
	return status.bytes;
}

static void finds_texts_as_they_were_stored(void **state)
{
	enum { BYTES = (9 << 20) + 1 }; /* more than two of the 4 MiB parts in which the cache compresses a text */
	char *text = malloc(BYTES);
	uint64_t x = 1;

	(void)state;
	assert_non_null(text);
	memset(text, 'r', BYTES);
	store("repeated", text, BYTES);
	assert_true(is_found("repeated", text, BYTES));
	assert_in_range(bytes_on_disk(), 1, BYTES + 4096);
	for (size_t i = 0; i < BYTES; i++)
		text[i] = (char)((x = x * 6364136223846793005u + 1442695040888963407u) >> 56);
	store("random", text, BYTES);
	assert_true(is_found("random", text, BYTES));
	store("empty", text, 0);
	assert_true(is_found("empty", text, 0));
	store("one", text, 1);
	assert_true(is_found("one", text, 1));
	assert_false(is_found("another", text, BYTES));
	free(text);
}

static void a_result_of_another_kind_is_not_a_text(void **state)
{
	static const char *const others[] = { "", "short", "more bytes than the length before a text takes" };

	(void)state;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		gpul_cache_key *key = key_for(others[i]);
		char *found = NULL;
		size_t n = 0;

		gpul_cache_store(key, others[i], strlen(others[i]));
		assert_false(gpul_cache_find_text(key, &found, &n));
		gpul_cache_key_destroy(key);
	}
}

/* Writing more than the limit of file sizes (RLIMIT_FSIZE) would end the process by SIGXFSZ. */
static void does_not_store_a_result_larger_than_the_process_may_write(void **state)
{
	struct rlimit old, small;
	char text[2000];
	gpul_cache_key *large = key_for("large");
	void *found = NULL;
	size_t n = 0;

	(void)state;
	memset(text, 'x', sizeof text);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 1000;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	gpul_cache_store(large, text, sizeof text);
	store("small", "small", 5);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_false(gpul_cache_find(large, &found, &n));
	assert_true(is_found("small", "small", 5));
	gpul_cache_key_destroy(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_texts_as_they_were_stored, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(a_result_of_another_kind_is_not_a_text, make_folder, remove_folder),
		cmocka_unit_test_setup_teardown(does_not_store_a_result_larger_than_the_process_may_write, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
