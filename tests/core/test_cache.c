/* test_cache.c — the disk cache: finds stored results, rejects damaged files, keeps its size limit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/cache/cache.h"

static char folder[64]; /* a new folder for each test */

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/gpuload-cache-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	setenv("GPULOAD_CACHE", folder, 1);
	unsetenv("GPULOAD_CACHE_MAX_BYTES");
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static int remove_folder(void **state)
{
	(void)state;
	setenv("GPULOAD_CACHE", "off", 1);
	return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static gpul_cache_key *key_for(int number)
{
	gpul_cache_key *key = gpul_cache_key_create("test");

	gpul_cache_key_add(key, &number, sizeof number);
	return key;
}

static void store(int number, const char *text)
{
	gpul_cache_key *key = key_for(number);

	gpul_cache_store(key, text, strlen(text));
	gpul_cache_key_destroy(key);
}

/* Return the result stored for a number, which the caller frees; NULL: none. */
static char *find(int number)
{
	gpul_cache_key *key = key_for(number);
	void *bytes = NULL;
	size_t n_bytes = 0;

	if (gpul_cache_find(key, &bytes, &n_bytes))
		assert_int_equal(strlen(bytes), n_bytes);
	gpul_cache_key_destroy(key);
	return bytes;
}

static void assert_found(int number, const char *expected)
{
	char *text = find(number);

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static bool is_stored(int number)
{
	char *text = find(number);

	free(text);
	return text != NULL;
}

static gpul_cache_status query(void)
{
	gpul_cache_status s;

	gpul_cache_query(&s);
	return s;
}

/* ---- all files of the folder, in any order ----------------------------------------------- */

static char files[64][128];
static int n_files;

static int note_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)at;
	if (kind == FTW_F && n_files < 64)
		snprintf(files[n_files++], sizeof files[0], "%s", path);
	return 0;
}

static int list_files(void)
{
	n_files = 0;
	assert_int_equal(nftw(folder, note_file, 8, FTW_PHYS), 0);
	return n_files;
}

/* ---- storing and finding ----------------------------------------------------------------- */

static void finds_a_stored_result(void **state)
{
	(void)state;
	assert_null(find(1));
	store(1, "one");
	store(2, "");
	assert_found(1, "one");
	assert_found(2, "");
	assert_null(find(3));
	store(1, "one");
	assert_int_equal(list_files(), 2);
	assert_int_equal(query().n_results, 2);
}

static gpul_cache_key *key_of_texts(const char *a, const char *b)
{
	gpul_cache_key *key = gpul_cache_key_create("texts");

	gpul_cache_key_add_text(key, a);
	gpul_cache_key_add_text(key, b);
	return key;
}

static void keys_differ_if_the_same_text_is_split_differently(void **state)
{
	static const char *const pairs[][2] = {
		{ "ab", "c" }, { "a", "bc" }, { "abc", "" }, { "abc", NULL }, { NULL, "abc" },
	};
	void *bytes = NULL;
	size_t n_bytes;

	(void)state;
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		gpul_cache_key *key = key_of_texts(pairs[i][0], pairs[i][1]);

		assert_false(gpul_cache_find(key, &bytes, &n_bytes));
		gpul_cache_store(key, "x", 1);
		gpul_cache_key_destroy(key);
	}
	assert_int_equal(query().n_results, sizeof pairs / sizeof *pairs);
}

static void ignores_a_key_that_could_not_be_allocated(void **state)
{
	void *bytes = NULL;
	size_t n_bytes;

	(void)state;
	gpul_cache_key_add(NULL, "a", 1);
	gpul_cache_key_add_text(NULL, "a");
	gpul_cache_store(NULL, "a", 1);
	assert_false(gpul_cache_find(NULL, &bytes, &n_bytes));
	gpul_cache_key_destroy(NULL);
	assert_int_equal(list_files(), 0);
}

/* ---- damage ------------------------------------------------------------------------------ */

static void change_byte(const char *path, off_t at)
{
	char byte;
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x20;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void removes_a_result_with_any_byte_damaged(void **state)
{
	struct stat st;

	(void)state;
	store(1, "payload");
	assert_int_equal(list_files(), 1);
	assert_int_equal(stat(files[0], &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		change_byte(files[0], at);
		assert_null(find(1));
		assert_int_equal(access(files[0], F_OK), -1);
		store(1, "payload");
		assert_found(1, "payload");
	}
}

static void rejects_a_result_of_the_wrong_length(void **state)
{
	struct stat st;

	(void)state;
	store(1, "payload");
	assert_int_equal(list_files(), 1);
	assert_int_equal(stat(files[0], &st), 0);
	for (off_t bytes = 0; bytes <= st.st_size + 1; bytes++) {
		if (bytes == st.st_size)
			continue;
		assert_int_equal(truncate(files[0], bytes), 0);
		assert_null(find(1));
		store(1, "payload");
	}
	assert_found(1, "payload");
}

static void rejects_a_result_stored_under_the_name_of_another_key(void **state)
{
	char other[128];

	(void)state;
	store(1, "one");
	assert_int_equal(list_files(), 1);
	strcpy(other, files[0]);
	store(2, "two");
	assert_int_equal(list_files(), 2);
	assert_int_equal(rename(strcmp(files[0], other) ? files[0] : files[1], other), 0);
	assert_null(find(1));
}

static void rejects_a_link_or_a_pipe_in_place_of_a_result(void **state)
{
	(void)state;
	store(1, "one");
	assert_int_equal(list_files(), 1);
	assert_int_equal(unlink(files[0]), 0);
	assert_int_equal(symlink("/dev/zero", files[0]), 0);
	assert_null(find(1));
	unlink(files[0]);
	assert_int_equal(mkfifo(files[0], 0600), 0);
	assert_null(find(1));
	store(1, "one");
	assert_found(1, "one");
}

/* ---- the size limit ---------------------------------------------------------------------- */

/* Set the time of last use of a file to `seconds` ago. */
static void age(const char *path, long seconds)
{
	struct timespec times[2];

	clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= seconds;
	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void removes_the_least_recently_used_results_to_keep_its_size_limit(void **state)
{
	char text[1001];

	(void)state;
	memset(text, 'x', 1000);
	text[1000] = 0;
	setenv("GPULOAD_CACHE_MAX_BYTES", "4K", 1);
	for (int i = 0; i < 3; i++) {
		store(i, text);
		list_files();
		for (int f = 0; f < n_files; f++)
			age(files[f], 100 - 10 * i);
	}
	assert_true(is_stored(0)); /* this look-up of result 0 makes result 1 the least recently used */
	list_files();
	store(3, text);
	assert_true(query().bytes <= 4096);
	assert_true(is_stored(0));
	assert_true(is_stored(3));
	assert_int_equal(query().n_results, 3);
}

static void does_not_store_a_result_larger_than_the_size_limit(void **state)
{
	char text[5001];

	(void)state;
	memset(text, 'x', 5000);
	text[5000] = 0;
	store(1, "small");
	setenv("GPULOAD_CACHE_MAX_BYTES", "4K", 1);
	store(2, text);
	assert_null(find(2));
	assert_found(1, "small");
	setenv("GPULOAD_CACHE_MAX_BYTES", "0", 1);
	store(3, "x");
	assert_null(find(3));
}

static void the_size_limit_is_a_number_with_k_m_or_g(void **state)
{
	/* clang-format off */
	static const struct { const char *text; uint64_t bytes; } rows[] = {
		{ "1000", 1000 }, { "2K", 2048 }, { "3M", 3 << 20 }, { "1G", 1 << 30 },
		{ "", 256 << 20 }, { "many", 256 << 20 }, { "-1", 256 << 20 },
		{ "1X", 256 << 20 }, { "99999999999999999999", 256 << 20 },
		{ "18446744073709551615G", 256 << 20 },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		setenv("GPULOAD_CACHE_MAX_BYTES", rows[i].text, 1);
		assert_int_equal(query().bound_bytes, rows[i].bytes);
	}
}

static void removes_old_temporary_files(void **state)
{
	char old[128], fresh[128];

	(void)state;
	store(1, "one");
	snprintf(old, sizeof old, "%s/new-99999-0", folder);
	snprintf(fresh, sizeof fresh, "%s/new-99999-1", folder);
	close(open(old, O_CREAT | O_WRONLY, 0600));
	close(open(fresh, O_CREAT | O_WRONLY, 0600));
	age(old, 600);
	store(2, "two");
	assert_int_equal(access(old, F_OK), -1);
	assert_int_equal(access(fresh, F_OK), 0); /* a new temporary file stays, because a process may be writing it */
	assert_int_equal(query().n_results, 2);
}

/* ---- folders that cannot be used --------------------------------------------------------- */

static void stores_nothing_if_switched_off(void **state)
{
	(void)state;
	setenv("GPULOAD_CACHE", "off", 1);
	store(1, "one");
	assert_null(find(1));
	assert_string_equal(query().folder, "");
	assert_string_equal(query().why_not, "GPULOAD_CACHE is off");
	assert_int_equal(list_files(), 0);
}

static void chooses_the_folder_by_the_xdg_specification(void **state)
{
	char inside[128];

	(void)state;
	unsetenv("GPULOAD_CACHE");
	setenv("XDG_CACHE_HOME", folder, 1);
	setenv("HOME", folder, 1);
	snprintf(inside, sizeof inside, "%s/gpuload", folder);
	assert_string_equal(query().folder, inside);
	snprintf(inside, sizeof inside, "%s/.cache/gpuload", folder);
	setenv("XDG_CACHE_HOME", "relative", 1);
	assert_string_equal(query().folder, inside);
	setenv("XDG_CACHE_HOME", "", 1);
	assert_string_equal(query().folder, inside);
	setenv("HOME", "", 1);
	assert_string_equal(query().folder, "");
	assert_non_null(strstr(query().why_not, "HOME"));
}

static void creates_folders_with_access_for_the_owner_only(void **state)
{
	char deep[128], path[128];
	struct stat st;

	(void)state;
	snprintf(deep, sizeof deep, "%s/a/b", folder);
	setenv("GPULOAD_CACHE", deep, 1);
	assert_int_equal(query().n_results, 0);
	assert_int_equal(access(deep, F_OK), -1); /* a query creates nothing */
	store(1, "one");
	assert_found(1, "one");
	snprintf(path, sizeof path, "%s/a", folder);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(list_files(), 1);
	assert_int_equal(stat(files[0], &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void does_not_use_a_folder_that_other_users_may_write_to(void **state)
{
	(void)state;
	store(1, "one");
	assert_int_equal(chmod(folder, 0777), 0);
	assert_null(find(1));
	store(2, "two");
	assert_non_null(strstr(query().why_not, "other users may write"));
	assert_int_equal(chmod(folder, 0700), 0);
	assert_found(1, "one");
	assert_null(find(2));
}

static void does_not_use_a_file_in_place_of_the_folder(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof path, "%s/file", folder);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	setenv("GPULOAD_CACHE", path, 1);
	store(1, "one");
	assert_null(find(1));
	assert_non_null(strstr(query().why_not, "cannot be opened"));
}

/* Run work() in a process of user nobody, because file modes do not restrict root. */
static int as_nobody(void (*work)(void))
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		if (setgid(65534) || setuid(65534))
			_exit(2);
		work();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void use_read_only_folder(void)
{
	gpul_cache_key *one = key_for(1), *two = key_for(2);
	void *bytes = NULL;
	size_t n_bytes;

	gpul_cache_store(two, "two", 3);
	if (gpul_cache_find(two, &bytes, &n_bytes) || !gpul_cache_find(one, &bytes, &n_bytes))
		_exit(1);
	free(bytes);
	gpul_cache_key_destroy(one);
	gpul_cache_key_destroy(two);
}

static void finds_results_in_a_read_only_folder_and_adds_none(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	store(1, "one");
	assert_int_equal(list_files(), 1);
	assert_int_equal(chown(files[0], 65534, 65534), 0);
	*strrchr(files[0], '/') = 0;
	assert_int_equal(chown(files[0], 65534, 65534), 0);
	assert_int_equal(chmod(files[0], 0500), 0);
	assert_int_equal(chown(folder, 65534, 65534), 0);
	assert_int_equal(chmod(folder, 0500), 0);
	assert_int_equal(as_nobody(use_read_only_folder), 0);
	assert_int_equal(list_files(), 1);
}

static void leaves_no_temporary_file_on_a_full_disk(void **state)
{
	static char text[300 << 10];

	(void)state;
	if (geteuid() || mount("tmpfs", folder, "tmpfs", 0, "size=128k,mode=0700"))
		skip();
	memset(text, 'x', sizeof text - 1);
	store(1, "one");
	store(2, text);
	bool found_1 = is_stored(1), found_2 = is_stored(2);
	int n = list_files();
	assert_int_equal(umount(folder), 0);
	assert_true(found_1);
	assert_false(found_2);
	assert_int_equal(n, 1);
}

/* ---- several processes ------------------------------------------------------------------- */

enum { PROCESSES = 20, ROUNDS = 40, KEYS = 12 };

/* Store and find results; nonzero if a found result differs from the stored one. */
static int use_cache(unsigned seed)
{
	for (int i = 0; i < ROUNDS; i++) {
		char text[2048], *found;
		int number = rand_r(&seed) % KEYS;

		memset(text, 'a' + number, sizeof text - 1);
		text[sizeof text - 1] = 0;
		if (rand_r(&seed) % 2)
			store(number, text);
		found = find(number);
		if (found && strcmp(found, text))
			return 1;
		free(found);
	}
	return 0;
}

static void processes_share_the_cache_within_its_size_limit(void **state)
{
	int status;

	(void)state;
	setenv("GPULOAD_CACHE_MAX_BYTES", "12K", 1); /* room for about half of the results */
	for (unsigned i = 0; i < PROCESSES; i++) {
		pid_t child = fork();

		assert_true(child >= 0);
		if (!child)
			_exit(use_cache(i + 1));
	}
	for (int i = 0; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	gpul_cache_status s = query();
	assert_true(s.bytes <= s.bound_bytes);
	assert_true(s.n_results > 0);
	assert_int_equal(list_files(), s.n_results); /* no temporary file is left */
}

/* ---- clearing ---------------------------------------------------------------------------- */

static void clear_removes_all_results_and_no_other_file(void **state)
{
	char mine[128];
	uint64_t n = 99;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_cache_clear(&n, &err), GPUL_OK);
	assert_int_equal(n, 0);
	store(1, "one");
	store(2, "two");
	snprintf(mine, sizeof mine, "%s/notes.txt", folder);
	close(open(mine, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(gpul_cache_clear(&n, &err), GPUL_OK);
	assert_int_equal(n, 2);
	assert_int_equal(query().n_results, 0);
	assert_int_equal(list_files(), 1);
	assert_string_equal(files[0], mine);
	assert_null(find(1));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(finds_a_stored_result),
		TEST(keys_differ_if_the_same_text_is_split_differently),
		TEST(ignores_a_key_that_could_not_be_allocated),
		TEST(removes_a_result_with_any_byte_damaged),
		TEST(rejects_a_result_of_the_wrong_length),
		TEST(rejects_a_result_stored_under_the_name_of_another_key),
		TEST(rejects_a_link_or_a_pipe_in_place_of_a_result),
		TEST(removes_the_least_recently_used_results_to_keep_its_size_limit),
		TEST(does_not_store_a_result_larger_than_the_size_limit),
		TEST(the_size_limit_is_a_number_with_k_m_or_g),
		TEST(removes_old_temporary_files),
		TEST(stores_nothing_if_switched_off),
		TEST(chooses_the_folder_by_the_xdg_specification),
		TEST(creates_folders_with_access_for_the_owner_only),
		TEST(does_not_use_a_folder_that_other_users_may_write_to),
		TEST(does_not_use_a_file_in_place_of_the_folder),
		TEST(finds_results_in_a_read_only_folder_and_adds_none),
		TEST(leaves_no_temporary_file_on_a_full_disk),
		TEST(processes_share_the_cache_within_its_size_limit),
		TEST(clear_removes_all_results_and_no_other_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
