/* pool_attribute.c — the attributes of the default pool of each device.
 *
 * A pool caches nothing, so it reserves exactly the bytes that are in use, and the settings for the reuse of freed
 * memory are stored without an effect. */
#include "softcuda/api/memory/memory_internal.h"

#include <string.h>

CUresult soft_pool_find(CUmemoryPool handle, struct device **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	*out = soft_handle_find(HANDLE_POOL, handle);
	soft_unlock();
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void soft_pool_count(struct device *d, size_t bytes)
{
	d->pool_bytes += bytes;
	for (int i = 0; i < 2; i++)
		if (d->pool_high[i] < d->pool_bytes)
			d->pool_high[i] = d->pool_bytes;
}

/* One of the three settings of type int; NULL: another attribute. */
static int *setting_of(struct device *d, CUmemPool_attribute attribute)
{
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		return &d->pool_no_reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
	default:
		return NULL;
	}
}

/* One of the numbers of 64 bits; NULL: no such attribute. */
static uint64_t *number_of(struct device *d, CUmemPool_attribute attribute)
{
	switch ((int)attribute) {
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		return &d->pool_threshold;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		return &d->pool_bytes;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		return &d->pool_high[0];
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		return &d->pool_high[1];
	default:
		return NULL;
	}
}

EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	struct device *d;
	CUresult r = soft_pool_find(pool, &d);

	if (r)
		return r;
	if (!value || (!setting_of(d, attribute) && !number_of(d, attribute)))
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	if (setting_of(d, attribute))
		memcpy(value, &(int){ !*setting_of(d, attribute) }, sizeof(int));
	else
		memcpy(value, number_of(d, attribute), sizeof(uint64_t));
	soft_unlock();
	return CUDA_SUCCESS;
}

/* The current sizes cannot be set, and a highest size can only be set to 0: it then begins at the current size. */
EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value)
{
	struct device *d;
	uint64_t *number, wanted;
	CUresult r = soft_pool_find(pool, &d);

	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	number = number_of(d, attribute);
	if (setting_of(d, attribute)) {
		int on;

		memcpy(&on, value, sizeof on);
		*setting_of(d, attribute) = !on;
	} else if (!number || number == &d->pool_bytes) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		memcpy(&wanted, value, sizeof wanted);
		if (number == &d->pool_threshold)
			*number = wanted;
		else if (wanted)
			r = CUDA_ERROR_INVALID_VALUE;
		else
			*number = d->pool_bytes;
	}
	soft_unlock();
	return r;
}
