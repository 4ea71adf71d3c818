/* count.c — keeps each worker thread's counters, and the hooks that increment them.
 *
 * While a kernel runs, no lock is taken and nothing is shared: each thread adds to counters of its own (tallies). A small cache
 * maps (kernel, function) pairs to tallies. The cache is emptied whenever a function is decoded, because the new function may have the
 * address of an unloaded one. */
#include "softcuda/tools/profile/profile_internal.h"

#include <pthread.h>

#include "softcuda/exec/warp/access_internal.h"

enum { N_CACHED = 64 };

struct thread_counters {
	struct counters c; /* must be the first member */
	unsigned generation;
	struct cached {
		const gpul_exec_kernel *kernel;
		const struct func_code *code;
		struct tally *tally;
	} cache[N_CACHED];
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

/* Find or create the thread's tally (the counters) of a function called in a kernel; NULL: out of memory. */
static struct tally *find_tally(struct thread_counters *t, const gpul_exec_kernel *k, const struct func_code *code)
{
	struct plan *kernel = gpul_plan_of(k->code, true), *function = gpul_plan_of(code, true);
	struct tally **at = &t->c.tallies, *y;

	while (*at && ((*at)->kernel != kernel || (*at)->function != function))
		at = &(*at)->next;
	y = *at;
	if (y) { /* move the tally to the front, because the list is long if a program has many kernels */
		*at = y->next;
		y->next = t->c.tallies;
		t->c.tallies = y;
	}
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

/* ---- patterns ------------------------------------------------------------------------------------------------------------
 *
 * The cost of an access depends on the distances between its lanes' addresses and on its offset within a cache line. Most
 * instructions repeat one pattern, so each instruction stores its last pattern and the cost: comparing distances is faster than
 * counting. */

/* Functions marked HOT are compiled twice, for the baseline x86-64 and for AVX2: see HOT_VERSIONS. */
#define HOT static inline __attribute__((always_inline))

HOT void add_cost(struct space_count *to, struct cost c)
{
	to->requests++;
	to->actual += c.actual;
	to->ideal += c.ideal;
	to->lines += c.lines;
}

/* Return a word of all ones if the lane is in the mask `on`, else 0. */
HOT uint64_t lane_mask(uint32_t on, unsigned l)
{
	return 0 - (uint64_t)(on >> l & 1);
}

/* Returns true if the lanes have the pattern's distances.  *far: a distance has more than 32 bits, so that no pattern can contain it. */
HOT bool is_pattern(const struct pattern *p, const uint64_t at[LANES], uint32_t on, bool *far)
{
	const uint64_t first = at[first_lane(on)];
	uint64_t high = 0;
	uint32_t other = 0;

	if (on == ALL_LANES) {
		for (unsigned l = 0; l < LANES; l++) {
			const uint64_t distance = at[l] - first;

			high |= distance + 0x80000000u;
			other |= (uint32_t)distance ^ p->distance[l];
		}
	} else {
		for (unsigned l = 0; l < LANES; l++) {
			const uint64_t distance = (at[l] - first) & lane_mask(on, l);

			high |= distance + 0x80000000u;
			other |= (uint32_t)distance ^ p->distance[l];
		}
	}
	*far = high >> 32;
	return !other && !*far && p->lanes == on;
}

/* Like is_pattern(), for offsets in shared memory. */
HOT bool is_pattern_32(const struct pattern *p, const uint32_t at[LANES], uint32_t on)
{
	const uint32_t first = at[first_lane(on)];
	uint32_t other = 0;

	if (on == ALL_LANES) {
		for (unsigned l = 0; l < LANES; l++)
			other |= (at[l] - first) ^ p->distance[l];
	} else {
		for (unsigned l = 0; l < LANES; l++)
			other |= ((at[l] - first) & (uint32_t)lane_mask(on, l)) ^ p->distance[l];
	}
	return !other && p->lanes == on;
}

HOT void remember(struct pattern *p, const uint64_t at[LANES], uint32_t on, uint32_t begin, struct cost c)
{
	const uint64_t first = at[first_lane(on)];

	for (unsigned l = 0; l < LANES; l++)
		p->distance[l] = (uint32_t)((at[l] - first) & lane_mask(on, l));
	p->lanes = on;
	p->begin = begin;
	p->cost = c;
}

HOT void remember_32(struct pattern *p, const uint32_t at[LANES], uint32_t on, uint32_t begin, struct cost c)
{
	const uint32_t first = at[first_lane(on)];

	for (unsigned l = 0; l < LANES; l++)
		p->distance[l] = (at[l] - first) & (uint32_t)lane_mask(on, l);
	p->lanes = on;
	p->begin = begin;
	p->cost = c;
}

/* ---- memory ------------------------------------------------------------------------------------------------------------ */

__attribute__((noinline)) static struct cost global_cost(const uint64_t at[LANES], uint64_t offset, uint32_t on, uint32_t bytes)
{
	uint64_t packed[LANES];
	unsigned n = 0;

	EACH_LANE_OF(l, on)
	packed[n++] = at[l] + offset;
	return gpul_sectors(packed, n, bytes);
}

/* Count an access of the lanes in `on` to at[l] + offset in global memory. */
HOT void count_global(struct memory_counter *to, const uint64_t at[LANES], uint64_t offset, uint32_t on, uint32_t bytes)
{
	const uint32_t begin = (uint32_t)(at[first_lane(on)] + offset) % LINE_BYTES;
	struct pattern *p = &to->pattern;
	bool far;

	if (!is_pattern(p, at, on, &far) || p->begin != begin) {
		const struct cost c = global_cost(at, offset, on, bytes);

		if (far) {
			add_cost(&to->count.space[GLOBAL_MEMORY], c);
			return;
		}
		remember(p, at, on, begin, c);
	}
	add_cost(&to->count.space[GLOBAL_MEMORY], p->cost);
}

/* Count an access to shared memory.  The offset of the first address in its bank matters only for accesses narrower than a bank. */
HOT void count_shared(struct memory_counter *to, const uint32_t at[LANES], uint32_t on, const struct memory_plan *m)
{
	const uint32_t begin = at[first_lane(on)] % 4;
	struct pattern *p = &to->pattern;

	if (!is_pattern_32(p, at, on) || p->begin != begin)
		remember_32(p, at, on, begin, gpul_wavefronts(at, on, m->bytes, m->atomic));
	add_cost(&to->count.space[SHARED_MEMORY], p->cost);
}

/* Count an access by generic addresses, some of which are not in global memory; each address space is a separate request. */
static void count_spaces(struct memory_counter *to, struct warp_state *s, const uint64_t at[LANES], uint64_t add, uint32_t on,
			 const struct memory_plan *m)
{
	uint32_t shared = 0, local = 0, offset[LANES];
	uint64_t local_at[LANES];

	EACH_LANE_OF(l, on)
	{
		const uint64_t in_shared = at[l] + add - (uintptr_t)s->shared;
		const uint64_t in_local = at[l] + add - (uintptr_t)s->local - l * s->local_stride;

		offset[l] = (uint32_t)in_shared;
		local_at[l] = in_local;
		if (in_shared < s->shared_bytes)
			shared |= 1u << l;
		else if (in_local < s->local_bytes)
			local |= 1u << l;
	}
	if (shared)
		add_cost(&to->count.space[SHARED_MEMORY], gpul_wavefronts(offset, shared, m->bytes, m->atomic));
	if (local)
		add_cost(&to->count.space[LOCAL_MEMORY], gpul_sectors_local(local_at, local, m->bytes));
	if (on & ~shared & ~local)
		add_cost(&to->count.space[GLOBAL_MEMORY], global_cost(at, add, on & ~shared & ~local, m->bytes));
}

/* Count accesses to the generic addresses at[l] + offset. */
HOT void count_generic(struct memory_counter *to, struct warp_state *s, const uint64_t at[LANES], uint64_t offset, uint32_t on,
		       const struct memory_plan *m)
{
	const uint64_t shared = (uintptr_t)s->shared - offset, local = (uintptr_t)s->local - offset, local_bytes = LANES * s->local_stride;
	bool elsewhere = false;

	for (unsigned l = 0; l < LANES; l++)
		elsewhere |= ((at[l] - shared < s->shared_bytes) | (at[l] - local < local_bytes)) & (on >> l & 1);
	if (elsewhere)
		count_spaces(to, s, at, offset, on, m);
	else
		count_global(to, at, offset, on, m->bytes);
}

/* Count cp.async and cp.async.bulk: reads from global and writes to shared memory, or the reverse. */
static void count_copy(struct memory_counter *to, struct warp_state *s, const struct insn *i, uint32_t on)
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
			/* The copy engine moves the bytes, so shared memory has no bank conflicts. */
			EACH_LANE_OF(l, on)
			if (space == SPACE_GLOBAL && a[k].bytes[l])
				add_cost(&to->count.space[GLOBAL_MEMORY], gpul_sectors_of_span(a[k].at[l], a[k].bytes[l]));
		} else if (space == SPACE_GLOBAL && m.bytes) {
			add_cost(&to->count.space[GLOBAL_MEMORY], global_cost(a[k].at, 0, on, m.bytes));
		} else if (space == SPACE_SHARED && m.bytes) {
			for (unsigned l = 0; l < LANES; l++)
				offset[l] = (uint32_t)a[k].at[l];
			add_cost(&to->count.space[SHARED_MEMORY], gpul_wavefronts(offset, on, m.bytes, m.atomic));
		}
	}
}

/* Count the sectors of a multimem instruction once, although the NVLink switch repeats them for each device. */
static void count_multimem(struct memory_counter *to, struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct lane_accesses a[MAX_INSN_ACCESSES];

	if (gpul_insn_accesses(s, i, on, a))
		add_cost(&to->count.space[GLOBAL_MEMORY], global_cost(a->at, 0, on, a->bytes[first_lane(on)]));
}

/* Count the rare cases: local memory, addresses in registers of an unusual width, and accesses narrower than a bank. */
static void count_unusual(struct memory_counter *to, struct warp_state *s, const struct insn *i, uint32_t on, const struct memory_plan *m)
{
	uint64_t at[LANES] = { 0 };
	uint32_t offset[LANES];

	EACH_LANE_OF(l, on)
	at[l] = lane_address(s, i, l);
	for (unsigned l = 0; l < LANES; l++)
		offset[l] = (uint32_t)at[l];
	switch (m->space) {
	case SPACE_SHARED:
		count_shared(to, offset, on, m);
		break;
	case SPACE_LOCAL:
		add_cost(&to->count.space[LOCAL_MEMORY], gpul_sectors_local(at, on, m->bytes));
		break;
	case SPACE_GLOBAL:
		count_global(to, at, 0, on, m->bytes);
		break;
	default:
		count_generic(to, s, at, 0, on, m);
	}
}

HOT void count_memory(struct memory_counter *to, struct warp_state *s, const struct insn *i, uint32_t on, const struct memory_plan *m)
{
	const bool narrow = i->flags & FLAG_ADDRESS_32;

	if (m->copies)
		count_copy(to, s, i, on);
	else if (m->multimem)
		count_multimem(to, s, i, on);
	else if (m->space == SPACE_GLOBAL && !narrow)
		count_global(to, U64(&s->w, i->a), (uint64_t)i->imm, on, m->bytes);
	else if (m->space == SPACE_SHARED && narrow && m->bytes >= 4)
		count_shared(to, U32(&s->w, i->a), on, m);
	else if (m->space == SPACE_GENERIC && !narrow)
		count_generic(to, s, U64(&s->w, i->a), (uint64_t)i->imm, on, m);
	else
		count_unusual(to, s, i, on, m);
}

/* ---- hooks --------------------------------------------------------------------------------------------------------------- */

HOT unsigned count_of(uint32_t lanes)
{
	return lanes == ALL_LANES ? LANES : count_lanes(lanes);
}

HOT void count_branch(struct insn_count *c, const struct warp_state *s, const struct insn *i)
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

HOT enum observed count_instruction(struct warp_state *s, const struct insn *i, uint32_t on)
{
	struct tally *t = tally_of(s);
	const size_t k = (size_t)(i - s->frame->code->insns);
	struct insn_count *c;
	unsigned counted;

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

/* The hook is compiled in two versions (HOT_VERSIONS); the version for the CPU is selected at run time. */
static enum observed before_base(struct observer *o, struct warp_state *s, const struct insn *i, uint32_t on)
{
	(void)o;
	return count_instruction(s, i, on);
}

#if defined(__x86_64__)
__attribute__((target("avx2,bmi,bmi2,popcnt"))) static enum observed before_avx2(struct observer *o, struct warp_state *s,
										 const struct insn *i, uint32_t on)
{
	(void)o;
	return count_instruction(s, i, on);
}
#endif

profile_before *gpul_profile_before(void)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
		return before_avx2;
#endif
	return before_base;
}

/* Count an instruction that may wait for lanes.  It is counted after it has completed, because it is executed again after each wait. */
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
