/* lock.c — critical sections: finds locks that are taken without a fence.
 *
 *     while (atomicCAS(lock, 0, 1) != 0) ;        opens a section: the lane now holds the lock
 *     __threadfence();                            the error: this fence is missing, or its scope is too small
 *     data++;                                     a suspect: this access is not ordered after the previous critical section
 *     __threadfence();
 *     atomicExch(lock, 0);                        closes the section: the lock has its old value again
 *
 * If such a section happens to run first, no race is visible; in another run it would run second, and race with the section that is
 * first now. So the section's accesses before the fence are stored with the lock. If a later owner of the lock accesses the same
 * bytes, and nothing else orders the two accesses, that is a race. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdlib.h>

enum { N_SUSPECTS = 4 };

struct suspect {
	struct record record;
	uint64_t at;
	uint32_t bytes;
	uint8_t lane, fenced;
	bool shared;
};
struct suspects {
	uint32_t n, next;
	struct suspect of[N_SUSPECTS];
};

struct section {
	uint64_t lock, value;   /* value: contents of the lock variable when no thread holds it */
	bool shared;            /* the lock is in shared memory */
	uint8_t fenced;         /* 1 + scope of the fence that the lane has executed in this section; 0: no fence yet */
	struct suspects mine;   /* accesses that the lane has made in this section before its fence */
	struct suspects others; /* accesses of earlier sections that did not happen before the lane took the lock */
};

static void add_suspect(struct suspects *to, const struct suspect *s)
{
	for (uint32_t k = 0; k < to->n; k++)
		if (to->of[k].at == s->at && to->of[k].shared == s->shared && (to->of[k].record.how | ~s->record.how) & HOW_WRITES)
			return;
	to->of[to->next++ % N_SUSPECTS] = *s;
	if (to->n < N_SUSPECTS)
		to->n++;
}

/* ---- acquiring and releasing the lock ----------------------------------------------------------------------------------- */

static uint64_t lane_value(const struct warp_state *s, opref at, unsigned lane, bool wide)
{
	return wide ? U64(&s->w, at)[lane] : U32(&s->w, at)[lane];
}

static bool is_cas(const struct insn *i)
{
	return i->op == OP_ATOM_CAS_32 || i->op == OP_ATOM_CAS_64;
}

static bool is_exchange(const struct insn *i)
{
	return i->op == OP_ATOM_EXCH_32 || i->op == OP_ATOM_EXCH_64;
}

static bool is_wide(const struct insn *i)
{
	return i->op == OP_ATOM_CAS_64 || i->op == OP_ATOM_EXCH_64;
}

static void open_section(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, uint64_t value, unsigned fenced)
{
	const struct suspects *left;
	struct section *s;
	pthread_mutex_t *lock;

	if (!w->sections)
		w->sections = calloc(LANES, sizeof *w->sections);
	if (!w->sections)
		return;
	s = &w->sections[lane];
	*s = (struct section){ .lock = at, .value = value, .shared = shared, .fenced = (uint8_t)fenced };
	left = race_lock_suspects(w->block, shared, at, &lock);
	for (uint32_t k = 0; left && k < left->n; k++) {
		const struct suspect *x = &left->of[k];
		const bool own_block = block_key(x->record.launch, x->record.block) == w->block->key;
		const bool own = own_block && x->record.warp == w->index && x->lane == lane;

		if (!own && (own_block ? !x->fenced : !x->shared) && !race_knows(w, lane, &x->record, x->lane))
			add_suspect(&s->others, x);
	}
	race_unlock_suspects(lock);
	w->in_section |= 1u << lane;
	w->has_lock |= 1u << lane;
}

void race_section_begins(struct watched_warp *w, const struct warp_state *s, const struct insn *i, unsigned lane, unsigned order,
			 unsigned scope)
{
	const struct watcher *k = w->block->watcher;
	const uint64_t old = lane_value(s, i->d, lane, is_wide(i)), b = lane_value(s, i->b, lane, is_wide(i));
	const bool acquires = order == ORDER_ACQUIRE || order == ORDER_ACQ_REL;

	if (is_cas(i) ? old == b && lane_value(s, i->c, lane, is_wide(i)) != b : is_exchange(i) && old == 0 && b != 0)
		open_section(w, lane, k->shared[lane], k->at[lane], old, acquires ? scope + 1 : 0);
}

/* Find the value that the lane is about to write to the lock.  Returns false if it is unknown. */
static bool next_value(const struct warp_state *s, const struct insn *i, unsigned lane, uint64_t *out)
{
	uint8_t bytes[64] = { 0 };

	if (is_cas(i) || is_exchange(i)) {
		*out = lane_value(s, is_cas(i) ? i->c : i->b, lane, is_wide(i));
		return true;
	}
	if (!race_store_value(s, i, lane, bytes))
		return false;
	memcpy(out, bytes, sizeof *out);
	return true;
}

void race_section_ends(struct watched_warp *w, const struct warp_state *s, const struct insn *i, unsigned lane, bool shared, uint64_t at)
{
	struct section *x = &w->sections[lane];
	struct suspects *left;
	pthread_mutex_t *lock;
	uint64_t value;

	if (x->lock != at || x->shared != shared || !next_value(s, i, lane, &value) || value != x->value)
		return;
	w->in_section &= ~(1u << lane);
	w->has_lock &= ~(1u << lane);
	if (!x->mine.n)
		return;
	left = race_make_suspects(w->block, shared, at, sizeof *left, &lock);
	for (uint32_t k = 0; left && k < x->mine.n; k++)
		add_suspect(left, &x->mine.of[k]);
	race_unlock_suspects(lock);
}

/* ---- accesses in a section -------------------------------------------------------------------------------------------- */

void race_sections_fenced(struct watched_warp *w, uint32_t lanes, unsigned scope)
{
	EACH_LANE_OF(l, lanes & w->in_section)
	{
		struct section *s = &w->sections[l];

		if (s->fenced <= scope)
			s->fenced = (uint8_t)(scope + 1);
		if (s->fenced > SCOPE_GPU && !s->others.n)
			w->in_section &= ~(1u << l);
	}
}

static void meet_others(struct now *n, unsigned lane, const struct suspects *others)
{
	for (uint32_t k = 0; k < others->n; k++) {
		const struct suspect *x = &others->of[k];

		if (x->shared != n->shared || x->at >= n->at[lane] + n->bytes || n->at[lane] >= x->at + x->bytes ||
		    !((x->record.how | n->how) & HOW_WRITES))
			continue;
		n->lacks_lock_fence = true;
		race_found(n, lane, n->at[lane], n->bytes, &x->record, x->lane);
		n->lacks_lock_fence = false;
	}
}

/* Check the weak accesses of lanes that hold a lock, and record them in their critical sections. */
void race_section_accesses(struct now *n)
{
	struct watched_warp *w = n->w;

	EACH_LANE_OF(l, n->on & w->in_section)
	{
		struct section *s = &w->sections[l];

		if (n->at[l] == s->lock && n->shared == s->shared)
			continue;
		meet_others(n, l, &s->others);
		if (n->record && s->fenced <= (n->shared ? SCOPE_CTA : SCOPE_GPU))
			add_suspect(&s->mine, &(struct suspect){ .record = race_records[n->record],
								 .at = n->at[l],
								 .bytes = n->bytes,
								 .lane = (uint8_t)l,
								 .fenced = s->fenced,
								 .shared = n->shared });
		if (s->mine.n == N_SUSPECTS && !s->others.n)
			w->in_section &= ~(1u << l);
	}
}
