/* seed.c — random scheduling: splits (lanes that execute together) wait before accesses, barriers and *.sync that the seed selects.
 *
 * One in 2, 4, 8 or 16 of these instructions waits, depending on the seed: small kernels need many waits, but in large kernels too
 * many waits make all orders alike. A wait lasts 1 to 1024 turns of the worker, with equal probability for each power of two: short
 * delays, and long delays during which other splits, warps and blocks finish their work. One worker runs all blocks, so the seed
 * determines the whole order. */
#include "softcuda/tools/schedule/schedule_internal.h"

#include <stdlib.h>

enum { RATES = 4, LONGEST_BITS = 11 };

struct seed_block {
	uint64_t random;
	uint32_t *wait; /* for each lane: how often the worker must still skip it; UINT32_MAX: the wait has ended */
};

/* Return the next random number of the generator splitmix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

bool gpul_seed_wants(const struct insn *i)
{
	const unsigned space = i->flags & SPACE_MASK;
	const bool waits = (i->op >= OP_BAR_SYNC && i->op <= OP_BAR_WARP) || (i->op >= OP_SHFL_UP && i->op <= OP_REDUX_F32);

	return waits || (gpul_insn_accesses_memory(i) && space != SPACE_LOCAL && space != SPACE_PARAM);
}

void *gpul_seed_new_block(const struct explorer *x, const struct block *b)
{
	struct seed_block *m = malloc(sizeof *m + b->n_warps * LANES * sizeof *m->wait);

	if (!m)
		return NULL;
	m->wait = (uint32_t *)(void *)(m + 1);
	memset(m->wait, 0, b->n_warps * LANES * sizeof *m->wait);
	m->random = x->seed * 0xd1342543de82ef95u + x->launch_number * 0x2545f4914f6cdd1du + gpul_block_number(b);
	return m;
}

enum observed gpul_seed_before(struct explorer *x, struct warp_state *s, const struct insn *i)
{
	struct seed_block *m = *block_note(s->block, &x->o);
	uint32_t *wait;
	uint64_t r;

	(void)i;
	if (!m)
		return OBSERVED_RUN;
	wait = &m->wait[s->index * LANES + first_lane(s->w.mask)];
	if (*wait == UINT32_MAX) {
		*wait = 0;
		return OBSERVED_RUN;
	}
	r = next_random(&m->random);
	if (!*wait && r & ((2u << x->seed % RATES) - 1))
		return OBSERVED_RUN;
	if (!*wait)
		*wait = 1 + (uint32_t)((r >> 32) & ((1u << ((r >> 8) % LONGEST_BITS)) - 1));
	if (!--*wait)
		*wait = UINT32_MAX;
	s->block->polls = true;              /* makes the worker run and start other blocks */
	s->block->progressed |= r >> 16 & 1; /* counts as progress at random, so that the worker does not always sleep */
	return OBSERVED_YIELD;
}
