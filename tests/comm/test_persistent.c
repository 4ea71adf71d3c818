/* test_persistent.c — a kernel that stays on the GPU, and runs the calls that the CPU posts. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/comm/collectives.h"

enum { LIMIT_MS = 20000 };

static const gpul_comm_call calls[] = { GPUL_COMM_ALLREDUCE, GPUL_COMM_REDUCESCATTER, GPUL_COMM_ALLGATHER, GPUL_COMM_BROADCAST };
enum { N_CALLS = sizeof calls / sizeof *calls };

static gpul_comm_persistent *start(struct rank *r, unsigned n_blocks)
{
	gpul_comm_persistent *p;
	gpul_error err = { 0 };

	must(gpul_comm_persistent_start(r->comm, n_blocks, &p, &err), &err, "gpul_comm_persistent_start");
	return p;
}

static void stop(gpul_comm_persistent *p)
{
	gpul_error err = { 0 };

	must(gpul_comm_persistent_stop(p, &err), &err, "gpul_comm_persistent_stop");
}

static void post_and_check(gpul_comm_persistent *p, struct rank *r, const struct buffers *b, const struct collective *x)
{
	uint64_t ticket;
	gpul_error err = { 0 };

	prepare_collective(r, b, x);
	must(post_collective(p, r, b, x, &ticket, &err), &err, "gpul_comm_persistent_post");
	must(gpul_comm_persistent_wait(p, ticket, LIMIT_MS, &err), &err, "gpul_comm_persistent_wait");
	check_collective(r, b, x);
}

/* Test small calls that only block 0 runs, small calls of several blocks, and large calls; also with memory of one rank that the other
 * ranks do not map. */
static void all_calls_and_sizes(struct rank *r, void *arg)
{
	static const size_t counts[] = { 1, 100, 3000, 20000, 2, 5000 };
	struct buffers in_windows, others, b;
	gpul_comm_persistent *p;

	(void)arg;
	new_buffers(r, 512 << 10, true, &in_windows);
	new_buffers(r, 512 << 10, false, &others);
	for (unsigned n_blocks = 1; n_blocks <= 3; n_blocks++) {
		p = start(r, n_blocks);
		b = n_blocks == 2 && r->rank == 1 ? others : in_windows;
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
			for (int i = 0; i < N_CALLS; i++)
				post_and_check(p, r, &b,
					       &(struct collective){ .call = calls[i],
								     .dtype = k % 2 ? GPUL_COMM_F32 : GPUL_COMM_BF16,
								     .op = k % 3 == 2 ? GPUL_COMM_AVG : GPUL_COMM_SUM,
								     .count = counts[k],
								     .root = i % r->n_ranks,
								     .in_place = k % 3 == 1 });
		stop(p);
		run_collective(r, &b,
			       &(struct collective){ .call = GPUL_COMM_ALLREDUCE,
						     .algo = GPUL_COMM_ONE_SHOT,
						     .proto = GPUL_COMM_LL,
						     .dtype = GPUL_COMM_I32,
						     .count = 500,
						     .n_blocks = 2,
						     .n_threads = 32 });
	}
	free_buffers(r, &in_windows);
	free_buffers(r, &others);
}

static void posted_calls_are_right(void **state)
{
	(void)state;
	for (int n = 2; n <= 4; n++)
		run_ranks(n, &(gpul_comm_options){ .device = -1, .n_blocks = 3, .timeout_ms = LIMIT_MS }, all_calls_and_sizes, NULL);
}

/* Post 500 all-reduces in place without a wait between them: the queue wraps, and the CPU waits for free slots. */
static void many_posts(struct rank *r, void *arg)
{
	const struct collective x = { .call = GPUL_COMM_ALLREDUCE, .dtype = GPUL_COMM_I32, .count = 33, .in_place = true };
	uint32_t data[33], factor = 1;
	uint64_t ticket = 0;
	struct buffers b;
	gpul_comm_persistent *p;
	gpul_error err = { 0 };

	(void)arg;
	new_buffers(r, 4096, true, &b);
	for (uint32_t i = 0; i < 33; i++)
		data[i] = i + 1;
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(b.send, data, sizeof data)), &err, "cuMemcpyHtoD");
	p = start(r, 0);
	for (int i = 0; i < 500; i++) {
		must(post_collective(p, r, &b, &x, &ticket, &err), &err, "gpul_comm_persistent_post");
		factor *= (uint32_t)r->n_ranks;
	}
	assert_int_equal(ticket, 500);
	must(gpul_comm_persistent_wait(p, ticket, LIMIT_MS, &err), &err, "gpul_comm_persistent_wait");
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(data, b.send, sizeof data)), &err, "cuMemcpyDtoH");
	for (uint32_t i = 0; i < 33; i++)
		if (data[i] != (i + 1) * factor) {
			(void)fprintf(stderr, "rank %d: element %u is %u instead of %u\n", r->rank, i, data[i], (i + 1) * factor);
			abort();
		}
	stop(p);
	free_buffers(r, &b);
}

static void the_queue_takes_more_calls_than_it_has_slots(void **state)
{
	(void)state;
	run_ranks(3, &(gpul_comm_options){ .device = -1, .timeout_ms = LIMIT_MS }, many_posts, NULL);
}

/* All-reduces in place that use one block, some blocks, or the direct algorithm, without a wait between them: each starts after all blocks
 * have ended the previous one. */
static void posts_of_changing_size(struct rank *r, void *arg)
{
	enum { MOST = 10000, ROUNDS = 20 };
	static const size_t counts[] = { 33, 3000, 40, MOST, 700 };
	enum { N_COUNTS = sizeof counts / sizeof *counts };
	uint32_t *data = malloc(MOST * sizeof *data);
	uint64_t ticket = 0;
	struct buffers b;
	gpul_comm_persistent *p;
	gpul_error err = { 0 };

	(void)arg;
	assert_non_null(data);
	new_buffers(r, 64 << 10, true, &b);
	for (uint32_t i = 0; i < MOST; i++)
		data[i] = i + 1;
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD(b.send, data, MOST * sizeof *data)), &err, "cuMemcpyHtoD");
	p = start(r, 3);
	for (int i = 0; i < ROUNDS * N_COUNTS; i++)
		must(post_collective(p, r, &b,
				     &(struct collective){ .call = GPUL_COMM_ALLREDUCE,
							   .dtype = GPUL_COMM_I32,
							   .in_place = true,
							   .count = counts[i % N_COUNTS] },
				     &ticket, &err),
		     &err, "gpul_comm_persistent_post");
	must(gpul_comm_persistent_wait(p, ticket, LIMIT_MS, &err), &err, "gpul_comm_persistent_wait");
	stop(p);
	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(data, b.send, MOST * sizeof *data)), &err, "cuMemcpyDtoH");
	for (uint32_t i = 0; i < MOST; i++) {
		uint32_t expected = i + 1;

		for (int k = 0; k < ROUNDS * N_COUNTS; k++)
			expected *= i < counts[k % N_COUNTS] ? (uint32_t)r->n_ranks : 1;
		if (data[i] != expected) {
			(void)fprintf(stderr, "rank %d: element %u is %u instead of %u\n", r->rank, i, data[i], expected);
			abort();
		}
	}
	free_buffers(r, &b);
	free(data);
}

static void a_call_begins_after_all_blocks_have_ended_the_one_before(void **state)
{
	(void)state;
	run_ranks(3, &(gpul_comm_options){ .device = -1, .n_blocks = 3, .timeout_ms = LIMIT_MS }, posts_of_changing_size, NULL);
}

static void expect_refusal(gpul_status st, gpul_status expected, const gpul_error *err, const char *text)
{
	if (st == expected && strstr(err->text, text))
		return;
	(void)fprintf(stderr, "expected status %d with '%s', got %d: %s\n", expected, text, st, err->text);
	abort();
}

/* Rank 0 posts a call alone, and its wait must time out; then it sets *has_waited, which is in memory shared by both ranks, and only then
 * rank 1 posts the call, too. */
static void refusals(struct rank *r, void *has_waited)
{
	_Atomic bool *waited = has_waited;
	struct collective x = { .call = GPUL_COMM_ALLREDUCE,
				.algo = GPUL_COMM_ONE_SHOT,
				.proto = GPUL_COMM_LL,
				.dtype = GPUL_COMM_F32,
				.count = 8,
				.n_blocks = 1,
				.n_threads = 32 };
	struct buffers b;
	gpul_comm_persistent *p, *second;
	CUdeviceptr at;
	uint64_t ticket;
	gpul_error err = { 0 };

	new_buffers(r, 4096, true, &b);
	expect_refusal(gpul_comm_persistent_start(r->comm, 99, &p, &err), GPUL_EINVAL, &err, "n_blocks is 99");
	p = start(r, 1);
	err = (gpul_error){ 0 };
	expect_refusal(start_collective(r, &b, &x, &err), GPUL_EINVAL, &err, "post the call to it, or stop it first");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_alloc(r->comm, 64, &at, &err), GPUL_EINVAL, &err, "stop it first");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_persistent_start(r->comm, 1, &second, &err), GPUL_EINVAL, &err, "persistent kernel");
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_persistent_wait(p, 1, 0, &err), GPUL_EINVAL, &err, "ticket 1");
	x.call = GPUL_COMM_ALLTOALL;
	err = (gpul_error){ 0 };
	expect_refusal(post_collective(p, r, &b, &x, &ticket, &err), GPUL_EUNSUPPORTED, &err, "alltoall");
	x.call = GPUL_COMM_ALLREDUCE;
	x.op = GPUL_COMM_N_OPS;
	err = (gpul_error){ 0 };
	expect_refusal(post_collective(p, r, &b, &x, &ticket, &err), GPUL_EINVAL, &err, "reduction operation");
	x.op = GPUL_COMM_SUM;
	if (r->rank == 0) { /* rank 1 posts the call later */
		must(post_collective(p, r, &b, &x, &ticket, &err), &err, "gpul_comm_persistent_post");
		err = (gpul_error){ 0 };
		expect_refusal(gpul_comm_persistent_wait(p, ticket, 30, &err), GPUL_ESYS, &err, "has not finished within 30 ms");
		assert_int_equal(err.native, ETIMEDOUT);
		*waited = true;
	} else {
		while (!*waited && !gpul_comm_failed(r->comm, NULL))
			(void)usleep(1000);
		must(post_collective(p, r, &b, &x, &ticket, &err), &err, "gpul_comm_persistent_post");
	}
	must(gpul_comm_persistent_wait(p, ticket, LIMIT_MS, &err), &err, "gpul_comm_persistent_wait");
	stop(p);
	free_buffers(r, &b);
}

static void other_calls_are_refused_while_it_runs(void **state)
{
	_Atomic bool *waited = mmap(NULL, sizeof *waited, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_ptr_not_equal(waited, MAP_FAILED);
	run_ranks(2, &(gpul_comm_options){ .device = -1, .timeout_ms = LIMIT_MS }, refusals, waited);
	munmap((void *)waited, sizeof *waited);
}

/* Rank 0 posts a call that rank 1 does not make, and aborts; all blocks of both kernels must exit. */
static void abort_while_it_runs(struct rank *r, void *arg)
{
	const struct collective x = { .call = GPUL_COMM_ALLREDUCE, .dtype = GPUL_COMM_F32, .count = *(size_t *)arg };
	struct buffers b;
	gpul_comm_persistent *p;
	uint64_t ticket;
	gpul_error err = { 0 };

	new_buffers(r, 256 << 10, true, &b);
	p = start(r, 3);
	if (r->rank == 0) {
		must(post_collective(p, r, &b, &x, &ticket, &err), &err, "gpul_comm_persistent_post");
		(void)usleep(20 * 1000);
		gpul_comm_abort(r->comm);
		expect_refusal(gpul_comm_persistent_wait(p, ticket, LIMIT_MS, &err), GPUL_ECOMM, &err, "gpul_comm_abort()");
	}
	while (!gpul_comm_failed(r->comm, NULL))
		(void)usleep(1000);
	err = (gpul_error){ 0 };
	expect_refusal(gpul_comm_persistent_stop(p, &err), GPUL_ECOMM, &err, "gpul_comm_abort()");
}

static void all_blocks_leave_after_an_abort(void **state)
{
	size_t counts[] = { 4, 2000, 50000 };

	(void)state;
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		run_ranks(2, &(gpul_comm_options){ .device = -1, .n_blocks = 3, .timeout_ms = -1 }, abort_while_it_runs, &counts[i]);
}

/* gpul_comm_destroy() must stop a kernel that is still running, instead of waiting for it. */
static void leave_it_running(struct rank *r, void *arg)
{
	(void)arg;
	(void)start(r, 2);
}

static void destroying_the_communicator_stops_it(void **state)
{
	(void)state;
	run_ranks(2, &(gpul_comm_options){ .device = -1, .n_blocks = 2, .timeout_ms = LIMIT_MS }, leave_it_running, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(posted_calls_are_right),
		cmocka_unit_test(the_queue_takes_more_calls_than_it_has_slots),
		cmocka_unit_test(a_call_begins_after_all_blocks_have_ended_the_one_before),
		cmocka_unit_test(other_calls_are_refused_while_it_runs),
		cmocka_unit_test(all_blocks_leave_after_an_abort),
		cmocka_unit_test(destroying_the_communicator_stops_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
