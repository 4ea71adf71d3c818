/* test_order.c — messages and puts on one connection, over the fake libfabric: operations that complete early or late, take effect out of
 * order, or are refused for a while do not change the result. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/log.h"
#include "tests/fake/fake_ofi.h"
#include "tests/rdma/two_ends.h"

#if GPUL_HAVE_LIBFABRIC

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

enum { ROUNDS = 200, MESSAGE = 6000, ROOM = 4 * MESSAGE };

static unsigned char source[ROOM], target[ROOM];
static uint64_t step;

struct pair {
	struct two_ends ends;
	gpul_rdma_region *from, *to, *steps;
	gpul_rdma_remote to_remote, step_remote;
};

static void pair_open(struct pair *p, unsigned n_qps, const char *provider)
{
	gpul_error err = { 0 };

	*p = (struct pair){ .from = NULL };
	two_ends_open(&(gpul_rdma_desc){ .backend = "libfabric",
					 .device = { .gpu = -1, .gid_index = -1, .provider = provider },
					 .n_qps = n_qps,
					 .segment_bytes = 4096,
					 .stripe_bytes = 1024 },
		      &p->ends);
	if (gpul_rdma_register(p->ends.r[1], source, ROOM, GPUL_RDMA_DATA, &p->from, &err) ||
	    gpul_rdma_register(p->ends.r[0], target, ROOM, GPUL_RDMA_DATA, &p->to, &err) ||
	    gpul_rdma_register(p->ends.r[0], &step, sizeof step, GPUL_RDMA_STEPS, &p->steps, &err) ||
	    gpul_rdma_offer(p->to, (uintptr_t)target, ROOM, &p->to_remote, &err) ||
	    gpul_rdma_offer(p->steps, (uintptr_t)&step, sizeof step, &p->step_remote, &err))
		fail_msg("%s", err.text);
}

static void pair_close(struct pair *p)
{
	gpul_rdma_unregister(p->from);
	gpul_rdma_unregister(p->to);
	gpul_rdma_unregister(p->steps);
	two_ends_close(&p->ends);
	assert_int_equal(fake_ofi_alive(), 0);
}

/* Start a receive, a put with a step, and a message, all before the fabric has moved anything. */
static void start_round(struct pair *p, unsigned round, gpul_rdma_request requests[3])
{
	const unsigned put_bytes = round % 3 * 500;
	const gpul_rdma_buffer into = { .region = p->to, .at = (uintptr_t)target, .bytes = MESSAGE, .tag = round };
	/* clang-format off */
	const gpul_rdma_buffer out = { .region = p->from, .at = (uintptr_t)source + round % 7, .bytes = round * 37 % MESSAGE, .tag = round };
	gpul_rdma_put_desc put = {
		.from = { .at = (uintptr_t)source + MESSAGE, .bytes = put_bytes, .area = gpul_rdma_region_area(p->from) },
		.to = p->to_remote, .signal = p->step_remote, .signal_value = round, .lane = round,
	};
	/* clang-format on */
	gpul_error err = { 0 };

	put.to.address += ROOM / 2;
	put.to.bytes = ROOM / 2;
	for (unsigned i = 0; i < ROOM; i++)
		source[i] = (unsigned char)(i * 3 + round);
	if (gpul_rdma_irecv(p->ends.conn[0], &into, 1, 20000, &requests[0], &err) ||
	    gpul_rdma_put(p->ends.conn[1], &put, 20000, &requests[1], &err) ||
	    gpul_rdma_isend(p->ends.conn[1], &out, 20000, &requests[2], &err))
		fail_msg("round %u: %s", round, err.text);
}

static void run_rounds(struct pair *p)
{
	for (unsigned round = 1; round <= ROUNDS; round++) {
		gpul_rdma_request requests[3];
		uint64_t got = 0;
		gpul_error err = { 0 };

		start_round(p, round, requests);
		if (two_ends_wait(p->ends.conn, 1, requests[1], NULL, &err) || two_ends_wait(p->ends.conn, 0, requests[0], &got, &err) ||
		    two_ends_wait(p->ends.conn, 1, requests[2], NULL, &err))
			fail_msg("round %u: %s", round, err.text);
		assert_int_equal(step, round);
		assert_int_equal(got, round * 37 % MESSAGE);
		assert_memory_equal(target, source + round % 7, got);
		assert_memory_equal(target + ROOM / 2, source + MESSAGE, round % 3 * 500);
	}
}

static int reset(void **state)
{
	(void)state;
	gpul_ofi_use(fake_ofi(0));
	step = 0;
	return 0;
}

static void puts_and_messages_share_a_connection(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, 1, NULL);
	run_rounds(&p);
	assert_true(fake_ofi_silent_writes() > 0); /* over tcp, one completion covers several writes, because completions come in order */
	pair_close(&p);
	reset(NULL);
	pair_open(&p, 4, NULL);
	run_rounds(&p);
	pair_close(&p);
}

static void a_fabric_without_order_signals_every_write(void **state)
{
	(void)state;
	for (unsigned n_qps = 1; n_qps <= 4; n_qps += 3) {
		struct pair p;

		reset(NULL);
		fake_ofi_behave()->entries[0] = (fake_ofi_entry){
			.provider = "efa", .domain = "efa_0-rdm", .data_bytes = 4, .mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY
		};
		fake_ofi_behave()->reverse = true;
		pair_open(&p, n_qps, "efa");
		run_rounds(&p);
		assert_int_equal(fake_ofi_silent_writes(), 0);
		pair_close(&p);
	}
}

static void narrow_queues_delay_and_lose_nothing(void **state)
{
	(void)state;
	for (unsigned room = 1; room <= 5; room++) {
		struct pair p;

		reset(NULL);
		fake_ofi_behave()->room = room;
		fake_ofi_behave()->connect_posts = 10 * room;
		pair_open(&p, room, NULL);
		run_rounds(&p);
		pair_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(puts_and_messages_share_a_connection, reset),
		cmocka_unit_test_setup(a_fabric_without_order_signals_every_write, reset),
		cmocka_unit_test_setup(narrow_queues_delay_and_lose_nothing, reset),
	};

	gpul_log_set_level(GPUL_LOG_OFF);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	printf("skipped: built without libfabric\n");
	return 77;
}

#endif
