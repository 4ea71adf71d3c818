/* test_wrap.c — steps around 2^32, where the flags of LL start again, and where a 32-bit counter would wrap. */
#include <unistd.h>

#include "tests/support/cmocka.h"
#include "comm/bootstrap/boot.h"
#include "tests/comm/collectives.h"

enum { N_RANKS = 3, N_CALLS = 20, N_BLOCKS = 2, LIMIT_MS = 20000, LATE_US = 3000 };

/* Set all step counters of this rank's channels, as if `step` steps had already been sent, received and read. */
static void set_steps(struct rank *r, uint64_t step)
{
	const gpul_comm_view *v = &r->comm->view_copy;
	const gpul_comm_steps saved = { .sent = step, .credits = step, .received = step };
	gpul_error err = { 0 };

	for (uint32_t i = 0; i < v->sizes.n_ranks * v->sizes.n_blocks; i++) {
		const uint32_t peer = i / v->sizes.n_blocks, block = i % v->sizes.n_blocks;
		gpul_comm_outbox *outbox = (gpul_comm_outbox *)(void *)v->peers[peer].outboxes + i;
		const CUdeviceptr steps = (CUdeviceptr)(uintptr_t)&v->steps[block * GPUL_COMM_MAX_PEERS + peer];

		must(gpul_cu(r->drv, &err, cuMemcpyHtoD(steps, &saved, sizeof saved)), &err, "steps");
		must(gpul_cu(r->drv, &err, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)&outbox->head, &step, sizeof step)), &err, "head");
	}
	must(gpul_cu(r->drv, &err, cuStreamSynchronize(NULL)), &err, "cuStreamSynchronize");
	must(gpul_boot_barrier(r->comm->boot, LIMIT_MS, &err), &err, "gpul_boot_barrier");
}

/* Make broadcasts of one step with a late root: a rank that takes old flags for new ones would return before the root sends. */
static void broadcast_late(struct rank *r, void *arg)
{
	const gpul_comm_proto proto = *(gpul_comm_proto *)arg;
	struct buffers b;

	new_buffers(r, 64 << 10, false, &b);
	set_steps(r, UINT32_MAX - 9ull);
	for (int i = 0; i < N_CALLS; i++) {
		if (r->rank == i % N_RANKS)
			(void)usleep(LATE_US);
		run_collective(r, &b,
			       &(struct collective){ .call = GPUL_COMM_BROADCAST,
						     .algo = GPUL_COMM_RING,
						     .proto = proto,
						     .dtype = GPUL_COMM_U8,
						     .count = 500 + (size_t)i,
						     .root = i % N_RANKS,
						     .n_blocks = N_BLOCKS,
						     .n_threads = 96 });
	}
	free_buffers(r, &b);
}

/* Make all-reduces with many steps each, so that the counters pass the limit during a call. */
static void reduce_across(struct rank *r, void *arg)
{
	const gpul_comm_proto proto = *(gpul_comm_proto *)arg;
	struct buffers b;

	new_buffers(r, 64 << 10, false, &b);
	set_steps(r, UINT32_MAX - 20ull);
	for (int i = 0; i < 4; i++)
		run_collective(r, &b,
			       &(struct collective){ .call = GPUL_COMM_ALLREDUCE,
						     .algo = GPUL_COMM_RING,
						     .proto = proto,
						     .dtype = GPUL_COMM_I32,
						     .count = 7000,
						     .n_blocks = N_BLOCKS,
						     .n_threads = 96 });
	free_buffers(r, &b);
}

static void steps_beyond_32_bits_carry_the_right_data(void **state)
{
	const gpul_comm_options options = { .device = -1, .n_blocks = N_BLOCKS, .timeout_ms = LIMIT_MS };
	gpul_comm_proto protos[] = { GPUL_COMM_LL, GPUL_COMM_LL128, GPUL_COMM_SIMPLE };

	(void)state;
	for (size_t i = 0; i < sizeof protos / sizeof *protos; i++) {
		run_ranks(N_RANKS, &options, broadcast_late, &protos[i]);
		run_ranks(N_RANKS, &options, reduce_across, &protos[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_beyond_32_bits_carry_the_right_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
