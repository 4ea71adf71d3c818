/* sparse.c — creates and destroys the state of sparse all-reduces. */
#include "lab/sparse/sparse.h"

#include <stdlib.h>

#include "lab/sparse/sparse_internal.h"

enum { DEFAULT_TIMEOUT_MS = 60 * 1000, SLOTS_OF_ALL = 16, LEAST_SLOTS = 2 };

static gpul_status check_options(const gpul_comm_sparse_options *o, gpul_error *err)
{
	if (o->block % 16 || o->block > GPUL_COMM_SPARSE_MAX_BLOCK)
		return gpul_fail(err, GPUL_EINVAL, 0, "the block size is %u elements: expected a multiple of 16, at most %d", o->block,
				 GPUL_COMM_SPARSE_MAX_BLOCK);
	return GPUL_OK;
}

/* Choose the numbers of streams and blocks.  With more ranks, each rank aggregates fewer streams, so that the number of messages in
 * flight stays about the same.  If blocks are longer than usual, contributions have fewer blocks. */
static void choose_sizes(gpul_comm_sparse *s)
{
	const uint32_t n = s->n_ranks, slots = SLOTS_OF_ALL / n;
	const uint32_t by_ranks = MOST_RESULT / n < MOST_BLOCKS ? MOST_RESULT / n : MOST_BLOCKS;
	const uint32_t by_bytes = MOST_BLOCKS * GPUL_COMM_SPARSE_BLOCK / s->options.block;

	s->n_slots = slots > MOST_SLOTS ? MOST_SLOTS : slots < LEAST_SLOTS ? LEAST_SLOTS : slots;
	s->n_streams = s->n_slots * n;
	s->most = by_bytes == 0 ? 1 : by_bytes < by_ranks ? by_bytes : by_ranks;
	gpul_sparse_layout(s);
}

gpul_status gpul_comm_sparse_create(const gpul_driver *drv, int device, gpul_boot *boot, gpul_comm_mesh *mesh,
				    const gpul_comm_sparse_options *options, gpul_comm_sparse **out, gpul_error *err)
{
	const gpul_comm_sparse_options o = options ? *options : (gpul_comm_sparse_options){ 0 };
	gpul_comm_sparse *s;
	gpul_error why = { 0 };
	gpul_status st = check_options(&o, err);

	if (st)
		return st;
	s = calloc(1, sizeof *s);
	if (!s)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a sparse all-reduce");
	*s = (gpul_comm_sparse){ .drv = drv,
				 .device = device,
				 .boot = boot,
				 .rdma = gpul_comm_mesh_rdma(mesh),
				 .options = o,
				 .rank = (uint32_t)gpul_boot_rank(boot),
				 .n_ranks = (uint32_t)gpul_boot_size(boot) };
	s->options.block = o.block ? o.block : GPUL_COMM_SPARSE_BLOCK;
	s->options.percent = o.percent ? o.percent : GPUL_COMM_SPARSE_PERCENT;
	s->options.timeout_ms = o.timeout_ms ? o.timeout_ms : DEFAULT_TIMEOUT_MS;
	for (uint32_t r = 0; r < s->n_ranks; r++)
		s->links[r].conn = r == s->rank ? NULL : gpul_comm_mesh_conn(mesh, (int)r);
	choose_sizes(s);
	st = gpul_sparse_gpu_open(s, err);
	if (!st) {
		(void)gpul_sparse_choose_packed(s, &why);
		st = gpul_sparse_share(s, &why, err);
	}
	if (st) {
		gpul_comm_sparse_destroy(s);
		return st;
	}
	*out = s;
	return GPUL_OK;
}

const char *gpul_comm_sparse_memory(const gpul_comm_sparse *s)
{
	return s->where;
}

void gpul_comm_sparse_destroy(gpul_comm_sparse *s)
{
	if (!s)
		return;
	gpul_sparse_gpu_close(s);
	gpul_sparse_memory_free(&s->area);
	for (unsigned i = 0; i < N_PACKED; i++)
		gpul_sparse_memory_free(&s->packed[i]);
	gpul_sparse_memory_free(&s->tables);
	gpul_rdma_unregister(s->steps_region);
	free(s->steps);
	free(s->index);
	free(s);
}
