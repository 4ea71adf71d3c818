/* memory.c — computes the sizes of the buffers, registers them, and exchanges their addresses. */
#include <stdlib.h>
#include <string.h>

#include "lab/sparse/sparse_internal.h"

enum { ALIGN = 256, MEET_MS = 60 * 1000 };

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* ---- layout ------------------------------------------------------------------------------------------------------- */

void gpul_sparse_layout(gpul_comm_sparse *s)
{
	struct layout *l = &s->layout;
	const size_t block_bytes = s->options.block * sizeof(double), ranks = s->n_ranks;
	const size_t hello_bytes = aligned(sizeof(struct hello));

	l->contribution_head = aligned(HEAD_BYTES + s->most * sizeof(uint32_t));
	l->contribution_bytes = l->contribution_head + s->most * block_bytes;
	l->result_head = aligned(HEAD_BYTES + ranks * s->most * sizeof(uint32_t));
	l->result_bytes = l->result_head + ranks * s->most * block_bytes;
	l->inbox_at = 0;
	l->results_at = l->inbox_at + s->n_slots * ranks * l->contribution_bytes;
	l->heads_at = l->results_at + (size_t)s->n_streams * 2 * l->result_bytes;
	l->hellos_at = l->heads_at + (size_t)s->n_streams * 2 * l->contribution_head;
	l->own_hellos_at = l->hellos_at + 2 * ranks * hello_bytes;
	l->area_bytes = l->own_hellos_at + 2 * ranks * hello_bytes;
}

size_t gpul_sparse_inbox_at(const gpul_comm_sparse *s, uint32_t slot, uint32_t rank)
{
	return s->layout.inbox_at + ((size_t)slot * s->n_ranks + rank) * s->layout.contribution_bytes;
}

size_t gpul_sparse_result_at(const gpul_comm_sparse *s, uint32_t stream, uint32_t round)
{
	return s->layout.results_at + ((size_t)stream * 2 + round % 2) * s->layout.result_bytes;
}

/* ---- allocation --------------------------------------------------------------------------------------------------- */

gpul_status gpul_sparse_memory(gpul_comm_sparse *s, size_t n_bytes, bool registered, struct memory *out, gpul_error *err)
{
	const gpul_mem_desc desc = {
		.kind = GPUL_MEM_AUTO, .bytes = n_bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &s->device, .n_devices = 1
	};
	struct memory m = { .n_bytes = n_bytes };
	gpul_status st = gpul_mem_create(s->drv, &desc, &m.mem, err);

	if (st)
		return st;
	m.cpu = gpul_mem_cpu(m.mem);
	m.gpu = gpul_mem_gpu(m.mem);
	m.at = (uintptr_t)m.cpu;
	memset(m.cpu, 0, n_bytes);
	if (registered)
		st = gpul_rdma_register_mem(s->rdma, m.mem, GPUL_RDMA_DATA, &m.region, err);
	if (st) {
		gpul_mem_destroy(m.mem);
		return st;
	}
	*out = m;
	return GPUL_OK;
}

void gpul_sparse_memory_free(struct memory *m)
{
	gpul_rdma_unregister(m->region);
	gpul_mem_destroy(m->mem);
	*m = (struct memory){ 0 };
}

/* Set *mine to what this rank sends to the other ranks: its addresses, or, in mine->why, its failure. */
static void describe(gpul_comm_sparse *s, const gpul_error *before, struct addresses *mine)
{
	gpul_error *why = &mine->why;
	void *steps = NULL;
	gpul_status st;

	*mine = (struct addresses){ .block = s->options.block, .percent = s->options.percent, .why = *before };
	st = before->status ? before->status : gpul_sparse_memory(s, s->layout.area_bytes, true, &s->area, why);
	if (!st && posix_memalign(&steps, 4096, sizeof *s->steps))
		st = gpul_fail(why, GPUL_ENOMEM, 0, "no memory for the steps of a sparse all-reduce");
	s->steps = steps;
	if (!st) {
		memset((void *)s->steps, 0, sizeof *s->steps);
		st = gpul_rdma_register(s->rdma, s->steps, sizeof *s->steps, GPUL_RDMA_STEPS, &s->steps_region, why);
	}
	st = st ? st : gpul_rdma_offer(s->area.region, (uintptr_t)s->area.cpu, s->area.n_bytes, &mine->area, why);
	if (!st)
		(void)gpul_rdma_offer(s->steps_region, (uintptr_t)s->steps, sizeof *s->steps, &mine->steps, why);
}

gpul_status gpul_sparse_share(gpul_comm_sparse *s, const gpul_error *before, gpul_error *err)
{
	struct addresses mine, *all = calloc(s->n_ranks, sizeof *all);
	gpul_status st;

	if (!all)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the addresses of %u ranks", s->n_ranks);
	describe(s, before, &mine);
	st = gpul_boot_allgather(s->boot, &mine, sizeof mine, all, MEET_MS, err);
	for (uint32_t r = 0; !st && r < s->n_ranks; r++) {
		s->links[r].theirs = all[r];
		if (all[r].why.status)
			st = r == s->rank ? gpul_fail(err, mine.why.status, mine.why.native, "%s", mine.why.text)
					  : gpul_fail(err, GPUL_ECOMM, GPUL_COMM_RANK_FAILED, "rank %u: %.200s", r, all[r].why.text);
		else if (all[r].block != mine.block || all[r].percent != mine.percent)
			st = gpul_fail(err, GPUL_EINVAL, 0,
				       "rank %u uses blocks of %u elements and a dense limit of %u percent, but rank %u uses %u "
				       "elements and %u percent: all ranks must use the same options",
				       r, all[r].block, all[r].percent, s->rank, mine.block, mine.percent);
	}
	free(all);
	return st;
}

/* ---- a call --------------------------------------------------------------------------------------------------------- */

gpul_status gpul_sparse_room_for_tables(gpul_comm_sparse *s, gpul_error *err)
{
	const uint32_t n = s->n_blocks < 4096 ? 4096 : (s->n_blocks + WORD_BLOCKS - 1) / WORD_BLOCKS * WORD_BLOCKS;
	const uint32_t n_jobs = n / GPUL_SPARSE_JOB_BLOCKS + s->n_streams;
	const size_t items_at = aligned(n / 8), jobs_at = items_at + aligned(n * sizeof(gpul_sparse_item));
	const size_t flags_at = jobs_at + aligned(n_jobs * sizeof(gpul_sparse_job)),
		     lists_at = flags_at + aligned(n_jobs * sizeof(uint64_t));
	struct memory m;
	uint32_t *index;
	gpul_status st;

	if (s->n_blocks <= s->table_blocks)
		return GPUL_OK;
	index = malloc(n * sizeof *index);
	if (!index)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a list of %u blocks", n);
	st = gpul_sparse_memory(s, lists_at + n * sizeof(uint32_t), false, &m, err);
	if (st) {
		free(index);
		return st;
	}
	gpul_sparse_memory_free(&s->tables);
	free(s->index);
	s->tables = m;
	s->index = index;
	s->table_blocks = n;
	s->bitmap = (uint32_t *)(void *)m.cpu;
	s->items = (gpul_sparse_item *)(void *)(m.cpu + items_at);
	s->jobs = (gpul_sparse_job *)(void *)(m.cpu + jobs_at);
	s->flags = (_Atomic uint64_t *)(void *)(m.cpu + flags_at);
	s->lists = (uint32_t *)(void *)(m.cpu + lists_at);
	return GPUL_OK;
}
