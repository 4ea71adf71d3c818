/* count.c — the counters of a worker thread, and the hooks that increment them.
 *
 * No lock is taken and nothing is shared while a kernel runs: each thread adds to its own tallies.  A tally is found by a small
 * cache of (kernel, function) pairs, which is emptied when a function has been decoded, because its address may have been used
 * before. */
#include "softcuda/tools/profile/profile_internal.h"

#include <pthread.h>

#include "softcuda/exec/warp/access_internal.h"

enum { N_CACHED = 64 };

struct thread_counters {
	struct counters c;           /* first member */
	unsigned generation;
	struct cached { const gpul_exec_kernel *kernel; const struct func_code *code; struct tally *tally; } cache[N_CACHED];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counters *all;
static _Thread_local struct thread_counters *mine __attribute__((tls_model("initial-exec")));

struct counters *gpul_counters(void)
{
	return all;
}

/* ---- tallies -------------------------------------------------------------------------------------------------------- */

void gpul_profile_block_begins(struct observer *o, struct block *b)
{
	(void)o, (void)b;
	if (!mine) {
		mine = calloc(1, sizeof *mine);
		if (!mine)
			return;
		pthread_mutex_lock(&lock);
		mine->c.next = all;
		all = &mine->c;
		pthread_mutex_unlock(&lock);
	}
	if (mine->generation != gpul_plan_generation()) {
		mine->generation = gpul_plan_generation();
		memset(mine->cache, 0, sizeof mine->cache);
	}
}

/* NULL: no memory. */
static struct tally *find_tally(struct thread_counters *t, const gpul_exec_kernel *k, const struct func_code *code)
{
	struct plan *kernel = gpul_plan_of(k->code, true), *function = gpul_plan_of(code, true);
	struct tally *y = t->c.tallies;

	while (y && (y->kernel != kernel || y->function != function))
		y = y->next;
	if (y || !kernel || !function)
		return y;
	y = calloc(1, sizeof *y);
	if (!y)
		return NULL;
	y->kernel = kernel;
	y->function = function;
	y->insns = calloc(function->n_insns + 1, sizeof *y->insns);
	y->memory = calloc(function->memory.n + 1, sizeof *y->memory);
	if (!y->insns || !y->memory) {
		free(y->insns);
		free(y->memory);
		free(y);
		return NULL;
	}
	y->next = t->c.tallies;
	t->c.tallies = y;
	return y;
}

static inline struct tally *tally_of(const struct warp_state *s)
{
	const gpul_exec_kernel *kernel = s->block->launch->kernel;
	const struct func_code *code = s->frame->code;
	struct cached *c;

	if (!mine)
		return NULL;
	c = &mine->cache[((uintptr_t)code / 64 ^ (uintptr_t)kernel / 32) % N_CACHED];
	if (c->code != code || c->kernel != kernel)
		*c = (struct cached){ kernel, code, find_tally(mine, kernel, code) };
	return c->tally;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

static inline void add_cost(struct space_count *to, struct cost c)
{
	to->requests++;
	to->actual += c.actual;
	to->ideal += c.ideal;
	to->lines += c.lines;
}

/* All lanes of the warp access global memory by 64-bit addresses, as most do. */
static inline void count_whole_warp(struct space_count *to, const uint64_t *a, uint64_t offset, uint32_t bytes)
{
	uint64_t at[LANES], skew = 0, differ = 0;

	for (unsigned l = 0; l < LANES; l++) {
		skew |= a[l] - a[0] - (uint64_t)l * bytes;
		differ |= a[l] ^ a[0];
	}
	if (!skew) {
		add_cost(to, gpul_sectors_of_row(a[0] + offset, bytes));
		return;
	}
	if (!differ) {
		add_cost(to, (struct cost){ 1, 1, 1 });
		return;
	}
	for (unsigned l = 0; l < LANES; l++)
		at[l] = a[l] + offset;
	add_cost(to, gpul_sectors(at, LANES, bytes));
}

/* Lanes `on` access global memory. */
static void count_global(struct space_count *to, const uint64_t at[LANES], uint32_t on, uint32_t bytes)
{
	uint64_t packed[LANES];
	unsigned n = 0;

	EACH_LANE_OF(l, on)
		packed[n++] = at[l];
	add_cost(to, gpul_sectors(packed, n, bytes));
}

static void count_shared(struct space_count *to, const uint32_t at[LANES], uint32_t on, const struct memory_plan *m)
{
	uint32_t skew = 0, differ = 0;

	if (on == ALL_LANES && m->bytes == 4 && !m->atomic) {
		for (unsigned l = 0; l < LANES; l++) {
			skew |= at[l] - at[0] - 4 * l;
			differ |= at[l] ^ at[0];
		}
		if (!skew || !differ) {
			add_cost(to, (struct cost){ 1, 1, 0 });
			return;
		}
	}
	add_cost(to, gpul_wavefronts(at, on, m->bytes, m->atomic));
}

/* The lanes of a generic address may access several spaces: each is a request of its own. */
static void count_generic(struct memory_count *to, struct warp_state *s, const uint64_t at[LANES], uint32_t on, const struct memory_plan *m)
{
	uint32_t shared = 0, local = 0, offset[LANES];
	uint64_t local_at[LANES];

	EACH_LANE_OF(l, on) {
		const uint64_t in_shared = at[l] - (uintptr_t)s->shared, in_local = at[l] - (uintptr_t)s->local - l * s->local_stride;

		offset[l] = (uint32_t)in_shared;
		local_at[l] = in_local;
		if (in_shared < s->shared_bytes)
			shared |= 1u << l;
		else if (in_local < s->local_bytes)
			local |= 1u << l;
	}
	if (shared)
		count_shared(&to->space[SHARED_MEMORY], offset, shared, m);
	if (local)
		add_cost(&to->space[LOCAL_MEMORY], gpul_sectors_local(local_at, local, m->bytes));
	if (on & ~shared & ~local)
		count_global(&to->space[GLOBAL_MEMORY], at, on & ~shared & ~local, m->bytes);
}

/* cp.async and cp.async.bulk: what they read from global memory, and what they write to shared memory; or the reverse. */
static void count_copy(struct memory_count *to, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct lane_accesses a[MAX_INSN_ACCESSES];
	const unsigned n = gpul_insn_accesses(s, i, on, a);

	for (unsigned k = 0; k < n; k++) {
		struct memory_plan m = { .bytes = (uint8_t)a[k].bytes[first_lane(on)], .atomic = a[k].kind == ACCESS_ATOMIC };
		const unsigned space = a[k].space[first_lane(on)];
		uint32_t offset[LANES];

		if (a[k].mbarrier)
			continue;
		if (i->op != OP_CP_ASYNC) {
			/* The copy engine moves the bytes, not the lanes; shared memory has no conflicts then. */
			EACH_LANE_OF(l, on)
				if (space == SPACE_GLOBAL && a[k].bytes[l])
					add_cost(&to->space[GLOBAL_MEMORY], gpul_sectors_of_span(a[k].at[l], a[k].bytes[l]));
		} else if (space == SPACE_GLOBAL && m.bytes) {
			count_global(&to->space[GLOBAL_MEMORY], a[k].at, on, m.bytes);
		} else if (space == SPACE_SHARED && m.bytes) {
			for (unsigned l = 0; l < LANES; l++)
				offset[l] = (uint32_t)a[k].at[l];
			count_shared(&to->space[SHARED_MEMORY], offset, on, &m);
		}
	}
}

static void count_memory(struct memory_count *to, struct warp_state *s, const struct insn *i, uint32_t on, const struct memory_plan *m)
{
	uint64_t at[LANES];
	uint32_t offset[LANES];

	if (m->copies) {
		count_copy(to, s, i, on);
		return;
	}
	if (m->space == SPACE_GLOBAL && on == ALL_LANES && !(i->flags & FLAG_ADDRESS_32)) {
		count_whole_warp(&to->space[GLOBAL_MEMORY], U64(&s->w, i->a), (uint64_t)i->imm, m->bytes);
		return;
	}
	if (m->space == SPACE_SHARED && i->flags & FLAG_ADDRESS_32) {
		const uint32_t *a = U32(&s->w, i->a), add = (uint32_t)address_offset(s, i);

		for (unsigned l = 0; l < LANES; l++)
			offset[l] = a[l] + add;
		count_shared(&to->space[SHARED_MEMORY], offset, on, m);
		return;
	}
	EACH_LANE_OF(l, on)
		at[l] = lane_address(s, i, l);
	switch (m->space) {
	case SPACE_SHARED:
		EACH_LANE_OF(l, on)
			offset[l] = (uint32_t)at[l];
		count_shared(&to->space[SHARED_MEMORY], offset, on, m);
		break;
	case SPACE_LOCAL:
		add_cost(&to->space[LOCAL_MEMORY], gpul_sectors_local(at, on, m->bytes));
		break;
	case SPACE_GLOBAL:
		count_global(&to->space[GLOBAL_MEMORY], at, on, m->bytes);
		break;
	default:
		count_generic(to, s, at, on, m);
	}
}

/* ---- hooks --------------------------------------------------------------------------------------------------------------- */

static inline unsigned count_of(uint32_t lanes)
{
	return lanes == ALL_LANES ? LANES : count_lanes(lanes);
}

static void count_branch(struct insn_count *c, const struct warp_state *s, const struct insn *i)
{
	const uint32_t mask = s->w.mask;
	uint32_t taken = mask;

	c->branches++;
	if (i->op == OP_BRX) {
		const uint32_t *index = U32(&s->w, i->a), first = index[first_lane(mask)];
		bool differ = false;

		EACH_LANE_OF(l, mask)
			differ |= index[l] != first;
		c->diverged += differ;
	} else if (i->op != OP_BRA) {
		taken = mask & (i->op == OP_BRA_IF ? *PRED(&s->w, i->guard) : ~*PRED(&s->w, i->guard));
		c->diverged += taken && taken != mask;
	}
	c->guarded += count_of(taken);
}

enum observed gpul_profile_before(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct tally *t = tally_of(s);
	const size_t k = (size_t)(i - s->frame->code->insns);
	struct insn_count *c;
	unsigned counted;

	(void)o;
	if (!t)
		return OBSERVED_RUN;
	c = &t->insns[k];
	counted = t->function->counted[k];
	if ((counted & (COUNTED_BLOCK | COUNTED_SYNC)) == COUNTED_BLOCK) {
		c->warps++;
		c->threads += count_of(s->w.mask);
	}
	if (counted & COUNTED_GUARD)
		c->guarded += count_of(on);
	if (counted & COUNTED_BRANCH)
		count_branch(c, s, i);
	if (counted & COUNTED_MEMORY && on)
		count_memory(&t->memory[t->function->memory_row[k]], s, i, on, &t->function->memory.at[t->function->memory_row[k]]);
	return OBSERVED_RUN;
}

/* An instruction that waited for lanes of its warp is executed again. */
void gpul_profile_after(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on, bool waits)
{
	struct tally *t = waits || !gpul_waits_for_lanes(i->op) ? NULL : tally_of(s);
	struct insn_count *c;

	(void)o;
	if (!t)
		return;
	c = &t->insns[i - s->frame->code->insns];
	c->warps++;
	c->threads += count_of(on);
}
