/* test_allreduce.c — sparse all-reduces over libfabric, with ranks that are threads of one process: checks every bit of the result. */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/sparse/calls.h"

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void all_types(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	static const unsigned per_mille[] = { 0, 10, 100, 500, 1000 };
	uint64_t seed = 1;

	(void)t;
	for (gpul_comm_dtype d = 0; d < GPUL_COMM_N_DTYPES; d++)
		for (unsigned p = 0; p < 5; p++, seed++)
			run_call(r, s,
				 &(struct call){ .dtype = d,
						 .op = p % 2 ? GPUL_COMM_AVG : GPUL_COMM_SUM,
						 .count = 40000 + 77 * p,
						 .block = 256,
						 .per_mille = per_mille[p],
						 .in_place = p % 3 == 0,
						 .seed = seed });
}

static void all_sizes(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	static const size_t counts[] = { 1, 15, 16, 17, 511, 512, 513, 1024, 5000, 16383, 16385 };
	uint64_t seed = 1000;

	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++, seed++)
		run_call(r, s,
			 &(struct call){ .dtype = (gpul_comm_dtype)(i % GPUL_COMM_N_DTYPES),
					 .count = counts[i],
					 .block = t->options.block,
					 .per_mille = 300,
					 .in_place = i % 2,
					 .send_offset = i % 5,
					 .recv_offset = i % 3,
					 .seed = seed });
}

static void falls_back(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	struct call c = { .dtype = GPUL_COMM_I32, .count = 20000, .block = 256, .seed = 5 };

	(void)t;
	for (unsigned i = 0; i < 4; i++) {
		gpul_comm_sparse_report report;

		c.per_mille = i % 2 ? 1000 : 20;
		c.seed++;
		report = run_call(r, s, &c);
		if (report.dense != (i % 2 == 1) || report.n_blocks != 79)
			abort();
	}
}

static void every_type_has_the_bits_of_the_dense_sum(void **state)
{
	(void)state;
	for (int n = 1; n <= 3; n++)
		run_sparse(n, (struct test){ .run = all_types });
}

static void every_size_and_alignment_is_right(void **state)
{
	(void)state;
	run_sparse(2, (struct test){ .run = all_sizes, .options = { .block = 256 } });
	run_sparse(4, (struct test){ .run = all_sizes, .options = { .block = 16 } });
}

static void dense_data_goes_to_the_dense_all_reduce(void **state)
{
	(void)state;
	run_sparse(2, (struct test){ .run = falls_back, .falls_back = true });
}

static void nothing_is_sent_for_zeros(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	const gpul_comm_sparse_report none = run_call(r, s, &(struct call){ .count = 100000, .block = 256, .dtype = GPUL_COMM_F32 });
	const gpul_comm_sparse_report some = run_call(
		r, s, &(struct call){ .count = 100000, .block = 256, .dtype = GPUL_COMM_F32, .seed = 1, .per_mille = 100 });

	(void)t;
	/* only message headers are sent: a hello, and two messages in each of the 8 streams between the two ranks */
	if (none.sent_bytes > 1024 || none.n_non_zero || none.n_summed)
		abort();
	if (!some.n_non_zero || some.sent_bytes < some.n_non_zero * 400 ||
	    some.sent_bytes > (some.n_non_zero + some.n_summed) * 1024 + 20000)
		abort();
}

static void blocks_of_zeros_are_not_sent(void **state)
{
	(void)state;
	run_sparse(2, (struct test){ .run = nothing_is_sent_for_zeros });
}

/* Check where blocks are packed.  Ranks are threads, on which cmocka's assert_*() must not fail, so this aborts instead. */
static void expect_where(const gpul_comm_sparse *s, const char *text)
{
	if (strstr(gpul_comm_sparse_memory(s), text))
		return;
	(void)fprintf(stderr, "packed %s, expected: %s\n", gpul_comm_sparse_memory(s), text);
	abort();
}

static void packs_on_device(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	const bool direct = t->direct >> r->rank & 1;

	expect_where(s, direct ? "GPU-direct" : "staged in host memory: the device memory of the software driver is host memory");
	for (unsigned i = 0; i < 6; i++) /* the sizes double, so the buffers must grow */
		run_call(r, s,
			 &(struct call){ .dtype = GPUL_COMM_F32,
					 .count = 3000u << i,
					 .send_offset = i,
					 .recv_offset = 2,
					 .block = t->options.block,
					 .per_mille = 400,
					 .in_place = i % 2,
					 .seed = 90 + i });
}

static void blocks_are_packed_in_device_memory_by_the_ranks_that_can(void **state)
{
	(void)state;
	run_sparse(2, (struct test){ .run = packs_on_device, .direct = 3, .options = { .block = 256 } });
	run_sparse(3, (struct test){ .run = packs_on_device, .direct = 5, .options = { .block = 64 } });
}

static void is_staged(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	expect_where(s, "staged in host memory: ");
	expect_where(s, "cannot register GPU memory");
	run_call(r, s, &(struct call){ .dtype = GPUL_COMM_F32, .count = 5000, .block = t->options.block, .per_mille = 300, .seed = 7 });
}

static void a_gpu_whose_memory_the_fabric_cannot_access_is_staged_and_says_why(void **state)
{
	(void)state;
	run_sparse(2, (struct test){ .run = is_staged, .as_gpu = true, .options = { .block = 64 } });
	run_sparse(2, (struct test){ .as_gpu = true, .direct = 3, .refused = "GPU-direct is not possible: " });
}

static void mistakes(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	gpul_error err[4] = { 0 };

	(void)t;
	if (gpul_comm_sparse_allreduce(s, 4096, 4096, 10, GPUL_COMM_F32, GPUL_COMM_MAX, r->stream, NULL, &err[0]) != GPUL_EINVAL ||
	    gpul_comm_sparse_allreduce(s, 4097, 4096, 10, GPUL_COMM_F32, GPUL_COMM_SUM, r->stream, NULL, &err[1]) != GPUL_EINVAL ||
	    gpul_comm_sparse_allreduce(s, 4096, 4100, 10, GPUL_COMM_F32, GPUL_COMM_SUM, r->stream, NULL, &err[2]) != GPUL_EINVAL ||
	    gpul_comm_sparse_allreduce(s, 4096, 4096, SIZE_MAX / 4, GPUL_COMM_F32, GPUL_COMM_SUM, r->stream, NULL, &err[3]) != GPUL_EINVAL)
		abort();
	if (!strstr(err[0].text, "operation max") || !strstr(err[1].text, "send buffer at 0x1001") || !strstr(err[2].text, "overlap") ||
	    !strstr(err[3].text, "2^31"))
		abort();
	run_call(r, s, &(struct call){ .count = 1000, .block = 256, .dtype = GPUL_COMM_F32, .per_mille = 500 });
}

static void wrong_arguments_are_refused_and_do_no_harm(void **state)
{
	(void)state;
	run_sparse(2, (struct test){ .run = mistakes });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_has_the_bits_of_the_dense_sum),
		cmocka_unit_test(every_size_and_alignment_is_right),
		cmocka_unit_test(dense_data_goes_to_the_dense_all_reduce),
		cmocka_unit_test(blocks_of_zeros_are_not_sent),
		cmocka_unit_test(blocks_are_packed_in_device_memory_by_the_ranks_that_can),
		cmocka_unit_test(a_gpu_whose_memory_the_fabric_cannot_access_is_staged_and_says_why),
		cmocka_unit_test(wrong_arguments_are_refused_and_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
