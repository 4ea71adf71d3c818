/* sync.c — release and acquire: what threads release to a variable is added to its clock, and threads that acquire add that clock
 * to theirs.
 *
 * PTX ISA 9.0, 8.9. A release pattern is a write with .release, or a fence followed by any strong write; an acquire pattern is a read
 * with .acquire, or a strong read followed by a fence. They synchronise if the read returns the value of the write, or of an atomic
 * operation that follows the write, and if the scope of each includes the other thread. Here a variable keeps everything that was
 * ever released to it. So a reader may acquire too much: the tool may miss a race, but does not report a false one.
 *
 * Some rules are weaker than PTX's, so that common programs are not reported:
 *   - A barrier after a strong read counts as a fence (as when the last block sums in threadFenceReduction).
 *   - A strong write after a barrier releases what all threads did before their fences, if the fences came before the barrier.
 *   - A release with scope .sys also reaches the CPU and other processes, which may then signal a thread through another address.
 *     So a block that acquires with this scope acquires all such releases, whatever their address; so does every later launch.
 *   - A strong or volatile access is ordered after its thread's earlier strong reads without a fence, if the released access is
 *     also strong or volatile. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include <stdlib.h>

enum { N_GLOBAL_SLOTS = 4096, MANY_FACTS = 32 };

struct var {
	struct var *next;
	uint64_t at;
	struct clock *wide;   /* vector clock of the accesses released with GPU scope or wider */
	struct clock *narrow; /* vector clock of the accesses released with block scope */
	uint64_t narrow_block;
	bool knows_cpu;            /* a block that had acquired all releases with system scope has released to this variable */
	uint32_t version;          /* incremented at each release */
	struct suspects *suspects; /* if the variable is a lock: suspect accesses in its critical sections, see lock.c */
	uint32_t polled;           /* number of the last launch that polled the variable; 0: none */
	struct clock *arriving;    /* mbarrier: vector clock of the current phase's arrivals */
	bool phase;
};

static struct slot {
	pthread_mutex_t lock;
	_Atomic(struct var *) first;
} slots[N_GLOBAL_SLOTS];
static struct var cpu; /* stands for the CPU: collects everything that was released with system scope */
static pthread_mutex_t cpu_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool cpu_used;

__attribute__((constructor)) static void create_locks(void)
{
	for (unsigned k = 0; k < N_GLOBAL_SLOTS; k++)
		pthread_mutex_init(&slots[k].lock, NULL);
}

void race_next_stamp(struct watched_warp *w)
{
	w->stamp = ++w->block->time;
}

/* ---- synchronisation variables ------------------------------------------------------------------------------------- */

static struct slot *slot_of(uint64_t at)
{
	return &slots[(at >> 2) * 2654435761u >> 8 & (N_GLOBAL_SLOTS - 1)];
}

static struct var *find_var(struct var *v, uint64_t at)
{
	while (v && v->at != at)
		v = v->next;
	return v;
}

static struct var *new_var(uint64_t at, struct var *next)
{
	struct var *v = calloc(1, sizeof *v);

	if (v) {
		v->at = at;
		v->next = next;
	}
	return v;
}

/* Find the variable at an address, or create it if `make`. *lock receives the mutex of the variable, which the caller must unlock, or
 * NULL for shared memory, which needs no mutex. Returns NULL if there is no such variable, or if out of memory. */
static struct var *lock_var(struct watched_block *b, bool shared, uint64_t at, bool make, pthread_mutex_t **lock)
{
	struct var **mine = &b->vars[(at >> 2) % N_VAR_SLOTS], *v;
	struct slot *slot;

	*lock = NULL;
	if (shared) {
		v = find_var(*mine, at);
		if (!v && make && (v = new_var(at, *mine)))
			*mine = v;
		return v;
	}
	at = race_home(at, NULL);
	slot = slot_of(at);
	if (!make && !atomic_load_explicit(&slot->first, memory_order_acquire))
		return NULL;
	pthread_mutex_lock(&slot->lock);
	v = find_var(atomic_load(&slot->first), at);
	if (!v && make && (v = new_var(at, atomic_load(&slot->first))))
		atomic_store(&slot->first, v);
	*lock = &slot->lock;
	return v;
}

static void unlock_var(pthread_mutex_t *lock)
{
	if (lock)
		pthread_mutex_unlock(lock);
}

void race_vars_end(struct watched_block *b)
{
	for (unsigned k = 0; k < N_VAR_SLOTS; k++) {
		for (struct var *v = b->vars[k], *next; v; v = next) {
			next = v->next;
			race_clock_drop(v->wide);
			race_clock_drop(v->narrow);
			race_clock_drop(v->arriving);
			free(v->suspects);
			free(v);
		}
		b->vars[k] = NULL;
	}
}

/* ---- which accesses happen before the lane's next access ----------------------------------------------------------------- */

/* Add to *c the accesses that happen before the lane's next access by its stamps and floors, which its own clock does not contain. */
static void add_own_facts(struct watched_warp *w, unsigned lane, uint32_t stamp, uint32_t floor, uint32_t warp_floor, struct clock **c)
{
	const uint64_t block = w->block->key;

	race_clock_add(c, block, WHO_ALL, floor);
	if (warp_floor > floor)
		race_clock_add(c, block, WHO_WARP + w->index, warp_floor);
	race_clock_add(c, block, WHO_THREAD + w->index * LANES + lane, stamp);
	for (unsigned k = 0; w->knows && k < LANES; k++)
		if (w->knows[lane][k] > warp_floor && w->knows[lane][k] > floor)
			race_clock_add(c, block, WHO_THREAD + w->index * LANES + k, w->knows[lane][k] < stamp ? w->knows[lane][k] : stamp);
}

void race_lane_facts(struct watched_warp *w, unsigned lane, struct clock **c)
{
	add_own_facts(w, lane, w->stamp, w->block->floor, w->floor, c);
	race_clock_join(c, w->block->shared_clock);
	race_clock_join(c, w->clock[lane]);
}

static void add_fenced_facts(struct watched_warp *w, unsigned lane, struct clock **c)
{
	add_own_facts(w, lane, w->release[lane], w->release_floor[lane], w->release_warp[lane], c);
	race_clock_join(c, w->release_clock[lane]);
}

/* ---- release -------------------------------------------------------------------------------------------------------------- */

static void publish(struct watched_warp *w, unsigned lane, struct clock **to, bool fenced)
{
	if (fenced)
		add_fenced_facts(w, lane, to);
	else
		race_lane_facts(w, lane, to);
	if (*to && (*to)->n > MANY_FACTS && (*to)->n == (*to)->room)
		race_clock_prune(to, w->block->launch);
}

void race_release(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, unsigned order, unsigned scope)
{
	const bool fenced = order != ORDER_RELEASE && order != ORDER_ACQ_REL;
	const unsigned in = fenced && w->release_scope[lane] < scope ? w->release_scope[lane] : scope;
	pthread_mutex_t *lock;
	struct var *v;

	if (fenced && !w->release[lane])
		return;
	v = lock_var(w->block, shared, at, true, &lock);
	if (v) {
		v->knows_cpu |= w->block->knows_cpu;
		v->version++;
	}
	if (v && (shared || in >= SCOPE_GPU)) {
		publish(w, lane, &v->wide, fenced);
	} else if (v) {
		if (v->narrow_block != w->block->key) {
			race_clock_drop(v->narrow);
			v->narrow = NULL;
		}
		v->narrow_block = w->block->key;
		publish(w, lane, &v->narrow, fenced);
	}
	unlock_var(lock);
	if (in == SCOPE_SYS && !shared) {
		pthread_mutex_lock(&cpu_lock);
		publish(w, lane, &cpu.wide, fenced);
		atomic_store(&cpu_used, true);
		pthread_mutex_unlock(&cpu_lock);
	}
}

/* ---- acquire ---------------------------------------------------------------------------------------------------------------- */

static void learn(struct watched_warp *w, unsigned lane, struct clock *from, bool own_block_only)
{
	if (!from)
		return;
	w->clock[lane] = race_clock_merged(w->clock[lane], from, own_block_only ? w->block->key : 0);
	w->block->any_clock |= w->clock[lane] != NULL;
	w->block->version++;
}

bool race_cpu_knows_some(void)
{
	return atomic_load(&cpu_used);
}

static void learn_from_cpu(struct watched_warp *w)
{
	const uint32_t next = race_next_launch();

	if ((!w->block->knows_cpu && race_cpu_knows_some()) || next != w->block->knows_copies)
		w->block->version++;
	w->block->knows_cpu = race_cpu_knows_some();
	w->block->knows_copies = next;
}

static void set_clock(struct clock **at, struct clock *c)
{
	(void)race_clock_ref(c);
	race_clock_drop(*at);
	*at = c;
}

/* Acquire what was released to v with GPU scope or wider. known: the clock that the lane acquired from v last time. If the lane has
 * acquired nothing else since then, its clock is a subset of v's clock, and can be replaced by v's clock, which makes polling loops
 * fast. */
static void learn_wide(struct watched_warp *w, unsigned lane, const struct var *v, bool own_block_only, struct learned *known)
{
	if (!own_block_only && known->clock && known->clock == w->clock[lane]) {
		set_clock(&w->clock[lane], v->wide);
		w->block->version++;
	} else {
		learn(w, lane, v->wide, own_block_only);
	}
	set_clock(&known->clock, w->clock[lane] == v->wide ? v->wide : NULL);
}

/* Acquire what was released to a variable.  The caller holds the variable's lock. */
static void learn_from_var(struct watched_warp *w, unsigned lane, const struct var *v, bool shared, unsigned scope)
{
	struct learned *known = &w->learned[lane][(uintptr_t)v / sizeof *v % N_LEARNED];

	if (known->var == v && known->version == v->version && known->scope >= scope)
		return; /* the lane has acquired this version already, and its clock never loses entries */
	if (known->var != v)
		set_clock(&known->clock, NULL);
	known->var = v;
	known->version = v->version;
	known->scope = (uint8_t)scope;
	learn_wide(w, lane, v, !shared && scope < SCOPE_GPU, known);
	if (v->knows_cpu)
		learn_from_cpu(w);
	if (v->narrow_block == w->block->key)
		learn(w, lane, v->narrow, false);
}

bool race_cpu_knows(const struct record *r, unsigned lane)
{
	bool knows;

	pthread_mutex_lock(&cpu_lock);
	knows = race_clock_knows_lane(cpu.wide, r, lane);
	pthread_mutex_unlock(&cpu_lock);
	return knows;
}

/* Lock a variable and return its mutex; NULL: the variable is in shared memory, which needs no mutex. */
static pthread_mutex_t *lock_of(const struct watched_block *b, const struct var *v)
{
	const bool shared = find_var(b->vars[(v->at >> 2) % N_VAR_SLOTS], v->at) == v;

	if (shared)
		return NULL;
	pthread_mutex_lock(&slot_of(v->at)->lock);
	return &slot_of(v->at)->lock;
}

/* Record that the lane's next fence acquires what was released to the variable; NULL: everything released with system scope. */
static void await_fence(struct watched_warp *w, unsigned lane, struct var *v, unsigned scope)
{
	struct awaited *a = w->awaited[lane];
	unsigned k = 0;

	while (k < N_AWAITED && a[k].used && (a[k].var != v || a[k].scope != scope))
		k++;
	if (k == N_AWAITED) { /* the array is full, so the oldest entry is replaced */
		memmove(a, a + 1, (N_AWAITED - 1) * sizeof *a);
		k--;
	}
	a[k] = (struct awaited){ .var = v, .scope = (uint8_t)scope, .used = true };
	w->awaits |= 1u << lane;
}

void race_acquire(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, unsigned order, unsigned scope)
{
	const bool now = order == ORDER_ACQUIRE || order == ORDER_ACQ_REL;
	pthread_mutex_t *lock;
	struct var *v = lock_var(w->block, shared, at, false, &lock);

	if (v && now)
		learn_from_var(w, lane, v, shared, scope);
	else if (v)
		await_fence(w, lane, v, shared ? SCOPE_SYS : scope);
	unlock_var(lock);
	if (scope != SCOPE_SYS || shared)
		return;
	if (now)
		learn_from_cpu(w);
	else if (!v)
		await_fence(w, lane, NULL, scope);
}

/* Called at a fence, which turns the earlier strong reads of these lanes into acquires. */
void race_acquire_awaited(struct watched_warp *w, uint32_t lanes, unsigned scope)
{
	EACH_LANE_OF(l, lanes & w->awaits)
	{
		unsigned kept = 0; /* number of earlier reads that still need a fence of a wider scope */

		for (unsigned k = 0; k < N_AWAITED && w->awaited[l][k].used; k++) {
			struct awaited *a = &w->awaited[l][k];
			const unsigned in = a->scope < scope ? a->scope : scope;

			if (a->var) {
				pthread_mutex_t *lock = lock_of(w->block, a->var);

				learn_from_var(w, l, a->var, !lock, in);
				unlock_var(lock);
			}
			if (in == SCOPE_SYS)
				learn_from_cpu(w);
			if (scope < SCOPE_GPU && a->scope > scope)
				w->awaited[l][kept++] = *a;
		}
		for (unsigned k = kept; k < N_AWAITED; k++)
			w->awaited[l][k].used = false;
		if (!kept)
			w->awaits &= ~(1u << l);
	}
}

bool race_awaits(const struct watched_warp *w, unsigned lane, const struct record *r, unsigned of_lane)
{
	bool found = false;

	for (unsigned k = 0; w->awaits >> lane & 1 && k < N_AWAITED && w->awaited[lane][k].used && !found; k++) {
		const struct awaited *a = &w->awaited[lane][k];
		const bool own_block = block_key(r->launch, r->block) == w->block->key;
		pthread_mutex_t *lock;

		if (!a->var)
			continue;
		lock = lock_of(w->block, a->var);
		found = ((own_block || a->scope >= SCOPE_GPU) && race_clock_knows_lane(a->var->wide, r, of_lane)) ||
			(a->var->narrow_block == w->block->key && race_clock_knows_lane(a->var->narrow, r, of_lane));
		unlock_var(lock);
	}
	return found;
}

void race_fence(struct watched_warp *w, uint32_t lanes, unsigned scope)
{
	race_acquire_awaited(w, lanes, scope);
	EACH_LANE_OF(l, lanes)
	{
		struct clock *kept = NULL;

		race_clock_drop(w->release_clock[l]);
		kept = race_clock_merged(race_clock_ref(w->clock[l]), w->block->shared_clock, 0);
		w->release_clock[l] = kept;
		w->release[l] = w->stamp;
		w->release_floor[l] = w->block->floor;
		w->release_warp[l] = w->floor;
		w->release_scope[l] = (uint8_t)scope;
	}
	w->block->any_fence = true;
	race_next_stamp(w);
}

/* If all lanes have executed a fence of GPU scope or wider since the last barrier, add the accesses before these fences to *c. */
static void add_fences_of_warp(const struct watched_warp *w, uint32_t live, struct clock **c)
{
	uint32_t least = UINT32_MAX;

	EACH_LANE_OF(l, live)
	{
		if (w->release_scope[l] < SCOPE_GPU || w->release[l] <= w->block->floor)
			return;
		least = w->release[l] < least ? w->release[l] : least;
	}
	if (live)
		race_clock_add(c, w->block->key, WHO_WARP + w->index, least);
}

/* Called when all threads have arrived at a barrier. If each of them executed a fence before the barrier, and one thread sends a
 * signal after it, that signal also releases the accesses of the other threads before their fences. */
void race_join_fences(struct watched_block *b)
{
	struct clock *fenced = NULL;

	for (unsigned k = 0; b->any_fence && k < b->n_warps; k++)
		add_fences_of_warp(&b->warps[k], b->block->warps[k].w.live, &fenced);
	for (unsigned k = 0; fenced && k < b->n_warps; k++)
		for (unsigned l = 0; l < LANES; l++)
			if (b->warps[k].release[l])
				b->warps[k].release_clock[l] = race_clock_merged(b->warps[k].release_clock[l], fenced, 0);
	race_clock_drop(fenced);
	b->any_fence = false;
}

/* ---- suspect accesses stored with a lock (lock.c) ------------------------------------------------------------------------- */

struct suspects *race_lock_suspects(struct watched_block *b, bool shared, uint64_t at, pthread_mutex_t **lock)
{
	struct var *v = lock_var(b, shared, at, false, lock);

	return v ? v->suspects : NULL;
}

struct suspects *race_make_suspects(struct watched_block *b, bool shared, uint64_t at, size_t bytes, pthread_mutex_t **lock)
{
	struct var *v = lock_var(b, shared, at, true, lock);

	if (v && !v->suspects)
		v->suspects = calloc(1, bytes);
	return v ? v->suspects : NULL;
}

void race_unlock_suspects(pthread_mutex_t *lock)
{
	unlock_var(lock);
}

/* ---- signals: words that a loop polls ------------------------------------------------------------------------------------ */

void race_polls(struct watched_block *b, bool shared, uint64_t at)
{
	pthread_mutex_t *lock;
	struct var *v = lock_var(b, shared, at, true, &lock);

	if (v)
		v->polled = b->launch;
	unlock_var(lock);
}

bool race_is_polled(struct watched_block *b, bool shared, uint64_t at)
{
	pthread_mutex_t *lock;
	const struct var *v = lock_var(b, shared, at, false, &lock);
	const uint32_t by = v ? v->polled : 0;

	unlock_var(lock);
	return by && (by == b->launch || !race_launch_before(by, b->launch));
}

/* ---- mbarriers: arrivals release to the phase, and threads that see it complete acquire ------------------------------------------ */

void race_mbarrier_arrives(struct watched_warp *w, unsigned lane, bool shared, uint64_t at, bool copies)
{
	pthread_mutex_t *lock;
	struct var *v = lock_var(w->block, shared, at, true, &lock);

	if (v && copies)
		race_clock_add(&v->arriving, w->block->key, WHO_COPIES + w->index * LANES + lane, w->stamp);
	else if (v)
		race_lane_facts(w, lane, &v->arriving);
	unlock_var(lock);
}

void race_mbarrier_changed(struct watched_warp *w, bool shared, uint64_t at, uint64_t value)
{
	const bool phase = value >> 63;
	pthread_mutex_t *lock;
	struct var *v = lock_var(w->block, shared, at, false, &lock);

	if (v && v->phase != phase) {
		race_clock_join(&v->wide, v->arriving);
		race_clock_drop(v->arriving);
		v->arriving = NULL;
		v->phase = phase;
		v->version++;
	}
	unlock_var(lock);
}

void race_mbarrier_begins(struct watched_warp *w, bool shared, uint64_t at)
{
	pthread_mutex_t *lock;
	struct var *v = lock_var(w->block, shared, at, false, &lock);

	if (v)
		v->phase = false;
	unlock_var(lock);
}

void race_mbarrier_passed(struct watched_warp *w, unsigned lane, bool shared, uint64_t at)
{
	race_acquire(w, lane, shared, at, ORDER_ACQUIRE, SCOPE_GPU);
}
