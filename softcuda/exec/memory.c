/* memory.c — the table of ranges that kernels may access: a sorted array, read often, changed rarely. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/exec/memory_internal.h"

struct gpul_exec_memory {
	pthread_rwlock_t lock;
	gpul_exec_range *ranges;   /* sorted by base */
	size_t n_ranges, capacity;
	_Atomic uint64_t generation;
};

gpul_status gpul_exec_memory_create(gpul_exec_memory **out, gpul_error *err)
{
	gpul_exec_memory *m = calloc(1, sizeof *m);

	if (!m)
		return gpul_fail(err, GPUL_ENOMEM, 0,
				 "no memory for the table of device memory");
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
	free(m->ranges);
	free(m);
}

/* The number of ranges that begin at or before address. */
static size_t rank_of(const gpul_exec_memory *m, uint64_t address)
{
	size_t lo = 0, hi = m->n_ranges;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (m->ranges[mid].base <= address)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool grow_table(gpul_exec_memory *m)
{
	size_t capacity = m->capacity ? 2 * m->capacity : 16;
	gpul_exec_range *ranges;

	if (m->n_ranges < m->capacity)
		return true;
	ranges = realloc(m->ranges, capacity * sizeof *ranges);
	if (!ranges)
		return false;
	m->ranges = ranges;
	m->capacity = capacity;
	return true;
}

static gpul_status insert_range(gpul_exec_memory *m, const gpul_exec_range *range, gpul_error *err)
{
	size_t at = rank_of(m, range->base);

	if ((at > 0 && m->ranges[at - 1].base + m->ranges[at - 1].bytes > range->base) ||
	    (at < m->n_ranges && range->base + range->bytes > m->ranges[at].base))
		return gpul_fail(
			err, GPUL_EINVAL, 0,
			"device memory at 0x%llx, %llu bytes, overlaps a range that is in the table",
			(unsigned long long)range->base, (unsigned long long)range->bytes);
	if (!grow_table(m))
		return gpul_fail(err, GPUL_ENOMEM, 0,
				 "no memory for the table of device memory");
	memmove(&m->ranges[at + 1], &m->ranges[at], (m->n_ranges - at) * sizeof *m->ranges);
	m->ranges[at] = *range;
	m->n_ranges++;
	return GPUL_OK;
}

gpul_status gpul_exec_memory_add(gpul_exec_memory *m, const gpul_exec_range *range,
				 gpul_error *err)
{
	gpul_status st;

	if (!range->bytes || range->base + range->bytes < range->base)
		return gpul_fail(
			err, GPUL_EINVAL, 0, "device memory of %llu bytes at 0x%llx is empty or exceeds the address space",
			(unsigned long long)range->bytes, (unsigned long long)range->base);
	pthread_rwlock_wrlock(&m->lock);
	st = insert_range(m, range, err);
	if (!st)
		atomic_fetch_add(&m->generation, 1);
	pthread_rwlock_unlock(&m->lock);
	return st;
}

bool gpul_exec_memory_remove(gpul_exec_memory *m, uint64_t base)
{
	size_t at;
	bool found;

	pthread_rwlock_wrlock(&m->lock);
	at = rank_of(m, base);
	found = at > 0 && m->ranges[at - 1].base == base;
	if (found) {
		memmove(&m->ranges[at - 1], &m->ranges[at],
			(m->n_ranges - at) * sizeof *m->ranges);
		m->n_ranges--;
		atomic_fetch_add(&m->generation, 1);
	}
	pthread_rwlock_unlock(&m->lock);
	return found;
}

bool gpul_memory_nearest(const gpul_exec_memory *m, uint64_t address, gpul_exec_range *out)
{
	gpul_exec_memory *lockable = (gpul_exec_memory *)m;  /* a reader changes the lock, but not the table */
	size_t at;

	pthread_rwlock_rdlock(&lockable->lock);
	at = rank_of(m, address);
	if (at > 0)
		*out = m->ranges[at - 1];
	pthread_rwlock_unlock(&lockable->lock);
	return at > 0;
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
	size_t at;
	bool found;

	pthread_rwlock_rdlock(&lockable->lock);
	at = rank_of(m, address);
	if (at > 0 && address - m->ranges[at - 1].base < m->ranges[at - 1].bytes)
		at--;
	found = at < m->n_ranges;
	if (found)
		*out = m->ranges[at];
	pthread_rwlock_unlock(&lockable->lock);
	return found;
}

bool gpul_exec_memory_set_rights(gpul_exec_memory *m, uint64_t base, uint32_t denied,
				 uint32_t unwritable)
{
	size_t at;
	bool found;

	pthread_rwlock_wrlock(&m->lock);
	at = rank_of(m, base);
	found = at > 0 && m->ranges[at - 1].base == base;
	if (found) {
		m->ranges[at - 1].denied = denied;
		m->ranges[at - 1].unwritable = unwritable;
		atomic_fetch_add(&m->generation, 1);
	}
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

/* The range around [at, at + bytes) that device may access, as a slot; the caller holds the lock.  Adjacent ranges
 * with the same rights are joined, as pages are on a GPU. */
static bool find_span(const gpul_exec_memory *m, uint64_t at, uint64_t bytes, unsigned device,
		      struct range_slot *out)
{
	uint32_t bit = 1u << device;
	size_t rank = rank_of(m, at);
	const gpul_exec_range *r = rank ? &m->ranges[rank - 1] : NULL;

	if (!r || at - r->base >= r->bytes || r->denied & bit)
		return false;
	*out = (struct range_slot){ r->base, r->base + r->bytes, is_read_only(r, bit) };
	while (bytes > out->end - at) {
		if (rank == m->n_ranges)
			return false;
		r = &m->ranges[rank++];
		if (r->base != out->end || r->denied & bit ||
		    is_read_only(r, bit) != out->read_only)
			return false;
		out->end += r->bytes;
	}
	return true;
}

void gpul_range_cache_refresh(struct range_cache *c)
{
	uint64_t now = atomic_load(c->generation);

	if (c->seen != now) {
		memset(c->slot, 0, sizeof c->slot);
		c->seen = now;
	}
}

bool gpul_range_lookup(struct range_cache *c, unsigned slot, uint64_t at, uint64_t bytes,
		       bool write)
{
	gpul_exec_memory *lockable = (gpul_exec_memory *)c->memory;
	struct range_slot span;
	bool found;

	gpul_range_cache_refresh(c);  /* before the search: a later change invalidates the new slot again */
	pthread_rwlock_rdlock(&lockable->lock);
	found = find_span(c->memory, at, bytes, c->device, &span);
	pthread_rwlock_unlock(&lockable->lock);
	if (!found || (write && span.read_only))
		return false;
	c->slot[slot % RANGE_SLOTS] = span;
	return true;
}
