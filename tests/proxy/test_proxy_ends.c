/* test_proxy_ends.c — the ways in which the proxy's thread ends: by a handler, a kernel, another process or the owner. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/support/open_files.h"
#include "proxy/proxy.h"
#include "tests/proxy/as_kernel.h"

enum { N_FIFOS = 2, LANES = 4, SLOTS = 64 };

struct fixture {
	struct as_kernel k[N_FIFOS];
	gpul_fifo *fifos[N_FIFOS];
	gpul_proxy_desc desc;
};

static void open_two(struct fixture *x)
{
	*x = (struct fixture){ 0 };
	for (unsigned i = 0; i < N_FIFOS; i++) {
		as_kernel_open(&x->k[i], SLOTS, LANES);
		x->fifos[i] = x->k[i].fifo;
	}
	x->desc.fifos = x->fifos;
	x->desc.n_fifos = N_FIFOS;
}

static void close_two(struct fixture *x)
{
	for (unsigned i = 0; i < N_FIFOS; i++)
		as_kernel_close(&x->k[i]);
}

static gpul_proxy *start(const gpul_proxy_desc *desc)
{
	gpul_error err = { 0 };
	gpul_proxy *p = NULL;

	if (gpul_proxy_start(desc, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

/* Wait until the proxy's thread has ended with an error; return the error. */
static gpul_error wait_for_its_end(gpul_proxy *p)
{
	gpul_error err = { 0 };

	while (gpul_proxy_failed(p, &err) == GPUL_OK)
		usleep(100);
	return err;
}

/* Check that the thread ends with this error, and that all lanes have this abort code. */
static void expect_end(struct fixture *x, gpul_proxy *p, gpul_status status, int native, const char *text, unsigned code)
{
	gpul_error err = wait_for_its_end(p), again = { 0 }, drained = { 0 };
	gpul_proxy_stats stats;

	assert_int_equal(err.status, status);
	assert_int_equal(err.native, native);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" does not contain \"%s\"", err.text, text);
	gpul_proxy_get_stats(p, &stats);
	assert_false(stats.running);
	for (unsigned f = 0; f < N_FIFOS; f++)
		for (unsigned lane = 0; lane < LANES; lane++)
			assert_int_equal(as_kernel_abort(&x->k[f], lane), code);
	assert_int_equal(gpul_proxy_drain(p, -1, &drained), status);
	assert_string_equal(drained.text, err.text);
	assert_int_equal(gpul_proxy_stop(p, &again), status);
	assert_memory_equal(&again, &err, sizeof err);
}

/* ---- a handler ------------------------------------------------------------------------ */

/* A handler that fails at the trigger whose word 0 is *context. */
static gpul_status fail_at(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	const uint64_t *at = context;

	(void)fifo;
	for (unsigned i = 0; i < n; i++)
		if (items[i].word[0] == *at)
			return gpul_fail(err, GPUL_EVERBS, 5, "no route to rank %llu", (unsigned long long)*at);
	return GPUL_OK;
}

static gpul_status fail_silently(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	(void)context, (void)fifo, (void)items, (void)n, (void)err;
	return GPUL_EUNSUPPORTED;
}

static gpul_status ignore(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	(void)context, (void)fifo, (void)items, (void)n, (void)err;
	return GPUL_OK;
}

static void handler_error_ends_all_waits_and_is_returned_to_the_owner(void **state)
{
	(void)state;
	for (uint64_t nth = 0; nth < 300; nth += 1 + nth / 4) {
		struct fixture x;
		enum gpul_fifo_result result = GPUL_FIFO_OK;
		gpul_proxy *p;

		open_two(&x);
		x.desc.kinds[0] = (gpul_proxy_kind){ fail_at, &nth };
		p = start(&x.desc);
		for (uint64_t i = 0; result == GPUL_FIFO_OK; i++)
			result = as_kernel_push(&x.k[1], (unsigned)i % LANES, 0, i);
		assert_int_equal(result, GPUL_FIFO_ABORTED);
		expect_end(&x, p, GPUL_EVERBS, 5, "no route to rank", GPUL_EVERBS);
		close_two(&x);
	}
}

static void triggers_handled_before_an_error_are_released(void **state)
{
	(void)state;
	static const unsigned kinds[2][4] = { { 1, 1, 1, 1 }, { 1, 1, 2, 1 } };
	struct fixture x;
	gpul_proxy_stats stats;
	gpul_proxy *p;

	open_two(&x);
	for (unsigned lane = 0; lane < 2; lane++)
		for (unsigned i = 0; i < 4; i++)
			as_kernel_push(&x.k[0], lane, kinds[lane][i], i);
	x.desc.kinds[1].handler = ignore;
	x.desc.kinds[2].handler = fail_silently;
	p = start(&x.desc);
	wait_for_its_end(p);
	gpul_proxy_get_stats(p, &stats);
	assert_int_equal(stats.triggers, 6);
	assert_int_equal(as_kernel_tail(&x.k[0], 0), 4);
	assert_int_equal(as_kernel_tail(&x.k[0], 1), 2);
	expect_end(&x, p, GPUL_EUNSUPPORTED, 0, "the handler of kind 2 failed with status 4 at position 2 of lane 1", GPUL_EUNSUPPORTED);
	close_two(&x);
}

static void kind_without_a_handler_is_an_error(void **state)
{
	(void)state;
	struct fixture x;
	gpul_proxy *p;

	open_two(&x);
	x.desc.kinds[0].handler = ignore;
	as_kernel_push(&x.k[1], 3, 0, 0);
	as_kernel_push(&x.k[1], 3, 9, 0);
	p = start(&x.desc);
	expect_end(&x, p, GPUL_EINVAL, 9, "trigger 1 of lane 3 is of kind 9, for which no handler is registered", GPUL_EINVAL);
	assert_int_equal(as_kernel_tail(&x.k[1], 3), 1);
	close_two(&x);
}

static gpul_status fail_tenth(void *context, bool *busy, gpul_error *err)
{
	int *calls = context;

	(void)err;
	*busy = true;
	return ++*calls == 10 ? GPUL_EVERBS : GPUL_OK;
}

static void progress_error_ends_the_proxy(void **state)
{
	(void)state;
	struct fixture x;
	int calls = 0;

	open_two(&x);
	x.desc.progress = fail_tenth;
	x.desc.progress_context = &calls;
	expect_end(&x, start(&x.desc), GPUL_EVERBS, 0, "the callback desc.progress failed with status 7", GPUL_EVERBS);
	assert_int_equal(calls, 10);
	close_two(&x);
}

/* ---- aborts ------------------------------------------------------------------------------ */

static void kernel_abort_ends_other_kernels_and_the_proxy(void **state)
{
	(void)state;
	for (int slow = 0; slow < 2; slow++) {
		struct fixture x;
		gpul_proxy *p;

		open_two(&x);
		x.desc.spin_ns = slow ? 1 : GPUL_PROXY_SPIN_ALWAYS;
		x.desc.max_sleep_ns = 10000000;
		p = start(&x.desc);
		usleep(1000);
		as_kernel_raise(&x.k[1], GPUL_FIFO_CODE_TIMED_OUT);
		expect_end(&x, p, GPUL_ESYS, ECANCELED, "FIFO 1 of 2 was aborted with code 0x100", GPUL_FIFO_CODE_TIMED_OUT);
		close_two(&x);
	}
}

static void owner_can_abort_a_fifo(void **state)
{
	(void)state;
	struct fixture x;
	gpul_proxy *p;

	open_two(&x);
	p = start(&x.desc);
	gpul_fifo_abort(x.fifos[0], 0x777);
	expect_end(&x, p, GPUL_ESYS, ECANCELED, "FIFO 0 of 2 was aborted with code 0x777", 0x777);
	close_two(&x);
}

/* ---- another process --------------------------------------------------------------------- */

struct endless {
	struct as_kernel *k;
	enum gpul_fifo_result result;
};

static void *push_without_end(void *arg)
{
	struct endless *pusher = arg;

	while (pusher->result == GPUL_FIFO_OK)
		pusher->result = as_kernel_push(pusher->k, 0, 0, 0);
	return NULL;
}

/* Start a process that ends when the other end of `until` is closed; returns its pidfd. */
static int start_process(int until, pid_t *child)
{
	char byte;

	*child = fork();
	assert_true(*child >= 0);
	if (*child == 0)
		_exit(read(until, &byte, 1) == 1);
	return (int)syscall(SYS_pidfd_open, *child, 0);
}

static void end_of_a_watched_process_is_noticed_under_load(void **state)
{
	(void)state;
	struct fixture x;
	struct endless pusher;
	pthread_t thread;
	int ends[2], fds[1];
	pid_t child;
	gpul_proxy *p;

	open_two(&x);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	fds[0] = start_process(ends[0], &child);
	if (fds[0] < 0)
		skip(); /* Linux before 5.3 has no pidfd */
	pusher = (struct endless){ .k = &x.k[0] };
	x.desc.kinds[0].handler = ignore;
	x.desc.watch_fds = fds;
	x.desc.n_watch_fds = 1;
	p = start(&x.desc);
	assert_int_equal(pthread_create(&thread, NULL, push_without_end, &pusher), 0);
	usleep(20000);
	assert_int_equal(gpul_proxy_failed(p, NULL), GPUL_OK);
	kill(child, SIGKILL);
	expect_end(&x, p, GPUL_ESYS, EPIPE, "has ended", GPUL_FIFO_CODE_PEER_GONE);
	pthread_join(thread, NULL);
	assert_int_equal(pusher.result, GPUL_FIFO_ABORTED);
	waitpid(child, NULL, 0);
	close(fds[0]);
	close(ends[0]);
	close(ends[1]);
	close_two(&x);
}

static void closed_socket_wakes_a_sleeping_thread(void **state)
{
	(void)state;
	struct fixture x;
	int first[2], second[2];
	gpul_proxy_stats stats = { 0 };
	gpul_proxy *p;

	open_two(&x);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, first), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, second), 0);
	x.desc.watch_fds = (int[]){ first[0], second[0] };
	x.desc.n_watch_fds = 2;
	x.desc.spin_ns = 1;
	x.desc.max_sleep_ns = 3600ull * 1000000000; /* sleeps may become very long, and the test must not wait for their end */
	p = start(&x.desc);
	while (stats.sleeps < 3) {
		usleep(100);
		gpul_proxy_get_stats(p, &stats);
	}
	close(second[1]);
	expect_end(&x, p, GPUL_ESYS, EPIPE, "has ended", GPUL_FIFO_CODE_PEER_GONE);
	close(first[0]);
	close(first[1]);
	close(second[0]);
	close_two(&x);
}

static void closing_a_watched_descriptor_is_an_error(void **state)
{
	(void)state;
	struct fixture x;
	int ends[2];
	gpul_proxy *p;

	open_two(&x);
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	x.desc.watch_fds = ends;
	x.desc.n_watch_fds = 1;
	x.desc.spin_ns = GPUL_PROXY_SPIN_ALWAYS;
	p = start(&x.desc);
	close(ends[0]);
	expect_end(&x, p, GPUL_ESYS, EBADF, "was closed", GPUL_FIFO_CODE_PEER_GONE);
	close(ends[1]);
	close_two(&x);
}

/* ---- the owner --------------------------------------------------------------------------- */

static void stopping_a_proxy_with_empty_fifos_aborts_nothing(void **state)
{
	(void)state;
	struct fixture x;

	open_two(&x);
	x.desc.kinds[0].handler = ignore;
	for (uint64_t i = 0; i < 3; i++) { /* each proxy continues after the last trigger of the previous proxy */
		gpul_proxy *p = start(&x.desc);

		as_kernel_push(&x.k[0], 0, 0, i);
		assert_int_equal(as_kernel_sync(&x.k[0], 0), GPUL_FIFO_OK);
		assert_int_equal(gpul_proxy_stop(p, NULL), GPUL_OK);
		assert_int_equal(as_kernel_abort(&x.k[0], 0), 0);
		assert_int_equal(as_kernel_abort(&x.k[1], 3), 0);
	}
	close_two(&x);
}

struct gate {
	atomic_bool reached, open;
};

static gpul_status wait_at_gate(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct gate *gate = context;

	(void)fifo, (void)items, (void)n, (void)err;
	atomic_store(&gate->reached, true);
	while (!atomic_load(&gate->open))
		usleep(100);
	return GPUL_OK;
}

static void *open_gate(void *arg)
{
	struct gate *gate = arg;

	usleep(10000);
	atomic_store(&gate->open, true);
	return NULL;
}

static void stopping_waits_for_the_handler_and_keeps_other_triggers(void **state)
{
	(void)state;
	struct fixture x;
	struct gate gate = { 0 };
	pthread_t thread;
	gpul_proxy *p;

	open_two(&x);
	x.desc.kinds[0] = (gpul_proxy_kind){ wait_at_gate, &gate };
	x.desc.batch = 4;
	for (unsigned i = 0; i < SLOTS / LANES; i++)
		as_kernel_push(&x.k[0], 1, 0, i);
	p = start(&x.desc);
	while (!atomic_load(&gate.reached))
		usleep(100);
	assert_int_equal(pthread_create(&thread, NULL, open_gate, &gate), 0);
	assert_int_equal(gpul_proxy_stop(p, NULL), GPUL_OK);
	assert_true(atomic_load(&gate.open));
	pthread_join(thread, NULL);
	assert_int_equal(as_kernel_tail(&x.k[0], 1), 8); /* the thread has finished its batch and one more */
	assert_int_equal(as_kernel_sync(&x.k[0], 1), GPUL_FIFO_ABORTED);
	assert_int_equal(as_kernel_abort(&x.k[0], 1), GPUL_FIFO_CODE_STOPPED);
	assert_int_equal(as_kernel_abort(&x.k[1], 0), GPUL_FIFO_CODE_STOPPED);
	close_two(&x);
}

static void thousand_starts_leak_nothing(void **state)
{
	(void)state;
	const unsigned fds = count_fds(), threads = count_entries("/proc/self/task");
	struct fixture x;

	open_two(&x);
	x.desc.kinds[0].handler = ignore;
	for (uint64_t i = 0; i < 1000; i++) {
		gpul_proxy *p = start(&x.desc);

		as_kernel_push(&x.k[i & 1], (unsigned)i / 2 % LANES, 0, i);
		if (i % 3 == 0) /* in the other cases, the proxy may be stopped before its first poll */
			assert_int_equal(gpul_proxy_drain(p, -1, NULL), GPUL_OK);
		else
			assert_int_equal(as_kernel_sync(&x.k[i & 1], (unsigned)i / 2 % LANES), GPUL_FIFO_OK);
		assert_int_equal(gpul_proxy_stop(p, NULL), GPUL_OK);
	}
	assert_int_equal(gpul_proxy_stop(NULL, NULL), GPUL_OK);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_entries("/proc/self/task"), threads);
	close_two(&x);
}

static gpul_status stop_self(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	gpul_proxy *const *p = context;

	(void)fifo, (void)items, (void)n;
	if (gpul_proxy_drain(*p, -1, NULL) != GPUL_EINVAL)
		return GPUL_OK;
	return gpul_proxy_stop(*p, err);
}

static void drain_and_stop_fail_when_called_by_a_handler(void **state)
{
	(void)state;
	struct fixture x;
	gpul_proxy *p = NULL;

	open_two(&x);
	x.desc.kinds[0] = (gpul_proxy_kind){ stop_self, &p };
	p = start(&x.desc);
	as_kernel_push(&x.k[0], 0, 0, 0);
	expect_end(&x, p, GPUL_EINVAL, 0, "gpul_proxy_stop was called by a handler of this proxy", GPUL_EINVAL);
	close_two(&x);
}

/* ---- starts that fail ---------------------------------------------------------------------- */

static void expect_refusal(const gpul_proxy_desc *desc, gpul_status status, const char *text)
{
	gpul_proxy *p = (void *)&status;
	gpul_error err = { 0 };

	assert_int_equal(gpul_proxy_start(desc, &p, &err), status);
	assert_ptr_equal(p, &status);
	if (!strstr(err.text, text))
		fail_msg("\"%s\" does not contain \"%s\"", err.text, text);
}

static void refuses_an_invalid_proxy_desc(void **state)
{
	(void)state;
	struct fixture x;
	gpul_proxy_desc desc;
	gpul_fifo *one_is_null[2] = { 0 };

	open_two(&x);
	expect_refusal(&(gpul_proxy_desc){ 0 }, GPUL_EINVAL, "desc.fifos is empty");
	one_is_null[0] = x.fifos[0];
	expect_refusal(&(gpul_proxy_desc){ .fifos = one_is_null, .n_fifos = 2 }, GPUL_EINVAL,
		       "fifos[1] is NULL, although desc.n_fifos is 2");
	desc = x.desc;
	desc.batch = GPUL_PROXY_MAX_BATCH + 1;
	expect_refusal(&desc, GPUL_EINVAL, "the batch size is 65537 triggers: expected at most 65536");
	desc = x.desc;
	desc.n_watch_fds = 1;
	expect_refusal(&desc, GPUL_EINVAL, "watch_fds is NULL");
	desc.watch_fds = (int[]){ 1000000 };
	expect_refusal(&desc, GPUL_EINVAL, "watch_fds[0]: descriptor 1000000 is not open");
	desc.watch_fds = (int[]){ -1 };
	expect_refusal(&desc, GPUL_EINVAL, "descriptor -1 is not open");
	desc = x.desc;
	desc.pin = GPUL_PROXY_PIN_CPU;
	desc.pin_number = -1;
	expect_refusal(&desc, GPUL_EINVAL, "CPU -1 does not exist");
	desc.pin = GPUL_PROXY_PIN_NODE;
	desc.pin_number = 9999;
	expect_refusal(&desc, GPUL_EINVAL, "NUMA node 9999 does not exist");
	desc.pin = (gpul_proxy_pin)77;
	expect_refusal(&desc, GPUL_EINVAL, "unknown CPU pinning 77");
	close_two(&x);
}

static bool no_memory;

/* Replaces the C library's aligned_alloc(); fails if no_memory is set. */
void *aligned_alloc(size_t alignment, size_t bytes)
{
	void *p = NULL;

	return no_memory || posix_memalign(&p, alignment, bytes) ? NULL : p;
}

static void failed_starts_report_the_cause_and_leak_nothing(void **state)
{
	(void)state;
	const unsigned fds = count_fds();
	struct rlimit before_fds;
	struct fixture x;
	pthread_attr_t huge, before;

	open_two(&x);
	no_memory = true;
	expect_refusal(&x.desc, GPUL_ENOMEM, "no memory for a proxy of 2 FIFOs");
	no_memory = false;
	getrlimit(RLIMIT_NOFILE, &before_fds);
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, before_fds.rlim_max });
	expect_refusal(&x.desc, GPUL_ESYS, "eventfd: ");
	setrlimit(RLIMIT_NOFILE, &before_fds);

	pthread_getattr_default_np(&before);
	pthread_attr_init(&huge);
	pthread_attr_setstacksize(&huge, (size_t)1 << 50); /* too large for the address space */
	assert_int_equal(pthread_setattr_default_np(&huge), 0);
	expect_refusal(&x.desc, GPUL_ESYS, "pthread_create: ");
	pthread_setattr_default_np(&before);
	pthread_attr_destroy(&huge);
	pthread_attr_destroy(&before);
	assert_int_equal(count_fds(), fds);
	close_two(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handler_error_ends_all_waits_and_is_returned_to_the_owner),
		cmocka_unit_test(triggers_handled_before_an_error_are_released),
		cmocka_unit_test(kind_without_a_handler_is_an_error),
		cmocka_unit_test(progress_error_ends_the_proxy),
		cmocka_unit_test(kernel_abort_ends_other_kernels_and_the_proxy),
		cmocka_unit_test(owner_can_abort_a_fifo),
		cmocka_unit_test(end_of_a_watched_process_is_noticed_under_load),
		cmocka_unit_test(closed_socket_wakes_a_sleeping_thread),
		cmocka_unit_test(closing_a_watched_descriptor_is_an_error),
		cmocka_unit_test(stopping_a_proxy_with_empty_fifos_aborts_nothing),
		cmocka_unit_test(stopping_waits_for_the_handler_and_keeps_other_triggers),
		cmocka_unit_test(thousand_starts_leak_nothing),
		cmocka_unit_test(drain_and_stop_fail_when_called_by_a_handler),
		cmocka_unit_test(refuses_an_invalid_proxy_desc),
		cmocka_unit_test(failed_starts_report_the_cause_and_leak_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
