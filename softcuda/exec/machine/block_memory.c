/* block_memory.c — creates a block's state: warps, special registers, local and shared memory.
 *
 * A worker keeps the memory of ended blocks.  The next block of the same kernel and shape reuses the layout,
 * and only special registers that differ between blocks (%ctaid ...) are written again. */
#include <stdlib.h>

#include "softcuda/exec/warp/warp_internal.h"

/* SHARED_ALIGN: instructions and swizzled layouts of shared memory need up to 1024 bytes. */
enum { ALIGN = 64, SHARED_ALIGN = 1024, MAX_KEPT = 64 };

static size_t align_up(size_t bytes)
{
	return (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static uint8_t *align_address(uint8_t *at, size_t align)
{
	return at + (-(uintptr_t)at & (align - 1));
}

/* The alignment of a thread's local memory if it is larger than a cache line; else 0. */
static size_t local_align(const gpul_exec_kernel *k)
{
	return k->code->local_align > ALIGN ? k->code->local_align : 0;
}

/* Distance between the local memories of two lanes: an odd number of cache lines, so that lanes do not share cache
 * sets, unless variables need a larger alignment. */
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

/* ---- special registers: PTX ISA 9.0, chapter 10 --------------------------------------------------- */

/* True: the register has the same values in all blocks of one shape. */
static bool is_fixed_by_shape(unsigned special)
{
	switch (special) {
	case GPUL_PTX_SREG_TID_X:
	case GPUL_PTX_SREG_TID_Y:
	case GPUL_PTX_SREG_TID_Z:
	case GPUL_PTX_SREG_NTID_X:
	case GPUL_PTX_SREG_NTID_Y:
	case GPUL_PTX_SREG_NTID_Z:
	case GPUL_PTX_SREG_LANEID:
	case GPUL_PTX_SREG_WARPID:
	case GPUL_PTX_SREG_NWARPID:
	case GPUL_PTX_SREG_LANEMASK_EQ:
	case GPUL_PTX_SREG_LANEMASK_LE:
	case GPUL_PTX_SREG_LANEMASK_LT:
	case GPUL_PTX_SREG_LANEMASK_GE:
	case GPUL_PTX_SREG_LANEMASK_GT:
	case GPUL_PTX_SREG_TOTAL_SMEM_SIZE:
	case GPUL_PTX_SREG_AGGR_SMEM_SIZE:
	case GPUL_PTX_SREG_DYNAMIC_SMEM_SIZE:
		return true;
	default:
		return false;
	}
}

static uint64_t fixed_special(const struct warp_state *s, unsigned special, unsigned lane)
{
	const uint32_t *n = s->block->shape.block;
	uint32_t t = s->index * LANES + lane;

	switch (special) {
	case GPUL_PTX_SREG_TID_X:
		return t % n[0];
	case GPUL_PTX_SREG_TID_Y:
		return t / n[0] % n[1];
	case GPUL_PTX_SREG_TID_Z:
		return t / (n[0] * n[1]);
	case GPUL_PTX_SREG_NTID_X:
		return n[0];
	case GPUL_PTX_SREG_NTID_Y:
		return n[1];
	case GPUL_PTX_SREG_NTID_Z:
		return n[2];
	case GPUL_PTX_SREG_LANEID:
		return lane;
	case GPUL_PTX_SREG_WARPID:
		return s->index;
	case GPUL_PTX_SREG_NWARPID:
		return s->block->n_warps;
	case GPUL_PTX_SREG_LANEMASK_EQ:
		return 1u << lane;
	case GPUL_PTX_SREG_LANEMASK_LE:
		return 0xffffffffu >> (31 - lane);
	case GPUL_PTX_SREG_LANEMASK_LT:
		return (1u << lane) - 1;
	case GPUL_PTX_SREG_LANEMASK_GE:
		return 0xffffffffu << lane;
	case GPUL_PTX_SREG_LANEMASK_GT:
		return 0xfffffffeu << lane;
	case GPUL_PTX_SREG_TOTAL_SMEM_SIZE:
		return whole_shared_units(program_shared_bytes(s->block->launch));
	case GPUL_PTX_SREG_AGGR_SMEM_SIZE:
		return whole_shared_units(program_shared_bytes(s->block->launch)) + RESERVED_SMEM_BYTES;
	case GPUL_PTX_SREG_DYNAMIC_SMEM_SIZE:
		return s->block->shape.dynamic_bytes;
	default:
		return 0;
	}
}

/* The value of a special register that describes the cluster. */
static uint64_t cluster_special(const struct block *b, unsigned special)
{
	const struct gpul_exec_launch *l = b->launch;

	switch (special) {
	case GPUL_PTX_SREG_CLUSTERID_X:
		return b->index[0] / l->cluster[0];
	case GPUL_PTX_SREG_CLUSTERID_Y:
		return b->index[1] / l->cluster[1];
	case GPUL_PTX_SREG_CLUSTERID_Z:
		return b->index[2] / l->cluster[2];
	case GPUL_PTX_SREG_NCLUSTERID_X:
		return l->grid[0] / l->cluster[0];
	case GPUL_PTX_SREG_NCLUSTERID_Y:
		return l->grid[1] / l->cluster[1];
	case GPUL_PTX_SREG_NCLUSTERID_Z:
		return l->grid[2] / l->cluster[2];
	case GPUL_PTX_SREG_CLUSTER_CTAID_X:
		return b->index[0] % l->cluster[0];
	case GPUL_PTX_SREG_CLUSTER_CTAID_Y:
		return b->index[1] % l->cluster[1];
	case GPUL_PTX_SREG_CLUSTER_CTAID_Z:
		return b->index[2] % l->cluster[2];
	case GPUL_PTX_SREG_CLUSTER_NCTAID_X:
		return l->cluster[0];
	case GPUL_PTX_SREG_CLUSTER_NCTAID_Y:
		return l->cluster[1];
	case GPUL_PTX_SREG_CLUSTER_NCTAID_Z:
		return l->cluster[2];
	case GPUL_PTX_SREG_CLUSTER_NCTARANK:
		return l->cluster_blocks;
	case GPUL_PTX_SREG_CLUSTER_CTARANK:
		return b->index[0] % l->cluster[0] +
		       l->cluster[0] * (b->index[1] % l->cluster[1] + l->cluster[1] * (uint64_t)(b->index[2] % l->cluster[2]));
	case GPUL_PTX_SREG_IS_EXPLICIT_CLUSTER:
		return l->cluster_blocks > 1 ? UINT32_MAX : 0; /* a predicate */
	default:
		return 0;
	}
}

/* The value of a special register that is the same in all lanes of a block. */
static uint64_t block_special(const struct block *b, unsigned special)
{
	const struct gpul_exec_launch *l = b->launch;

	switch (special) {
	case GPUL_PTX_SREG_CTAID_X:
		return b->index[0];
	case GPUL_PTX_SREG_CTAID_Y:
		return b->index[1];
	case GPUL_PTX_SREG_CTAID_Z:
		return b->index[2];
	case GPUL_PTX_SREG_NCTAID_X:
		return l->grid[0];
	case GPUL_PTX_SREG_NCTAID_Y:
		return l->grid[1];
	case GPUL_PTX_SREG_NCTAID_Z:
		return l->grid[2];
	case GPUL_PTX_SREG_SMID:
		return b->worker->index;
	case GPUL_PTX_SREG_NSMID:
		return b->worker->machine->n_workers;
	case GPUL_PTX_SREG_GRIDID:
		return l->grid_id;
	case GPUL_PTX_SREG_ENVREG1:
		return (uint64_t)(uintptr_t)l->workspace >> 32;
	case GPUL_PTX_SREG_ENVREG2:
		return (uint32_t)(uintptr_t)l->workspace;
	case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_BEGIN:
	case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_0:
		return l->reserved_base;
	case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_1:
		return l->reserved_base + RESERVED_SMEM_BYTES / 2;
	case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_END:
		return l->reserved_base + RESERVED_SMEM_BYTES;
	case GPUL_PTX_SREG_RESERVED_SMEM_OFFSET_CAP:
		return RESERVED_SMEM_BYTES;
	case SPECIAL_SHARED_DYNAMIC:
		return l->dynamic_base;
	default:
		return cluster_special(b, special);
	}
}

/* Write a special register that is the same in all lanes.  No instruction writes special registers, so memory that is not fresh
 * still has the previous block's value in all lanes. */
static void write_equal(uint8_t *slot, unsigned bytes, uint64_t value, bool fresh)
{
	typedef uint32_t four __attribute__((vector_size(16), may_alias));
	four *row = __builtin_assume_aligned(slot, 64);
	const uint32_t v = (uint32_t)value;

	if (bytes == 4 && !fresh && row[0][0] == v)
		return;
	if (bytes == 4) {
#pragma GCC unroll 8
		for (unsigned k = 0; k < LANES / 4; k++)
			row[k] = (four){ v, v, v, v };
		return;
	}
	for (unsigned l = 0; l < LANES; l++)
		memcpy(slot + l * bytes, &value, bytes);
}

/* Set registers of module scope to 0, so that a kernel that reads one before writing it behaves the same each time. */
static void clear_module_registers(struct block *b, const struct gpul_exec_program *p)
{
	const gpul_ptx_module *m = p->module;

	for (uint32_t k = 0; k < m->n_regs; k++) {
		const gpul_ptx_regs *row = &m->regs[k];
		const unsigned bytes = gpul_ptx_type_bytes(row->type);
		const size_t slot_bytes = bytes ? (size_t)(bytes == 1 ? 2 : bytes) * LANES : sizeof(uint32_t);

		for (uint32_t flat = row->first; flat < row->first + row->count * row->vector; flat++)
			for (unsigned n = 0; p->module_reg_offset[flat] != UINT32_MAX && n < b->n_warps; n++)
				memset(b->warps[n].w.bank[BANK_SPECIALS] + p->module_reg_offset[flat], 0, slot_bytes);
	}
}

/* Write a special register of all warps; one that is fixed by the shape only if its memory is fresh. */
static void write_special(struct block *b, const struct special_slot *r, bool fresh)
{
	const bool fixed = is_fixed_by_shape(r->special);
	uint64_t value = fixed ? 0 : block_special(b, r->special);

	for (unsigned n = 0; n < b->n_warps && (fresh || !fixed); n++) {
		struct warp_state *s = &b->warps[n];
		uint8_t *slot = s->w.bank[BANK_SPECIALS] + r->offset;

		if (!fixed) {
			write_equal(slot, r->bytes, value, fresh);
			continue;
		}
		for (unsigned l = 0; l < LANES; l++) {
			value = fixed_special(s, r->special, l);
			memcpy(slot + l * r->bytes, &value, r->bytes);
		}
	}
}

static void write_specials(struct block *b, bool fresh)
{
	const struct gpul_exec_program *p = b->launch->kernel->code->program;
	const uint32_t n = atomic_load_explicit(&p->n_ready_specials, memory_order_acquire);

	clear_module_registers(b, p);
	for (uint32_t k = 0; k < n; k++)
		write_special(b, &p->specials[k], fresh || k >= b->n_specials);
	b->n_specials = n;
}

void gpul_block_new_specials(struct block *b)
{
	const struct gpul_exec_program *p = b->launch->kernel->code->program;
	const uint32_t n = atomic_load_explicit(&p->n_ready_specials, memory_order_acquire);

	for (; b->n_specials < n; b->n_specials++)
		write_special(b, &p->specials[b->n_specials], true);
}

/* The size of a warp's special registers, with those that functions may add while it runs. */
static size_t specials_room(const struct gpul_exec_program *p)
{
	return align_up(p->decodes_later ? MAX_SPECIAL_SLOTS * 8 * LANES : p->specials_bytes);
}

/* ---- layout ---------------------------------------------------------------------------------------- */

/* Lay out a block: warps │ special registers of each │ shared memory │ local memory of each warp's lanes. */
static void lay_out_block(struct block *b, const struct gpul_exec_launch *l, uint8_t *scratch)
{
	const struct gpul_exec_program *p = l->kernel->code->program;
	size_t stride = local_stride(l->kernel), specials = specials_room(p);
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
	size_t each = specials_room(l->kernel->code->program) + LANES * local_stride(l->kernel);

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

/* Compute the block's position in the grid from its index; blocks are numbered cluster by cluster. */
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
	write_specials(b, fresh);
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
