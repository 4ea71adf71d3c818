/* test_desk.c — the words that ranks exchange at the start and the end of a call (comm/layout.h): ranks that make different calls, or no
 * call; grids that change; call numbers that wrap. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "tests/comm/collectives.h"

/* clang-format off */
static const struct collective oneshot = {
	.call = GPUL_COMM_ALLREDUCE, .algo = GPUL_COMM_ONE_SHOT, .proto = GPUL_COMM_LL, .dtype = GPUL_COMM_F32, .count = 100,
	.n_blocks = 1, .n_threads = 64,
};
static const struct collective direct = {
	.call = GPUL_COMM_ALLREDUCE, .algo = GPUL_COMM_DIRECT, .proto = GPUL_COMM_SIMPLE, .dtype = GPUL_COMM_F32, .count = 100,
	.n_blocks = 1, .n_threads = 64,
};
/* clang-format on */

struct mismatch {
	struct collective common, odd; /* the last rank calls `odd`, all others `common` */
	const char *common_text, *odd_text;
};

/* The last rank makes a different call; the failure on every rank must name this rank and both calls. */
static void one_rank_differs(struct rank *r, void *arg)
{
	const struct mismatch *m = arg;
	const bool is_odd = r->rank == r->n_ranks - 1;
	struct buffers b;
	gpul_comm_failure f = { 0 };
	gpul_error err = { 0 };

	new_buffers(r, 64 << 10, true, &b);
	must(start_collective(r, &b, is_odd ? &m->odd : &m->common, &err), &err, "start_collective");
	if (gpul_comm_wait(r->comm, r->stream, &err) != GPUL_ECOMM || err.native != GPUL_COMM_MISMATCH) {
		(void)fprintf(stderr, "rank %d: no mismatch was reported (cause %d): %s\n", r->rank, err.native, err.text);
		abort();
	}
	if (!gpul_comm_failed(r->comm, &f) || !strstr(f.text, m->common_text) || !strstr(f.text, m->odd_text)) {
		(void)fprintf(stderr, "rank %d: expected '%s' and '%s' in: %s\n", r->rank, m->common_text, m->odd_text, f.text);
		abort();
	}
}

static void different_calls_are_reported_by_name(void **state)
{
	struct mismatch m[] = {
		{ oneshot, oneshot, "allreduce(100 f32, sum)", "allreduce(99 f32, sum)" },
		{ oneshot, oneshot, "allreduce(100 f32, sum)", "allreduce(100 f32, max)" },
		{ direct, direct, "allreduce(100 f32, sum)", "allreduce(100 i32, sum)" },
		{ direct, direct, "allreduce(100 f32, sum)", "allgather(100 f32)" },
		{ direct, oneshot, "broadcast(100 f32, root 0)", "broadcast(100 f32, root 1)" },
	};

	(void)state;
	m[0].odd.count = 99;
	m[1].odd.op = GPUL_COMM_MAX;
	m[2].odd.dtype = GPUL_COMM_I32;
	m[3].odd.call = GPUL_COMM_ALLGATHER;
	m[4].common.call = m[4].odd.call = GPUL_COMM_BROADCAST;
	m[4].odd.root = 1;
	for (size_t i = 0; i < sizeof m / sizeof *m; i++)
		run_ranks(3, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, one_rank_differs, &m[i]);
}

/* Rank 0 makes a call that rank 1 does not make. */
static void rank_0_calls_alone(struct rank *r, void *arg)
{
	struct buffers b;
	gpul_error err = { 0 };

	new_buffers(r, 4096, true, &b);
	if (r->rank == 0)
		must(start_collective(r, &b, arg, &err), &err, "start_collective");
	while (!gpul_comm_failed(r->comm, NULL))
		(void)usleep(1000);
	if (gpul_comm_wait(r->comm, r->stream, &err) != GPUL_ECOMM || err.native != GPUL_COMM_TIMED_OUT ||
	    !strstr(err.text, "rank 0 waited 300 ms") || !strstr(err.text, "from rank 1")) {
		(void)fprintf(stderr, "rank %d: unexpected failure: %s\n", r->rank, err.text);
		abort();
	}
}

static void a_rank_that_does_not_call_is_named(void **state)
{
	struct collective calls[] = { oneshot, direct };

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		run_ranks(2, &(gpul_comm_options){ .device = -1, .timeout_ms = 300 }, rank_0_calls_alone, &calls[i]);
}

static void rank_0_aborts(struct rank *r, void *arg)
{
	struct buffers b;
	gpul_error err = { 0 };

	new_buffers(r, 4096, true, &b);
	if (r->rank == 0) {
		must(start_collective(r, &b, arg, &err), &err, "start_collective");
		(void)usleep(20 * 1000);
		gpul_comm_abort(r->comm);
	}
	while (!gpul_comm_failed(r->comm, NULL))
		(void)usleep(1000);
	if (gpul_comm_wait(r->comm, r->stream, &err) != GPUL_ECOMM || err.native != GPUL_COMM_ABORTED) {
		(void)fprintf(stderr, "rank %d: unexpected failure: %s\n", r->rank, err.text);
		abort();
	}
}

static void an_abort_ends_a_wait_for_a_greeting(void **state)
{
	struct collective calls[] = { oneshot, direct };

	(void)state;
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		run_ranks(2, &(gpul_comm_options){ .device = -1, .timeout_ms = -1 }, rank_0_aborts, &calls[i]);
}

/* Alternate grids of 1 to 4 blocks and both algorithms; every block must count the same number of calls. */
static void calls_of_many_shapes(struct rank *r, void *arg)
{
	static const unsigned blocks[] = { 1, 4, 2, 3, 1, 2, 4, 4, 1, 3, 3, 2 };
	const size_t n_shapes = sizeof blocks / sizeof *blocks;
	struct buffers b;

	new_buffers(r, 64 << 10, true, &b);
	for (unsigned i = 0; i < *(unsigned *)arg; i++) {
		struct collective x = i % 5 < 3 ? oneshot : direct;

		x.n_blocks = blocks[i % n_shapes];
		x.count = 1 + i * 37 % 600;
		x.call = i % 7 == 6 ? GPUL_COMM_BROADCAST : i % 7 == 3 ? GPUL_COMM_ALLGATHER : GPUL_COMM_ALLREDUCE;
		x.root = (int)i % r->n_ranks;
		run_collective(r, &b, &x);
	}
	free_buffers(r, &b);
}

static void grids_of_different_sizes_follow_each_other(void **state)
{
	unsigned n_calls = 120;

	(void)state;
	run_ranks(3, &(gpul_comm_options){ .device = -1, .n_blocks = 4, .timeout_ms = 20000 }, calls_of_many_shapes, &n_calls);
}

/* Check that every block has counted `number` calls. */
static void expect_count(struct rank *r, uint64_t number)
{
	const uint32_t n = r->comm->sizes.n_blocks;
	uint64_t calls[GPUL_COMM_MAX_BLOCKS];
	gpul_error err = { 0 };

	must(gpul_cu(r->drv, &err, cuMemcpyDtoH(calls, (CUdeviceptr)(uintptr_t)r->comm->view_copy.calls, n * sizeof *calls)), &err,
	     "cuMemcpyDtoH");
	for (uint32_t i = 0; i < n; i++)
		if (calls[i] != number) {
			(void)fprintf(stderr, "block %u has counted %#llx instead of %#llx\n", i, (unsigned long long)calls[i],
				      (unsigned long long)number);
			abort();
		}
}

/* One warp counts the calls of more blocks than it has threads. */
static void small_and_large_grids(struct rank *r, void *arg)
{
	struct buffers b;

	(void)arg;
	new_buffers(r, 64 << 10, true, &b);
	for (unsigned i = 0; i < 6; i++) {
		struct collective x = oneshot;

		x.count = 3000;
		x.n_threads = 32;
		x.n_blocks = i % 2 == 0 ? 1 : 50;
		run_collective(r, &b, &x);
	}
	expect_count(r, 2 + 6); /* there were 6 calls, and the first has number 3 */
	free_buffers(r, &b);
}

static void a_large_grid_follows_one_warp(void **state)
{
	(void)state;
	run_ranks(2, &(gpul_comm_options){ .device = -1, .n_blocks = 64, .slot_bytes = 1024, .timeout_ms = 20000 }, small_and_large_grids,
		  NULL);
}

/* Fill the scratch memory with flags that the next calls will use, as calls could have left them 2^32 calls ago. */
static void numbers_wrap(struct rank *r, void *arg)
{
	const gpul_comm_sizes *s = &r->comm->sizes;
	const uint64_t number = 0xfffffffdull; /* number of the last call; the next are fffffffe, ffffffff, 100000002 */
	uint64_t calls[GPUL_COMM_MAX_BLOCKS];
	gpul_comm_ll *words = malloc(2 * s->n_ranks * s->scratch_bytes);
	struct buffers b;
	gpul_error err = { 0 };

	(void)arg;
	if (!words)
		abort();
	for (uint32_t i = 0; i < s->n_blocks; i++)
		calls[i] = number;
	for (size_t i = 0; i < 2 * s->n_ranks * s->scratch_bytes / sizeof *words; i++)
		words[i] = (gpul_comm_ll){ .data = 0x77777777, .flag = 2 + (i >= s->n_ranks * s->scratch_bytes / sizeof *words) };
	new_buffers(r, 64 << 10, true, &b); /* acts as a barrier, after which no rank writes */
	must(gpul_cu(r->drv, &err, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)r->comm->view_copy.calls, calls, s->n_blocks * sizeof *calls)),
	     &err, "cuMemcpyHtoD");
	must(gpul_cu(r->drv, &err,
		     cuMemcpyHtoD((CUdeviceptr)(uintptr_t)(r->comm->view_copy.peers[r->rank].desk + s->scratch_at), words,
				  2 * s->n_ranks * s->scratch_bytes)),
	     &err, "cuMemcpyHtoD");
	calls_of_many_shapes(r, &(unsigned){ 12 });
	expect_count(r, number + 12 + 2);
	free_buffers(r, &b);
	free(words);
}

static void old_flags_do_no_harm_after_2_to_the_32_calls(void **state)
{
	(void)state;
	run_ranks(2, &(gpul_comm_options){ .device = -1, .n_blocks = 4, .timeout_ms = 20000 }, numbers_wrap, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(different_calls_are_reported_by_name), cmocka_unit_test(a_rank_that_does_not_call_is_named),
		cmocka_unit_test(an_abort_ends_a_wait_for_a_greeting),  cmocka_unit_test(grids_of_different_sizes_follow_each_other),
		cmocka_unit_test(a_large_grid_follows_one_warp),        cmocka_unit_test(old_flags_do_no_harm_after_2_to_the_32_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
