/* test_sum.c — sums of every type: the CPU adds in the order of sum.h, and the GPU gives the same bits. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/lib/fill.h"
#include "cli/sum/cli_sum.h"
#include "cli/sum/sum_stage.h"
#include "driver/context.h"
#include "tests/fake/fake_driver.h"
#include "tests/fake/fake_runtime.h"

/* ---- a second implementation of the order of sum.h, element by element ---------------------------- */

struct tree {
	gpul_type type;
	const unsigned char *data;
	size_t count, chunk; /* chunk: index of the first element of the current chunk */
};

/* Return the element at a position that counts down the first column, then down the second, and so on. */
static struct value element(const struct tree *t, size_t place)
{
	const size_t columns = SUM_ROW_BYTES / gpul_type_bytes(t->type);
	size_t at = t->chunk + place % SUM_ROWS * columns + place / SUM_ROWS;
	struct value zero = { .is_float = value_type_is_float(t->type) };

	return at < t->count ? value_load(t->type, t->data + at * gpul_type_bytes(t->type)) : zero;
}

static struct value pairwise(const struct tree *t, size_t first, size_t n)
{
	struct value a, b;

	if (n == 1)
		return element(t, first);
	a = pairwise(t, first, n / 2);
	b = pairwise(t, first + n / 2, n / 2);
	a.f += b.f;
	a.i += b.i;
	return a;
}

static struct sum expected(gpul_type t, const void *data, size_t count)
{
	struct sum out = { .type = sum_type(t) };
	size_t n = sum_chunks(t, count), per_chunk = SUM_CHUNK_BYTES / gpul_type_bytes(t);
	unsigned char *sums = calloc(n, 8);

	assert_non_null(sums);
	for (size_t i = 0; i < n; i++) {
		struct tree tree = { t, data, count, i * per_chunk };
		struct value v = pairwise(&tree, 0, per_chunk);

		memcpy(sums + 8 * i, v.is_float ? (void *)&v.f : (void *)&v.i, 8);
	}
	if (n > 1)
		out = expected(out.type, sums, n);
	else
		memcpy(out.bytes, sums, 8);
	free(sums);
	return out;
}

static void *filled(gpul_type t, const char *fill, size_t count)
{
	void *data;

	assert_int_equal(fill_make(t, fill, NULL, &count, &data, NULL), GPUL_OK);
	return data;
}

static void assert_sums_equal(const struct sum *a, const struct sum *b)
{
	char as[VALUE_TEXT_BYTES], bs[VALUE_TEXT_BYTES];

	if (!sum_equal(a, b))
		assert_string_equal(sum_print(a, as), sum_print(b, bs));
	assert_true(sum_equal(a, b));
}

static const size_t counts[] = { 1, 2, 15, 511, 512, 513, 8191, 8192, 8193, 65536 + 3, 200001 };
enum { N_COUNTS = sizeof counts / sizeof *counts };

static void cpu_adds_in_the_documented_order(void **state)
{
	(void)state;
	for (gpul_type t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++) {
		for (int i = 0; i < N_COUNTS; i++) {
			void *data = filled(t, "rand:7", counts[i]);
			struct sum want = expected(t, data, counts[i]), sum;

			assert_int_equal(sum_on_cpu(t, data, counts[i], &sum, NULL), GPUL_OK);
			assert_sums_equal(&sum, &want);
			free(data);
		}
	}
}

static void many_chunks_are_added_in_steps(void **state)
{
	const size_t count = (size_t)70 << 20;
	void *data = filled(GPUL_U8, "ones", count);
	char text[VALUE_TEXT_BYTES];
	struct sum sum;

	(void)state;
	assert_int_equal(sum_chunks(GPUL_U8, count), 1120);
	assert_int_equal(sum_on_cpu(GPUL_U8, data, count, &sum, NULL), GPUL_OK);
	assert_string_equal(sum_print(&sum, text), "73400320");
	free(data);
}

static void converts_every_16_bit_float_exactly(void **state)
{
	(void)state;
	for (unsigned h = 0; h <= 0xffff; h++) {
		uint16_t bits = (uint16_t)h;

		for (int k = 0; k < 2; k++) {
			gpul_type t = k ? GPUL_BF16 : GPUL_F16;
			struct sum sum, want = { .type = GPUL_F64 };
			double f = value_load(t, &bits).f + 0.0;

			if (k == 0 && h % 64 && (h & 0x7fff) > 0x410 && (h & 0x7fff) < 0x7bc0)
				continue; /* to save time, test only one in 64 of the values that are not extreme */
			if (k == 1 && h % 64)
				continue;
			memcpy(want.bytes, &f, sizeof f);
			assert_int_equal(sum_on_cpu(t, &bits, 1, &sum, NULL), GPUL_OK);
			assert_sums_equal(&sum, &want);
		}
	}
}

static void pairwise_sum_differs_from_the_sequential_sum(void **state)
{
	const size_t count = 100000;
	double *data = filled(GPUL_F64, "rand", count), in_turn = 0, pairs;
	struct sum sum;

	(void)state;
	for (size_t i = 0; i < count; i++)
		in_turn += data[i];
	assert_int_equal(sum_on_cpu(GPUL_F64, data, count, &sum, NULL), GPUL_OK);
	memcpy(&pairs, sum.bytes, sizeof pairs);
	assert_true(fabs(pairs - in_turn) < 1e-6);
	assert_true(pairs < in_turn || pairs > in_turn);
	free(data);
}

/* ---- the GPU -------------------------------------------------------------------------------------- */

static void gpu_and_cpu_sums_are_equal_for_every_type_and_count(void **state)
{
	const gpul_driver *drv;
	gpul_context context;

	(void)state;
	assert_int_equal(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, NULL), GPUL_OK);
	assert_int_equal(gpul_context_open(drv, 0, &context, NULL), GPUL_OK);
	for (gpul_type t = GPUL_TYPE_NONE + 1; t < GPUL_N_TYPES; t++) {
		const size_t most = counts[N_COUNTS - 1], bytes = gpul_type_bytes(t);
		void *data = filled(t, "rand:3", most);
		struct sum_gpu *g;
		CUdeviceptr gpu;

		assert_int_equal(sum_gpu_create(drv, t, most, &g, NULL), GPUL_OK);
		/* Allocate exactly the bytes of the data: the software driver then detects loads beyond the end. */
		for (int i = 0; i < N_COUNTS; i++) {
			struct sum want, sum;

			assert_int_equal(drv->cuMemAlloc(&gpu, counts[i] * bytes), CUDA_SUCCESS);
			assert_int_equal(drv->cuMemcpyHtoD(gpu, data, counts[i] * bytes), CUDA_SUCCESS);
			assert_int_equal(sum_on_cpu(t, data, counts[i], &want, NULL), GPUL_OK);
			assert_int_equal(sum_gpu_start(g, gpu, counts[i], NULL, NULL), GPUL_OK);
			assert_int_equal(sum_gpu_finish(g, NULL, 60000, &sum, NULL), GPUL_OK);
			assert_sums_equal(&sum, &want);
			assert_int_equal(sum_of_copy(drv, t, gpu, counts[i], &sum, NULL), GPUL_OK);
			assert_sums_equal(&sum, &want);
			drv->cuMemFree(gpu);
		}
		sum_gpu_destroy(g);
		free(data);
	}
	gpul_context_close(&context);
}

/* The data is longer than four pieces, so that the three buffers are used again. */
static void staged_pieces_give_the_same_sum(void **state)
{
	const size_t count = (4 * (size_t)SUM_PIECE_BYTES + 100) / 4;
	const gpul_driver *drv;
	gpul_context context;
	struct sum_gpu *g;
	struct sum want, sum;
	void *data, *host;

	(void)state;
	assert_int_equal(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, NULL), GPUL_OK);
	assert_int_equal(gpul_context_open(drv, 0, &context, NULL), GPUL_OK);
	data = filled(GPUL_F32, "rand:5", count);
	assert_int_equal(sum_on_cpu(GPUL_F32, data, count, &want, NULL), GPUL_OK);
	assert_int_equal(drv->cuMemHostAlloc(&host, count * 4, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
	memcpy(host, data, count * 4);
	assert_int_equal(sum_gpu_create(drv, GPUL_F32, count, &g, NULL), GPUL_OK);
	for (enum sum_access way = SUM_QUICKEST; way <= SUM_STAGED; way++) {
		sum_gpu_choose(g, way);
		assert_int_equal(sum_gpu_start(g, (CUdeviceptr)(uintptr_t)host, count, NULL, NULL), GPUL_OK);
		assert_int_equal(sum_gpu_finish(g, NULL, 60000, &sum, NULL), GPUL_OK);
		assert_sums_equal(&sum, &want);
	}
	sum_gpu_destroy(g);
	drv->cuMemFreeHost(host);
	free(data);
	gpul_context_close(&context);
}

static void gpu_and_cpu_agree_on_infinities_and_nans(void **state)
{
	static const char *const fills[] = { "inf", "-inf", "nan" };
	const gpul_driver *drv;
	gpul_context context;
	double data[1000] = { 1 };
	CUdeviceptr gpu;

	(void)state;
	assert_int_equal(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, NULL), GPUL_OK);
	assert_int_equal(gpul_context_open(drv, 0, &context, NULL), GPUL_OK);
	assert_int_equal(drv->cuMemAlloc(&gpu, sizeof data), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++) {
		struct sum cpu, sum;
		char text[VALUE_TEXT_BYTES];

		data[i * 300] = strtod(fills[i], NULL);
		drv->cuMemcpyHtoD(gpu, data, sizeof data);
		assert_int_equal(sum_on_cpu(GPUL_F64, data, 1000, &cpu, NULL), GPUL_OK);
		assert_int_equal(sum_on_gpu(drv, GPUL_F64, gpu, 1000, 10000, &sum, NULL), GPUL_OK);
		assert_sums_equal(&sum, &cpu);
		assert_string_equal(sum_print(&sum, text), i == 0 ? "inf" : "nan");
	}
	drv->cuMemFree(gpu);
	gpul_context_close(&context);
}

static void refuses_wrong_counts_and_addresses(void **state)
{
	const gpul_driver *drv;
	gpul_context context;
	struct sum_gpu *g;
	gpul_error err = { 0 };

	(void)state;
	assert_int_equal(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, NULL), GPUL_OK);
	assert_int_equal(gpul_context_open(drv, 0, &context, NULL), GPUL_OK);
	assert_int_equal(sum_gpu_create(drv, GPUL_I32, 100, &g, NULL), GPUL_OK);
	assert_int_equal(sum_gpu_start(g, 4096, 101, NULL, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "101 elements: expected 1 to 100"));
	assert_int_equal(sum_gpu_start(g, 4096, 0, NULL, NULL), GPUL_EINVAL);
	err = (gpul_error){ 0 };
	assert_int_equal(sum_gpu_start(g, 4100, 4, NULL, &err), GPUL_EINVAL);
	assert_non_null(strstr(err.text, "0x1004"));
	sum_gpu_destroy(g);
	gpul_context_close(&context);
}

static void frees_everything_whichever_call_fails(void **state)
{
	int data[4] = { 1, 2, 3, 4 };

	(void)state;
	for (int n = 1;; n++) {
		const gpul_driver *drv = fake_driver(n);
		gpul_context c;
		gpul_error err = { 0 };
		struct sum sum;
		gpul_status st;

		if (gpul_context_open(drv, 0, &c, NULL))
			continue;
		st = sum_on_gpu(drv, GPUL_I32, (CUdeviceptr)(uintptr_t)data & ~15ull, 4, 1000, &sum, &err);
		gpul_context_close(&c);
		assert_int_equal(fake_alive(), 0);
		if (st == GPUL_OK) {
			assert_int_equal(n, fake_calls() + 1);
			return;
		}
		assert_int_equal(err.native, CUDA_ERROR_OUT_OF_MEMORY);
	}
}

static void frees_the_stage_whichever_call_fails(void **state)
{
	int data[8] = { 1, 2, 3, 4 };

	(void)state;
	for (int n = 1;; n++) {
		const gpul_driver *drv = fake_runtime_driver(n);
		struct sum_gpu *g = NULL;
		gpul_status st = sum_gpu_create(drv, GPUL_I32, 4, &g, NULL);

		if (!st) {
			sum_gpu_choose(g, SUM_STAGED);
			st = sum_gpu_start(g, (CUdeviceptr)(uintptr_t)data & ~15ull, 4, NULL, NULL);
		}
		sum_gpu_destroy(g);
		assert_int_equal(fake_alive(), 0);
		if (st == GPUL_OK) {
			assert_int_equal(n, fake_calls() + 1);
			return;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_adds_in_the_documented_order),
		cmocka_unit_test(many_chunks_are_added_in_steps),
		cmocka_unit_test(converts_every_16_bit_float_exactly),
		cmocka_unit_test(pairwise_sum_differs_from_the_sequential_sum),
		cmocka_unit_test(gpu_and_cpu_sums_are_equal_for_every_type_and_count),
		cmocka_unit_test(staged_pieces_give_the_same_sum),
		cmocka_unit_test(gpu_and_cpu_agree_on_infinities_and_nans),
		cmocka_unit_test(refuses_wrong_counts_and_addresses),
		cmocka_unit_test(frees_everything_whichever_call_fails),
		cmocka_unit_test(frees_the_stage_whichever_call_fails),
	};

	return cmocka_run_group_tests_name("cli/sum", tests, NULL, NULL);
}
