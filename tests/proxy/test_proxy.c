/* test_proxy.c — tests how the proxy's thread handles triggers. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "proxy/proxy.h"
#include "tests/proxy/as_kernel.h"

enum { MAX_RUNS = 16, MAX_LANES = 8 };

/* What a handler has observed on the proxy's thread; the test reads it after a drain. */
struct seen {
	struct as_kernel *of;
	unsigned n_runs, run[MAX_RUNS], kind[MAX_RUNS];
	uint64_t n[MAX_LANES], sum;
	bool wrong;          /* the order, a kind or the FIFO was wrong, or the tail was written too early */
	atomic_bool blocked; /* the handler waits while this is true */
};

static gpul_status look(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct seen *s = context;

	(void)err;
	while (atomic_load(&s->blocked))
		usleep(100);
	if (s->n_runs < MAX_RUNS) {
		s->run[s->n_runs] = n;
		s->kind[s->n_runs++] = gpul_fifo_kind(items);
	}
	for (unsigned i = 0; i < n; i++) {
		const unsigned lane = items[i].lane;

		s->wrong |= fifo != s->of->fifo || items[i].position != s->n[lane]++ ||
			    gpul_fifo_kind(items + i) != gpul_fifo_kind(items) ||
			    (items[i].word[1] & 0xffffffff) != (items[i].position & 0xffffffff) ||
			    as_kernel_tail(s->of, lane) > items[i].position;
		s->sum += items[i].word[0];
	}
	return GPUL_OK;
}

static gpul_proxy *start(const gpul_proxy_desc *desc)
{
	gpul_error err = { 0 };
	gpul_proxy *p = NULL;

	if (gpul_proxy_start(desc, &p, &err))
		fail_msg("%s", err.text);
	return p;
}

static void drain_and_stop(gpul_proxy *p)
{
	gpul_error err = { 0 };

	if (gpul_proxy_drain(p, 60000, &err) || gpul_proxy_stop(p, &err))
		fail_msg("%s", err.text);
}

static void handler_gets_every_trigger_once_and_in_order(void **state)
{
	(void)state;
	struct as_kernel k;
	struct seen s = { .of = &k };
	gpul_proxy *p;

	for (unsigned slots = 1; slots <= 64; slots *= 8) {
		const uint64_t n = slots == 1 ? 1000 : 20000;

		as_kernel_open(&k, slots, slots < 4 ? 1 : 4);
		s = (struct seen){ .of = &k };
		p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .kinds[3] = { look, &s } });
		for (uint64_t i = 0; i < n; i++)
			assert_int_equal(as_kernel_push(&k, (unsigned)i % k.shape.lanes, 3, i), GPUL_FIFO_OK);
		drain_and_stop(p);
		assert_int_equal(s.n[0] + s.n[1] + s.n[2] + s.n[3], n);
		assert_int_equal(s.sum, n * (n - 1) / 2);
		assert_false(s.wrong);
		as_kernel_close(&k);
	}
}

static void handler_gets_runs_of_one_kind(void **state)
{
	(void)state;
	static const unsigned kinds[] = { 1, 1, 15, 15, 15, 1, 0 }, runs[] = { 2, 3, 1, 1 }, of[] = { 1, 15, 1, 0 };
	struct as_kernel k;
	struct seen s = { .of = &k };
	gpul_proxy *p;

	as_kernel_open(&k, 16, 1);
	for (unsigned i = 0; i < 7; i++)
		as_kernel_push(&k, 0, kinds[i], i);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .kinds = { { look, &s }, { look, &s }, [15] = { look, &s } } });
	drain_and_stop(p);
	assert_int_equal(s.n_runs, 4);
	assert_memory_equal(s.run, runs, sizeof runs);
	assert_memory_equal(s.kind, of, sizeof of);
	assert_false(s.wrong);
	as_kernel_close(&k);
}

static void batch_is_not_larger_than_the_limit(void **state)
{
	(void)state;
	struct as_kernel k;
	struct seen s = { .of = &k };
	gpul_proxy_stats stats;
	gpul_proxy *p;

	as_kernel_open(&k, 16, 1);
	for (unsigned i = 0; i < 16; i++)
		as_kernel_push(&k, 0, 0, i);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .kinds[0] = { look, &s }, .batch = 5 });
	assert_int_equal(gpul_proxy_drain(p, 60000, NULL), GPUL_OK);
	gpul_proxy_get_stats(p, &stats);
	assert_int_equal(gpul_proxy_stop(p, NULL), GPUL_OK);
	assert_int_equal(stats.triggers, 16);
	assert_int_equal(stats.batches, 4);
	assert_int_equal(stats.max_batch, 5);
	assert_int_equal(s.run[0], 5);
	assert_int_equal(s.run[3], 1);
	as_kernel_close(&k);
}

static void thread_serves_several_fifos_and_passes_the_right_one(void **state)
{
	(void)state;
	enum { N_FIFOS = 3, N = 5000 };
	struct as_kernel k[N_FIFOS];
	struct seen s[N_FIFOS];
	gpul_fifo *fifos[N_FIFOS];
	gpul_proxy_desc desc = { .fifos = fifos, .n_fifos = N_FIFOS };
	gpul_proxy *p;

	for (unsigned i = 0; i < N_FIFOS; i++) {
		as_kernel_open(&k[i], 4u << i, 1u << i);
		s[i] = (struct seen){ .of = &k[i] };
		fifos[i] = k[i].fifo;
		desc.kinds[i] = (gpul_proxy_kind){ look, &s[i] };
	}
	p = start(&desc);
	memset(fifos, 0, sizeof fifos); /* the proxy has copied the array */
	for (uint64_t i = 0; i < N; i++)
		for (unsigned f = 0; f < N_FIFOS; f++)
			assert_int_equal(as_kernel_push(&k[f], (unsigned)i % k[f].shape.lanes, f, i), GPUL_FIFO_OK);
	drain_and_stop(p);
	for (unsigned f = 0; f < N_FIFOS; f++) {
		assert_int_equal(s[f].sum, (uint64_t)N * (N - 1) / 2);
		assert_false(s[f].wrong);
		as_kernel_close(&k[f]);
	}
}

static void drain_waits_for_the_handler_or_times_out(void **state)
{
	(void)state;
	struct as_kernel k;
	struct seen s = { .of = &k, .blocked = true };
	gpul_error err = { 0 };
	gpul_proxy *p;

	as_kernel_open(&k, 8, 1);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .kinds[0] = { look, &s } });
	assert_int_equal(gpul_proxy_drain(p, -1, NULL), GPUL_OK); /* the FIFO is already empty */
	as_kernel_push(&k, 0, 0, 7);
	assert_int_equal(gpul_proxy_drain(p, 20, &err), GPUL_ESYS);
	assert_int_equal(err.native, ETIMEDOUT);
	assert_non_null(strstr(err.text, "20 ms (0 triggers"));
	assert_int_equal(as_kernel_tail(&k, 0), 0);
	atomic_store(&s.blocked, false);
	assert_int_equal(gpul_proxy_drain(p, -1, NULL), GPUL_OK);
	assert_int_equal(s.sum, 7);
	assert_int_equal(as_kernel_tail(&k, 0), 1);
	drain_and_stop(p);
	as_kernel_close(&k);
}

/* ---- progress, and late releases -------------------------------------------- */

/* State of a handler whose work continues after its return: each call of the progress function completes one trigger. */
struct later {
	struct as_kernel *of;
	uint64_t begun, ended;
	atomic_uint calls;
};

static gpul_status begin(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct later *later = context;

	(void)fifo, (void)items, (void)err;
	later->begun += n;
	return GPUL_OK;
}

static gpul_status end_one(void *context, bool *busy, gpul_error *err)
{
	struct later *later = context;

	(void)err;
	atomic_fetch_add(&later->calls, 1);
	if (later->ended < later->begun)
		gpul_fifo_release_lane(later->of->fifo, 0, ++later->ended);
	*busy = later->ended < later->begun;
	return GPUL_OK;
}

static void work_can_be_released_after_its_handler(void **state)
{
	(void)state;
	enum { N = 3000 };
	struct as_kernel k;
	struct later later = { .of = &k };
	gpul_proxy *p;

	as_kernel_open(&k, 32, 1);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo,
				      .n_fifos = 1,
				      .kinds[0] = { begin, &later },
				      .progress = end_one,
				      .progress_context = &later,
				      .release_later = true });
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(as_kernel_push(&k, 0, 0, i), GPUL_FIFO_OK);
	assert_int_equal(gpul_proxy_drain(p, 60000, NULL), GPUL_OK);
	assert_int_equal(later.ended, N);
	assert_int_equal(as_kernel_tail(&k, 0), N);
	assert_int_equal(as_kernel_sync(&k, 0), GPUL_FIFO_OK);
	drain_and_stop(p);
	as_kernel_close(&k);
}

static void progress_is_called_while_all_fifos_are_empty(void **state)
{
	(void)state;
	struct as_kernel k;
	struct later later = { .of = &k };
	gpul_proxy *p;

	as_kernel_open(&k, 1, 1);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .progress = end_one, .progress_context = &later });
	while (atomic_load(&later.calls) < 100)
		usleep(100);
	drain_and_stop(p);
	as_kernel_close(&k);
}

/* ---- sleeping and spinning ----------------------------------------------------------- */

static void idle_thread_sleeps_and_counts_its_sleeps(void **state)
{
	(void)state;
	struct as_kernel k;
	struct seen s = { .of = &k };
	gpul_proxy_stats stats = { 0 };
	gpul_proxy *p;

	as_kernel_open(&k, 4, 1);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .kinds[0] = { look, &s }, .spin_ns = 1000, .max_sleep_ns = 2000000 });
	while (stats.sleeps < 20) {
		usleep(1000);
		gpul_proxy_get_stats(p, &stats);
	}
	assert_true(stats.running);
	assert_true(stats.slept_ns >= 20 * 1000);
	assert_true(stats.longest_sleep_ns >= stats.slept_ns / stats.sleeps);
	assert_true(stats.elapsed_ns >= stats.slept_ns);
	assert_true(stats.late_ns <= 2000000);
	assert_true(stats.cpu_ns > 0);
	assert_true(stats.empty_polls >= stats.sleeps);
	for (uint64_t i = 0; i < 100; i++) { /* each trigger wakes the sleeping thread */
		assert_int_equal(as_kernel_push(&k, 0, 0, i), GPUL_FIFO_OK);
		assert_int_equal(as_kernel_sync(&k, 0), GPUL_FIFO_OK);
	}
	gpul_proxy_get_stats(p, &stats);
	assert_int_equal(stats.triggers, 100);
	drain_and_stop(p);
	as_kernel_close(&k);
}

static void spin_always_never_sleeps(void **state)
{
	(void)state;
	struct as_kernel k;
	gpul_proxy_stats stats = { 0 };
	gpul_proxy *p;

	as_kernel_open(&k, 4, 1);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .spin_ns = GPUL_PROXY_SPIN_ALWAYS });
	while (stats.empty_polls < 100000) {
		usleep(1000);
		gpul_proxy_get_stats(p, &stats);
	}
	assert_int_equal(stats.sleeps, 0);
	assert_int_equal(stats.slept_ns, 0);
	drain_and_stop(p);
	as_kernel_close(&k);
}

static void thread_yields_if_sleeps_exceed_the_limit(void **state)
{
	(void)state;
	const uint64_t retry_ns = 100000000; /* after this time, the thread tries again to sleep */
	struct as_kernel k;
	struct seen s = { .of = &k };
	gpul_proxy_stats stats = { 0 };
	gpul_proxy *p;

	as_kernel_open(&k, 4, 1);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .kinds[0] = { look, &s }, .spin_ns = 1, .max_sleep_ns = 500 });
	while (stats.empty_polls < 10000) {
		usleep(1000);
		gpul_proxy_get_stats(p, &stats);
	}
	assert_in_range(stats.sleeps, 1, 1 + stats.elapsed_ns / retry_ns);
	assert_true(stats.late_ns <= 500);
	as_kernel_push(&k, 0, 0, 7);
	assert_int_equal(as_kernel_sync(&k, 0), GPUL_FIFO_OK);
	drain_and_stop(p);
	assert_int_equal(s.sum, 7);
	as_kernel_close(&k);
}

static gpul_status store_mask(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	(void)fifo, (void)items, (void)n, (void)err;
	pthread_sigmask(SIG_BLOCK, NULL, context);
	return GPUL_OK;
}

static void signals_are_blocked_in_the_proxy_thread(void **state)
{
	(void)state;
	struct as_kernel k;
	sigset_t mask, mine;
	gpul_proxy *p;

	sigemptyset(&mask);
	as_kernel_open(&k, 1, 1);
	p = start(&(gpul_proxy_desc){ .fifos = &k.fifo, .n_fifos = 1, .kinds[0] = { store_mask, &mask } });
	as_kernel_push(&k, 0, 0, 0);
	drain_and_stop(p);
	assert_true(sigismember(&mask, SIGINT) && sigismember(&mask, SIGCHLD) && sigismember(&mask, SIGUSR1));
	pthread_sigmask(SIG_BLOCK, NULL, &mine);
	assert_false(sigismember(&mine, SIGUSR1));
	as_kernel_close(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handler_gets_every_trigger_once_and_in_order),
		cmocka_unit_test(handler_gets_runs_of_one_kind),
		cmocka_unit_test(batch_is_not_larger_than_the_limit),
		cmocka_unit_test(thread_serves_several_fifos_and_passes_the_right_one),
		cmocka_unit_test(drain_waits_for_the_handler_or_times_out),
		cmocka_unit_test(work_can_be_released_after_its_handler),
		cmocka_unit_test(progress_is_called_while_all_fifos_are_empty),
		cmocka_unit_test(idle_thread_sleeps_and_counts_its_sleeps),
		cmocka_unit_test(spin_always_never_sleeps),
		cmocka_unit_test(thread_yields_if_sleeps_exceed_the_limit),
		cmocka_unit_test(signals_are_blocked_in_the_proxy_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
