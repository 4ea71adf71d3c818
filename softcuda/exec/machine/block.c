/* block.c — runs the warps of a block in turns; reports a deadlock when none of them can run. */
#include "softcuda/exec/warp/warp_internal.h"

enum { TURNS = 256 }; /* number of turns of each warp after which a block lets other blocks run even if it does not poll */

/* No warp of the block can run: report a fault that names what the first unfinished warp waits for. */
static void report_deadlock(struct block *b)
{
	for (unsigned k = 0; k < b->n_warps; k++) {
		struct warp_state *s = &b->warps[k];
		const struct split *p = &s->splits[0];
		const struct barrier *r;

		if (s->done)
			continue;
		s->frame = p->frame;
		if (p->state == SPLIT_SYNC) {
			gpul_fault_text(s, p->pc, GPUL_EXEC_TRAP, first_lane(p->mask),
					"lanes 0x%08x wait for lanes 0x%08x of their warp, "
					"but those wait at a different instruction",
					p->mask, p->need & ~p->mask);
			return;
		}
		r = &b->barriers[p->barrier];
		gpul_fault_text(s, p->pc - 1, GPUL_EXEC_TRAP, first_lane(p->mask),
				"barrier %u waits for %u threads, but only %u have arrived and no other "
				"thread can arrive",
				p->barrier, r->expected ? r->expected : b->n_live, r->expected ? r->arrived : r->arrived_live);
		return;
	}
}

static bool warp_can_run(const struct warp_state *s)
{
	for (unsigned k = 0; k < s->n_splits; k++)
		if (s->splits[k].state == SPLIT_READY)
			return true;
	return false;
}

enum block_result gpul_block_run(struct block *b)
{
	bool polled = false; /* a warp polled memory since this turn of the block began */

	b->progressed = false;
	b->quiet = true;
	b->n_repolls = 0;
	for (unsigned turn = 1;; turn++) {
		bool ran = false, yielded = turn % TURNS == 0;

		for (unsigned k = 0; k < b->n_warps; k++) {
			struct warp_state *s = &b->warps[k];
			enum warp_result r;

			if (s->done || !warp_can_run(s))
				continue;
			ran = true;
			s->repolls = s->stirs = b->polls = false;
			r = gpul_warp_run(s);
			b->quiet &= r == WARP_YIELDS && b->polls && !s->stirs;
			b->polls = polled |= b->polls;
			if (r == WARP_FAULT)
				return BLOCK_FAULT;
			yielded |= r == WARP_YIELDS;
			b->n_repolls += r == WARP_YIELDS && s->repolls;
			b->progressed |= r != WARP_YIELDS;
			s->done = r == WARP_DONE;
			b->n_done += s->done;
		}
		if (b->n_done == b->n_warps)
			return BLOCK_DONE;
		if (!ran) {
			EACH_OBSERVER(o, b->launch->machine, deadlock)
			o->deadlock(o, b);
			report_deadlock(b);
			return BLOCK_FAULT;
		}
		if (yielded) {
			EACH_OBSERVER(o, b->launch->machine, block_yields)
			o->block_yields(o, b);
			return BLOCK_YIELDS;
		}
	}
}
