/* entity.c — collects the splits (groups of lanes that execute together) of a launch that are about to make an access. */
#include "softcuda/tools/schedule/schedule_internal.h"

uint64_t gpul_block_number(const struct block *b)
{
	const uint32_t *grid = b->launch->grid;

	return b->index[0] + grid[0] * (b->index[1] + (uint64_t)grid[1] * b->index[2]);
}

static bool is_watched(const struct explorer *x, const struct split *p)
{
	const struct func_code *code = p->frame->code;

	return code->observed[p->pc - code->insns].observers & x->o.bit && gpul_insn_accesses_memory(p->pc);
}

static uint64_t digest_registers(const struct frame *f)
{
	const uint64_t *word = (const uint64_t *)(const void *)f->regs;
	uint64_t sum = 0;

	for (uint32_t k = 0; k < f->code->frame_bytes / sizeof *word; k++) {
		sum = (sum ^ word[k]) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 32;
	}
	return sum;
}

/* Describe the access that a suspended split (group of lanes), or the current one at instruction i, is about to make; false: none. */
static bool describe_split(struct warp_state *s, const struct split *p, const struct insn *i, struct entity *out)
{
	struct frame *frame = s->frame;
	uint8_t *regs = s->w.bank[BANK_REGS];
	const uint64_t block = gpul_block_number(s->block);
	uint32_t on;
	bool accesses;

	s->frame = p->frame;
	s->w.bank[BANK_REGS] = p->frame->regs;
	on = gpul_insn_lanes(s, i, p->mask);
	*out = (struct entity){ .block = (uint32_t)block, .warp = s->index, .lanes = p->mask, .code = p->frame->code, .insn = i };
	accesses = on && gpul_footprint_make(s, i, on, block, &out->footprint);
	out->digest = accesses ? digest_registers(p->frame) : 0;
	s->frame = frame;
	s->w.bank[BANK_REGS] = regs;
	return accesses;
}

/* A fast test: returns true if every other split (group of lanes) of the warp has reached its next access, or waits for lanes. */
static bool is_settled(const struct explorer *x, const struct warp_state *t, const struct warp_state *s)
{
	for (unsigned k = 0; k < t->n_splits; k++) {
		const struct split *p = &t->splits[k];

		if (!(t == s && k == s->current) && p->state != SPLIT_BARRIER && p->state != SPLIT_SYNC && !is_watched(x, p))
			return false;
	}
	return true;
}

static bool collect_warp(const struct explorer *x, struct warp_state *t, const struct warp_state *s, const struct insn *i,
			 struct entity out[MAX_ENTITIES], unsigned *n)
{
	for (unsigned k = 0; k < t->n_splits; k++) {
		const struct split *p = &t->splits[k];
		const bool current = t == s && k == s->current;

		if (!current && (p->state == SPLIT_BARRIER || p->state == SPLIT_SYNC))
			continue;
		if ((!current && !is_watched(x, p)) || *n == MAX_ENTITIES || !describe_split(t, p, current ? i : p->pc, &out[*n]))
			return false;
		(*n)++;
	}
	return true;
}

bool gpul_entities_collect(const struct explorer *x, struct warp_state *s, const struct insn *i, struct entity out[MAX_ENTITIES],
			   unsigned *n)
{
	const struct gpul_exec_launch *l = x->launch;
	bool settled = x->n_begun >= l->n_blocks || x->n_blocks >= l->max_resident;

	*n = 0;
	for (unsigned b = 0; settled && b < x->n_blocks; b++)
		for (unsigned w = 0; settled && w < x->blocks[b]->n_warps; w++)
			settled = x->blocks[b]->warps[w].done || is_settled(x, &x->blocks[b]->warps[w], s);
	for (unsigned b = 0; settled && b < x->n_blocks; b++)
		for (unsigned w = 0; settled && w < x->blocks[b]->n_warps; w++)
			if (!x->blocks[b]->warps[w].done)
				settled = collect_warp(x, &x->blocks[b]->warps[w], s, i, out, n);
	for (unsigned k = 0; !settled && k < *n; k++)
		gpul_footprint_free(&out[k].footprint);
	return settled;
}
