/* calls.c — makes random sparse data and calls all-reduce on it; compares the result with the dense sum. */
#include "tests/lab/sparse/calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/sparse/sum.h"
#include "tests/comm/reference.h"

enum { MOST_BYTES = 1 << 20, AROUND = 64, MEET_MS = 60 * 1000 };

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
			(void)fprintf(stderr, "rank %d of %d: %s of %zu %s, block %u, %u per mille, in place %d: element %zu is wrong\n",
				      r->rank, r->n_ranks, gpul_comm_op_name(c->op), c->count, gpul_comm_dtype_name(c->dtype), c->block,
				      c->per_mille, c->in_place, i / bytes);
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

gpul_comm_sparse_report run_call(struct rank *r, gpul_comm_sparse *s, const struct call *c)
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
	gpul_comm_mesh_desc desc = {
		.rdma = { .backend = "libfabric", .device = { .gpu = 0, .gid_index = -1 }, .gpu_direct = GPUL_RDMA_GPU_DIRECT_YES }
	};
	gpul_comm_mesh *mesh;
	gpul_driver gpu = *r->drv;
	gpul_comm_sparse *s = NULL;
	gpul_boot *boot;
	gpul_error err = { 0 };
	gpul_status st;

	gpu.interprets = r->drv->interprets && !t->as_gpu;
	desc.rdma.device.drv = &gpu;
	job.rank = r->rank;
	options.comm = t->falls_back ? r->comm : NULL;
	if (t->direct >> r->rank & 1)
		options.gpu_direct = GPUL_RDMA_GPU_DIRECT_YES;
	must(gpul_boot_open(&job, MEET_MS, &boot, &err), &err, "gpul_boot_open");
	must(gpul_comm_mesh_create(boot, &desc, MEET_MS, &mesh, &err), &err, "gpul_comm_mesh_create");
	st = gpul_comm_sparse_create(&gpu, gpul_comm_device(r->comm), boot, mesh, &options, &s, &err);
	if (!t->refused)
		must(st, &err, "gpul_comm_sparse_create");
	else if (!st || !strstr(err.text, t->refused))
		must(GPUL_EINVAL, &err, "no refusal by gpul_comm_sparse_create");
	else
		err = (gpul_error){ 0 };
	if (s)
		t->run(r, s, t);
	must(gpul_boot_barrier(boot, MEET_MS, &err), &err, "gpul_boot_barrier");
	gpul_comm_sparse_destroy(s);
	gpul_comm_mesh_destroy(mesh);
	gpul_boot_close(boot);
}

void run_sparse(int n_ranks, struct test t)
{
	t.job = new_job(n_ranks);
	run_ranks(n_ranks, NULL, with_sparse, &t);
}
