/* test_oneshot.c — collectives of small messages in one round trip. */
#include "tests/support/cmocka.h"
#include "tests/comm/collectives.h"

enum { BUFFER_BYTES = 64 << 10 };

static const gpul_comm_call calls[] = {
	GPUL_COMM_ALLREDUCE, GPUL_COMM_REDUCESCATTER, GPUL_COMM_ALLGATHER, GPUL_COMM_BROADCAST, GPUL_COMM_ALLTOALL,
};
enum { N_CALLS = sizeof calls / sizeof *calls };

static bool reduces(gpul_comm_call call)
{
	return call == GPUL_COMM_ALLREDUCE || call == GPUL_COMM_REDUCESCATTER;
}

static void all_types_and_operations(struct rank *r, void *arg)
{
	struct buffers b;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, false, &b);
	for (int i = 0; i < N_CALLS; i++)
		for (gpul_comm_dtype t = 0; t < GPUL_COMM_N_DTYPES; t++)
			for (gpul_comm_op op = 0; op < (reduces(calls[i]) ? GPUL_COMM_N_OPS : 1); op++)
				run_collective(r, &b,
					       &(struct collective){ .call = calls[i],
								     .algo = GPUL_COMM_ONE_SHOT,
								     .proto = GPUL_COMM_LL,
								     .dtype = t,
								     .op = op,
								     .count = 37,
								     .root = (int)t % r->n_ranks,
								     .n_blocks = 1,
								     .n_threads = 64 });
	free_buffers(r, &b);
}

static void every_type_and_operation_is_right(void **state)
{
	(void)state;
	for (int n = 1; n <= 4; n++)
		run_ranks(n, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, all_types_and_operations, NULL);
}

/* Kernels with different grids follow each other; they use the two halves of the scratch memory alternately. */
static void all_sizes(struct rank *r, void *arg)
{
	static const size_t counts[] = { 0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 500, 1021 };
	struct buffers b;
	unsigned n = 0;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, false, &b);
	for (int i = 0; i < N_CALLS; i++)
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
			for (int in_place = 0; in_place <= (calls[i] != GPUL_COMM_ALLTOALL); in_place++, n++)
				run_collective(r, &b,
					       &(struct collective){ .call = calls[i],
								     .algo = GPUL_COMM_ONE_SHOT,
								     .proto = GPUL_COMM_LL,
								     .dtype = n % 3 == 0   ? GPUL_COMM_U8
									      : n % 3 == 1 ? GPUL_COMM_F16
											   : GPUL_COMM_F32,
								     .count = counts[k],
								     .root = (int)n % r->n_ranks,
								     .in_place = in_place,
								     .send_offset = n % 5,
								     .recv_offset = n % 7 + 70,
								     .offset_of_rank = n % 2,
								     .n_blocks = 1 + n % 3 % 2,
								     .n_threads = 32 + 32 * (n % 4) });
	free_buffers(r, &b);
}

static void every_size_and_alignment_is_right(void **state)
{
	(void)state;
	for (int n = 2; n <= 8; n += n == 2 ? 1 : 5)
		for (gpul_comm_transport t = GPUL_COMM_DEVICE; t <= GPUL_COMM_HOST; t++)
			run_ranks(n, &(gpul_comm_options){ .device = -1, .transport = t, .timeout_ms = 20000 }, all_sizes, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_and_operation_is_right),
		cmocka_unit_test(every_size_and_alignment_is_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
