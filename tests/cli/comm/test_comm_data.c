/* test_comm_data.c — the data with which gpuload comm checks collectives, against results computed here in the type itself. */
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "cli/comm/comm_data.h"
#include "cli/lib/value.h"

enum { MOST_COUNT = 70001, MOST_RANKS = 5, N_COUNTS = 3 };
static const size_t counts[N_COUNTS] = { 1, 37, MOST_COUNT }; /* the last is longer than the period of the data */
static const gpul_type types[] = { GPUL_F16, GPUL_BF16, GPUL_F32, GPUL_F64, GPUL_I32, GPUL_U8 };

static unsigned char *sends[MOST_RANKS], *recv_buffer;

static struct comm_data create(struct comm_data_desc desc)
{
	struct comm_data d;
	gpul_error err = { 0 };

	assert_int_equal(comm_data_create(&desc, &d, &err), GPUL_OK);
	return d;
}

/* The send buffers of all ranks, each filled as the rank would do it. */
static void fill_sends(struct comm_data_desc desc, size_t n)
{
	const int rank = desc.rank;

	for (desc.rank = 0; desc.rank < desc.n_ranks; desc.rank++) {
		struct comm_data d = create(desc);

		comm_data_fill(&d, 0, n / 2, sends[desc.rank]); /* fill in two parts, as for data that passes through a staging buffer */
		comm_data_fill(&d, n / 2, n - n / 2, sends[desc.rank] + n / 2 * d.element_bytes);
		comm_data_free(&d);
	}
	desc.rank = rank;
}

static bool is_float(gpul_comm_dtype dtype)
{
	return dtype <= GPUL_COMM_F64;
}

static double apply(gpul_comm_op op, double a, double b)
{
	switch (op) {
	case GPUL_COMM_PROD:
		return a * b;
	case GPUL_COMM_MIN:
		return a < b ? a : b;
	case GPUL_COMM_MAX:
		return a > b ? a : b;
	default:
		return a + b;
	}
}

/* Apply an operation in uint64_t, because the products of five 32-bit numbers are not exact in a double. */
static uint64_t apply_integer(gpul_comm_op op, int64_t a, int64_t b)
{
	switch (op) {
	case GPUL_COMM_PROD:
		return (uint64_t)a * (uint64_t)b;
	case GPUL_COMM_MIN:
		return (uint64_t)(a < b ? a : b);
	case GPUL_COMM_MAX:
		return (uint64_t)(a > b ? a : b);
	default:
		return (uint64_t)a + (uint64_t)b;
	}
}

/* Reduce element i of n ranks' buffers, in a ring from rank `first` on, rounding or wrapping after each operation. */
static void reduce_element(const struct comm_data_desc *d, size_t i, int first, int n, unsigned char *out)
{
	const gpul_type t = types[d->dtype];
	const size_t bytes = gpul_comm_dtype_bytes(d->dtype);
	unsigned char x[8];

	memcpy(x, sends[first] + i * bytes, bytes);
	for (int k = 1; k < n; k++) {
		const unsigned char *next = sends[(first + k) % d->n_ranks] + i * bytes;
		const struct value a = value_load(t, x), b = value_load(t, next);

		if (is_float(d->dtype))
			value_store_float(t, apply(d->op, a.f, b.f), x);
		else
			value_store_int(t, apply_integer(d->op, (int64_t)a.i, (int64_t)b.i), x);
	}
	if (d->op == GPUL_COMM_AVG && is_float(d->dtype))
		value_store_float(t, value_load(t, x).f / d->n_ranks, x);
	else if (d->op == GPUL_COMM_AVG)
		value_store_int(t, (uint64_t)((int64_t)value_load(t, x).i / d->n_ranks), x);
	memcpy(out, x, bytes);
}

static void reduce_all(const struct comm_data_desc *d, size_t begin, size_t n, int n_combined)
{
	for (size_t i = 0; i < n; i++)
		reduce_element(d, begin + i, (int)(i % (size_t)d->n_ranks), n_combined, recv_buffer + i * gpul_comm_dtype_bytes(d->dtype));
}

static void right_reductions_are_right(void **state)
{
	(void)state;
	for (int test = 0; test < N_COUNTS * GPUL_COMM_N_DTYPES * GPUL_COMM_N_OPS; test++) {
		struct comm_data_desc d = { .call = GPUL_COMM_ALLREDUCE,
					    .dtype = (gpul_comm_dtype)(test / N_COUNTS % GPUL_COMM_N_DTYPES),
					    .op = (gpul_comm_op)(test / N_COUNTS / GPUL_COMM_N_DTYPES),
					    .rank = 1,
					    .n_ranks = 2 + test % 4,
					    .count = counts[test % N_COUNTS],
					    .seed = (uint64_t)test };
		struct comm_data data = create(d);

		fill_sends(d, d.count);
		reduce_all(&d, 0, d.count, d.n_ranks);
		assert_int_equal(comm_data_check(&data, 0, d.count, recv_buffer), 0);
		if (d.count > 1) {
			reduce_all(&d, 0, d.count, d.n_ranks - 1); /* a wrong result, in which one rank's data is missing */
			assert_true(comm_data_check(&data, 0, d.count, recv_buffer) > (d.count > 37 ? d.count / 8 : 0));
		}
		memset(recv_buffer, 0xff, d.count * data.element_bytes);
		assert_true(comm_data_check(&data, 0, d.count, recv_buffer) + 2 >= d.count || !is_float(d.dtype));
		comm_data_free(&data);
		d.call = GPUL_COMM_REDUCESCATTER;
		if (d.count > 37)
			d.count = MOST_COUNT / 5;
		data = create(d);
		fill_sends(d, d.count * (size_t)d.n_ranks);
		reduce_all(&d, d.count * (size_t)d.rank, d.count, d.n_ranks);
		assert_int_equal(comm_data_check(&data, 0, d.count, recv_buffer), 0);
		comm_data_free(&data);
	}
}

/* Compute the expected result of rank d->rank from the definition of each call. */
static void copy_all(const struct comm_data_desc *d, size_t bytes)
{
	const size_t part = d->count * bytes;

	for (int p = 0; p < d->n_ranks; p++)
		if (d->call == GPUL_COMM_ALLGATHER)
			memcpy(recv_buffer + (size_t)p * part, sends[p], part);
		else if (d->call == GPUL_COMM_ALLTOALL)
			memcpy(recv_buffer + (size_t)p * part, sends[p] + (size_t)d->rank * part, part);
		else if (d->call == GPUL_COMM_BROADCAST ? p == d->root : (p + 1) % d->n_ranks == d->rank)
			memcpy(recv_buffer, sends[p], part);
}

static void copies_are_right_and_one_wrong_bit_is_found(void **state)
{
	static const gpul_comm_call calls[] = { GPUL_COMM_SENDRECV, GPUL_COMM_ALLTOALL, GPUL_COMM_ALLGATHER, GPUL_COMM_BROADCAST };

	(void)state;
	for (int test = 0; test < 4 * GPUL_COMM_N_DTYPES * 3; test++) {
		const struct comm_data_desc d = { .call = calls[test % 4],
						  .dtype = (gpul_comm_dtype)(test / 4 % GPUL_COMM_N_DTYPES),
						  .rank = test % 3,
						  .n_ranks = 3,
						  .root = 2,
						  .seed = 5,
						  .count = test / 4 / GPUL_COMM_N_DTYPES == 2 ? MOST_COUNT / 5
											      : counts[test / 4 / GPUL_COMM_N_DTYPES] };
		const bool parts = d.call == GPUL_COMM_ALLGATHER || d.call == GPUL_COMM_ALLTOALL;
		const size_t n = parts ? 3 * d.count : d.count, bytes = gpul_comm_dtype_bytes(d.dtype);
		struct comm_data data = create(d);

		fill_sends(d, d.call == GPUL_COMM_ALLTOALL ? n : d.count);
		copy_all(&d, bytes);
		assert_int_equal(comm_data_check(&data, 0, n, recv_buffer), 0);
		assert_int_equal(comm_data_check(&data, n / 2, n - n / 2, recv_buffer + n / 2 * bytes), 0);
		recv_buffer[n * bytes - 1] ^= 1;
		recv_buffer[0] ^= 0x80;
		assert_int_equal(comm_data_check(&data, 0, n, recv_buffer), n > 1 ? 2 : 1);
		copy_all(&d, bytes);
		if (d.count > 37) /* a wrong result, shifted by one element */
			assert_true(comm_data_check(&data, 0, n - 1, recv_buffer + bytes) > n / 2);
		comm_data_free(&data);
	}
}

static void each_seed_and_each_rank_has_other_data(void **state)
{
	const struct comm_data_desc d = { .call = GPUL_COMM_ALLREDUCE, .dtype = GPUL_COMM_F64, .n_ranks = 3, .count = 1000 };

	(void)state;
	for (int a = 0; a < 9; a++)
		for (int b = 0; b < a; b++) {
			struct comm_data_desc x = d, y = d;
			struct comm_data one, other;

			x.seed = (uint64_t)(a / 3);
			y.seed = (uint64_t)(b / 3);
			one = create(x);
			other = create(y);
			for (size_t i = 0; i < 1000; i++)
				assert_memory_not_equal(one.inputs[a % 3] + 8 * i, other.inputs[b % 3] + 8 * i, 8);
			comm_data_free(&one);
			comm_data_free(&other);
		}
}

static void a_hash_depends_on_every_bit_and_not_on_the_parts(void **state)
{
	unsigned char bytes[100] = { 0 };
	const uint64_t hash = comm_data_hash(0, bytes, sizeof bytes);

	(void)state;
	assert_true(hash == comm_data_hash(comm_data_hash(0, bytes, 64), bytes + 64, 36));
	for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_true(comm_data_hash(0, bytes, sizeof bytes) != hash);
		bytes[bit / 8] = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_reductions_are_right),
		cmocka_unit_test(copies_are_right_and_one_wrong_bit_is_found),
		cmocka_unit_test(each_seed_and_each_rank_has_other_data),
		cmocka_unit_test(a_hash_depends_on_every_bit_and_not_on_the_parts),
	};

	for (int r = 0; r < MOST_RANKS; r++)
		sends[r] = malloc(8 * MOST_COUNT);
	recv_buffer = malloc(8 * MOST_COUNT);
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	for (int r = 0; r < MOST_RANKS; r++)
		free(sends[r]);
	free(recv_buffer);
	return failed;
}
