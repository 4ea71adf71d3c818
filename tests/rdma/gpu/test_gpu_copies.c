/* test_gpu_copies.c — the staging copies on a real driver; accepts every driver. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "core/clock.h"
#include "rdma/gpu/copies.h"
#include "tests/rdma/gpu/support.h"

enum { STAGES = 8, STAGE_BYTES = 1 << 20, MEMORY_BYTES = STAGES * STAGE_BYTES, ROUNDS = 200 };

struct copier {
	gpul_rdma_copies *copies;
	gpul_mem *from, *to;    /* device memory */
	uint32_t bytes[STAGES]; /* size of each segment */
	unsigned shift;         /* misaligns the segments */
	uint64_t ns;
	gpul_rdma_failure why;
	const char *problem; /* error of the thread; NULL: none */
};

static unsigned char pattern(unsigned seed, size_t i)
{
	return (unsigned char)(seed * 31 + i * 7 + (i >> 12));
}

static void fill_device(gpul_mem *m, unsigned seed)
{
	unsigned char *bytes = malloc(MEMORY_BYTES);

	assert_non_null(bytes);
	for (size_t i = 0; i < MEMORY_BYTES; i++)
		bytes[i] = pattern(seed, i);
	MUST(cuMemcpyHtoD(gpul_mem_gpu(m), bytes, MEMORY_BYTES));
	MUST(cuCtxSynchronize());
	free(bytes);
}

/* Post n copies and wait until all are reported, those of each direction in order; false: t->problem is set. */
static bool run_copies(struct copier *t, const gpul_rdma_op *ops, unsigned n)
{
	unsigned n_posted = 0, n_ended = 0;
	uint64_t last[2] = { 0 };

	while (!t->problem && n_ended < n) {
		uint64_t ids[2 * STAGES];
		unsigned more = 0;

		if (n_posted < n && gpul_rdma_copies_post(t->copies, ops + n_posted, n - n_posted, &more, &t->why))
			t->problem = "post";
		n_posted += more;
		if (!t->problem && gpul_rdma_copies_poll(t->copies, ids, 2 * STAGES, &more, &t->why))
			t->problem = "poll";
		for (unsigned i = 0; !t->problem && i < more; i++) {
			const unsigned in = ids[i] >> 32 & 1;

			if (ids[i] <= last[in])
				t->problem = "order";
			last[in] = ids[i];
		}
		n_ended += more;
	}
	return !t->problem;
}

static gpul_rdma_op copy_of(const struct copier *t, bool in, unsigned i)
{
	const gpul_mem *m = in ? t->to : t->from;

	return (gpul_rdma_op){ .kind = in ? GPUL_RDMA_OP_COPY_IN : GPUL_RDMA_OP_COPY_OUT,
			       .bytes = t->bytes[i],
			       .id = (uint64_t)in << 32 | (i + 1),
			       .local = (uint64_t)(uintptr_t)gpul_rdma_copies_stages(t->copies) +
					(uint64_t)(in ? STAGES + i : i) * STAGE_BYTES,
			       .remote = gpul_mem_gpu(m) + (uint64_t)i * STAGE_BYTES + t->shift };
}

/* Copy every segment out, check it on the CPU, move it to the stages of the other direction, and copy it in. */
static void *copy_all(void *user)
{
	struct copier *t = user;
	gpul_rdma_op out[STAGES], in[STAGES];
	uint64_t start = gpul_clock_ns();

	for (unsigned i = 0; i < STAGES; i++) {
		out[i] = copy_of(t, false, i);
		in[i] = copy_of(t, true, i);
	}
	if (!run_copies(t, out, STAGES))
		return NULL;
	t->ns += gpul_clock_ns() - start;
	for (unsigned i = 0; i < STAGES; i++)
		memcpy((void *)(uintptr_t)in[i].local, (const void *)(uintptr_t)out[i].local, out[i].bytes);
	start = gpul_clock_ns();
	run_copies(t, in, STAGES);
	t->ns += gpul_clock_ns() - start;
	return NULL;
}

static void create_copier(struct copier *t)
{
	gpul_error err = { 0 };

	*t = (struct copier){ .from = create_memory(GPUL_MEM_DEVICE, MEMORY_BYTES), .to = create_memory(GPUL_MEM_DEVICE, MEMORY_BYTES) };
	if (gpul_rdma_copies_create(drv, 0, STAGES, STAGE_BYTES, &t->copies, &err))
		fail_msg("%s", err.text);
}

static void destroy_copier(struct copier *t)
{
	gpul_rdma_copies_destroy(t->copies);
	gpul_mem_destroy(t->from);
	gpul_mem_destroy(t->to);
}

static void assert_no_problem(const struct copier *t)
{
	if (t->problem)
		fail_msg("%s: %s: %s", t->problem, t->why.call, t->why.what);
}

/* Check that each segment has its new bytes, and that the bytes between segments still have the first content. */
static void assert_copied(const struct copier *t, unsigned seed, unsigned seed_before)
{
	unsigned char *bytes = malloc(MEMORY_BYTES);

	assert_non_null(bytes);
	MUST(cuMemcpyDtoH(bytes, gpul_mem_gpu(t->to), MEMORY_BYTES));
	for (size_t i = 0; i < MEMORY_BYTES; i++) {
		const size_t at = i % STAGE_BYTES;
		const bool inside = at >= t->shift && at - t->shift < t->bytes[i / STAGE_BYTES];
		const unsigned char expected = pattern(inside ? seed : seed_before, i);

		if (bytes[i] != expected)
			fail_msg("byte %zu is 0x%02x, expected 0x%02x", i, bytes[i], expected);
	}
	free(bytes);
}

static void copies_arrive_whole_and_nothing_else_changes(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 3, 4095, 4096, 4097, 100000, STAGE_BYTES - 64 };
	struct copier t;

	(void)state;
	create_copier(&t);
	for (unsigned round = 0; round < 6; round++) {
		fill_device(t.from, round);
		fill_device(t.to, 77);
		for (unsigned i = 0; i < STAGES; i++)
			t.bytes[i] = sizes[(i + round) % STAGES];
		t.shift = round * 7;
		copy_all(&t);
		assert_no_problem(&t);
		assert_copied(&t, round, 77);
	}
	destroy_copier(&t);
}

static void copies_run_on_a_thread_without_a_context(void **state)
{
	struct copier t;
	pthread_t thread;

	(void)state;
	create_copier(&t);
	fill_device(t.from, 3);
	fill_device(t.to, 4);
	for (unsigned i = 0; i < STAGES; i++)
		t.bytes[i] = STAGE_BYTES;
	assert_int_equal(pthread_create(&thread, NULL, copy_all, &t), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_no_problem(&t);
	assert_copied(&t, 3, 4);
	destroy_copier(&t);
}

static void many_copies_both_ways_at_once(void **state)
{
	gpul_rdma_op ops[2 * STAGES];
	struct copier t;
	uint64_t ns;

	(void)state;
	create_copier(&t);
	for (unsigned i = 0; i < STAGES; i++) {
		t.bytes[i] = STAGE_BYTES;
		ops[2 * i] = copy_of(&t, false, i);
		ops[2 * i + 1] = copy_of(&t, true, i);
	}
	fill_device(t.from, 9);
	memset(gpul_rdma_copies_stages(t.copies), 0x5a, 2 * STAGES * STAGE_BYTES);
	ns = gpul_clock_ns();
	for (unsigned round = 0; round < ROUNDS && run_copies(&t, ops, 2 * STAGES); round++)
		;
	ns = gpul_clock_ns() - ns;
	assert_no_problem(&t);
	for (size_t i = 0; i < MEMORY_BYTES; i++)
		if (((unsigned char *)gpul_rdma_copies_stages(t.copies))[i] != pattern(9, i))
			fail_msg("byte %zu was not copied out", i);
	printf("staging copies by %s memory on node %d: %.2f GB/s out and %.2f GB/s in at once\n",
	       gpul_mem_kind_name(gpul_rdma_copies_about(t.copies)->kind), gpul_rdma_copies_about(t.copies)->node,
	       (double)ROUNDS * MEMORY_BYTES / (double)ns, (double)ROUNDS * MEMORY_BYTES / (double)ns);
	destroy_copier(&t);
}

static void nothing_leaks_in_many_rounds(void **state)
{
	const unsigned fds = count_fds();

	(void)state;
	for (int i = 0; i < 50; i++) {
		gpul_rdma_copies *c = NULL;

		assert_int_equal(gpul_rdma_copies_create(drv, 0, 2, 4096, &c, NULL), GPUL_OK);
		gpul_rdma_copies_destroy(c);
	}
	assert_in_range(count_fds(), 0, fds + 2); /* a driver may keep up to two descriptors open */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_arrive_whole_and_nothing_else_changes),
		cmocka_unit_test(copies_run_on_a_thread_without_a_context),
		cmocka_unit_test(many_copies_both_ways_at_once),
		cmocka_unit_test(nothing_leaks_in_many_rounds),
	};
	int n_failed;

	if (!open_gpu())
		return 77;
	n_failed = cmocka_run_group_tests(tests, NULL, NULL);
	gpul_context_close(&context);
	return n_failed;
}
