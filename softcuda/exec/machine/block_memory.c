/* block_memory.c — creates a block's state: warps, special registers, local and shared memory.
 *
 * A worker thread keeps the memory of ended blocks.  The next block of the same kernel and shape reuses that memory and its layout,
 * so that only the special registers which differ between blocks (%ctaid ...) are written again. */
#include <stdlib.h>

#include "softcuda/exec/warp/warp_internal.h"

/* SHARED_ALIGN: swizzled layouts of shared memory need up to 1024 bytes.  MAX_KEPT: maximum number of free blocks that a worker keeps. */
enum { ALIGN = 64, SHARED_ALIGN = 1024, MAX_KEPT = 64 };

static size_t align_up(size_t bytes)
{
	return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static uint8_t *align_address(uint8_t *at, size_t align)
{
	return at + (-(uintptr_t)at & (align - 1));
}

/* Return the alignment of a thread's local memory if it is larger than a cache line; else 0. */
static size_t local_align(const gpul_exec_kernel *k)
{
	return k->code->local_align > ALIGN ? k->code->local_align : 0;
}

/* Return the distance between the local memories of two lanes: an odd number of cache lines, so that the same variable of different
 * lanes is in different cache sets; or, if a variable needs more alignment than a cache line, a multiple of that. */
static size_t local_stride(const gpul_exec_kernel *k)
{
	size_t bytes = align_up(k->stack_bytes), align = local_align(k);

	if (align)
		return (bytes + align - 1) & ~(align - 1);
	return !bytes ? 0 : bytes / ALIGN % 2 ? bytes : bytes + ALIGN;
}

static struct block_shape shape_of(const struct gpul_exec_launch *l)
{
	struct block_shape shape = { .program_id = l->kernel->code->program->id, .kernel = l->kernel, .dynamic_bytes = l->dynamic_bytes };

	memcpy(shape.block, l->block, sizeof shape.block);
	return shape;
}

static bool same_shape(const struct block_shape *a, const struct block_shape *b)
{
	return a->program_id == b->program_id && a->kernel == b->kernel && a->block[0] == b->block[0] && a->block[1] == b->block[1] &&
	       a->block[2] == b->block[2] && a->dynamic_bytes == b->dynamic_bytes;
}

/* ---- layout of a block's memory -------------------------------------------------------------------- */

/* Lay out a block's memory: warps │ special registers of each warp │ shared memory │ local memory of each warp's lanes. */
static void lay_out_block(struct block *b, const struct gpul_exec_launch *l, uint8_t *scratch)
{
	const struct gpul_exec_program *p = l->kernel->code->program;
	size_t stride = local_stride(l->kernel), specials = align_up(gpul_specials_bytes(p));
	uint8_t *at = b->memory;

	b->warps = (struct warp_state *)(void *)at;
	at += align_up(b->n_warps * sizeof *b->warps);
	memset(b->warps, 0, b->n_warps * sizeof *b->warps);
	for (unsigned k = 0; k < b->n_warps; k++, at += specials)
		b->warps[k].w.bank[BANK_SPECIALS] = at;
	b->shared = at = l->shared_bytes ? align_address(at, SHARED_ALIGN) : at;
	at += align_up(l->shared_bytes);
	if (local_align(l->kernel))
		at = align_address(at, local_align(l->kernel));
	for (unsigned k = 0; k < b->n_warps; k++, at += LANES * stride) {
		struct warp_state *s = &b->warps[k];

		s->w.bank[BANK_CONSTS] = p->consts.bytes;
		s->w.bank[BANK_SCRATCH] = scratch;
		s->local = at;
		s->local_stride = stride;
		s->local_bytes = l->kernel->stack_bytes;
		s->shared = b->shared;
		s->shared_bytes = l->shared_bytes;
		s->block = b;
		s->index = k;
	}
}

static size_t memory_needed(const struct gpul_exec_launch *l, unsigned n_warps)
{
	size_t each = align_up(gpul_specials_bytes(l->kernel->code->program)) + LANES * local_stride(l->kernel);

	return align_up(n_warps * sizeof(struct warp_state)) + n_warps * each + align_up(l->shared_bytes) + ALIGN +
	       (l->shared_bytes ? SHARED_ALIGN : 0) + local_align(l->kernel);
}

static bool start_warp(struct warp_state *s, const struct gpul_exec_launch *l)
{
	uint32_t first = s->index * LANES, here = s->block->n_threads - first;
	uint32_t mask = here >= LANES ? ALL_LANES : (1u << here) - 1;
	struct frame *f = gpul_frame_create(s->block->worker, l->kernel->code);

	s->n_splits = 0;
	if (!f)
		return false;
	s->cache = &s->block->worker->cache[l->device];
	s->params = l->params;
	s->param_bytes = l->kernel->info.param_bytes;
	s->w.live = mask;
	s->w.cc = 0;
	s->done = false;
	s->n_instructions = 0;
	memset(s->arrived, 0, sizeof s->arrived);
	s->sleep_at = NULL;
	gpul_split_start(s, l->kernel->code->insns, f, mask);
	return true;
}

/* Take a free block of this shape, else any free block, else a new one; NULL: out of memory. */
static struct block *take_block(struct worker *k, const struct block_shape *shape)
{
	struct block **at, *b;

	for (at = &k->free_blocks; *at && !same_shape(&(*at)->shape, shape); at = &(*at)->next)
		;
	if (!*at)
		at = &k->free_blocks;
	b = *at;
	if (b)
		*at = b->next;
	else
		b = calloc(1, sizeof *b);
	if (b)
		b->worker = k;
	k->n_free_blocks -= k->n_free_blocks > 0;
	return b;
}

static void free_block(struct block *b)
{
	free(b->memory);
	free(b);
}

/* Compute the block's position in the grid (%ctaid) from its index, which counts the blocks cluster by cluster. */
static void place_block(struct block *b, const struct gpul_exec_launch *l, uint64_t index)
{
	uint64_t cluster = index / l->cluster_blocks, rank = index % l->cluster_blocks;

	for (unsigned k = 0; k < 3; k++) {
		const uint32_t n = l->grid[k] / l->cluster[k];

		b->index[k] = (uint32_t)(cluster % n * l->cluster[k] + rank % l->cluster[k]);
		cluster /= n;
		rank /= l->cluster[k];
	}
}

struct block *gpul_block_create(struct worker *k, struct gpul_exec_launch *l, uint64_t index)
{
	struct block_shape shape = shape_of(l);
	struct block *b = take_block(k, &shape);
	bool fresh = b && !same_shape(&b->shape, &shape);
	size_t need;

	if (!b)
		return NULL;
	b->launch = l;
	b->n_threads = b->n_live = l->block[0] * l->block[1] * l->block[2];
	b->n_warps = (b->n_threads + LANES - 1) / LANES;
	b->n_done = 0;
	b->shared_bytes = l->shared_bytes;
	place_block(b, l, index);
	b->cluster = NULL;
	b->nest = NULL;
	memset(b->barriers, 0, sizeof b->barriers);
	need = memory_needed(l, b->n_warps);
	if (need > b->memory_bytes) {
		free(b->memory);
		b->memory_bytes = 0;
		b->memory = aligned_alloc(ALIGN, align_up(need));
		if (!b->memory) {
			free(b);
			return NULL;
		}
		b->memory_bytes = need;
		fresh = true;
	}
	if (fresh)
		lay_out_block(b, l, k->scratch);
	b->shape = shape;
	gpul_specials_write(b, fresh);
	for (unsigned n = 0; n < b->n_warps; n++) {
		if (!start_warp(&b->warps[n], l)) {
			b->n_warps = n;
			gpul_block_release(b);
			return NULL;
		}
	}
	return b;
}

void gpul_block_release(struct block *b)
{
	struct worker *k = b->worker;
	uint64_t n_instructions = 0;

	gpul_cluster_remove(b);
	if (b->nest)
		b->launch->machine->nests->block_ends(b);
	for (unsigned n = 0; n < b->n_warps; n++) {
		struct warp_state *s = &b->warps[n];

		n_instructions += s->n_instructions;
		for (unsigned p = 0; p < s->n_splits; p++)
			gpul_frame_leave(k, s->splits[p].frame, s->splits[p].mask);
		s->n_splits = 0;
	}
	atomic_fetch_add_explicit(&b->launch->n_instructions, n_instructions, memory_order_relaxed);
	if (k->n_free_blocks >= MAX_KEPT) {
		free_block(b);
		return;
	}
	b->next = k->free_blocks;
	k->free_blocks = b;
	k->n_free_blocks++;
}

void gpul_worker_free_memory(struct worker *k)
{
	while (k->free_blocks) {
		struct block *next = k->free_blocks->next;

		free_block(k->free_blocks);
		k->free_blocks = next;
	}
	for (unsigned c = 0; c < sizeof k->free_frames / sizeof k->free_frames[0]; c++)
		while (k->free_frames[c]) {
			struct frame *next = k->free_frames[c]->parent;

			free(k->free_frames[c]);
			k->free_frames[c] = next;
		}
	free(k->resident);
	free(k->scratch);
}
