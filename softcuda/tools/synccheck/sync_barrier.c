/* sync_barrier.c — checks the uses of block and cluster barriers: bar.sync, bar.arrive, bar.red, barrier.cluster.
 *
 * A lane may arrive later than other lanes of its warp, which alone is not an error. So the tool collects the arrivals and checks
 * them when the barrier completes: at an .aligned barrier, all lanes of a warp must have executed the same instruction (PTX ISA 9.0,
 * 9.7.13.1). There are two exceptions, because a barrier waits only for threads that have not exited (CUDA C++ Programming Guide
 * 13.0, 10.6: __syncthreads): a whole warp may have exited, and threads may return early, as in `if (i >= n) return;`. The split with
 * the lowest pc runs first, so when some lanes of a warp arrive, the others are at the barrier or past it. Of those past it, the
 * lanes whose next instruction ends the kernel have returned early. */
#include "softcuda/tools/synccheck/synccheck_internal.h"

#include <stdlib.h>

bool gpul_sync_is_barrier(const struct insn *i)
{
	return i->op == OP_BAR_SYNC || i->op == OP_BAR_CLUSTER || i->op == OP_BAR_ARRIVE || i->op == OP_BAR_RED_POPC ||
	       i->op == OP_BAR_RED_AND || i->op == OP_BAR_RED_OR;
}

static bool reduces(const struct insn *i)
{
	return i->op == OP_BAR_RED_POPC || i->op == OP_BAR_RED_AND || i->op == OP_BAR_RED_OR;
}

/* True for an .aligned barrier; bar.* is the same as barrier.*.aligned. */
static bool is_aligned(const struct func_code *code, const struct insn *i)
{
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);

	return in && (in->opcode == GPUL_PTX_BAR || gpul_ptx_has_mod(in, GPUL_PTX_MOD_ALIGNED));
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

static uint32_t whole_warps(uint32_t threads)
{
	return (threads + LANES - 1) / LANES * LANES;
}

static void check_count(struct synccheck *c, struct warp_state *s, const struct insn *i, uint32_t on, uint32_t number, uint32_t count)
{
	const uint32_t most = whole_warps(s->block->n_threads);

	if (!i->n)
		return;
	if (!count || count % LANES)
		gpul_sync_report(c, "wrong thread count", s, i, on, "barrier %u has a thread count of %u; it must be a multiple of %u",
				 number, count, LANES);
	else if (count > most)
		gpul_sync_report(c, "unreachable thread count", s, i, on, "barrier %u waits for %u threads, but the block has only %u",
				 number, count, s->block->n_threads);
}

/* Compare an arrival with the other arrivals since the barrier last completed. */
static void check_others(struct synccheck *c, struct warp_state *s, const struct insn *i, uint32_t on, unsigned id, uint32_t count,
			 const struct arrivals *at)
{
	const struct barrier *r = &s->block->barriers[id];
	const uint32_t all = whole_warps(s->block->n_threads), mine = count ? count : all, theirs = r->expected ? r->expected : all;
	char place[160];

	if (!at->n)
		return;
	gpul_insn_place(at->list->code, at->list->insn, NULL, place, sizeof place);
	if (mine != theirs)
		gpul_sync_report(c, "different thread counts", s, i, on,
				 "this warp gives barrier %u a thread count of %u; warp %u has arrived at %s "
				 "with a count of %u",
				 id, mine, at->list->warp, place, theirs);
	if (reduces(i) != reduces(at->list->insn))
		gpul_sync_report(c, "mixed barriers", s, i, on,
				 "barrier %u is used by bar.red and by another instruction at the same time: %s, by warp %u", id, place,
				 at->list->warp);
	if (s->arrived[id] & on)
		gpul_sync_report(c, "second arrival", s, i, s->arrived[id] & on,
				 "the lanes arrive at barrier %u again before it has completed", id);
}

/* ---- arrivals --------------------------------------------------------------------------------------------------- */

static bool is_exit(const struct insn *i)
{
	return i->op == OP_EXIT || i->op == OP_RET;
}

/* Return the lanes of the warp that are past the instruction, but not at the end of the kernel. */
static uint32_t lanes_behind(const struct warp_state *s, const struct insn *i)
{
	uint32_t lanes = 0;

	for (unsigned k = 0; k < s->n_splits; k++)
		if (k != s->current && s->splits[k].frame == s->frame && s->splits[k].pc > i && !is_exit(s->splits[k].pc))
			lanes |= s->splits[k].mask;
	return lanes;
}

static void add_arrival(struct arrivals *at, struct warp_state *s, const struct insn *i, uint32_t lanes)
{
	const uint32_t behind = lanes_behind(s, i);

	for (unsigned k = 0; k < at->n; k++) {
		if (at->list[k].warp == s->index && at->list[k].insn == i) {
			at->list[k].lanes |= lanes;
			at->list[k].behind |= behind;
			return;
		}
	}
	if (at->n == at->capacity) {
		const unsigned capacity = at->capacity ? 2 * at->capacity : LANES;
		struct arrival *grown = realloc(at->list, capacity * sizeof *grown);

		if (!grown)
			return;
		at->list = grown;
		at->capacity = capacity;
	}
	at->list[at->n++] = (struct arrival){ s->frame->code, i, s->index, lanes, behind };
}

void gpul_sync_before_barrier(struct synccheck *c, struct sync_block *m, struct warp_state *s, const struct insn *i, uint32_t on)
{
	const unsigned first = first_lane(on);
	const bool cluster = i->op == OP_BAR_CLUSTER;
	const uint32_t number = cluster ? CLUSTER_BARRIER : U32(&s->w, i->a)[first], count = i->n ? U32(&s->w, i->b)[first] : 0;
	const unsigned id = cluster ? CLUSTER_BARRIER : number % CLUSTER_BARRIER;
	uint32_t here = 0;

	/* Check only lanes that use the same barrier as the first lane; the others execute the instruction later
	 * (gpul_barrier_arrive()). */
	EACH_LANE_OF(l, on)
	here |= (uint32_t)((cluster || U32(&s->w, i->a)[l] % CLUSTER_BARRIER == id) && (!i->n || U32(&s->w, i->b)[l] == count)) << l;
	if (here != on && is_aligned(s->frame->code, i))
		gpul_sync_report(c, "lanes name different barriers", s, i, on,
				 "the lanes of a warp must name the same barrier and thread count");
	if (!cluster && number >= CLUSTER_BARRIER)
		gpul_sync_report(c, "wrong barrier number", s, i, here, "barrier %u; the barriers of a block have the numbers 0 to %d",
				 number, CLUSTER_BARRIER - 1);
	check_count(c, s, i, here, number, count);
	check_others(c, s, i, here, id, count, &m->at[id]);
	add_arrival(&m->at[id], s, i, here);
}

/* ---- divergence ------------------------------------------------------------------------------------------------- */

static void judge_warp(struct synccheck *c, struct block *b, const struct arrivals *at, const struct arrival *first, unsigned id)
{
	struct warp_state *s = &b->warps[first->warp];
	const struct arrival *second = NULL;
	struct frame frame = { .code = first->code }, *kept = s->frame;
	uint32_t here = 0, missing = 0;
	char place[160], who[100];

	for (const struct arrival *a = at->list; a < at->list + at->n; a++) {
		if (a->warp != first->warp)
			continue;
		here |= a->lanes;
		missing |= a->behind;
		second = a != first && !second ? a : second;
	}
	missing &= ~here;
	s->frame = &frame;
	if (second) {
		gpul_insn_place(second->code, second->insn, NULL, place, sizeof place);
		gpul_sync_report(c, "divergent barrier", s, first->insn, first->lanes,
				 "the lanes of a warp must execute the same instruction, but %s arrive at barrier %u at %s",
				 gpul_tool_lanes(second->lanes, who, sizeof who), id, place);
	} else if (missing) {
		gpul_sync_report(c, "divergent barrier", s, first->insn, first->lanes,
				 "only a part of the warp executes the barrier; %s %s", gpul_tool_lanes(missing, who, sizeof who),
				 missing & s->w.live ? "do not" : "have exited without executing it");
	}
	s->frame = kept;
}

void gpul_sync_barrier_completes(struct synccheck *c, struct sync_block *m, struct block *b, unsigned id)
{
	struct arrivals *at = &m->at[id];

	for (unsigned k = 0; k < at->n; k++) {
		const struct arrival *a = &at->list[k];
		bool judged = false;

		for (unsigned n = 0; n < k; n++)
			judged |= at->list[n].warp == a->warp;
		if (!judged && is_aligned(a->code, a->insn))
			judge_warp(c, b, at, a, id);
	}
	at->n = 0;
}
