/* test_core.c — errors, the log, bytes, arrays, the clock. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/array.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"

static void an_error_keeps_the_first_failure(void **state)
{
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_fail(&err, GPUL_ESYS, 2, "open %s", "a.ptx"), GPUL_ESYS);
	assert_int_equal(gpul_fail(&err, GPUL_ECUDA, 1, "cleanup"), GPUL_ECUDA);
	assert_int_equal(err.status, GPUL_ESYS);
	assert_int_equal(err.native, 2);
	assert_string_equal(err.text, "open a.ptx");
}

static void a_failure_without_gpul_error_still_returns_its_status(void **state)
{
	(void)state;
	assert_int_equal(gpul_fail(NULL, GPUL_ENOMEM, 0, "x"), GPUL_ENOMEM);
}

static void a_long_error_text_is_shortened_where_it_matters_least(void **state)
{
	gpul_error err = { 0 }, outer = { 0 };
	char path[301];

	(void)state;
	memset(path, 'p', 300);
	path[300] = '\0';
	gpul_fail(&err, GPUL_ESYS, 2, "/tmp/%s/x.ptx: no such file", path);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
	assert_memory_equal(err.text, "/tmp/ppp", 8);
	assert_non_null(strstr(err.text, "pp...pp"));
	assert_non_null(strstr(err.text, "pp/x.ptx: no such file"));
	gpul_fail(&outer, GPUL_ESYS, 2, "rank 3: %s", err.text); /* the new text contains a text that was already shortened */
	assert_memory_equal(outer.text, "rank 3: /tmp/", 13);
	assert_non_null(strstr(outer.text, "pp/x.ptx: no such file"));
}

struct seen {
	int n;
	gpul_log_level level;
	char line[64];
};

static void record_line(void *user, gpul_log_level level, const char *module, const char *line)
{
	struct seen *s = user;

	s->n++;
	s->level = level;
	assert_string_equal(module, "test");
	strncpy(s->line, line, sizeof s->line - 1);
}

static void the_log_shows_lines_up_to_its_level(void **state)
{
	struct seen s = { 0 };

	(void)state;
	gpul_log_to(record_line, &s);
	gpul_log_set_level(GPUL_LOG_INFO);
	gpul_log(GPUL_LOG_DEBUG, "test", "not shown");
	assert_int_equal(s.n, 0);
	gpul_log(GPUL_LOG_INFO, "test", "%d of %s", 3, "four");
	assert_int_equal(s.n, 1);
	assert_int_equal(s.level, GPUL_LOG_INFO);
	assert_string_equal(s.line, "3 of four");
	gpul_log_set_level(GPUL_LOG_OFF);
	gpul_log(GPUL_LOG_NOTICE, "test", "not shown");
	gpul_log(GPUL_LOG_OFF, "test", "never shown");
	assert_int_equal(s.n, 1);
	assert_false(gpul_log_shows(GPUL_LOG_NOTICE));
	gpul_log_to(NULL, NULL);
}

/* Run a process with this value of GPULOAD_LOG that logs one line of each level; copy its stderr to out. */
static void logged_with(const char *setting, char *out, size_t out_bytes)
{
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		if (setting)
			setenv("GPULOAD_LOG", setting, 1);
		else
			unsetenv("GPULOAD_LOG");
		gpul_log(GPUL_LOG_NOTICE, "test", "n");
		gpul_log(GPUL_LOG_INFO, "test", "i");
		gpul_log(GPUL_LOG_DEBUG, "test", "d");
		_exit(0);
	}
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	n = read(ends[0], out, out_bytes - 1);
	out[n > 0 ? n : 0] = '\0';
	close(ends[0]);
}

static void the_log_shows_only_notices_by_default(void **state)
{
	char out[128];

	(void)state;
	logged_with(NULL, out, sizeof out);
	assert_string_equal(out, "gpuload: n\n");
	logged_with("off", out, sizeof out);
	assert_string_equal(out, "");
	logged_with("debug", out, sizeof out);
	assert_string_equal(out, "gpuload: n\ngpuload test: i\ngpuload test: d\n");
	logged_with("nonsense", out, sizeof out);
	assert_string_equal(out, "gpuload: n\n");
}

static void mistakes_are_explained_once_and_ten_at_most(void **state)
{
	struct seen s = { 0 };

	(void)state;
	gpul_log_to(record_line, &s);
	gpul_log_set_level(GPUL_LOG_NOTICE);
	for (int i = 0; i < 3; i++)
		gpul_log_mistake("test", "mistake %d", i / 2);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.level, GPUL_LOG_NOTICE);
	for (int i = 0; i < 50; i++)
		gpul_log_mistake("test", "mistake %d", i);
	assert_int_equal(s.n, 11);
	assert_non_null(strstr(s.line, "further failed calls"));
	assert_false(gpul_log_shows_mistakes());
	gpul_log_set_level(GPUL_LOG_INFO);
	gpul_log_mistake("test", "mistake %d", 3); /* at this level every mistake is logged, even repeatedly */
	gpul_log_mistake("test", "mistake %d", 3);
	assert_int_equal(s.n, 13);
	gpul_log_set_level(GPUL_LOG_OFF);
	gpul_log_mistake("test", "mistake %d", 4);
	assert_int_equal(s.n, 13);
	gpul_log_to(NULL, NULL);
}

static void bytes_are_read_as_little_endian_at_any_alignment(void **state)
{
	const unsigned char raw[] = { 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 };
	gpul_bytes b = gpul_bytes_of(raw, sizeof raw);

	(void)state;
	assert_int_equal(gpul_bytes_u8(&b), 0xff);
	assert_int_equal(gpul_bytes_u16(&b), 0x0201);
	assert_int_equal(gpul_bytes_u32(&b), 0x06050403);
	assert_true(gpul_bytes_u64(&b) == 0x0e0d0c0b0a090807u);
	assert_int_equal(gpul_bytes_left(&b), 0);
	assert_false(b.overrun);
}

static void a_read_past_the_end_returns_zero_and_sets_overrun(void **state)
{
	const unsigned char raw[] = { 1, 2, 3 };
	gpul_bytes b = gpul_bytes_of(raw, sizeof raw), part;

	(void)state;
	assert_int_equal(gpul_bytes_u32(&b), 0);
	assert_true(b.overrun);
	assert_int_equal(b.at, 0);
	b = gpul_bytes_of(raw, sizeof raw);
	part = gpul_bytes_take(&b, UINT64_MAX);
	assert_true(part.overrun && b.overrun);
	assert_int_equal(part.n_bytes, 0);
	b = gpul_bytes_of(raw, sizeof raw);
	gpul_bytes_seek(&b, 4);
	assert_true(b.overrun);
	b = gpul_bytes_of(raw, sizeof raw);
	gpul_bytes_seek(&b, 3); /* the end is a valid offset */
	assert_false(b.overrun);
	assert_int_equal(gpul_bytes_left(&b), 0);
}

static void a_read_past_the_end_of_a_part_sets_its_overrun_only(void **state)
{
	const unsigned char raw[] = { 1, 2, 3, 4 };
	gpul_bytes b = gpul_bytes_of(raw, sizeof raw), part;

	(void)state;
	gpul_bytes_skip(&b, 1);
	part = gpul_bytes_take(&b, 2);
	assert_int_equal(gpul_bytes_u16(&part), 0x0302);
	assert_int_equal(gpul_bytes_u8(&part), 0);
	assert_true(part.overrun);
	assert_false(b.overrun);
	assert_int_equal(gpul_bytes_u8(&b), 4);
}

static void an_array_keeps_pushed_elements(void **state)
{
	GPUL_ARRAY(struct {
		int key;
		double value;
	})
	a = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		__typeof__(a.at) e = gpul_array_push(&a);

		assert_non_null(e);
		assert_true(e->key == 0 && e->value == 0);
		e->key = i;
	}
	assert_int_equal(a.n, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(a.at[i].key, i);
	gpul_array_free(&a);
	assert_null(a.at);
}

static void an_array_stays_unchanged_when_it_cannot_grow(void **state)
{
	char *at = NULL;
	size_t room = 0;

	(void)state;
	assert_false(gpul_array_reserve(&at, 0, &room, SIZE_MAX / 4));
	assert_null(at);
	assert_int_equal(room, 0);
}

static void the_clock_never_goes_back(void **state)
{
	uint64_t before = gpul_clock_ns();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		uint64_t now = gpul_clock_ns();

		assert_true(now >= before);
		before = now;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_keeps_the_first_failure),
		cmocka_unit_test(a_failure_without_gpul_error_still_returns_its_status),
		cmocka_unit_test(a_long_error_text_is_shortened_where_it_matters_least),
		/* Must precede tests that call gpul_log_set_level(): the environment is read only once. */
		cmocka_unit_test(the_log_shows_only_notices_by_default),
		cmocka_unit_test(the_log_shows_lines_up_to_its_level),
		cmocka_unit_test(mistakes_are_explained_once_and_ten_at_most),
		cmocka_unit_test(bytes_are_read_as_little_endian_at_any_alignment),
		cmocka_unit_test(a_read_past_the_end_returns_zero_and_sets_overrun),
		cmocka_unit_test(a_read_past_the_end_of_a_part_sets_its_overrun_only),
		cmocka_unit_test(an_array_keeps_pushed_elements),
		cmocka_unit_test(an_array_stays_unchanged_when_it_cannot_grow),
		cmocka_unit_test(the_clock_never_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
