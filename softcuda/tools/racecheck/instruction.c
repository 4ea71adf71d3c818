/* instruction.c — finds an instruction's accesses: their addresses, and what they release and acquire. */
#include "softcuda/exec/async_internal.h"
#include "softcuda/tools/racecheck/race_parts_internal.h"

/* ---- weak loads and stores with the same size in all lanes ------------------------------------------------------------ */

static void find_addresses(const struct warp_state *s, const struct insn *i, uint64_t at[LANES])
{
	const uint64_t add = (uint64_t)i->imm;

	if (i->flags & FLAG_ADDRESS_32) {
		const uint32_t *a = U32(&s->w, i->a);

		for (unsigned l = 0; l < LANES; l++)
			at[l] = a[l] + add;
	} else {
		const uint64_t *a = U64(&s->w, i->a);

		for (unsigned l = 0; l < LANES; l++)
			at[l] = a[l] + add;
	}
	if ((i->flags & SPACE_MASK) == SPACE_SHARED)
		for (unsigned l = 0; l < LANES; l++)
			at[l] = (uint32_t)at[l];
}

/* Divide lanes with generic addresses into global and shared ones; lanes that access local memory or parameters are in neither mask. */
static void split_windows(const struct warp_state *s, uint64_t at[LANES], uint32_t on, uint32_t *global, uint32_t *shared)
{
	*global = *shared = 0;
	EACH_LANE_OF(l, on)
	{
		const uint64_t in_shared = at[l] - (uintptr_t)s->shared;

		if (in_shared < s->shared_bytes) {
			at[l] = in_shared;
			*shared |= 1u << l;
		} else if (at[l] - (uintptr_t)(s->local + l * s->local_stride) >= s->local_bytes &&
			   at[l] - (uintptr_t)s->params >= s->param_bytes) {
			*global |= 1u << l;
		}
	}
}

static void check(struct now *n, uint32_t on, bool shared)
{
	n->on = on;
	n->shared = shared;
	if (!on)
		return;
	if (on & n->w->in_section && !(n->how & (HOW_STRONG | HOW_ASYNC)))
		race_section_accesses(n);
	race_check_lanes(n);
}

/* Check lanes with global addresses.  An access to a multicast address counts as an access to each of its copies, one after another. */
static void check_global(struct now *n, uint32_t on)
{
	uint64_t copy[LANES][GPUL_EXEC_MAX_DEVICES], at[LANES];
	const uint64_t *const addresses = n->at;
	unsigned n_copies[LANES];
	uint32_t rest = on;

	if (!race_any_multicast(on, n->at)) {
		check(n, on, false);
		return;
	}
	EACH_LANE_OF(l, on)
	n_copies[l] = race_copies_of(n->s, n->i, n->at[l], n->bytes, copy[l]);
	n->at = at;
	for (unsigned k = 0; rest && k < GPUL_EXEC_MAX_DEVICES; k++) {
		EACH_LANE_OF(l, rest)
		{
			if (k < n_copies[l])
				at[l] = copy[l][k];
			else
				rest &= ~(1u << l);
		}
		check(n, rest, false);
	}
	n->at = addresses;
}

static void access_plainly(struct watched_warp *w, struct warp_state *s, const struct insn *i, struct site *site, uint32_t on)
{
	uint64_t at[LANES];
	struct now n = { .w = w, .s = s, .i = i, .site = site, .how = site->how, .bytes = site->bytes, .at = at };
	uint32_t global = on, shared = 0;

	find_addresses(s, i, at);
	n.record = race_record(w, site, site->how);
	if (site->space == SPACE_GENERIC)
		split_windows(s, at, on, &global, &shared);
	else if (site->space == SPACE_SHARED)
		global = 0, shared = on;
	check_global(&n, global);
	check(&n, shared, true);
}

/* ---- all other instructions, whose accesses gpul_insn_accesses() finds --------------------------------------------------- */

static unsigned how_of(const struct lane_accesses *a, const struct site *site)
{
	const unsigned scope = a->scope;
	unsigned how = (a->kind & ACCESS_WRITE ? HOW_WRITES : 0) | (a->kind & ACCESS_READ ? HOW_READS : 0);

	if (a->order != ORDER_WEAK && !site->is_volatile)
		how |= HOW_STRONG | scope << HOW_SCOPE_AT;
	if (a->mbarrier)
		return how | HOW_MBARRIER;
	return a->async ? (how & ~(unsigned)HOW_STRONG) | HOW_ASYNC : how;
}

/* Check one access of an instruction in all lanes; sizes and address spaces may differ between lanes. */
static void check_accesses(struct watched_warp *w, struct warp_state *s, const struct insn *i, struct site *site,
			   const struct lane_accesses *a)
{
	struct now n = { .w = w, .s = s, .i = i, .site = site, .how = (uint8_t)how_of(a, site), .at = a->at };
	uint32_t rest = a->lanes;

	n.record = race_record(w, site, n.how);
	if (n.how & HOW_ASYNC)
		race_copy_started(w, n.record, a->lanes);
	while (rest) {
		const unsigned first = first_lane(rest);
		uint32_t same = 0;

		EACH_LANE_OF(l, rest)
		if (a->bytes[l] == a->bytes[first] && a->space[l] == a->space[first])
			same |= 1u << l;
		rest &= ~same;
		n.bytes = a->bytes[first];
		if (n.bytes && a->space[first] == SPACE_GLOBAL)
			check_global(&n, same);
		else if (n.bytes && a->space[first] == SPACE_SHARED)
			check(&n, same, true);
	}
}

static bool is_copy(const struct insn *i)
{
	return i->op == OP_CP_ASYNC || i->op == OP_CP_BULK || i->op == OP_CP_REDUCE;
}

/* Handle an access to an mbarrier: that of a bulk copy, which is complete when the mbarrier's phase is, or an arrival, which releases
 * the thread's earlier accesses. */
static void arrive(struct watched_warp *w, const struct insn *i, const struct lane_accesses *a)
{
	if (is_copy(i) || (i->n & MBAR_ARRIVES && a->order != ORDER_RELAXED))
		EACH_LANE_OF(l, a->lanes)
	race_mbarrier_arrives(w, l, a->space[l] == SPACE_SHARED, a->at[l], is_copy(i));
	race_next_stamp(w);
}

static void release_global(struct watched_warp *w, const struct warp_state *s, const struct insn *i, unsigned l,
			   const struct lane_accesses *a)
{
	uint64_t copy[GPUL_EXEC_MAX_DEVICES];
	const unsigned n = race_copies_of(s, i, a->at[l], a->bytes[l], copy);

	for (unsigned k = 0; k < n; k++)
		race_release(w, l, false, copy[k], a->order, a->scope);
}

static void release(struct watched_warp *w, const struct warp_state *s, const struct insn *i, const struct lane_accesses *a)
{
	EACH_LANE_OF(l, a->lanes)
	{
		const bool shared = a->space[l] == SPACE_SHARED;

		if (!shared && a->space[l] != SPACE_GLOBAL)
			continue;
		if (shared)
			race_release(w, l, shared, a->at[l], a->order, a->scope);
		else
			release_global(w, s, i, l, a);
		if (w->has_lock >> l & 1)
			race_section_ends(w, s, i, l, shared, a->at[l]);
	}
	if (a->order == ORDER_RELEASE || a->order == ORDER_ACQ_REL)
		race_next_stamp(w);
}

static void keep_for_end(struct watcher *k, const struct lane_accesses *a)
{
	EACH_LANE_OF(l, a->lanes)
	{
		k->at[l] = a->at[l];
		k->bytes[l] = a->bytes[l];
		k->shared[l] = a->space[l] == SPACE_SHARED;
	}
	k->order = (uint8_t)a->order;
	k->scope = (uint8_t)a->scope;
}

void race_access(struct watched_warp *w, struct warp_state *s, const struct insn *i, struct site *site, uint32_t on)
{
	struct lane_accesses a[MAX_INSN_ACCESSES];
	unsigned n;

	if (site->class == SITE_PLAIN) {
		access_plainly(w, s, i, site, on);
		return;
	}
	n = gpul_insn_accesses(s, i, on, a);
	for (unsigned k = 0; k < n; k++)
		check_accesses(w, s, i, site, &a[k]);
	if (!n)
		return;
	keep_for_end(w->block->watcher, &a[n - 1]);
	if (a[n - 1].mbarrier) {
		if (i->op == OP_MBAR_INIT)
			EACH_LANE_OF(l, on)
		race_mbarrier_begins(w, a[0].space[l] == SPACE_SHARED, a[0].at[l]);
		else if (i->op != OP_MBAR_TEST) arrive(w, i, &a[n - 1]);
	} else if (!is_copy(i) && a[0].kind & ACCESS_WRITE && a[0].order != ORDER_WEAK) {
		release(w, s, i, &a[0]);
	}
}

static uint64_t mbarrier_value(const struct warp_state *s, unsigned lane, bool shared, uint64_t at)
{
	uint64_t value;

	memcpy(&value, gpul_access_host(s, lane, shared ? SPACE_SHARED : SPACE_GLOBAL, at), sizeof value);
	return value;
}

/* Called after multimem.ld_reduce, which has read each copy of the memory: acquire what threads have released to these addresses. */
static void acquire_copies(struct watched_warp *w, const struct warp_state *s, const struct insn *i, uint32_t on)
{
	const struct watcher *k = w->block->watcher;

	if (gpul_insn_access_kind(i) != ACCESS_READ || k->order == ORDER_WEAK)
		return;
	EACH_LANE_OF(l, on)
	{
		uint64_t copy[GPUL_EXEC_MAX_DEVICES];
		const unsigned n = race_copies_of(s, i, k->at[l], k->bytes[l], copy);

		for (unsigned c = 0; c < n; c++)
			race_acquire(w, l, false, copy[c], k->order, k->scope);
	}
}

/* Called after the instruction: acquire what threads released when they wrote the values that the instruction read. */
void race_access_ends(struct watched_warp *w, struct warp_state *s, const struct insn *i, const struct site *site, uint32_t on)
{
	const struct watcher *k = w->block->watcher;

	if (s->event == EVENT_FAULT)
		return;
	if (gpul_insn_is_multimem(i)) {
		acquire_copies(w, s, i, on);
		return;
	}
	EACH_LANE_OF(l, on)
	{
		if (i->op == OP_MBAR_TEST) {
			if (*PRED(&s->w, i->d) >> l & 1)
				race_mbarrier_passed(w, l, k->shared[l], k->at[l]);
		} else if (i->op == OP_MBAR_ARRIVE ||
			   ((i->op == OP_CP_BULK || i->op == OP_CP_REDUCE) && ((const struct async_copy *)i->object)->has_barrier)) {
			race_mbarrier_changed(w, k->shared[l], k->at[l], mbarrier_value(s, l, k->shared[l], k->at[l]));
		} else if (!is_copy(i) && (i->op < OP_ST_8_16 || i->op > OP_STO) && k->order != ORDER_WEAK) {
			if (site->polls && i->op <= OP_LDO)
				race_polls(w->block, k->shared[l], k->at[l]);
			else if (site->polls)
				race_section_begins(w, s, i, l, k->order, k->scope);
			race_acquire(w, l, k->shared[l], k->at[l], k->order, k->scope);
		}
	}
}

/* Find the mbarriers of cp.async.mbarrier.arrive; returns a mask of the lanes whose mbarrier is in shared memory. */
static uint32_t find_mbarriers(const struct warp_state *s, const struct insn *i, uint32_t on, uint64_t at[LANES])
{
	uint32_t global, shared = on;

	find_addresses(s, i, at);
	if ((i->flags & SPACE_MASK) == SPACE_GENERIC)
		split_windows(s, at, on, &global, &shared);
	return shared;
}

void race_copy_arrives(struct watched_warp *w, struct warp_state *s, const struct insn *i, uint32_t on)
{
	uint64_t at[LANES];
	const uint32_t shared = find_mbarriers(s, i, on, at);

	EACH_LANE_OF(l, shared)
	race_mbarrier_arrives(w, l, true, at[l], true);
	race_next_stamp(w);
}

/* Called after cp.async.mbarrier.arrive, because with .noinc the arrival may complete the phase of the mbarrier. */
void race_copy_arrive_ends(struct watched_warp *w, struct warp_state *s, const struct insn *i, uint32_t on)
{
	uint64_t at[LANES];
	uint32_t shared;

	if (i->op != OP_MBAR_ARRIVE || s->event == EVENT_FAULT)
		return;
	shared = find_mbarriers(s, i, on, at);
	EACH_LANE_OF(l, shared)
	race_mbarrier_changed(w, true, at[l], mbarrier_value(s, l, true, at[l]));
}

/* Discard the accesses recorded for memory that device malloc returns, because they belong to an earlier allocation. */
void race_malloc_ends(const struct warp_state *s, const struct insn *i, uint32_t on)
{
	EACH_LANE_OF(l, on)
	{
		const uint64_t at = gpul_builtin_result(s, i->object, l);

		if (at)
			race_shadow_forget(at, gpul_builtin_argument(s, i->object, 0, l));
	}
}
