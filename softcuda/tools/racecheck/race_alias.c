/* race_alias.c — memory with several addresses: mapped twice by cuMemMap, or behind a multicast address.
 *
 *     address of the program                                  home: the address used for shadow memory and synchronisation
 *       0x7f0000000000  cuMemMap, memory_id 7      ──┐
 *       0x7f0000200000  cuMemMap, memory_id 7      ──┴──>     0x800000000000    no process has such addresses
 *       0x7f0000400000  cuMemMap, memory_id 9      ─────>     0x800000200000
 *       0x7f0000600000  a multicast address: the copies have the memory_id 7 and 9
 *       0x7f0000800000  cuMemAlloc                 ─────>     0x7f0000800000
 *
 * The table is small and rarely changes; each thread caches the last span that it has looked up. */
#include "softcuda/tools/racecheck/race_parts_internal.h"

#include "core/array.h"

/* A span of addresses: a range in the table, or the gap between two ranges. */
struct span {
	uint64_t base, end, home; /* home: the address of base in shadow memory; base itself in gaps and multicast ranges */
	uint64_t memory_id;
	bool is_multicast;
};

static const uint64_t HOMES_BEGIN = UINT64_C(1) << 47, HOMES_END = UINT64_C(1) << 48;

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static GPUL_ARRAY(struct span) rows; /* the spans, sorted by address */
static uint64_t next_home = HOMES_BEGIN;
static _Atomic uint64_t generation; /* number of changes of the table; 0: it has never been used */
static _Atomic unsigned n_multicast;

/* ---- the table of spans: the caller holds the lock ---------------------------------------------------------------- */

/* Return the number of spans that begin at or before the address. */
static size_t n_before(uint64_t at)
{
	size_t lo = 0, hi = rows.n;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (rows.at[mid].base <= at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static const struct span *find_memory(uint64_t memory_id)
{
	for (size_t k = 0; k < rows.n; k++)
		if (rows.at[k].memory_id == memory_id)
			return &rows.at[k];
	return NULL;
}

static uint64_t new_home(uint64_t base, uint64_t bytes)
{
	const uint64_t home = next_home, room = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

	if (room > HOMES_END - home || base % PAGE_BYTES)
		return base;
	next_home += room;
	return home;
}

static struct span span_at(uint64_t at)
{
	const size_t n = n_before(at);

	if (n && at < rows.at[n - 1].end)
		return rows.at[n - 1];
	return (struct span){ .base = n ? rows.at[n - 1].end : 0,
			      .end = n < rows.n ? rows.at[n].base : UINT64_MAX,
			      .home = n ? rows.at[n - 1].end : 0 };
}

static void insert_row(const struct span *s)
{
	const size_t n = n_before(s->base);
	struct span *last = gpul_array_push(&rows);

	if (!last)
		return;
	memmove(&rows.at[n + 1], &rows.at[n], (rows.n - 1 - n) * sizeof *rows.at);
	rows.at[n] = *s;
	n_multicast += s->is_multicast;
	generation++;
}

/* ---- adding and removing ranges ------------------------------------------------------------------------------------ */

void race_alias_add(const gpul_exec_range *r)
{
	struct span s = {
		.base = r->base, .end = r->base + r->bytes, .memory_id = r->memory_id, .is_multicast = r->flags & GPUL_EXEC_MEM_MULTICAST
	};
	const struct span *other;

	if (!s.memory_id && !s.is_multicast)
		return;
	pthread_rwlock_wrlock(&lock);
	other = s.memory_id ? find_memory(s.memory_id) : NULL;
	s.home = other ? other->home : s.is_multicast ? s.base : new_home(s.base, r->bytes);
	insert_row(&s);
	pthread_rwlock_unlock(&lock);
}

void race_alias_remove(const gpul_exec_range *r)
{
	size_t n;

	pthread_rwlock_wrlock(&lock);
	n = n_before(r->base);
	if (n && rows.at[n - 1].base == r->base) {
		n_multicast -= rows.at[n - 1].is_multicast;
		memmove(&rows.at[n - 1], &rows.at[n], (rows.n - n) * sizeof *rows.at);
		rows.n--;
		generation++;
	}
	pthread_rwlock_unlock(&lock);
}

/* ---- queries ------------------------------------------------------------------------------------------------------- */

/* Return the span (a range of the table, or a gap) that contains the address.  Each thread caches its last span. */
static const struct span *find_span(uint64_t at)
{
	static _Thread_local struct {
		struct span span;
		uint64_t generation;
	} last;
	const uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);

	if (last.generation != now || at < last.span.base || at >= last.span.end) {
		pthread_rwlock_rdlock(&lock);
		last.span = span_at(at);
		last.generation = atomic_load(&generation);
		pthread_rwlock_unlock(&lock);
	}
	return &last.span;
}

bool race_has_other_address(const gpul_exec_range *r)
{
	bool found = false;

	pthread_rwlock_rdlock(&lock);
	for (size_t k = 0; r->memory_id && k < rows.n; k++)
		found |= rows.at[k].memory_id == r->memory_id && rows.at[k].base != r->base;
	pthread_rwlock_unlock(&lock);
	return found;
}

uint64_t race_home(uint64_t at, uint64_t *bytes)
{
	const struct span *s;

	if (!atomic_load_explicit(&generation, memory_order_relaxed))
		return at;
	s = find_span(at);
	if (bytes && *bytes > s->end - at)
		*bytes = s->end - at;
	return at - s->base + s->home;
}

static bool is_multicast(uint64_t at)
{
	return find_span(at)->is_multicast;
}

/* Return the address of copy n of multicast memory: that of this process's mapping, or, if there is none, of the driver's mapping. */
static uint64_t address_of_copy(const gpul_exec_copies *c, unsigned n)
{
	static _Thread_local struct {
		uint64_t memory_id, base, generation;
	} recent[4], *known; /* only a few, because the space for thread-local variables is small (cu_thread.c) */
	const uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
	const struct span *s;

	known = &recent[n % 4];
	if (known->generation != now || known->memory_id != c->memory_id[n]) {
		pthread_rwlock_rdlock(&lock);
		s = c->memory_id[n] ? find_memory(c->memory_id[n]) : NULL;
		known->base = s ? s->base : 0;
		known->memory_id = c->memory_id[n];
		known->generation = now;
		pthread_rwlock_unlock(&lock);
	}
	return known->base ? known->base + c->memory_at[n] : (uintptr_t)c->at[n];
}

bool race_any_multicast(uint32_t lanes, const uint64_t at[LANES])
{
	if (!atomic_load_explicit(&n_multicast, memory_order_relaxed))
		return false;
	EACH_LANE_OF(l, lanes)
	if (is_multicast(at[l]))
		return true;
	return false;
}

unsigned race_copies_of(const struct warp_state *s, const struct insn *i, uint64_t at, unsigned bytes, uint64_t out[GPUL_EXEC_MAX_DEVICES])
{
	const struct copies_slot *k;
	char why[160];

	if (!atomic_load_explicit(&n_multicast, memory_order_relaxed) || !is_multicast(at)) {
		*out = at;
		return 1;
	}
	k = copies_at(s->cache, i->src, at, bytes, false, why, sizeof why);
	for (unsigned n = 0; k && n < k->copies.n; n++)
		out[n] = address_of_copy(&k->copies, n) + (at - k->base);
	return k ? k->copies.n : 0;
}
