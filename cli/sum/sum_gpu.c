/* sum_gpu.c — computes the sum on a GPU, with the kernels of cli/kernels/sum.cu. */
#include "cli/sum/cli_sum.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/sum/sum_stage.h"
#include "core/clock.h"
#include "loader/embedded.h"
#include "loader/loader.h"

GPUL_EMBED(sum_ptx, "cli/kernels/sum.ptx");

enum { THREADS = 256, NAP_NS = 50 * 1000, BUSY_NS = 1000 * 1000 };

struct sum_gpu {
	const gpul_driver *drv;
	gpul_type type;
	size_t max_count;
	gpul_module *module;
	const gpul_kernel *kernel, *kernel_64;
	/* memory for the sums of all steps, one step after the other */
	CUdeviceptr sums;
	CUdeviceptr last; /* address of the result of the last step */
	enum sum_access way;
	struct sum_stage *stage; /* created when host memory is added up for the first time */
};

gpul_status sum_gpu_create(const gpul_driver *drv, gpul_type t, size_t count, struct sum_gpu **out, gpul_error *err)
{
	struct sum_gpu *g = calloc(1, sizeof *g);
	size_t n = sum_chunks(t, count), n_sums = n;
	gpul_status st;

	if (!g)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to compute a sum");
	*g = (struct sum_gpu){ .drv = drv, .type = t, .max_count = count };
	while (n > 1)
		n_sums += n = sum_chunks(sum_type(t), n);
	st = gpul_module_load_embedded(drv, &sum_ptx, &g->module, err);
	st = st ? st : gpul_kernel_find(g->module, "sum_chunks", &g->kernel, err);
	st = st ? st : gpul_kernel_find(g->module, "sum_chunks_64", &g->kernel_64, err);
	/* room for the sums, and to align the input of up to 8 steps to 16 bytes */
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&g->sums, n_sums * 8 + 8 * 16));
	if (st) {
		sum_gpu_destroy(g);
		return st;
	}
	*out = g;
	return GPUL_OK;
}

void sum_gpu_destroy(struct sum_gpu *g)
{
	if (!g)
		return;
	sum_stage_destroy(g->stage);
	if (g->sums)
		g->drv->cuMemFree(g->sums);
	gpul_module_unload(g->module);
	free(g);
}

/* Launch one step: add up each chunk of count elements of type t. */
static gpul_status launch_step(const struct sum_gpu *g, gpul_type t, CUdeviceptr data, size_t count, CUdeviceptr out, CUstream stream,
			       gpul_error *err)
{
	uint64_t n_bytes = count * gpul_type_bytes(t);
	uint32_t type = (uint32_t)t;
	gpul_launch_config config = { .grid = { (uint32_t)sum_chunks(t, count), 1, 1 }, .block = { THREADS, 1, 1 }, .stream = stream };
	void *args[] = { &data, &n_bytes, &out, &type };
	const size_t bytes[] = { sizeof data, sizeof n_bytes, sizeof out, sizeof type };

	return gpul_kernel_launch(gpul_type_bytes(t) == 8 ? g->kernel_64 : g->kernel, &config, args, bytes, 4, err);
}

void sum_gpu_choose(struct sum_gpu *g, enum sum_access way)
{
	g->way = way;
}

/* Launch the first step piece by piece.  A piece consists of whole chunks, so that the order of additions is the same. */
static gpul_status launch_staged(struct sum_gpu *g, CUdeviceptr data, size_t count, CUdeviceptr out, CUstream stream, gpul_error *err)
{
	const size_t each = gpul_type_bytes(g->type), most = SUM_PIECE_BYTES / each;
	gpul_status st = g->stage ? GPUL_OK : sum_stage_create(g->drv, &g->stage, err);

	st = st ? st : sum_stage_begin(g->stage, stream, err);
	while (!st && count) {
		size_t n = count < most ? count : most;
		CUdeviceptr piece;

		st = sum_stage_copy(g->stage, data, n * each, stream, &piece, err);
		st = st ? st : launch_step(g, g->type, piece, n, out, stream, err);
		st = st ? st : sum_stage_release(g->stage, stream, err);
		data += n * each;
		out += sum_chunks(g->type, n) * 8;
		count -= n;
	}
	return st;
}
static_assert(SUM_PIECE_BYTES % SUM_CHUNK_BYTES == 0, "a piece consists of whole chunks");

gpul_status sum_gpu_start(struct sum_gpu *g, CUdeviceptr data, size_t count, CUstream stream, gpul_error *err)
{
	size_t n = sum_chunks(g->type, count);
	CUdeviceptr out = g->sums;
	gpul_status st;

	if (data % 16)
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot add up memory at 0x%llx: the address is not a multiple of 16",
				 (unsigned long long)data);
	if (count == 0 || count > g->max_count || n > INT32_MAX)
		return gpul_fail(err, GPUL_EINVAL, 0, "cannot add up %zu elements: expected 1 to %zu", count, g->max_count);
	if (g->way == SUM_STAGED || (g->way == SUM_QUICKEST && sum_stage_pays(g->drv, data, count * gpul_type_bytes(g->type))))
		st = launch_staged(g, data, count, out, stream, err);
	else
		st = launch_step(g, g->type, data, count, out, stream, err);
	while (!st && n > 1) {
		CUdeviceptr from = out;
		size_t n_from = n;

		n = sum_chunks(sum_type(g->type), n_from);
		out = (from + n_from * 8 + 15) & ~(CUdeviceptr)15;
		st = launch_step(g, sum_type(g->type), from, n_from, out, stream, err);
	}
	g->last = out;
	return st;
}

/* Wait for the stream with a time-out, which cuStreamSynchronize() does not have: spin at first, then poll with short sleeps. */
static gpul_status wait_for_stream(const gpul_driver *drv, CUstream stream, int timeout_ms, gpul_error *err)
{
	const uint64_t start = gpul_clock_ns();
	CUresult r;

	if (timeout_ms < 0)
		return gpul_cu(drv, err, cuStreamSynchronize(stream));
	while ((r = drv->cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
		uint64_t waited = gpul_clock_ns() - start;

		if (waited >= (uint64_t)timeout_ms * 1000000)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the GPU did not finish its sum within %d ms", timeout_ms);
		if (waited > BUSY_NS)
			nanosleep(&(struct timespec){ .tv_nsec = NAP_NS }, NULL);
	}
	return gpul_cu_status(drv, err, r, "cuStreamQuery(stream)");
}

gpul_status sum_gpu_finish(struct sum_gpu *g, CUstream stream, int timeout_ms, struct sum *out, gpul_error *err)
{
	gpul_status st = wait_for_stream(g->drv, stream, timeout_ms, err);

	*out = (struct sum){ .type = sum_type(g->type) };
	return st ? st : gpul_cu(g->drv, err, cuMemcpyDtoH(out->bytes, g->last, sizeof out->bytes));
}

gpul_status sum_on_gpu(const gpul_driver *drv, gpul_type t, CUdeviceptr data, size_t count, int timeout_ms, struct sum *out,
		       gpul_error *err)
{
	struct sum_gpu *g;
	gpul_status st = sum_gpu_create(drv, t, count, &g, err);

	if (st)
		return st;
	st = sum_gpu_start(g, data, count, NULL, err);
	st = st ? st : sum_gpu_finish(g, NULL, timeout_ms, out, err);
	sum_gpu_destroy(g);
	return st;
}

gpul_status sum_of_copy(const gpul_driver *drv, gpul_type t, CUdeviceptr data, size_t count, struct sum *out, gpul_error *err)
{
	size_t bytes = count * gpul_type_bytes(t);
	void *copy = malloc(bytes);
	gpul_status st;

	if (!copy)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a copy of %zu bytes", bytes);
	st = gpul_cu(drv, err, cuMemcpyDtoH(copy, data, bytes));
	st = st ? st : sum_on_cpu(t, copy, count, out, err);
	free(copy);
	return st;
}
