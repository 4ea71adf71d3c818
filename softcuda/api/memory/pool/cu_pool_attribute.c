/* cu_pool_attribute.c — the attributes of memory pools.
 *
 * A pool caches nothing. So the reserved bytes equal the used bytes, and the settings for the reuse of freed memory have no effect. */
#include "softcuda/api/memory/cu_memory_internal.h"

#include <string.h>

/* Find one of the three settings of type int; NULL: another attribute. */
static int *setting_of(struct pool *p, CUmemPool_attribute attribute)
{
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		return &p->no_reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
	default:
		return NULL;
	}
}

/* Find one of the 64-bit attributes; NULL: no such attribute. */
static uint64_t *number_of(struct pool *p, CUmemPool_attribute attribute)
{
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &p->threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &p->bytes;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &p->high[0];
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &p->high[1];
	default:
		return NULL;
	}
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	struct pool *p;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = soft_pool_find(pool, &p);
	if (!r && (!value || (!setting_of(p, attribute) && !number_of(p, attribute))))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r)
		goto unlock;
	if (setting_of(p, attribute))
		memcpy(value, &(int){ !*setting_of(p, attribute) }, sizeof(int));
	else
		memcpy(value, number_of(p, attribute), sizeof(uint64_t));
unlock:
	soft_unlock();
	return r;
}

/* The current sizes are read-only.  A maximum can only be set to 0, and then restarts at the current size. */
EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	struct pool *p;
	uint64_t *number, wanted;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = value ? soft_pool_find(pool, &p) : CUDA_ERROR_INVALID_VALUE;
	if (r)
		goto unlock;
	number = number_of(p, attribute);
	if (setting_of(p, attribute)) {
		int on;

		memcpy(&on, value, sizeof on);
		*setting_of(p, attribute) = !on;
	} else if (!number || number == &p->bytes) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		memcpy(&wanted, value, sizeof wanted);
		if (number == &p->threshold)
			*number = wanted;
		else if (wanted)
			r = CUDA_ERROR_INVALID_VALUE;
		else
			*number = p->bytes;
	}
unlock:
	soft_unlock();
	return r;
}
