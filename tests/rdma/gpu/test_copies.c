/* test_copies.c — the staging copies on a fake driver; the test decides when the driver executes copies. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "driver/context.h"
#include "rdma/gpu/copies.h"
#include "tests/rdma/gpu/fake_gpu.h"

enum { STAGES = 4, STAGE_BYTES = 4096, ALL_BYTES = 2 * STAGES * STAGE_BYTES };

static unsigned char gpu_memory[ALL_BYTES]; /* plays the role of device memory */

static gpul_rdma_copies *create_copies(const gpul_driver **drv)
{
	gpul_rdma_copies *c = NULL;
	gpul_error err = { 0 };

	*drv = fake_gpu_driver(0, CUDA_SUCCESS);
	if (gpul_rdma_copies_create(*drv, 0, STAGES, STAGE_BYTES, &c, &err))
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof gpu_memory; i++)
		gpu_memory[i] = (unsigned char)(i * 7 + (i >> 8));
	memset(gpul_rdma_copies_stages(c), 0, ALL_BYTES);
	fake_gpu_state()->held = true;
	return c;
}

static unsigned char *stage(const gpul_rdma_copies *c, unsigned i)
{
	return (unsigned char *)gpul_rdma_copies_stages(c) + (size_t)i * STAGE_BYTES;
}

/* Make the copy operation of stage i, with id i + 100. */
static gpul_rdma_op copy_of(const gpul_rdma_copies *c, gpul_rdma_op_kind kind, unsigned i, uint32_t bytes)
{
	return (gpul_rdma_op){ .kind = (uint8_t)kind,
			       .bytes = bytes,
			       .id = i + 100,
			       .local = (uint64_t)(uintptr_t)stage(c, i),
			       .remote = (uint64_t)(uintptr_t)&gpu_memory[i * STAGE_BYTES] };
}

static unsigned post(gpul_rdma_copies *c, const gpul_rdma_op *ops, unsigned n)
{
	gpul_rdma_failure why = { 0 };
	unsigned n_posted = 99;

	assert_int_equal(gpul_rdma_copies_post(c, ops, n, &n_posted, &why), GPUL_OK);
	assert_int_equal(why.status, GPUL_OK);
	return n_posted;
}

static unsigned poll_copies(gpul_rdma_copies *c, uint64_t *ids, unsigned max)
{
	gpul_rdma_failure why = { 0 };
	unsigned n = 99;

	assert_int_equal(gpul_rdma_copies_poll(c, ids, max, &n, &why), GPUL_OK);
	return n;
}

static void copies_bytes_both_ways(void **state)
{
	const gpul_driver *drv;
	gpul_rdma_copies *c = create_copies(&drv);
	gpul_rdma_op ops[3] = { copy_of(c, GPUL_RDMA_OP_COPY_OUT, 0, STAGE_BYTES), copy_of(c, GPUL_RDMA_OP_COPY_OUT, 1, 0),
				copy_of(c, GPUL_RDMA_OP_COPY_IN, STAGES, 777) };
	uint64_t ids[8];

	(void)state;
	memset(stage(c, STAGES), 0xab, STAGE_BYTES);
	assert_int_equal(post(c, ops, 3), 3);
	assert_true(gpul_rdma_copies_busy(c));
	assert_int_equal(poll_copies(c, ids, 8), 0);
	fake_gpu_run(10);
	assert_int_equal(poll_copies(c, ids, 8), 3);
	assert_true(ids[0] == 100 && ids[1] == 101 && ids[2] == 100 + STAGES);
	assert_false(gpul_rdma_copies_busy(c));
	assert_memory_equal(stage(c, 0), gpu_memory, STAGE_BYTES);
	assert_int_equal(stage(c, 1)[0], 0); /* nothing was copied, because the operation has 0 bytes */
	for (int i = 0; i < 777; i++)
		assert_int_equal(gpu_memory[STAGES * STAGE_BYTES + i], 0xab);
	assert_int_equal(gpu_memory[STAGES * STAGE_BYTES + 777],
			 (unsigned char)((STAGES * STAGE_BYTES + 777) * 7 + ((STAGES * STAGE_BYTES + 777) >> 8)));
	gpul_rdma_copies_destroy(c);
	assert_int_equal(fake_alive(), 0);
}

static void one_event_stands_behind_the_copies_of_one_post(void **state)
{
	const gpul_driver *drv;
	gpul_rdma_copies *c = create_copies(&drv);
	gpul_rdma_op ops[STAGES];
	uint64_t ids[8];
	int queries;

	(void)state;
	for (unsigned i = 0; i < STAGES; i++)
		ops[i] = copy_of(c, GPUL_RDMA_OP_COPY_OUT, i, STAGE_BYTES);
	assert_int_equal(post(c, ops, 2), 2);
	assert_int_equal(post(c, ops + 2, 2), 2);
	assert_int_equal(fake_gpu_state()->n_event_records, 2);
	fake_gpu_run(2); /* executes the two copies of the first post, but not its event */
	queries = fake_gpu_state()->n_event_queries;
	assert_int_equal(poll_copies(c, ids, 8), 0);
	assert_int_equal(fake_gpu_state()->n_event_queries, queries + 1); /* poll queries only the oldest event */
	fake_gpu_run(2);
	assert_int_equal(poll_copies(c, ids, 1), 1);
	assert_int_equal(ids[0], 100);
	queries = fake_gpu_state()->n_event_queries;
	assert_int_equal(poll_copies(c, ids, 1), 1); /* needs no further query */
	assert_int_equal(ids[0], 101);
	assert_int_equal(fake_gpu_state()->n_event_queries, queries);
	fake_gpu_run(9);
	assert_int_equal(poll_copies(c, ids, 8), 2);
	assert_true(ids[0] == 102 && ids[1] == 103);
	queries = fake_calls();
	assert_int_equal(poll_copies(c, ids, 8), 0);
	assert_int_equal(fake_calls(), queries); /* with no copy in flight, poll makes no driver call */
	gpul_rdma_copies_destroy(c);
	assert_int_equal(fake_alive(), 0);
}

static void starts_at_most_one_copy_for_each_stage(void **state)
{
	const gpul_driver *drv;
	gpul_rdma_copies *c = create_copies(&drv);
	gpul_rdma_op ops[STAGES + 2];
	uint64_t ids[8];

	(void)state;
	for (unsigned i = 0; i < STAGES + 1; i++)
		ops[i] = copy_of(c, GPUL_RDMA_OP_COPY_OUT, i % STAGES, 8);
	ops[STAGES + 1] = copy_of(c, GPUL_RDMA_OP_COPY_IN, STAGES, 8);
	assert_int_equal(post(c, ops, STAGES + 2), STAGES);
	assert_int_equal(post(c, ops + STAGES, 2), 0);
	assert_int_equal(post(c, ops + STAGES + 1, 1), 1); /* accepted, because this direction has its own stages */
	fake_gpu_run(9);
	assert_int_equal(post(c, ops + STAGES, 1), 0); /* poll has not reported the copies yet */
	assert_int_equal(poll_copies(c, ids, 8), STAGES + 1);
	assert_int_equal(post(c, ops + STAGES, 1), 1);
	assert_int_equal(post(c, ops, 0), 0);
	gpul_rdma_copies_destroy(c);
	assert_int_equal(fake_alive(), 0);
}

/* Random posts, progress and polls: each direction reports its ids once and in order, and no data is wrong. */
static void random_interleavings_keep_the_order(void **state)
{
	const gpul_driver *drv;
	gpul_rdma_copies *c = create_copies(&drv);
	uint64_t posted[2] = { 0 }, ended[2] = { 0 }, ids[16];
	unsigned random = 12345;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		gpul_rdma_op ops[5];
		unsigned n, n_ops = (random = random * 1103515245 + 12345) >> 16 & 3, n_posted;

		for (unsigned i = 0; i < n_ops; i++) {
			unsigned in = (random = random * 1103515245 + 12345) >> 17 & 1;

			ops[i] = copy_of(c, in ? GPUL_RDMA_OP_COPY_IN : GPUL_RDMA_OP_COPY_OUT, in * STAGES, 64);
			ops[i].id = in;
		}
		n_posted = post(c, ops, n_ops);
		for (unsigned i = 0; i < n_posted; i++)
			posted[ops[i].id]++;
		fake_gpu_run((int)(random >> 20 & 3));
		n = poll_copies(c, ids, 1 + (random >> 24 & 7));
		for (unsigned i = 0; i < n; i++)
			ended[ids[i]]++;
		for (int i = 0; i < 2; i++)
			assert_in_range(posted[i] - ended[i], 0, STAGES);
	}
	fake_gpu_run(100);
	for (unsigned n; (n = poll_copies(c, ids, 3)) > 0;)
		for (unsigned i = 0; i < n; i++)
			ended[ids[i]]++;
	assert_true(posted[0] == ended[0] && posted[1] == ended[1] && posted[0] > 1000);
	gpul_rdma_copies_destroy(c);
	assert_int_equal(fake_alive(), 0);
}

static void refuses_operations_that_are_not_its_own(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		const gpul_driver *drv;
		gpul_rdma_copies *c = create_copies(&drv);
		gpul_rdma_op op = copy_of(c, GPUL_RDMA_OP_COPY_IN, 2 * STAGES - 1, 64), good = op;
		gpul_rdma_failure why = { 0 }, again = { 0 };
		unsigned n_posted = 9;
		uint64_t id;

		if (i == 0)
			op.kind = GPUL_RDMA_OP_WRITE;
		else if (i == 1)
			op.local -= ALL_BYTES;
		else if (i == 2)
			op.local += STAGE_BYTES - 63; /* the copy ends one byte past the stage */
		else if (i == 3)
			op.bytes = STAGE_BYTES + 1;
		else
			op.local = UINT64_MAX - 10;
		assert_int_equal(gpul_rdma_copies_post(c, &op, 1, &n_posted, &why), GPUL_EINVAL);
		assert_int_equal(n_posted, 0);
		assert_int_equal(why.status, GPUL_EINVAL);
		assert_string_equal(why.call, "staging copy");
		/* Later calls report the first failure. */
		assert_int_equal(gpul_rdma_copies_post(c, &good, 1, &n_posted, &again), GPUL_EINVAL);
		assert_string_equal(again.what, why.what);
		assert_int_equal(gpul_rdma_copies_poll(c, &id, 1, &n_posted, NULL), GPUL_EINVAL);
		gpul_rdma_copies_destroy(c);
		assert_int_equal(fake_alive(), 0);
	}
}

static void refuses_wrong_numbers(void **state)
{
	static const struct {
		unsigned n;
		size_t bytes;
	} wrong[] = {
		{ 0, 4096 },
		{ GPUL_RDMA_MAX_STAGES + 1, 4096 },
		{ 1, 0 },
		{ 1, (size_t)5 << 30 },
	};
	const gpul_driver *drv = fake_gpu_driver(0, CUDA_SUCCESS);
	gpul_rdma_copies *c = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		assert_int_equal(gpul_rdma_copies_create(drv, 0, wrong[i].n, wrong[i].bytes, &c, NULL), GPUL_EINVAL);
	assert_int_equal(gpul_rdma_copies_create(drv, 7, 1, 4096, &c, NULL), GPUL_EINVAL); /* GPU 7 does not exist */
	assert_null(c);
	assert_int_equal(fake_alive(), 0);
}

static void a_create_that_fails_undoes_everything(void **state)
{
	int n_failed = 0;

	(void)state;
	for (int n = 1;; n++) {
		const gpul_driver *drv = fake_gpu_driver(n, CUDA_ERROR_OUT_OF_MEMORY);
		gpul_rdma_copies *c = NULL;
		gpul_error err = { 0 };
		CUcontext current;

		if (gpul_rdma_copies_create(drv, 0, STAGES, STAGE_BYTES, &c, &err) == GPUL_OK) {
			const int calls = fake_calls();

			gpul_rdma_copies_destroy(c);
			assert_int_equal(fake_alive(), 0);
			if (n > calls)
				break;
			continue; /* create succeeded, because it fell back to another kind of memory */
		}
		n_failed++;
		assert_null(c);
		assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
		assert_int_equal(fake_alive(), 0);
		assert_int_equal(drv->cuCtxGetCurrent(&current), CUDA_SUCCESS);
		assert_null(current);
	}
	assert_true(n_failed > 100); /* each event has failed once */
}

/* After each failure the reason is recorded, destroy waits for the copies in flight, and nothing leaks. */
static void each_call_of_post_and_poll_may_fail(void **state)
{
	(void)state;
	for (int n = 1;; n++) {
		const gpul_driver *drv;
		gpul_rdma_copies *c = create_copies(&drv);
		gpul_rdma_op ops[3] = { copy_of(c, GPUL_RDMA_OP_COPY_OUT, 0, 64), copy_of(c, GPUL_RDMA_OP_COPY_IN, STAGES, 64),
					copy_of(c, GPUL_RDMA_OP_COPY_OUT, 1, 64) };
		gpul_rdma_failure why = { 0 };
		gpul_error err = { 0 };
		unsigned n_posted = 0, n_ids = 0, more = 0;
		uint64_t ids[3];
		gpul_status st;
		int calls;

		fake_fail_next(n, CUDA_ERROR_ILLEGAL_ADDRESS);
		calls = fake_calls();
		st = gpul_rdma_copies_post(c, ops, 3, &n_posted, &why);
		fake_gpu_run(1);
		while (!st && n_ids + more < 3) {
			st = gpul_rdma_copies_poll(c, ids, 3, &more, &why);
			fake_gpu_run(1);
			n_ids += st ? 0 : more;
			more = 0;
		}
		calls = fake_calls() - calls;
		assert_int_equal(why.status, st);
		if (st) {
			assert_int_equal(st, GPUL_ECUDA);
			assert_int_equal(why.native, CUDA_ERROR_ILLEGAL_ADDRESS);
			assert_true(!strncmp(why.call, "cu", 2));
			assert_true(!strncmp(why.what, "CUDA_ERROR_ILLEGAL_ADDRESS", 26));
			assert_non_null(strstr(why.advice, "out of bounds"));
			assert_int_equal(gpul_rdma_failure_error(&why, &err), GPUL_ECUDA);
			gpul_rdma_copies_drain(c);
			assert_int_equal(fake_gpu_waiting(), 0);
		}
		gpul_rdma_copies_destroy(c);
		assert_int_equal(fake_alive(), 0);
		if (!st) {
			assert_true(n > calls && n > 6);
			return;
		}
	}
}

static void drain_waits_and_poll_still_reports(void **state)
{
	const gpul_driver *drv;
	gpul_rdma_copies *c = create_copies(&drv);
	gpul_rdma_op op = copy_of(c, GPUL_RDMA_OP_COPY_OUT, 0, 64);
	uint64_t id = 0;

	(void)state;
	gpul_rdma_copies_drain(c);
	assert_int_equal(post(c, &op, 1), 1);
	assert_int_equal(fake_gpu_waiting(), 2);
	gpul_rdma_copies_drain(c);
	assert_int_equal(fake_gpu_waiting(), 0);
	assert_true(gpul_rdma_copies_busy(c));
	assert_int_equal(poll_copies(c, &id, 1), 1);
	assert_int_equal(id, 100);
	gpul_rdma_copies_destroy(c);
	assert_int_equal(fake_alive(), 0);
}

static void a_threads_own_context_stays_current(void **state)
{
	const gpul_driver *drv;
	gpul_rdma_copies *c = create_copies(&drv);
	gpul_rdma_op op = copy_of(c, GPUL_RDMA_OP_COPY_OUT, 0, 64);
	CUcontext other = (CUcontext)(void *)gpu_memory, current = NULL;
	gpul_context own = { 0 };
	uint64_t id;

	(void)state;
	assert_int_equal(drv->cuCtxGetCurrent(&current), CUDA_SUCCESS);
	assert_null(current); /* create did not change the thread's context */
	assert_int_equal(drv->cuCtxSetCurrent(other), CUDA_SUCCESS);
	assert_int_equal(post(c, &op, 1), 1);
	fake_gpu_run(9);
	assert_int_equal(poll_copies(c, &id, 1), 1);
	gpul_rdma_copies_drain(c);
	assert_int_equal(drv->cuCtxGetCurrent(&current), CUDA_SUCCESS);
	assert_ptr_equal(current, other);
	assert_int_equal(gpul_context_open(drv, 0, &own, NULL), GPUL_OK);
	gpul_rdma_copies_destroy(c);
	assert_int_equal(drv->cuCtxGetCurrent(&current), CUDA_SUCCESS);
	assert_ptr_equal(current, own.handle);
	gpul_context_close(&own);
	assert_int_equal(fake_alive(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_bytes_both_ways),
		cmocka_unit_test(one_event_stands_behind_the_copies_of_one_post),
		cmocka_unit_test(starts_at_most_one_copy_for_each_stage),
		cmocka_unit_test(random_interleavings_keep_the_order),
		cmocka_unit_test(refuses_operations_that_are_not_its_own),
		cmocka_unit_test(refuses_wrong_numbers),
		cmocka_unit_test(a_create_that_fails_undoes_everything),
		cmocka_unit_test(each_call_of_post_and_poll_may_fail),
		cmocka_unit_test(drain_waits_and_poll_still_reports),
		cmocka_unit_test(a_threads_own_context_stays_current),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
