/* gpu.c — launches the kernels of a sparse all-reduce.
 *
 *     user's stream    bitmap ─┬─ pack ─────────────────────────────┬─ what the user puts on it later
 *     own stream               └─ clear ─ scatter ─ scatter ─ ... ──┘
 *
 * In place, a scatter kernel writes a block only after this rank's own block has been packed and sent. */
#include "lab/sparse/sparse_internal.h"
#include "loader/embedded.h"

GPUL_EMBED(sparse_bitmap_ptx, "lab/sparse/sparse_bitmap.ptx");
GPUL_EMBED(sparse_pack_ptx, "lab/sparse/sparse_pack.ptx");
GPUL_EMBED(sparse_scatter_ptx, "lab/sparse/sparse_scatter.ptx");

enum { WARP = 32, WARPS = GPUL_SPARSE_THREADS / WARP, MOST_GRID = 1024 };

static gpul_status load(gpul_comm_sparse *s, unsigned which, const gpul_embedded *file, CUfunction *out, gpul_error *err)
{
	const gpul_kernel *k;
	gpul_status st = gpul_module_load_embedded(s->drv, file, &s->modules[which], err);

	st = st ? st : gpul_kernel_find(s->modules[which], NULL, &k, err);
	st = st ? st : gpul_kernel_prepare(k, err);
	return st ? st : gpul_kernel_function(k, out, err);
}

gpul_status gpul_sparse_gpu_open(gpul_comm_sparse *s, gpul_error *err)
{
	gpul_status st = load(s, 0, &sparse_bitmap_ptx, &s->bitmap_kernel, err);

	st = st ? st : load(s, 1, &sparse_pack_ptx, &s->pack_kernel, err);
	st = st ? st : load(s, 2, &sparse_scatter_ptx, &s->scatter_kernel, err);
	st = st ? st : gpul_cu(s->drv, err, cuStreamCreate(&s->stream, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_cu(s->drv, err, cuEventCreate(&s->begun, CU_EVENT_DISABLE_TIMING));
	return st ? st : gpul_cu(s->drv, err, cuEventCreate(&s->scattered, CU_EVENT_DISABLE_TIMING));
}

void gpul_sparse_gpu_close(gpul_comm_sparse *s)
{
	if (s->stream) {
		(void)s->drv->cuStreamSynchronize(s->stream);
		(void)s->drv->cuStreamDestroy(s->stream);
	}
	if (s->begun)
		(void)s->drv->cuEventDestroy(s->begun);
	if (s->scattered)
		(void)s->drv->cuEventDestroy(s->scattered);
	for (unsigned i = 0; i < sizeof s->modules / sizeof *s->modules; i++)
		gpul_module_unload(s->modules[i]);
}

static CUdeviceptr table(const gpul_comm_sparse *s, const void *at)
{
	return s->tables.gpu + (CUdeviceptr)((const unsigned char *)at - s->tables.cpu);
}

static unsigned grid_of(uint32_t n_warps)
{
	const uint32_t n = (n_warps + WARPS - 1) / WARPS;

	return n < MOST_GRID ? n : MOST_GRID;
}

static gpul_status launch(gpul_comm_sparse *s, CUfunction kernel, unsigned grid, CUstream stream, void **arguments, gpul_error *err)
{
	return gpul_cu(s->drv, err, cuLaunchKernel(kernel, grid, 1, 1, GPUL_SPARSE_THREADS, 1, 1, 0, stream, arguments, NULL));
}

gpul_status gpul_sparse_find_blocks(gpul_comm_sparse *s, gpul_error *err)
{
	CUdeviceptr bitmap = table(s, s->bitmap);
	uint64_t n_bytes = s->n_bytes;
	void *arguments[] = { &s->send, &n_bytes, &s->block_bytes, &s->n_blocks, &bitmap };
	gpul_status st = launch(s, s->bitmap_kernel, grid_of((s->n_blocks + WORD_BLOCKS - 1) / WORD_BLOCKS), s->user, arguments, err);

	st = st ? st : gpul_cu(s->drv, err, cuEventRecord(s->begun, s->user));
	st = st ? st : gpul_cu(s->drv, err, cuEventSynchronize(s->begun));
	if (!st && s->batch) /* wait for the previous call, because its buffers are reused */
		st = gpul_cu(s->drv, err, cuEventSynchronize(s->scattered));
	s->batches_done = s->batch;
	return st;
}

gpul_status gpul_sparse_pack(gpul_comm_sparse *s, gpul_error *err)
{
	CUdeviceptr lists = table(s, s->lists), jobs = table(s, s->jobs), flags = table(s, (const void *)s->flags);
	uint64_t n_bytes = s->n_bytes, call = s->call;
	void *arguments[] = { &s->send, &n_bytes, &s->block_bytes, &lists, &jobs, &flags, &call };
	gpul_status st;

	s->packs = true;
	if (s->n_non_zero == 0)
		return GPUL_OK;
	st = gpul_sparse_room_for_packed(s, err);
	if (st)
		return st;
	gpul_sparse_plan_jobs(s);
	return launch(s, s->pack_kernel, s->n_jobs, s->user, arguments, err);
}

gpul_status gpul_sparse_clear(gpul_comm_sparse *s, gpul_error *err)
{
	gpul_status st;

	if (s->send == s->recv) /* blocks that are zero on all ranks are never scattered; in place, they are zero already */
		return GPUL_OK;
	st = gpul_cu(s->drv, err, cuStreamWaitEvent(s->stream, s->begun, 0));
	return st ? st : gpul_cu(s->drv, err, cuMemsetD8Async(s->recv, 0, s->n_bytes, s->stream));
}

gpul_status gpul_sparse_scatter(gpul_comm_sparse *s, gpul_error *err)
{
	uint32_t n = s->n_items - s->n_launched;
	CUdeviceptr items = table(s, s->items + s->n_launched);
	uint64_t n_bytes = s->n_bytes;
	void *arguments[] = { &s->recv, &n_bytes, &s->block_bytes, &items, &n };
	gpul_status st;

	if (s->batches_done < s->batch) {
		const CUresult r = s->drv->cuEventQuery(s->scattered);

		if (r == CUDA_ERROR_NOT_READY)
			return GPUL_OK;
		if (r)
			return gpul_cu_status(s->drv, err, r, "cuEventQuery(scattered)");
		s->batches_done = s->batch;
		s->n_events++;
	}
	if (n == 0)
		return GPUL_OK;
	st = launch(s, s->scatter_kernel, grid_of(n), s->stream, arguments, err);
	st = st ? st : gpul_cu(s->drv, err, cuEventRecord(s->scattered, s->stream));
	if (st)
		return st;
	s->n_launched = s->n_items;
	s->batch++;
	for (uint32_t i = 0; i < 2 * s->n_streams; i++) {
		struct arrival *a = &s->streams[i / 2].arrivals[i % 2];

		if (a->full)
			*a = (struct arrival){ .batch = s->batch };
	}
	return GPUL_OK;
}

gpul_status gpul_sparse_finish(gpul_comm_sparse *s, gpul_error *err)
{
	gpul_status st = gpul_cu(s->drv, err, cuEventRecord(s->scattered, s->stream));

	return st ? st : gpul_cu(s->drv, err, cuStreamWaitEvent(s->user, s->scattered, 0));
}
