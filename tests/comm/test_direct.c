/* test_direct.c — collectives that read and write the other ranks' buffers. */
#include "tests/support/cmocka.h"
#include "tests/comm/collectives.h"

enum { BUFFER_BYTES = 256 << 10 };

static const gpul_comm_call calls[] = { GPUL_COMM_ALLREDUCE, GPUL_COMM_REDUCESCATTER, GPUL_COMM_ALLGATHER, GPUL_COMM_BROADCAST };
enum { N_CALLS = sizeof calls / sizeof *calls };

static bool reduces(gpul_comm_call call)
{
	return call == GPUL_COMM_ALLREDUCE || call == GPUL_COMM_REDUCESCATTER;
}

static void all_types_and_operations(struct rank *r, void *arg)
{
	struct buffers b;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, true, &b);
	for (int i = 0; i < N_CALLS; i++)
		for (gpul_comm_dtype t = 0; t < GPUL_COMM_N_DTYPES; t++)
			for (gpul_comm_op op = 0; op < (reduces(calls[i]) ? GPUL_COMM_N_OPS : 1); op++)
				run_collective(r, &b,
					       &(struct collective){ .call = calls[i],
								     .algo = GPUL_COMM_DIRECT,
								     .proto = GPUL_COMM_SIMPLE,
								     .dtype = t,
								     .op = op,
								     .count = 1500,
								     .root = (int)t % r->n_ranks,
								     .n_blocks = 2,
								     .n_threads = 32 });
	free_buffers(r, &b);
}

static void every_type_and_operation_is_right(void **state)
{
	(void)state;
	for (int n = 1; n <= 4; n++)
		run_ranks(n, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, all_types_and_operations, NULL);
}

/* Test counts that do and do not fill whole tiles and 16-byte packs; in every second call some buffers are not 16-byte aligned. */
static void all_sizes(struct rank *r, void *arg)
{
	static const size_t counts[] = { 0, 1, 3, 4, 5, 31, 32, 33, 511, 512, 513, 1024, 3001, 5000 };
	struct buffers b;
	unsigned n = 0;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, true, &b);
	for (int i = 0; i < N_CALLS; i++)
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
			for (int in_place = 0; in_place <= 1; in_place++, n++)
				run_collective(r, &b,
					       &(struct collective){ .call = calls[i],
								     .algo = GPUL_COMM_DIRECT,
								     .proto = GPUL_COMM_SIMPLE,
								     .dtype = n % 3 == 0   ? GPUL_COMM_U8
									      : n % 3 == 1 ? GPUL_COMM_F16
											   : GPUL_COMM_F32,
								     .count = counts[k],
								     .root = (int)n % r->n_ranks,
								     .in_place = in_place,
								     .send_offset = n % 4 < 2 ? 16 * (n % 5) : n % 5,
								     .recv_offset = n % 4 < 2 ? 80 : n % 7 + 70,
								     .offset_of_rank = n % 4 == 1 ? 16 : n % 4 / 3,
								     .n_blocks = 1 + n % 2,
								     .n_threads = n % 5 < 3 ? 32 : 96 });
	free_buffers(r, &b);
}

static void every_size_and_alignment_is_right(void **state)
{
	(void)state;
	for (int n = 2; n <= 8; n += n == 2 ? 1 : 5)
		run_ranks(n, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, all_sizes, NULL);
}

/* If one rank's send or recv buffer is not in memory that all ranks map, all ranks must fall back to the ring. */
static void some_buffers_in_no_window(struct rank *r, void *arg)
{
	struct buffers in_windows, others, b;
	unsigned n = 0;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, true, &in_windows);
	new_buffers(r, BUFFER_BYTES, false, &others);
	for (int i = 0; i < N_CALLS; i++)
		for (size_t count = 1; count < 9000; count = count * 5 + 2, n++) {
			b = (int)n % 3 == r->rank ? others : in_windows;
			if (n % 2)
				b.send = in_windows.send;
			run_collective(r, &b,
				       &(struct collective){ .call = calls[i],
							     .algo = GPUL_COMM_DIRECT,
							     .proto = GPUL_COMM_SIMPLE,
							     .dtype = GPUL_COMM_F32,
							     .count = count,
							     .root = (int)n % r->n_ranks,
							     .in_place = n % 4 == 3,
							     .n_blocks = 1 + n % 2,
							     .n_threads = 96 });
		}
	free_buffers(r, &in_windows);
	free_buffers(r, &others);
}

static void other_memory_is_passed_around_the_ring(void **state)
{
	(void)state;
	for (int n = 2; n <= 4; n++)
		run_ranks(n, &(gpul_comm_options){ .device = -1, .timeout_ms = 20000 }, some_buffers_in_no_window, NULL);
	run_ranks(2, &(gpul_comm_options){ .device = -1, .transport = GPUL_COMM_HOST, .timeout_ms = 20000 }, some_buffers_in_no_window,
		  NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_and_operation_is_right),
		cmocka_unit_test(every_size_and_alignment_is_right),
		cmocka_unit_test(other_memory_is_passed_around_the_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
