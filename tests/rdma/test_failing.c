/* test_failing.c — connections over the fake fabrics, with each call of the fabric's library failing in turn, each completion an error in
 * turn, and a network that is cut: the result is always an error with its reason; nothing hangs and nothing leaks. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "core/log.h"
#include "rdma/rdma.h"
#include "tests/fake/fake_ofi.h"
#include "tests/fake/fake_verbs.h"

enum { BYTES = 5000, ROOM = 8192, LIMIT_MS = 5000 };

/* ---- the two fake libraries --------------------------------------------------------------------------------------- */

struct fabric {
	const char *backend;
	void (*reset)(int fail_at);
	int (*calls)(void), (*alive)(void);
	void (*fail_completion)(int n);
	void (*cut)(void);
};

#if GPUL_HAVE_LIBFABRIC
static void reset_ofi(int fail_at)
{
	gpul_ofi_use(fake_ofi(fail_at));
}

static void fail_ofi(int n)
{
	fake_ofi_complete(n, 5, 0);
}

static void cut_ofi(void)
{
	fake_ofi_behave()->deaf = true;
}
#endif

#if GPUL_HAVE_LIBIBVERBS
static void reset_verbs(int fail_at)
{
	gpul_verbs_use(fake_verbs(fail_at));
}

static void fail_verbs(int n)
{
	fake_verbs_complete(n, IBV_WC_RETRY_EXC_ERR, 0x81);
}

static void cut_verbs(void)
{
	fake_verbs_behave()->deaf = true;
}
#endif

static const struct fabric fabrics[] = {
#if GPUL_HAVE_LIBFABRIC
	{ "libfabric", reset_ofi, fake_ofi_calls, fake_ofi_alive, fail_ofi, cut_ofi },
#endif
#if GPUL_HAVE_LIBIBVERBS
	{ "verbs", reset_verbs, fake_verbs_calls, fake_verbs_alive, fail_verbs, cut_verbs },
#endif
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};

/* ---- one exchange ------------------------------------------------------------------------------------------------- */

struct exchange {
	gpul_rdma *r[2]; /* the accepting side, the connecting side */
	gpul_rdma_listener *listener;
	gpul_rdma_conn *conn[2];
	gpul_rdma_region *data[2], *steps;
	gpul_rdma_request requests[2][2];
	gpul_error err[2]; /* error of each side */
	atomic_bool stop;
	unsigned char bytes[2][ROOM];
	uint64_t step;
};

static struct exchange x;

static void *accept_one(void *unused)
{
	while (!x.conn[0] && !x.stop) {
		gpul_error err = { 0 };

		if (gpul_rdma_accept(x.listener, 50, &x.conn[0], &err) && !strstr(err.text, "no client connected to"))
			x.err[0] = err;
	}
	return unused;
}

static gpul_status open_side(int i, const char *backend)
{
	const gpul_rdma_desc desc = { .backend = backend, .device = { .gpu = -1, .gid_index = -1 }, .n_qps = 2, .segment_bytes = 4096 };
	const gpul_status st = gpul_rdma_open(&desc, &x.r[i], &x.err[i]);

	return st ? st : gpul_rdma_register(x.r[i], x.bytes[i], ROOM, GPUL_RDMA_DATA, &x.data[i], &x.err[i]);
}

static gpul_status connect_sides(void)
{
	pthread_t thread;
	gpul_status st = gpul_rdma_listen(x.r[0], "127.0.0.1:0", &x.listener, &x.err[0]);

	if (st)
		return st;
	assert_int_equal(pthread_create(&thread, NULL, accept_one, NULL), 0);
	st = gpul_rdma_connect(x.r[1], gpul_rdma_listener_address(x.listener), LIMIT_MS, &x.conn[1], &x.err[1]);
	x.stop = st != GPUL_OK;
	pthread_join(thread, NULL);
	return st;
}

/* Start a receive and a send on each side, and a put on the connecting side. */
static gpul_status start_transfers(int timeout_ms)
{
	gpul_rdma_put_desc put = { .signal_value = 7,
				   .from = { .at = (uintptr_t)x.bytes[1], .bytes = 0, .area = gpul_rdma_region_area(x.data[1]) } };
	gpul_rdma_request unused;
	gpul_status st = gpul_rdma_offer(x.steps, (uintptr_t)&x.step, sizeof x.step, &put.signal, &x.err[0]);

	for (int i = 0; !st && i < 2; i++) {
		const gpul_rdma_buffer into = { .region = x.data[i], .at = (uintptr_t)x.bytes[i], .bytes = ROOM / 2, .tag = 1 };
		const gpul_rdma_buffer out = {
			.region = x.data[i], .at = (uintptr_t)x.bytes[i] + ROOM / 2, .bytes = ROOM / 2 - 5, .tag = 1
		};

		st = gpul_rdma_irecv(x.conn[i], &into, 1, timeout_ms, &x.requests[i][0], &x.err[i]);
		if (!st)
			st = gpul_rdma_isend(x.conn[i], &out, timeout_ms, &x.requests[i][1], &x.err[i]);
	}
	return st ? st : gpul_rdma_put(x.conn[1], &put, timeout_ms, &unused, &x.err[1]);
}

/* Progress on both sides until all is done, or both have failed. */
static void finish_transfers(void)
{
	const uint64_t end = gpul_clock_ns() + (uint64_t)LIMIT_MS * 2000000;
	bool done[2][2] = { { false, false }, { false, false } };

	while (!(done[0][0] && done[0][1] && done[1][0] && done[1][1] && x.step == 7)) {
		gpul_status st[2] = { GPUL_OK, GPUL_OK };

		for (int i = 0; i < 4; i++) {
			const int side = i / 2, k = i % 2;

			if (!st[side])
				st[side] = done[side][k]
						   ? gpul_rdma_progress(x.conn[side], NULL, &x.err[side])
						   : gpul_rdma_test(x.conn[side], x.requests[side][k], &done[side][k], NULL, &x.err[side]);
		}
		if (st[0] && st[1])
			return;
		if (gpul_clock_ns() > end)
			fail_msg("hangs: side 0: %s; side 1: %s", x.err[0].text, x.err[1].text);
	}
}

static void close_all(void)
{
	for (int i = 0; i < 2; i++)
		gpul_rdma_conn_close(x.conn[i]);
	gpul_rdma_listener_close(x.listener);
	gpul_rdma_unregister(x.steps);
	for (int i = 0; i < 2; i++)
		gpul_rdma_unregister(x.data[i]);
	for (int i = 0; i < 2; i++)
		gpul_rdma_close(x.r[i]);
}

static gpul_status set_up(const char *backend)
{
	gpul_status st;

	memset(&x, 0, sizeof x);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < ROOM; k++)
			x.bytes[i][k] = (unsigned char)(k * 5 + i);
	st = open_side(0, backend);
	if (!st)
		st = open_side(1, backend);
	if (!st)
		st = gpul_rdma_register(x.r[0], &x.step, sizeof x.step, GPUL_RDMA_STEPS, &x.steps, &x.err[0]);
	return st ? st : connect_sides();
}

/* True if all transfers have ended without an error. */
static bool is_fine(void)
{
	return !x.err[0].status && !x.err[1].status;
}

static void check_bytes(void)
{
	for (int i = 0; i < 2; i++)
		assert_memory_equal(x.bytes[i], x.bytes[!i] + ROOM / 2, ROOM / 2 - 5);
}

/* ---- the tests ------------------------------------------------------------------------------------------------------- */

static void each_call_may_fail(void **state)
{
	(void)state;
	for (const struct fabric *f = fabrics; f->backend; f++)
		for (int n = 1;; n++) {
			f->reset(n);
			if (!set_up(f->backend) && !start_transfers(LIMIT_MS))
				finish_transfers();
			const bool fine = is_fine();

			if (fine)
				check_bytes();
			close_all();
			assert_int_equal(f->alive(), 0);
			if (f->calls() < n) {
				assert_true(fine);
				assert_true(n > 50);
				break;
			}
			if (!fine && !(x.err[0].text[0] || x.err[1].text[0]))
				fail_msg("%s: call %d failed: no text", f->backend, n);
		}
}

/* Wait until a side has failed: its watching thread may learn of the error only after all transfers of this side have ended. */
static void await_failure(int side, gpul_rdma_failure *why)
{
	const uint64_t end = gpul_clock_ns() + (uint64_t)LIMIT_MS * 1000000;

	do {
		gpul_rdma_conn_failed(x.conn[side], why);
		if (gpul_clock_ns() > end)
			fail_msg("side %d does not learn of the failure of side %d: %s", side, !side, x.err[!side].text);
	} while (!why->status);
}

static void each_completion_may_be_an_error(void **state)
{
	(void)state;
	for (const struct fabric *f = fabrics; f->backend; f++)
		for (int n = 1, fine = 0; !fine; n++) {
			gpul_rdma_failure why[2];

			f->reset(0);
			assert_int_equal(set_up(f->backend), GPUL_OK);
			assert_int_equal(start_transfers(LIMIT_MS), GPUL_OK);
			f->fail_completion(n);
			finish_transfers();
			fine = is_fine();
			if (fine)
				check_bytes();
			for (int i = 0; i < 2 && !fine; i++) {
				await_failure(i, &why[i]);
				assert_string_equal(why[i].call, "completion");
				assert_true(why[i].advice[0] && why[i].what[0] && why[i].peer[0] && why[i].after_ns);
			}
			if (!fine) /* at most one end learns of the failure from its peer; both may detect it themselves */
				assert_true(why[0].by_peer + why[1].by_peer <= 1);
			close_all();
			assert_int_equal(f->alive(), 0);
			assert_true(n < 100);
			assert_true(!fine || n > 3);
		}
}

static void a_cut_network_ends_at_the_deadline(void **state)
{
	(void)state;
	for (const struct fabric *f = fabrics; f->backend; f++) {
		f->reset(0);
		assert_int_equal(set_up(f->backend), GPUL_OK);
		f->cut();
		assert_int_equal(start_transfers(200), GPUL_OK);
		finish_transfers();
		for (int i = 0; i < 2; i++)
			if (!strstr(x.err[i].text, "deadline"))
				fail_msg("%s: side %d: %s", f->backend, i, x.err[i].text);
		close_all();
		assert_int_equal(f->alive(), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_may_fail),
		cmocka_unit_test(each_completion_may_be_an_error),
		cmocka_unit_test(a_cut_network_ends_at_the_deadline),
	};

	gpul_log_set_level(GPUL_LOG_OFF);
	if (!fabrics[0].backend) {
		printf("skipped: built without libibverbs and libfabric\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
