/* test_reliable_trace.c — steps of chunks become lines of a trace: each way in which a datagram can end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/rdma/reliable/reliable_trace.h"

static const gpul_rel_step steps[] = {
	{ 900, GPUL_REL_SENT, 40, 0, 7, 0 },       { 1000, GPUL_REL_SENT, 41, 0, 8, 0 },  { 1000, GPUL_REL_SENT, 42, 1, 3, 0 },
	{ 5000, GPUL_REL_ACKED, 40, 0, 7, 0 },     { 6000, GPUL_REL_LOST, 41, 0, 8, 11 }, { 7000, GPUL_REL_SENT, 41, 1, 4, 0 },
	{ 8000, GPUL_REL_TIMED_OUT, 42, 1, 3, 0 }, { 8000, GPUL_REL_SENT, 42, 0, 12, 0 }, { 8500, GPUL_REL_SENT, 42, 1, 5, 0 },
	{ 9000, GPUL_REL_ACKED, 42, 0, 12, 0 },    { 9500, GPUL_REL_LOST, 41, 1, 4, 7 },  { 9900, GPUL_REL_ACKED, 41, 1, 4, 0 },
};
enum { N_STEPS = sizeof steps / sizeof *steps };

/* Write a trace of the first n steps, of which `max` were recorded; return the text, which the caller frees. */
static char *write_trace(unsigned n, unsigned max, const char *name)
{
	char path[100], *text = calloc(1, 20000);
	struct reliable_trace *t = NULL;
	gpul_error err = { 0 };
	FILE *f;

	snprintf(path, sizeof path, "/tmp/reliable_trace_%d%s", (int)getpid(), name);
	assert_int_equal(reliable_trace_create(2, &t, &err), GPUL_OK);
	memcpy(t->record.steps, steps, sizeof steps);
	t->record.n = n;
	t->record.max = max;
	t->begun = t->ended = true;
	t->bytes = 300;
	t->begun_ns = 1000; /* the first burst began before: its time is 0 */
	t->ended_ns = 11000;
	assert_int_equal(reliable_trace_write(t, path, false, &err), GPUL_OK);
	reliable_trace_free(t);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(text && fread(text, 1, 19999, f) > 0);
	fclose(f);
	unlink(path);
	return text;
}

static void each_datagram_has_a_line_that_says_how_it_ended(void **state)
{
	static const struct {
		unsigned n, max;
		const char *text;
	} cases[] = {
		{ N_STEPS, 100,
		  "message 2, 300 bytes: 3 chunks in 6 datagrams; 2 found lost by later packets, 1 by time-outs; sent after 10.0 us\n\n"
		  "   sent us   chunk   path   packet\n"
		  "       0.0       0      0        7  acknowledged after 4.0 us\n"
		  "       0.0       1      0        8  lost: after 5.0 us packet 11 has arrived\n"
		  "       0.0       2      1        3  given up after 7.0 us by a time-out of its path\n"
		  "       6.0       1      1        4  sent again; lost: after 2.5 us packet 7 has arrived; but it was only late: acknowledged after 2.9 us\n"
		  "       7.0       2      0       12  sent again; acknowledged after 1.0 us\n"
		  "       7.5       2      1        5  sent again; another datagram has brought the chunk\n" },
		{ 14, 4,
		  "message 2, 300 bytes: 3 chunks in 3 datagrams; 0 found lost by later packets, 0 by time-outs; sent after 10.0 us\n\n"
		  "   sent us   chunk   path   packet\n"
		  "       0.0       0      0        7  acknowledged after 4.0 us\n"
		  "       0.0       1      0        8  another datagram has brought the chunk\n"
		  "       0.0       2      1        3  another datagram has brought the chunk\n"
		  "... 10 more steps were not recorded\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *text = write_trace(cases[i].n, cases[i].max, ".txt");

		assert_string_equal(text, cases[i].text);
		free(text);
	}
}

static unsigned count(const char *text, const char *what)
{
	unsigned n = 0;

	while ((text = strstr(text, what)))
		n++, text++;
	return n;
}

static void pictures_have_the_same_datagrams(void **state)
{
	static const struct {
		const char *name, *what;
		unsigned n;
	} cases[] = {
		{ ".svg", "class=\"acked\"", 2 }, { ".svg", "class=\"lost\"", 3 },   { ".svg", "class=\"unknown\"", 1 },
		{ ".json", "\"ph\":\"X\"", 6 },   { ".json", "\"thread_name\"", 3 }, { ".json", "packet 7 has", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *text = write_trace(N_STEPS, 100, cases[i].name);

		assert_int_equal(count(text, cases[i].what), cases[i].n);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_datagram_has_a_line_that_says_how_it_ended),
		cmocka_unit_test(pictures_have_the_same_datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
