/* exec_memory.c — the table of address ranges that kernels may access.  It is read much more often than changed, so a read-write lock
 * protects it, and each worker caches ranges. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/exec/exec_memory_internal.h"
#include "softcuda/exec/observer_internal.h"

/* number of removed ranges that are kept for messages; a power of two */
enum { FREED_RANGES = 1024 };

struct gpul_exec_memory {
	pthread_rwlock_t lock;
	struct range_table table;
	_Atomic uint64_t generation;
	struct observer *observers;
	gpul_exec_range *freed; /* a ring buffer of the most recently removed ranges; NULL: none yet */
	uint64_t n_freed;
};

gpul_status gpul_exec_memory_create(gpul_exec_memory **out, gpul_error *err)
{
	gpul_exec_memory *m = calloc(1, sizeof *m);

	if (!m)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the table of device memory");
	pthread_rwlock_init(&m->lock, NULL);
	atomic_init(&m->generation, 1);
	*out = m;
	return GPUL_OK;
}

void gpul_exec_memory_destroy(gpul_exec_memory *m)
{
	if (!m)
		return;
	pthread_rwlock_destroy(&m->lock);
	gpul_ranges_free(&m->table);
	free(m->freed);
	free(m);
}

/* ---- observers of the table ---------------------------------------------------------------- */

gpul_status gpul_exec_memory_observe(gpul_exec_memory *m, struct observer *o, gpul_error *err)
{
	struct observer **place = &m->observers;
	unsigned n = 0;

	for (const struct observer *other = m->observers; other; other = other->next)
		n++;
	while (*place && ((*place)->yields || !o->yields)) /* observers that yield must precede those that do not */
		place = &(*place)->next;
	if (n == MAX_OBSERVERS)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s: at most %d tools can observe kernels at the same time", o->name, MAX_OBSERVERS);
	o->bit = 1u << n;
	o->next = *place;
	*place = o;
	return GPUL_OK;
}

struct observer *gpul_exec_memory_observers(const gpul_exec_memory *m)
{
	return m->observers;
}

void gpul_exec_memory_moved(gpul_exec_memory *m, const struct host_move *move)
{
	for (struct observer *o = m->observers; o; o = o->next)
		if (o->host_moves && move->row_bytes)
			o->host_moves(o, move);
}

void gpul_exec_memory_written(gpul_exec_memory *m, uint64_t to, uint64_t from, uint64_t bytes)
{
	gpul_exec_memory_moved(m, &(struct host_move){ .to = to, .from = from, .row_bytes = bytes, .n_rows = 1, .n_slices = 1 });
}

/* ---- adding, removing and finding ranges ----------------------------------------------------- */

static uint64_t mapped_end(const gpul_exec_range *r)
{
	return r->base + r->bytes + r->padding;
}

static gpul_status insert_range(gpul_exec_memory *m, const gpul_exec_range *range, gpul_error *err)
{
	struct range_place at, behind;
	const gpul_exec_range *before = gpul_ranges_find(&m->table, range->base, &at), *after;

	behind = at;
	after = gpul_ranges_next(&m->table, &behind);
	if ((before && mapped_end(before) > range->base) || (after && mapped_end(range) > after->base))
		return gpul_fail(err, GPUL_EINVAL, 0, "device memory at 0x%llx, %llu bytes, overlaps memory that is registered already",
				 (unsigned long long)range->base, (unsigned long long)range->bytes);
	if (!gpul_ranges_insert(&m->table, at, range))
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the table of device memory");
	return GPUL_OK;
}

gpul_status gpul_exec_memory_add(gpul_exec_memory *m, const gpul_exec_range *range, gpul_error *err)
{
	gpul_status st;

	if (!range->bytes || range->base + range->bytes < range->base || mapped_end(range) < range->base)
		return gpul_fail(err, GPUL_EINVAL, 0, "device memory of %llu bytes at 0x%llx is empty or exceeds the address space",
				 (unsigned long long)range->bytes, (unsigned long long)range->base);
	pthread_rwlock_wrlock(&m->lock);
	st = insert_range(m, range, err);
	if (!st)
		atomic_fetch_add(&m->generation, 1);
	pthread_rwlock_unlock(&m->lock);
	for (struct observer *o = m->observers; o && !st; o = o->next)
		if (o->range_added)
			o->range_added(o, range);
	return st;
}

/* Keep a copy of a removed range, for messages.  The caller holds m->lock. */
static void remember_freed(gpul_exec_memory *m, const gpul_exec_range *r)
{
	if (!m->freed)
		m->freed = calloc(FREED_RANGES, sizeof *m->freed);
	if (m->freed)
		m->freed[m->n_freed++ % FREED_RANGES] = *r;
}

bool gpul_exec_memory_freed(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out)
{
	gpul_exec_memory *lockable = (gpul_exec_memory *)m;
	bool found = false;

	pthread_rwlock_rdlock(&lockable->lock);
	for (uint64_t k = 0; m->freed && k < FREED_RANGES && k < m->n_freed && !found; k++) {
		*out = m->freed[(m->n_freed - 1 - k) % FREED_RANGES];
		found = address - out->base < out->bytes;
	}
	pthread_rwlock_unlock(&lockable->lock);
	return found;
}

bool gpul_exec_memory_remove(gpul_exec_memory *m, uint64_t base)
{
	struct range_place at;
	const gpul_exec_range *r;
	gpul_exec_range removed;
	bool found;

	pthread_rwlock_wrlock(&m->lock);
	r = gpul_ranges_find(&m->table, base, &at);
	found = r && r->base == base;
	if (found) {
		removed = *r;
		remember_freed(m, r);
		gpul_ranges_remove(&m->table, at);
		atomic_fetch_add(&m->generation, 1);
	}
	pthread_rwlock_unlock(&m->lock);
	for (struct observer *o = m->observers; o && found; o = o->next)
		if (o->range_removed)
			o->range_removed(o, &removed);
	return found;
}

bool gpul_memory_nearest(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out)
{
	gpul_exec_memory *lockable = (gpul_exec_memory *)m; /* not const, because readers lock m->lock too */
	struct range_place at;
	const gpul_exec_range *r;

	pthread_rwlock_rdlock(&lockable->lock);
	r = gpul_ranges_find(&m->table, address, &at);
	if (r)
		*out = *r;
	pthread_rwlock_unlock(&lockable->lock);
	return r;
}

bool gpul_exec_memory_find(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out)
{
	gpul_exec_range range;

	if (!gpul_memory_nearest(m, address, &range) || address - range.base >= range.bytes)
		return false;
	*out = range;
	return true;
}

bool gpul_exec_memory_next(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out)
{
	gpul_exec_memory *lockable = (gpul_exec_memory *)m;
	struct range_place at;
	const gpul_exec_range *r;

	pthread_rwlock_rdlock(&lockable->lock);
	r = gpul_ranges_find(&m->table, address, &at);
	if (!r || address - r->base >= r->bytes)
		r = gpul_ranges_next(&m->table, &at);
	if (r)
		*out = *r;
	pthread_rwlock_unlock(&lockable->lock);
	return r;
}

bool gpul_exec_memory_set_rights(gpul_exec_memory *m, uint64_t base, uint32_t denied, uint32_t unwritable)
{
	struct range_place at;
	gpul_exec_range *r;
	bool found;

	pthread_rwlock_wrlock(&m->lock);
	r = gpul_ranges_find(&m->table, base, &at);
	found = r && r->base == base;
	if (found) {
		r->denied = denied;
		r->unwritable = unwritable;
		atomic_fetch_add(&m->generation, 1);
	}
	pthread_rwlock_unlock(&m->lock);
	return found;
}

bool gpul_exec_memory_set_owner(gpul_exec_memory *m, uint64_t base, void *owner)
{
	struct range_place at;
	gpul_exec_range *r;
	bool found;

	pthread_rwlock_wrlock(&m->lock);
	r = gpul_ranges_find(&m->table, base, &at);
	found = r && r->base == base;
	if (found)
		r->owner = owner;
	pthread_rwlock_unlock(&m->lock);
	return found;
}

/* ---- a worker's cache of ranges --------------------------------------------------------- */

void gpul_range_cache_init(struct range_cache *c, const gpul_exec_memory *m, unsigned device)
{
	memset(c, 0, sizeof *c);
	c->memory = m;
	c->device = device;
	c->generation = &m->generation;
}

static bool is_read_only(const gpul_exec_range *r, uint32_t device_bit)
{
	return r->flags & GPUL_EXEC_MEM_READ_ONLY || r->unwritable & device_bit;
}

/* Fill a cache slot with the range around [at, at + bytes), if the device may access it; the caller holds m->lock.  The bytes may be in
 * several adjacent ranges with the same rights, because a GPU only checks pages. */
static bool find_span(const gpul_exec_memory *m, uint64_t at, uint64_t bytes, unsigned device, struct range_slot *out)
{
	uint32_t bit = 1u << device;
	struct range_place place;
	const gpul_exec_range *r = gpul_ranges_find(&m->table, at, &place);

	if (!r || at >= mapped_end(r) || r->denied & bit || r->flags & GPUL_EXEC_MEM_MULTICAST)
		return false;
	*out = (struct range_slot){ r->base, mapped_end(r), is_read_only(r, bit) };
	while (bytes > out->end - at) {
		r = gpul_ranges_next(&m->table, &place);
		if (!r || r->base != out->end || r->denied & bit || r->flags & GPUL_EXEC_MEM_MULTICAST ||
		    is_read_only(r, bit) != out->read_only)
			return false;
		out->end = mapped_end(r);
	}
	return true;
}

void gpul_range_cache_refresh(struct range_cache *c)
{
	uint64_t now = atomic_load(c->generation);

	if (c->seen != now) {
		memset(c->slot, 0, sizeof c->slot);
		memset(c->copies, 0, sizeof c->copies);
		c->seen = now;
	}
}

bool gpul_range_lookup(struct range_cache *c, unsigned slot, uint64_t at, uint64_t bytes, bool write)
{
	gpul_exec_memory *lockable = (gpul_exec_memory *)c->memory;
	struct range_slot span;
	bool found;

	gpul_range_cache_refresh(c); /* read before the search: a later change of the table then makes the new slot invalid */
	pthread_rwlock_rdlock(&lockable->lock);
	found = find_span(c->memory, at, bytes, c->device, &span);
	pthread_rwlock_unlock(&lockable->lock);
	if (!found || (write && span.read_only))
		return false;
	c->slot[slot % RANGE_SLOTS] = span;
	return true;
}

/* ---- multicast addresses ------------------------------------------------------------------- */

const struct copies_slot *gpul_copies_lookup(struct range_cache *c, unsigned slot, uint64_t at, unsigned bytes, bool write, char *why,
					     size_t why_bytes)
{
	struct copies_slot *k = &c->copies[slot % COPIES_SLOTS];
	const uint32_t bit = 1u << c->device;
	gpul_exec_range r;

	gpul_range_cache_refresh(c); /* read before the search: a later change of the table then makes the new slot invalid */
	*k = (struct copies_slot){ 0 };
	if (!gpul_exec_memory_find(c->memory, at, &r) || !r.team)
		snprintf(why, why_bytes, "is not an address of a multicast object");
	else if (r.denied & bit || (write && is_read_only(&r, bit)))
		snprintf(why, why_bytes, "is an address of a multicast object that device %u may not %s: see cuMemSetAccess", c->device,
			 r.denied & bit ? "access" : "write");
	else if (bytes > r.bytes - (at - r.base))
		snprintf(why, why_bytes, "crosses the end of a multicast object of %llu bytes", (unsigned long long)r.bytes);
	else if (r.team->find_copies(r.team, at - r.base, &k->copies, why, why_bytes))
		*k = (struct copies_slot){ r.base + k->copies.begin, r.base + k->copies.end, is_read_only(&r, bit), k->copies };
	if (bytes <= k->end - at && k->end)
		return k;
	if (k->end)
		snprintf(why, why_bytes, "crosses the end of memory that is bound to a multicast object");
	k->end = 0;
	return NULL;
}
