/* test_probe.c — probing with a child process, and with children that misbehave.
 *
 * This program is also the misbehaving child: the probe starts it with $BAD_PROBE set. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "memalloc/probe/probe_internal.h"
#include "tests/memalloc/support.h"

static const gpul_driver *drv;
static gpul_context context;
static char self[4096];

/* ---- the misbehaving child --------------------------------------------------------------- */

static void send_hello(unsigned protocol, size_t bytes)
{
	struct probe_answer a;

	memset(&a, 0, sizeof a);
	a.protocol = protocol;
	if (send(PROBE_FD, &a, bytes, MSG_NOSIGNAL) < 0)
		exit(9);
}

static int misbehave(const char *how)
{
	const struct rlimit no_core = { 0, 0 };
	struct probe_question q;

	setrlimit(RLIMIT_CORE, &no_core);
	if (!strcmp(how, "silent"))
		return 7;
	if (!strcmp(how, "deaf"))
		pause();
	send_hello(strcmp(how, "older") ? PROBE_PROTOCOL : PROBE_PROTOCOL - 1, strcmp(how, "short") ? sizeof(struct probe_answer) : 8);
	if (recv(PROBE_FD, &q, sizeof q, 0) < 0)
		return 8;
	signal(SIGBUS, SIG_DFL); /* a sanitizer may have installed a handler */
	if (!strcmp(how, "crash"))
		raise(SIGBUS);
	if (!strcmp(how, "hang"))
		pause();
	if (!strcmp(how, "lie")) /* the child reports success, but has not written the pattern */
		send_hello(PROBE_PROTOCOL, sizeof(struct probe_answer));
	pause();
	return 0;
}

static gpul_mem_verdict try_with(const char *program, const char *how, struct probe_child *c)
{
	gpul_mem_verdict v;

	setenv("GPULOAD_PROBE", program, 1);
	if (how)
		setenv("BAD_PROBE", how, 1);
	*c = (struct probe_child){ .drv = drv, .socket = -1 };
	if (how && !strcmp(how, "deaf"))
		c->start_ms = 300;
	if (how && !strcmp(how, "hang"))
		c->answer_ms = 300;
	gpul_probe_try(c, 0, GPUL_MEM_MEMFD, false, &v);
	unsetenv("BAD_PROBE");
	return v;
}

static void the_verdict_on_a_misbehaving_child_has_a_reason(void **state)
{
	static const struct {
		const char *how, *why;
	} rows[] = {
		{ "silent",
		  "in another process: the process gpuload-probe, which tests a kind of memory, exited with status 7 and without a result" },
		{ "deaf", "in another process: the process gpuload-probe, which tests a kind of memory, did not answer within 0.3 s" },
		{ "older", "different versions" },
		{ "short", "different versions" },
		{ "crash", "in another process: the process gpuload-probe, which tests a kind of memory, was killed by SIGBUS" },
		{ "hang", "in another process: the process gpuload-probe, which tests a kind of memory, did not answer within 0.3 s" },
		{ "lie", "reads different data than was written" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		size_t fds = count_fds();
		struct probe_child c;
		gpul_mem_verdict v = try_with(self, rows[i].how, &c);

		assert_true(v.works);
		assert_true(v.tested_another);
		assert_false(v.shares);
		if (!strstr(v.why, rows[i].why))
			fail_msg("%s: %s", rows[i].how, v.why);
		gpul_probe_child_stop(&c);
		assert_int_equal(count_fds(), fds);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		assert_int_equal(errno, ECHILD);
	}
}

static void starts_a_new_child_after_a_crash(void **state)
{
	struct probe_child c;
	gpul_mem_verdict v = try_with(self, "crash", &c);
	const char *good = getenv("GOOD_PROBE");

	(void)state;
	assert_false(v.shares);
	if (!good)
		skip();
	setenv("GPULOAD_PROBE", good, 1);
	gpul_probe_try(&c, 0, GPUL_MEM_MEMFD, false, &v);
	assert_true(v.shares);
	gpul_probe_child_stop(&c);
}

static void does_not_start_a_failing_child_twice(void **state)
{
	struct probe_child c;
	gpul_mem_verdict v = try_with(self, "silent", &c);

	(void)state;
	assert_false(v.shares);
	gpul_probe_try(&c, 0, GPUL_MEM_SHM, false, &v);
	assert_true(v.works);
	assert_false(v.shares);
	assert_non_null(strstr(v.why, "status 7"));
	assert_int_equal(c.pid, 0);
}

static void without_the_program_it_imports_in_this_process(void **state)
{
	struct probe_child c;
	gpul_mem_verdict v = try_with("/nonexistent/gpuload-probe", NULL, &c);

	(void)state;
	assert_true(v.works);
	assert_true(v.shares);
	assert_false(v.tested_another);
	assert_string_equal(v.why, "");
}

static void probes_while_signals_are_blocked_and_ignored(void **state)
{
	const char *good = getenv("GOOD_PROBE");
	gpul_mem_verdict v;
	struct probe_child c;
	sigset_t all, before;

	(void)state;
	if (!good)
		skip();
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	signal(SIGCHLD, SIG_IGN);
	v = try_with(good, NULL, &c);
	gpul_probe_child_stop(&c);
	signal(SIGCHLD, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_true(v.shares);
	assert_string_equal(v.why, "");
}

/* ---- the report -------------------------------------------------------------------------- */

static void *probe_again(void *out)
{
	gpul_context mine = { 0 };

	if (gpul_context_open(drv, 0, &mine, NULL) == GPUL_OK)
		gpul_mem_probe(drv, 0, out, NULL);
	gpul_context_close(&mine);
	return NULL;
}

static void concurrent_probes_return_one_report(void **state)
{
	const gpul_mem_probe_report *reports[4] = { NULL };
	const char *good = getenv("GOOD_PROBE");
	size_t fds = count_fds();
	pthread_t threads[4];

	(void)state;
	if (good)
		setenv("GPULOAD_PROBE", good, 1);
	assert_null(gpul_mem_probed(drv, 0));
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, probe_again, &reports[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_non_null(reports[0]);
	for (int i = 1; i < 4; i++)
		assert_ptr_equal(reports[i], reports[0]);
	assert_ptr_equal(gpul_mem_probed(drv, 0), reports[0]);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void the_report_has_a_reason_for_each_failure(void **state)
{
	const gpul_mem_probe_report *r = NULL;
	gpul_error err = { 0 };

	(void)state;
	if (gpul_mem_probe(drv, 0, &r, &err))
		fail_msg("%s", err.text);
	for (int kind = 0; kind < (int)GPUL_MEM_N_KINDS; kind++) {
		const gpul_mem_verdict *v = &r->kind[kind];

		assert_int_equal(v->why[0] == '\0', v->works && v->shares);
		assert_true(v->works || !v->shares);
		assert_int_equal(v->works, v->granularity_bytes > 0);
	}
	assert_true(r->kind[GPUL_MEM_MEMFD].shares);
	assert_true(r->kind[GPUL_MEM_PINNED].works);
	assert_false(r->kind[GPUL_MEM_PINNED].shares);
	assert_non_null(strstr(r->kind[GPUL_MEM_PINNED].why, "cannot be shared"));
	assert_true(r->taken == GPUL_MEM_HOST_NUMA || r->taken == GPUL_MEM_MEMFD);
	assert_true(r->kind[GPUL_MEM_AUTO].works);
	assert_int_equal(r->kind[GPUL_MEM_MEMFD].tested_another, getenv("GOOD_PROBE") != NULL);
}

static void refuses_an_unknown_device(void **state)
{
	const gpul_mem_probe_report *r = NULL;
	CUcontext current = NULL;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_mem_probe(drv, -1, &r, &err), GPUL_EINVAL);
	assert_int_equal(gpul_mem_probe(drv, 1000, &r, NULL), GPUL_EINVAL);
	drv->cuCtxGetCurrent(&current);
	drv->cuCtxSetCurrent(NULL);
	err = (gpul_error){ 0 };
	assert_int_equal(gpul_mem_probe(drv, 0, &r, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "no context"));
	drv->cuCtxSetCurrent(current);
	assert_null(r);
}

static int setup(void **state)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	const char *good = getenv("GPULOAD_PROBE");

	(void)state;
	if (n <= 0)
		return -1;
	if (good)
		setenv("GOOD_PROBE", good, 1);
	drv = open_driver(&context);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gpul_context_close(&context);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_verdict_on_a_misbehaving_child_has_a_reason),
		cmocka_unit_test(starts_a_new_child_after_a_crash),
		cmocka_unit_test(does_not_start_a_failing_child_twice),
		cmocka_unit_test(without_the_program_it_imports_in_this_process),
		cmocka_unit_test(probes_while_signals_are_blocked_and_ignored),
		cmocka_unit_test(concurrent_probes_return_one_report),
		cmocka_unit_test(the_report_has_a_reason_for_each_failure),
		cmocka_unit_test(refuses_an_unknown_device),
	};
	const char *bad = getenv("BAD_PROBE");

	if (bad)
		return misbehave(bad);
	return cmocka_run_group_tests_name("probe", tests, setup, teardown);
}
