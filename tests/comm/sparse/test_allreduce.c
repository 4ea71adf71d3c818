/* test_allreduce.c — sparse all-reduces of ranks that are threads of one process, over libfabric: every bit of the result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/sparse/sparse.h"
#include "comm/sparse/sum.h"
#include "tests/comm/ranks.h"
#include "tests/comm/reference.h"

enum { MOST_BYTES = 1 << 20, AROUND = 64, MEET_MS = 60 * 1000 };

struct call {
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	size_t count, send_offset, recv_offset;  /* elements */
	uint32_t block;
	unsigned per_mille;        /* of the blocks that are not zero */
	bool in_place;
	uint64_t seed;
};

/* What the threads of a test share. */
struct test {
	gpul_comm_job job;
	gpul_comm_sparse_options options;
	bool falls_back;           /* with a communicator */
	void (*run)(struct rank *r, gpul_comm_sparse *s, struct test *t);
};

/* ---- data ----------------------------------------------------------------------------------------------------------- */

static void put_special(void *at, gpul_comm_dtype dtype, uint64_t which)
{
	static const uint64_t f16[] = { 0x8000, 0x7c00, 0x7e00 }, bf16[] = { 0x8000, 0x7f80, 0x7fc0 },
			      f32[] = { 0x80000000, 0x7f800000, 0x7fc00000 }, f64[] = { 1ull << 63, 0x7ffull << 52, 0xfffull << 51 };
	const uint64_t *of[] = { f16, bf16, f32, f64 };

	if (dtype <= GPUL_COMM_F64)
		memcpy(at, &of[dtype][which], gpul_comm_dtype_bytes(dtype));
}

/* A rank's input: zero blocks, blocks of random data, blocks with one element that is not zero, and blocks of -0. */
static unsigned char *new_input(const struct call *c, int rank)
{
	const size_t bytes = gpul_comm_dtype_bytes(c->dtype);
	unsigned char *data = calloc(c->count, bytes);

	if (!data)
		abort();
	for (size_t first = 0; first < c->count; first += c->block) {
		const uint64_t random = mix(c->seed * 64 + (uint64_t)rank, first);
		const size_t n = c->count - first < c->block ? c->count - first : c->block, one = first + (random >> 20) % n;

		if (random % 1000 >= c->per_mille)
			continue;
		if (random >> 60 >= 4)
			fill_elements(data + first * bytes, c->dtype, c->seed, rank, first, n);
		else if (random >> 60 == 3)
			fill_elements(data + one * bytes, c->dtype, c->seed, rank, one, 1);
		else
			for (size_t i = random >> 60 ? one : first; i < first + n; i++)
				put_special(data + i * bytes, c->dtype, random >> 60);
	}
	return data;
}

static unsigned char *new_sum(const struct call *c, int n_ranks)
{
	unsigned char *inputs[GPUL_COMM_MAX_RANKS], *sum = calloc(c->count, gpul_comm_dtype_bytes(c->dtype));

	if (!sum)
		abort();
	for (int r = 0; r < n_ranks; r++)
		inputs[r] = new_input(c, r);
	gpul_sparse_sum(sum, (const void *const *)inputs, (unsigned)n_ranks, c->count, c->dtype, c->op);
	for (int r = 0; r < n_ranks; r++)
		free(inputs[r]);
	return sum;
}

/* ---- a call ---------------------------------------------------------------------------------------------------------- */

static void upload(struct rank *r, CUdeviceptr to, const void *from, size_t n)
{
	gpul_error err = { 0 };

	must(gpul_cu(r->drv, &err, cuMemcpyHtoDAsync(to, from, n, r->stream)), &err, "upload");
	must(gpul_cu(r->drv, &err, cuStreamSynchronize(r->stream)), &err, "upload");
}

static void check(struct rank *r, const struct call *c, CUdeviceptr recv, size_t n)
{
	unsigned char *sum = new_sum(c, r->n_ranks), *got = malloc(n + AROUND);
	const size_t bytes = gpul_comm_dtype_bytes(c->dtype);
	gpul_error err = { 0 };

	must(gpul_cu(r->drv, &err, cuMemcpyDtoHAsync(got, recv, n + AROUND, r->stream)), &err, "download");
	must(gpul_cu(r->drv, &err, cuStreamSynchronize(r->stream)), &err, "download");
	for (size_t i = 0; i < n; i++)
		if (got[i] != sum[i]) {
			(void)fprintf(stderr, "rank %d of %d: %s of %zu %s, block %u, %u per mille, in place %d: element %zu is wrong\n", r->rank,
				      r->n_ranks, gpul_comm_op_name(c->op), c->count, gpul_comm_dtype_name(c->dtype), c->block, c->per_mille,
				      c->in_place, i / bytes);
			abort();
		}
	for (size_t i = 0; i < AROUND; i++)
		if (got[n + i] != 0xa5) {
			(void)fprintf(stderr, "%zu %s: a byte behind the result has changed\n", c->count, gpul_comm_dtype_name(c->dtype));
			abort();
		}
	free(sum);
	free(got);
}

static gpul_comm_sparse_report run_call(struct rank *r, gpul_comm_sparse *s, const struct call *c)
{
	const size_t bytes = gpul_comm_dtype_bytes(c->dtype), n = c->count * bytes;
	unsigned char *input = new_input(c, r->rank);
	gpul_comm_sparse_report report;
	gpul_error err = { 0 };
	CUdeviceptr memory, send, recv;

	must(gpul_cu(r->drv, &err, cuMemAlloc(&memory, 2 * MOST_BYTES)), &err, "cuMemAlloc");
	must(gpul_cu(r->drv, &err, cuMemsetD8Async(memory, 0xa5, 2 * MOST_BYTES, r->stream)), &err, "cuMemsetD8Async");
	send = memory + c->send_offset * bytes;
	recv = c->in_place ? send : memory + MOST_BYTES + c->recv_offset * bytes;
	upload(r, send, input, n);
	must(gpul_comm_sparse_allreduce(s, send, recv, c->count, c->dtype, c->op, r->stream, &report, &err), &err, "sparse all-reduce");
	check(r, c, recv, n);
	must(gpul_cu(r->drv, &err, cuMemFree(memory)), &err, "cuMemFree");
	free(input);
	return report;
}

/* ---- ranks ----------------------------------------------------------------------------------------------------------- */

static void with_sparse(struct rank *r, void *arg)
{
	struct test *t = arg;
	gpul_comm_job job = t->job;
	gpul_comm_sparse_options options = t->options;
	gpul_comm_mesh_desc desc = { .rdma = { .backend = "libfabric", .device = { .gpu = -1, .gid_index = -1 } } };
	gpul_comm_mesh *mesh;
	gpul_comm_sparse *s;
	gpul_boot *boot;
	gpul_error err = { 0 };

	job.rank = r->rank;
	options.comm = t->falls_back ? r->comm : NULL;
	must(gpul_boot_open(&job, MEET_MS, &boot, &err), &err, "gpul_boot_open");
	must(gpul_comm_mesh_create(boot, &desc, MEET_MS, &mesh, &err), &err, "gpul_comm_mesh_create");
	must(gpul_comm_sparse_create(r->drv, gpul_comm_device(r->comm), boot, mesh, &options, &s, &err), &err, "gpul_comm_sparse_create");
	t->run(r, s, t);
	must(gpul_boot_barrier(boot, MEET_MS, &err), &err, "gpul_boot_barrier");
	gpul_comm_sparse_destroy(s);
	gpul_comm_mesh_destroy(mesh);
	gpul_boot_close(boot);
}

static void run_case(int n_ranks, struct test t)
{
	t.job = new_job(n_ranks);
	run_ranks(n_ranks, NULL, with_sparse, &t);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void all_types(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	static const unsigned per_mille[] = { 0, 10, 100, 500, 1000 };
	uint64_t seed = 1;

	(void)t;
	for (gpul_comm_dtype d = 0; d < GPUL_COMM_N_DTYPES; d++)
		for (unsigned p = 0; p < 5; p++, seed++)
			run_call(r, s, &(struct call){ .dtype = d, .op = p % 2 ? GPUL_COMM_AVG : GPUL_COMM_SUM, .count = 40000 + 77 * p,
						       .block = 256, .per_mille = per_mille[p], .in_place = p % 3 == 0, .seed = seed });
}

static void all_sizes(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	static const size_t counts[] = { 1, 15, 16, 17, 511, 512, 513, 1024, 5000, 16383, 16385 };
	uint64_t seed = 1000;

	for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++, seed++)
		run_call(r, s, &(struct call){ .dtype = (gpul_comm_dtype)(i % GPUL_COMM_N_DTYPES), .count = counts[i], .block = t->options.block,
					       .per_mille = 300, .in_place = i % 2, .send_offset = i % 5, .recv_offset = i % 3, .seed = seed });
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
		run_case(n, (struct test){ .run = all_types });
}

static void every_size_and_alignment_is_right(void **state)
{
	(void)state;
	run_case(2, (struct test){ .run = all_sizes, .options = { .block = 256 } });
	run_case(4, (struct test){ .run = all_sizes, .options = { .block = 16 } });
}

static void dense_data_goes_to_the_dense_all_reduce(void **state)
{
	(void)state;
	run_case(2, (struct test){ .run = falls_back, .falls_back = true });
}

static void nothing_is_sent_for_zeros(struct rank *r, gpul_comm_sparse *s, struct test *t)
{
	const gpul_comm_sparse_report none = run_call(r, s, &(struct call){ .count = 100000, .block = 256, .dtype = GPUL_COMM_F32 });
	const gpul_comm_sparse_report some = run_call(r, s, &(struct call){ .count = 100000, .block = 256, .dtype = GPUL_COMM_F32, .seed = 1,
									    .per_mille = 100 });

	(void)t;
	/* heads only: a hello, and two messages of each of 8 streams that the rank has with the other one */
	if (none.sent_bytes > 1024 || none.n_non_zero || none.n_summed)
		abort();
	if (!some.n_non_zero || some.sent_bytes < some.n_non_zero * 400 || some.sent_bytes > (some.n_non_zero + some.n_summed) * 1024 + 20000)
		abort();
}

static void blocks_of_zeros_are_not_sent(void **state)
{
	(void)state;
	run_case(2, (struct test){ .run = nothing_is_sent_for_zeros });
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
	run_case(2, (struct test){ .run = mistakes });
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_has_the_bits_of_the_dense_sum),
		cmocka_unit_test(every_size_and_alignment_is_right),
		cmocka_unit_test(dense_data_goes_to_the_dense_all_reduce),
		cmocka_unit_test(blocks_of_zeros_are_not_sent),
		cmocka_unit_test(wrong_arguments_are_refused_and_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
