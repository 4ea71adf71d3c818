/* specials.c — the special registers of a block's warps: PTX ISA 9.0, chapter 10.
 *
 * Bank 2 of a warp has the special registers that the program reads (program_internal.h), with 32 lanes each.  They are written when
 * the block starts; registers that only a function decoded later reads are written then. */
#include "softcuda/exec/warp/warp_internal.h"

/* Return true if the register has the same values in all blocks of one shape (struct block_shape). */
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

/* Return the value of a special register that describes the cluster. */
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
		return l->cluster_blocks > 1 ? UINT32_MAX : 0; /* a predicate: true in all lanes */
	default:
		return 0;
	}
}

/* Return the value of a special register that is the same for all threads of a block. */
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

/* Write a special register that is the same in all lanes.  If `fresh` is false, the memory still has the value of the previous block
 * in all lanes, because no instruction writes special registers. */
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

/* Set registers of module scope to 0, so that a kernel that reads them before writing them behaves in the same way in each run. */
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

/* Write a special register of all warps.  A register whose value depends only on the shape of the block is written only if the memory is new: used memory already contains it. */
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

void gpul_specials_write(struct block *b, bool fresh)
{
	const struct gpul_exec_program *p = b->launch->kernel->code->program;
	const uint32_t n = atomic_load_explicit(&p->n_ready_specials, memory_order_acquire);

	clear_module_registers(b, p);
	for (uint32_t k = 0; k < n; k++)
		write_special(b, &p->specials[k], fresh || k >= b->n_specials);
	b->n_specials = n;
}

void gpul_specials_add(struct block *b)
{
	const struct gpul_exec_program *p = b->launch->kernel->code->program;
	const uint32_t n = atomic_load_explicit(&p->n_ready_specials, memory_order_acquire);

	for (; b->n_specials < n; b->n_specials++)
		write_special(b, &p->specials[b->n_specials], true);
}

size_t gpul_specials_bytes(const struct gpul_exec_program *p)
{
	return p->need ? MAX_SPECIAL_SLOTS * 8 * LANES : p->specials_bytes;
}
