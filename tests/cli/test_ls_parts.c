/* test_ls_parts.c — what ls and extract share: filters, names, progress. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/ls/cxx_names.h"
#include "cli/lib/image_filter.h"
#include "cli/lib/progress.h"

static void reads_architectures_as_people_write_them(void **state)
{
	static const struct {
		const char *text;
		uint16_t sm;
		char suffix;
	} rows[] = {
		{ "90", 90, 0 },         { "90a", 90, 'a' },        { "sm_90", 90, 0 },
		{ "sm_100f", 100, 'f' }, { "compute_75", 75, 0 },   { "9", 0, 0 },
		{ "90b", 0, 0 },         { "sm_90aa", 0, 0 },       { "", 0, 0 },
		{ "1000", 0, 0 },        { "sm_", 0, 0 },           { "-90", 0, 0 },
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

static void an_architecture_without_suffix_takes_all_variants(void **state)
{
	const gpul_image plain = { .kind = GPUL_IMAGE_CUBIN, .sm = 90 };
	const gpul_image a = { .kind = GPUL_IMAGE_PTX, .sm = 90, .suffix = 'a' };
	const struct image_filter any = { 0 }, both = { .sm = 90 },
				  one = { .sm = 90, .suffix = 'a' },
				  ptx = { .kind = GPUL_IMAGE_PTX }, other = { .sm = 80 };

	(void)state;
	assert_true(image_filter_takes(&any, &plain) && image_filter_takes(&any, &a));
	assert_true(image_filter_takes(&both, &plain) && image_filter_takes(&both, &a));
	assert_true(!image_filter_takes(&one, &plain) && image_filter_takes(&one, &a));
	assert_true(!image_filter_takes(&ptx, &plain) && image_filter_takes(&ptx, &a));
	assert_true(!image_filter_takes(&other, &plain) && !image_filter_takes(&other, &a));
}

static void demangles_a_name_once(void **state)
{
	struct cxx_names *names = cxx_names_create();
	const struct cxx_name *first = cxx_names_get(names, "_Z5scalePdf");

	(void)state;
	assert_non_null(first);
	assert_ptr_equal(cxx_names_get(names, "_Z5scalePdf"), first);
	assert_null(cxx_names_get(names, "scale")->demangled);
	if (!first->demangled)
		skip(); /* no C++ runtime here */
	assert_string_equal(first->demangled, "scale(double*, float)");
	assert_int_equal(first->n_params, 2);
	cxx_names_destroy(names);
}

/* More names than a table has room for at first, from several threads. */
static void *ask(void *names)
{
	char name[32];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 20000; i++) {
			const struct cxx_name *found;

			snprintf(name, sizeof name, "_Z%df%05dPi", 6, i);
			found = cxx_names_get(names, name);
			if (!found || (found->demangled && atoi(found->demangled + 1) != i))
				return names; /* any pointer: wrong */
		}
	return NULL;
}

static void keeps_many_names_asked_for_by_several_threads(void **state)
{
	struct cxx_names *names = cxx_names_create();
	pthread_t threads[3];

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, names), 0);
	for (size_t i = 0; i < 3; i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	cxx_names_destroy(names);
}

static void types_are_used_only_where_they_agree_with_the_sizes(void **state)
{
	static const gpul_kernel_param fits[] = { { 0, 8, 0 }, { 8, 4, 0 } },
				       differs[] = { { 0, 8, 0 }, { 8, 8, 0 } };
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

static void globs_fit_any_form_of_a_name(void **state)
{
	static const struct {
		const char *glob;
		bool fits;
	} rows[] = {
		{ "_Z4axpyIf*", true }, { "axpy<float>", true }, { "*axpy*", true },
		{ "void axpy<float>(*", true }, { "axpy", false }, { "*double*", false },
	};
	const struct cxx_name name = {
		.demangled = "void axpy<float>(float, float const*, float*, int)"
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct image_filter f = { .match = rows[i].glob };

		assert_true(image_filter_matches(&f, "_Z4axpyIfEvT_PKS0_PS0_i", &name) ==
			    rows[i].fits);
	}
}

/* ---- progress ---------------------------------------------------------------------- */

/* What a progress line of half of the work writes to a stderr that is fd: n bytes of it, as far as
 * they come within wait_ms.  A terminal passes them on in its own time. */
static size_t written(int fd, int read_from, bool long_ago, int wait_ms, char *buf, size_t n)
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
	progress_wipe(&p); /* a second time: nothing to do */
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(kept);
	for (struct pollfd from = { .fd = read_from, .events = POLLIN };
	     got < n && poll(&from, 1, wait_ms) > 0;) {
		ssize_t more = read(read_from, buf + got, n - got);

		if (more <= 0)
			break;
		got += (size_t)more;
	}
	return got;
}

static void progress_shows_on_a_terminal_and_goes_away(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	static const char shown[] = "\r\033[Klibx.so:  50%\r\033[K";
	char buf[sizeof shown] = "";

	(void)state;
	if (master < 0 || grantpt(master) || unlockpt(master))
		skip(); /* no terminals here */
	slave = open(ptsname(master), O_RDWR | O_NOCTTY);
	assert_true(slave >= 0);
	assert_int_equal(written(slave, master, false, 50, buf, sizeof buf), 0);
	assert_int_equal(written(slave, master, true, 5000, buf, sizeof shown - 1), sizeof shown - 1);
	assert_string_equal(buf, shown);
	close(slave);
	close(master);
}

static void progress_is_silent_elsewhere(void **state)
{
	int ends[2];
	char buf[16];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(written(ends[1], ends[0], true, 50, buf, sizeof buf), 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_architectures_as_people_write_them),
		cmocka_unit_test(an_architecture_without_suffix_takes_all_variants),
		cmocka_unit_test(demangles_a_name_once),
		cmocka_unit_test(keeps_many_names_asked_for_by_several_threads),
		cmocka_unit_test(types_are_used_only_where_they_agree_with_the_sizes),
		cmocka_unit_test(globs_fit_any_form_of_a_name),
		cmocka_unit_test(progress_shows_on_a_terminal_and_goes_away),
		cmocka_unit_test(progress_is_silent_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
