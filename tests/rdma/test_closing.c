/* test_closing.c — one end closes as soon as its last request has ended.  The sends whose messages it has received must succeed, although
 * the other end makes no progress and, over a fake libfabric, gets no acknowledgement.  $GPULOAD_TEST_BACKEND chooses the real fabric. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/log.h"
#include "tests/fake/fake_ofi.h"
#include "tests/rdma/two_ends.h"

enum { ROUNDS = 12, MANY = 8, MOST = 1 << 20, RECEIVER = 0, SENDER = 1 };

static unsigned char source[MOST], target[MOST];

struct pair {
	struct two_ends ends;
	gpul_rdma_region *into, *from;
	gpul_rdma_request received[MANY], sent[MANY];
};

/* Open and connect two ends, and register their buffers.  backend NULL: the one that $GPULOAD_TEST_BACKEND names. */
static void pair_open(struct pair *p, const char *backend, unsigned n_qps)
{
	gpul_error err = { 0 };

	two_ends_open(&(gpul_rdma_desc){ .backend = backend, .device = { .gpu = -1, .gid_index = -1 }, .n_qps = n_qps }, &p->ends);
	if (gpul_rdma_register(p->ends.r[RECEIVER], target, MOST, GPUL_RDMA_DATA, &p->into, &err) ||
	    gpul_rdma_register(p->ends.r[SENDER], source, MOST, GPUL_RDMA_SOURCE, &p->from, &err))
		fail_msg("%s", err.text);
}

static void pair_close(struct pair *p)
{
	gpul_rdma_unregister(p->into);
	gpul_rdma_unregister(p->from);
	two_ends_close(&p->ends);
}

/* Close one end, and wait, without making progress, until the other end has learned of it. */
static void close_end(struct pair *p, int end)
{
	gpul_rdma_failure why = { 0 };

	gpul_rdma_conn_close(p->ends.conn[end]);
	p->ends.conn[end] = NULL;
	while (!why.status)
		gpul_rdma_conn_failed(p->ends.conn[!end], &why);
	assert_non_null(strstr(why.what, "the peer has closed the connection"));
}

static void post(struct pair *p, unsigned n_receives, unsigned n_sends, size_t bytes)
{
	gpul_error err = { 0 };

	for (unsigned i = 0; i < n_receives; i++) {
		const gpul_rdma_buffer b = { .region = p->into, .at = (uintptr_t)target, .bytes = bytes, .tag = i };

		assert_int_equal(gpul_rdma_irecv(p->ends.conn[RECEIVER], &b, 1, 20000, &p->received[i], &err), GPUL_OK);
	}
	for (unsigned i = 0; i < n_sends; i++) {
		const gpul_rdma_buffer b = { .region = p->from, .at = (uintptr_t)source, .bytes = bytes, .tag = i };

		while (i < n_receives && !gpul_rdma_may_send(p->ends.conn[SENDER], i)) {
			assert_int_equal(gpul_rdma_progress(p->ends.conn[RECEIVER], NULL, &err), GPUL_OK);
			assert_int_equal(gpul_rdma_progress(p->ends.conn[SENDER], NULL, &err), GPUL_OK);
		}
		assert_int_equal(gpul_rdma_isend(p->ends.conn[SENDER], &b, 20000, &p->sent[i], &err), GPUL_OK);
		assert_int_equal(gpul_rdma_progress(p->ends.conn[SENDER], NULL, &err), GPUL_OK);
	}
}

/* Wait until all messages have been received.  If the fabric needs progress at the sender, the sender makes one step at a time. */
static void await_receives(struct pair *p, unsigned n)
{
	gpul_error err = { 0 };

	for (unsigned i = 0; i < n; i++)
		if (two_ends_wait(p->ends.conn, RECEIVER, p->received[i], NULL, &err))
			fail_msg("receive %u of %u: %s", i, n, err.text);
}

static void expect_sent(struct pair *p, unsigned first, unsigned n)
{
	gpul_error err = { 0 };

	for (unsigned i = first; i < n; i++)
		if (gpul_rdma_wait(p->ends.conn[SENDER], p->sent[i], NULL, &err))
			fail_msg("send %u of %u: %s", i, n, err.text);
}

static void expect_unsent(struct pair *p, unsigned first, unsigned n)
{
	gpul_error err = { 0 };

	for (unsigned i = first; i < n; i++) {
		assert_int_not_equal(gpul_rdma_wait(p->ends.conn[SENDER], p->sent[i], NULL, &err), GPUL_OK);
		assert_non_null(strstr(err.text, "the peer has closed the connection"));
	}
}

static void a_receiver_closes_at_once(void **state)
{
	static const size_t sizes[] = { 0, 8, 60000, MOST };
	struct pair p;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		const unsigned n = 1 + round % MANY;

		pair_open(&p, NULL, 1 + round % 3);
		post(&p, n, n, sizes[round % 4]);
		await_receives(&p, n);
		close_end(&p, RECEIVER);
		expect_sent(&p, 0, n);
		assert_int_not_equal(gpul_rdma_progress(p.ends.conn[SENDER], NULL, NULL), GPUL_OK);
		pair_close(&p);
	}
}

static void a_sender_closes_at_once(void **state)
{
	struct pair p;
	gpul_error err = { 0 };

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		const unsigned n = 1 + round % MANY;

		pair_open(&p, NULL, 1);
		post(&p, n, n, MOST);
		for (unsigned i = 0; i < n; i++)
			if (two_ends_wait(p.ends.conn, SENDER, p.sent[i], NULL, &err))
				fail_msg("send %u: %s", i, err.text);
		close_end(&p, SENDER);
		for (unsigned i = 0; i < n; i++)
			if (gpul_rdma_wait(p.ends.conn[RECEIVER], p.received[i], NULL, &err))
				fail_msg("receive %u: %s", i, err.text);
		pair_close(&p);
	}
}

#if GPUL_HAVE_LIBFABRIC

static int use_fake(void **state)
{
	(void)state;
	gpul_ofi_use(fake_ofi(0));
	fake_ofi_behave()->unacknowledged = true;
	return 0;
}

static int use_real(void **state)
{
	(void)state;
	gpul_ofi_use(NULL);
	return 0;
}

static void unacknowledged_sends_end_if_they_were_received(void **state)
{
	struct pair p;

	(void)state;
	for (unsigned n = 1; n <= MANY; n++)
		for (unsigned n_qps = 1; n_qps <= 4; n_qps += 3) {
			pair_open(&p, "libfabric", n_qps);
			post(&p, n, n, 5000);
			await_receives(&p, n);
			close_end(&p, RECEIVER);
			expect_sent(&p, 0, n);
			pair_close(&p);
		}
}

/* The peer has received some of the messages; the sends of the other messages fail, including one that has no slot. */
static void sends_that_were_not_received_fail(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, "libfabric", 1);
	post(&p, 2, 3, 5000);
	await_receives(&p, 2);
	close_end(&p, RECEIVER);
	expect_unsent(&p, 2, 3);
	expect_sent(&p, 0, 2);
	pair_close(&p);
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_receiver_closes_at_once),
		cmocka_unit_test(a_sender_closes_at_once),
#if GPUL_HAVE_LIBFABRIC
		cmocka_unit_test_setup_teardown(unacknowledged_sends_end_if_they_were_received, use_fake, use_real),
		cmocka_unit_test_setup_teardown(sends_that_were_not_received_fail, use_fake, use_real),
#endif
	};

	gpul_log_set_level(GPUL_LOG_OFF);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
