/* test_ls_parts.c — the parts that ls and extract share: image filters, C++ names, the progress line. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "cli/ls/cxx_names.h"
#include "cli/lib/options/image_filter.h"
#include "cli/lib/progress.h"

static void parses_every_spelling_of_an_architecture(void **state)
{
	static const struct {
		const char *text;
		uint16_t sm;
		char suffix;
	} rows[] = {
		{ "90", 90, 0 }, { "90a", 90, 'a' },  { "sm_90", 90, 0 }, { "sm_100f", 100, 'f' }, { "compute_75", 75, 0 }, { "9", 0, 0 },
		{ "90b", 0, 0 }, { "sm_90aa", 0, 0 }, { "", 0, 0 },       { "1000", 0, 0 },        { "sm_", 0, 0 },         { "-90", 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct image_filter f;
		gpul_error err = { 0 };
		gpul_status st = image_filter_parse(rows[i].text, NULL, NULL, &f, &err);

		assert_int_equal(st, rows[i].sm ? GPUL_OK : GPUL_EINVAL);
		if (st == GPUL_OK) {
			assert_int_equal(f.sm, rows[i].sm);
			assert_int_equal(f.suffix, rows[i].suffix);
		}
	}
}

static void an_architecture_without_a_suffix_selects_all_variants(void **state)
{
	const gpul_image plain = { .kind = GPUL_IMAGE_CUBIN, .sm = 90 };
	const gpul_image a = { .kind = GPUL_IMAGE_PTX, .sm = 90, .suffix = 'a' };
	const struct image_filter any = { 0 }, both = { .sm = 90 }, one = { .sm = 90, .suffix = 'a' }, ptx = { .kind = GPUL_IMAGE_PTX },
				  other = { .sm = 80 };

	(void)state;
	assert_true(image_filter_takes(&any, &plain) && image_filter_takes(&any, &a));
	assert_true(image_filter_takes(&both, &plain) && image_filter_takes(&both, &a));
	assert_true(!image_filter_takes(&one, &plain) && image_filter_takes(&one, &a));
	assert_true(!image_filter_takes(&ptx, &plain) && image_filter_takes(&ptx, &a));
	assert_true(!image_filter_takes(&other, &plain) && !image_filter_takes(&other, &a));
}

static void demangles_each_name_once(void **state)
{
	struct cxx_names *names = cxx_names_create();
	const struct cxx_name *first = cxx_names_get(names, "_Z5scalePdf");

	(void)state;
	assert_non_null(first);
	assert_ptr_equal(cxx_names_get(names, "_Z5scalePdf"), first);
	assert_null(cxx_names_get(names, "scale")->demangled);
	if (!first->demangled)
		skip(); /* this machine has no C++ runtime */
	assert_string_equal(first->demangled, "scale(double*, float)");
	assert_int_equal(first->n_params, 2);
	cxx_names_destroy(names);
}

static void finds_every_name_again_after_the_table_has_grown(void **state)
{
	struct cxx_names *names = cxx_names_create();

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20000; i++) {
			const struct cxx_name *found;
			char name[32];

			snprintf(name, sizeof name, "_Z6f%05dPi", i);
			found = cxx_names_get(names, name);
			assert_non_null(found);
			assert_true(!found->demangled || atoi(found->demangled + 1) == i);
		}
	cxx_names_destroy(names);
}

static void uses_the_types_of_a_name_only_if_their_sizes_match(void **state)
{
	static const gpul_kernel_param fits[] = { { 0, 8, 0 }, { 8, 4, 0 } }, differs[] = { { 0, 8, 0 }, { 8, 8, 0 } };
	struct cxx_names *names = cxx_names_create();
	const struct cxx_name *name = cxx_names_get(names, "_Z5scalePdf");
	gpul_kernel_info k = { .params = fits, .n_params = 2 };

	(void)state;
	if (!name->demangled)
		skip();
	assert_non_null(cxx_name_types(name, &k));
	assert_memory_equal(cxx_name_types(name, &k)[0].text, "double*", 7);
	k.params = differs;
	assert_null(cxx_name_types(name, &k));
	k.n_params = 1;
	assert_null(cxx_name_types(name, &k));
	assert_null(cxx_name_types(NULL, &k));
	cxx_names_destroy(names);
}

static void a_glob_matches_every_form_of_a_name(void **state)
{
	static const struct {
		const char *glob;
		bool fits;
	} rows[] = {
		{ "_Z4axpyIf*", true },         { "axpy<float>", true }, { "*axpy*", true },
		{ "void axpy<float>(*", true }, { "axpy", false },       { "*double*", false },
	};
	const struct cxx_name name = { .demangled = "void axpy<float>(float, float const*, float*, int)" };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_true(cxx_name_matches(rows[i].glob, "_Z4axpyIfEvT_PKS0_PS0_i", &name) == rows[i].fits);
}

/* ---- progress ---------------------------------------------------------------------- */

/* Report 50 % of a scan while stderr is fd, and read what arrives at read_from: up to n bytes, waiting at
 * most wait_ms for each read, because a terminal delivers bytes with a delay.  Returns the number of bytes. */
static size_t read_progress(int fd, int read_from, bool long_ago, int wait_ms, char *buf, size_t n)
{
	int kept = dup(STDERR_FILENO);
	struct progress p;
	size_t got = 0;

	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	progress_begin(&p, "/some/where/libx.so");
	if (long_ago)
		p.started_ns = 0;
	p.hook.tell(p.hook.context, 5, 10);
	progress_wipe(&p);
	progress_wipe(&p); /* the second call has nothing to wipe */
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	for (struct pollfd from = { .fd = read_from, .events = POLLIN }; got < n && poll(&from, 1, wait_ms) > 0;) {
		ssize_t more = read(read_from, buf + got, n - got);

		if (more <= 0)
			break;
		got += (size_t)more;
	}
	return got;
}

static void progress_is_shown_on_a_terminal_and_wiped_at_the_end(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	static const char shown[] = "\r\033[Klibx.so:  50%\r\033[K";
	char buf[sizeof shown] = "";

	(void)state;
	if (master < 0 || grantpt(master) || unlockpt(master))
		skip(); /* this machine has no pseudo-terminals */
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	assert_int_equal(read_progress(slave, master, false, 50, buf, sizeof buf), 0);
	assert_int_equal(read_progress(slave, master, true, 5000, buf, sizeof shown - 1), sizeof shown - 1);
	assert_string_equal(buf, shown);
	close(slave);
	close(master);
}

static void progress_writes_nothing_to_a_pipe(void **state)
{
	int ends[2];
	char buf[16];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(read_progress(ends[1], ends[0], true, 50, buf, sizeof buf), 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_every_spelling_of_an_architecture),
		cmocka_unit_test(an_architecture_without_a_suffix_selects_all_variants),
		cmocka_unit_test(demangles_each_name_once),
		cmocka_unit_test(finds_every_name_again_after_the_table_has_grown),
		cmocka_unit_test(uses_the_types_of_a_name_only_if_their_sizes_match),
		cmocka_unit_test(a_glob_matches_every_form_of_a_name),
		cmocka_unit_test(progress_is_shown_on_a_terminal_and_wiped_at_the_end),
		cmocka_unit_test(progress_writes_nothing_to_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
