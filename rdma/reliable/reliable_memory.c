/* reliable_memory.c — ranges of memory by their keys. */
#include "rdma/reliable/reliable_memory.h"

#include <string.h>

void gpul_rel_memory_create(gpul_rel_memory *m)
{
	memset(m->ranges, 0, sizeof m->ranges);
	pthread_rwlock_init(&m->lock, NULL);
}

void gpul_rel_memory_destroy(gpul_rel_memory *m)
{
	pthread_rwlock_destroy(&m->lock);
}

void gpul_rel_memory_add(gpul_rel_memory *m, struct gpul_rel_range *range)
{
	pthread_rwlock_wrlock(&m->lock);
	range->next = m->ranges[range->key % GPUL_REL_HASH];
	m->ranges[range->key % GPUL_REL_HASH] = range;
	pthread_rwlock_unlock(&m->lock);
}

void gpul_rel_memory_remove(gpul_rel_memory *m, struct gpul_rel_range *range)
{
	struct gpul_rel_range **at = &m->ranges[range->key % GPUL_REL_HASH];

	pthread_rwlock_wrlock(&m->lock);
	while (*at && *at != range)
		at = &(*at)->next;
	if (*at)
		*at = range->next;
	pthread_rwlock_unlock(&m->lock);
}

static bool grants(const gpul_rel_memory *m, const gpul_rel_chunk *c)
{
	for (const struct gpul_rel_range *r = m->ranges[c->key % GPUL_REL_HASH]; r; r = r->next)
		if (r->key == c->key && c->address >= r->at && c->address - r->at <= r->bytes &&
		    c->bytes <= r->bytes - (c->address - r->at))
			return true;
	return false;
}

bool gpul_rel_memory_write(gpul_rel_memory *m, const gpul_rel_chunk *c, const unsigned char *datagram, gpul_rdma_failure *why)
{
	if (!c->place || !c->bytes)
		return true;
	if (!grants(m, c)) {
		(void)gpul_rdma_fail(why, GPUL_EFORMAT, 0, "write", "keep the memory registered while the peer may write to it",
				     "the peer writes %u bytes at %#llx, which its key does not grant", c->bytes,
				     (unsigned long long)c->address);
		return false;
	}
	memcpy((void *)(uintptr_t)c->address, datagram + c->skip, c->bytes);
	return true;
}
