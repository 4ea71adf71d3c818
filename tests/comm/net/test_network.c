/* test_network.c — calls between ranks that are connected by the network, here libfabric's tcp on one machine. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"
#include "rdma/rdma.h"
#include "tests/comm/collectives.h"

enum { BUFFER_BYTES = 256 << 10 };

static const gpul_rdma_desc tcp = { .backend = "libfabric", .device = { .gpu = -1, .gid_index = -1, .provider = "tcp" } };
static const gpul_rdma_desc tcp_with_queues = { .backend = "libfabric",
						.n_qps = 3,
						.device = { .gpu = -1, .gid_index = -1, .provider = "tcp" } };
static const gpul_rdma_desc tcp_direct = { .backend = "libfabric",
					   .n_qps = 2,
					   .gpu_direct = GPUL_RDMA_GPU_DIRECT_YES,
					   .device = { .gpu = -1, .gid_index = -1, .provider = "tcp" } };
static const gpul_comm_call rings[] = { GPUL_COMM_ALLREDUCE, GPUL_COMM_REDUCESCATTER, GPUL_COMM_ALLGATHER, GPUL_COMM_BROADCAST };

/* Options with slots of 640 bytes, so that larger messages use each slot several times. */
static gpul_comm_options over(const gpul_rdma_desc *net)
{
	return (gpul_comm_options){
		.device = -1, .transport = GPUL_COMM_NET, .net = net, .slot_bytes = 640, .n_blocks = 3, .timeout_ms = 30000
	};
}

static void all_calls(struct rank *r, void *arg)
{
	static const size_t counts[] = { 0, 1, 37, 161, 5000 };
	struct buffers b;
	unsigned n = 0;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, false, &b);
	for (size_t i = 0; i < sizeof rings / sizeof *rings; i++)
		for (size_t k = 0; k < sizeof counts / sizeof *counts; k++, n++)
			run_collective(r, &b,
				       &(struct collective){ .call = rings[i],
							     .algo = GPUL_COMM_RING,
							     .proto = GPUL_COMM_SIMPLE,
							     .dtype = n % GPUL_COMM_N_DTYPES,
							     .op = rings[i] == GPUL_COMM_ALLREDUCE ? n % GPUL_COMM_N_OPS : GPUL_COMM_SUM,
							     .count = counts[k],
							     .root = (int)n % r->n_ranks,
							     .in_place = n % 2,
							     .send_offset = n % 5,
							     .recv_offset = n % 7 + 70,
							     .offset_of_rank = n % 2,
							     .n_blocks = 1 + n % 3,
							     .n_threads = 96 });
	free_buffers(r, &b);
}

static void every_call_is_right(void **state)
{
	const gpul_comm_options options = over(&tcp);

	(void)state;
	for (int n = 2; n <= 4; n++)
		run_ranks(n, &options, all_calls, NULL);
}

static void several_queue_pairs_keep_the_order_of_a_channel(void **state)
{
	const gpul_comm_options options = over(&tcp_with_queues);

	(void)state;
	run_ranks(3, &options, all_calls, NULL);
}

/* The window has two slots for all senders together, so each step of more than 213 bytes waits for a grant. */
static void every_call_is_right_in_the_smallest_window(void **state)
{
	gpul_comm_options options = over(&tcp);

	(void)state;
	options.net_window = 1;
	run_ranks(4, &options, all_calls, NULL);
}

static void calls_with_slots_in_device_memory(struct rank *r, void *arg)
{
	gpul_comm_path path;

	gpul_comm_path_to(r->comm, (r->rank + 1) % r->n_ranks, &path);
	assert_non_null(strstr(path.reason, ", GPU-direct"));
	assert_null(strstr(path.reason, "staged"));
	all_calls(r, arg);
}

static void every_call_is_right_with_slots_in_device_memory(void **state)
{
	const gpul_comm_options options = over(&tcp_direct);

	(void)state;
	for (int n = 2; n <= 4; n++)
		run_ranks(n, &options, calls_with_slots_in_device_memory, NULL);
}

/* A rank whose driver does not report that device memory is CPU memory, as on a real GPU; libfabric cannot register such memory here. */
struct gpu_rank {
	gpul_comm_job job;
	gpul_comm_options options;
	gpul_comm_path path;
	gpul_status status;
	gpul_error err;
};

static void *join_as_gpu(void *arg)
{
	struct gpu_rank *g = arg;
	const gpul_driver *drv = NULL;
	gpul_comm *comm = NULL;
	gpul_driver gpu;

	must(gpul_driver_open(GPUL_DRIVER_AUTO, &drv, &g->err), &g->err, "gpul_driver_open");
	gpu = *drv;
	gpu.interprets = false;
	g->options.job = &g->job;
	g->status = gpul_comm_create(&gpu, &g->options, &comm, &g->err);
	if (!g->status)
		gpul_comm_path_to(comm, !g->job.rank, &g->path);
	gpul_comm_destroy(comm);
	return NULL;
}

static void join_two_gpus(gpul_rdma_gpu_direct gpu_direct, struct gpu_rank ranks[2])
{
	const gpul_rdma_desc net = { .backend = "libfabric",
				     .gpu_direct = gpu_direct,
				     .device = { .gpu = -1, .gid_index = -1, .provider = "tcp" } };
	const gpul_comm_job job = new_job(2);
	pthread_t threads[2];

	for (int i = 0; i < 2; i++) {
		ranks[i] = (struct gpu_rank){ .job = job, .options = over(&net) };
		ranks[i].job.rank = i;
		assert_int_equal(pthread_create(&threads[i], NULL, join_as_gpu, &ranks[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
}

static void a_gpu_whose_memory_the_fabric_cannot_access_is_staged_and_says_why(void **state)
{
	struct gpu_rank ranks[2];

	(void)state;
	join_two_gpus(GPUL_RDMA_GPU_DIRECT_AUTO, ranks);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ranks[i].status, GPUL_OK);
		assert_non_null(strstr(ranks[i].path.reason, "staged in host memory: tcp"));
		assert_non_null(strstr(ranks[i].path.reason, "cannot register GPU memory"));
	}
	join_two_gpus(GPUL_RDMA_GPU_DIRECT_NO, ranks);
	assert_non_null(strstr(ranks[0].path.reason, "staged in host memory: requested"));
}

static void gpu_direct_that_is_impossible_is_an_error(void **state)
{
	struct gpu_rank ranks[2];

	(void)state;
	join_two_gpus(GPUL_RDMA_GPU_DIRECT_YES, ranks);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ranks[i].status, GPUL_EUNSUPPORTED);
		assert_non_null(strstr(ranks[i].err.text, "GPU-direct is not possible: tcp"));
	}
}

/* Ranks 0 and 1 share memory, and so do ranks 2 and 3, so a ring uses shared memory for some pairs and the network for others. */
static void mixed_pairs(struct rank *r, void *arg)
{
	gpul_comm_path path;

	for (int p = 0; p < r->n_ranks; p++) {
		gpul_comm_path_to(r->comm, p, &path);
		assert_int_equal(path.transport == GPUL_COMM_NET, p / 2 != r->rank / 2);
	}
	all_calls(r, arg);
}

static void ranks_of_one_host_use_memory(void **state)
{
	gpul_comm_options options = over(&tcp);

	(void)state;
	options.transport = GPUL_COMM_TRANSPORT_AUTO;
	run_ranks_on_hosts(4, 2, &options, mixed_pairs, NULL);
}

/* Make calls as a program does: the plan chooses the algorithm, and repeated calls become graphs. */
static void planned_calls(struct rank *r, void *arg)
{
	const struct collective sum = { .call = GPUL_COMM_ALLREDUCE, .dtype = GPUL_COMM_I32, .count = 3000 };
	const struct collective parts = { .call = GPUL_COMM_ALLTOALL, .dtype = GPUL_COMM_I32, .count = 1000 };
	gpul_error err = { 0 };
	struct buffers b;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, true, &b);
	prepare_collective(r, &b, &sum);
	for (int i = 0; i < 6; i++)
		must(gpul_comm_allreduce(r->comm, b.send, b.recv, sum.count, sum.dtype, sum.op, r->stream, &err), &err, "allreduce");
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	check_collective(r, &b, &sum);
	prepare_collective(r, &b, &parts);
	for (int i = 0; i < 3; i++)
		must(gpul_comm_alltoall(r->comm, b.send, b.recv, parts.count, parts.dtype, r->stream, &err), &err, "alltoall");
	must(gpul_comm_wait(r->comm, r->stream, &err), &err, "gpul_comm_wait");
	check_collective(r, &b, &parts);
	free_buffers(r, &b);
}

static void plans_use_channels_and_the_protocol_simple(void **state)
{
	const gpul_comm_options options = over(&tcp);

	(void)state;
	run_ranks(3, &options, planned_calls, NULL);
}

static void refused(struct rank *r, void *arg)
{
	gpul_comm_persistent *p = NULL;
	gpul_error err = { 0 };

	(void)arg;
	assert_int_equal(gpul_comm_persistent_start(r->comm, 1, &p, &err), GPUL_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "some pairs of ranks are connected only by the network"));
}

static void a_persistent_kernel_is_refused(void **state)
{
	const gpul_comm_options options = over(&tcp);

	(void)state;
	run_ranks(2, &options, refused, NULL);
}

/* Rank 1 calls with another count: both ranks end with the same failure. */
static void different_calls(struct rank *r, void *arg)
{
	gpul_error err = { 0 };
	struct buffers b;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, false, &b);
	must(gpul_comm_allreduce(r->comm, b.send, b.recv, r->rank ? 999 : 1000, GPUL_COMM_I32, GPUL_COMM_SUM, r->stream, &err), &err,
	     "allreduce");
	assert_int_equal(gpul_comm_wait(r->comm, r->stream, &err), GPUL_ECOMM);
	assert_int_equal(err.native, GPUL_COMM_MISMATCH);
	free_buffers(r, &b);
}

static void different_calls_are_reported(void **state)
{
	const gpul_comm_options options = over(&tcp);

	(void)state;
	run_ranks(2, &options, different_calls, NULL);
}

/* Rank 1 makes no call: rank 0 waits for it until its time-out, or until rank 1 aborts. */
static void aborted_call(struct rank *r, void *arg)
{
	gpul_error err = { 0 };
	struct buffers b;

	(void)arg;
	new_buffers(r, BUFFER_BYTES, false, &b);
	if (r->rank == 0) {
		must(gpul_comm_allreduce(r->comm, b.send, b.recv, 1000, GPUL_COMM_I32, GPUL_COMM_SUM, r->stream, &err), &err, "allreduce");
		assert_int_equal(gpul_comm_wait(r->comm, r->stream, &err), GPUL_ECOMM);
		assert_int_equal(err.native, GPUL_COMM_ABORTED);
		assert_non_null(strstr(err.text, "rank 1"));
	} else {
		gpul_comm_abort(r->comm);
	}
	free_buffers(r, &b);
}

static void an_abort_ends_the_kernels_of_other_hosts(void **state)
{
	const gpul_comm_options options = over(&tcp);

	(void)state;
	run_ranks(2, &options, aborted_call, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_is_right),
		cmocka_unit_test(several_queue_pairs_keep_the_order_of_a_channel),
		cmocka_unit_test(every_call_is_right_in_the_smallest_window),
		cmocka_unit_test(every_call_is_right_with_slots_in_device_memory),
		cmocka_unit_test(a_gpu_whose_memory_the_fabric_cannot_access_is_staged_and_says_why),
		cmocka_unit_test(gpu_direct_that_is_impossible_is_an_error),
		cmocka_unit_test(ranks_of_one_host_use_memory),
		cmocka_unit_test(plans_use_channels_and_the_protocol_simple),
		cmocka_unit_test(a_persistent_kernel_is_refused),
		cmocka_unit_test(different_calls_are_reported),
		cmocka_unit_test(an_abort_ends_the_kernels_of_other_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
