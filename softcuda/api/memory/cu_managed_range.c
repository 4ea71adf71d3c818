/* cu_managed_range.c — divides managed memory into spans with the same advice, and queries their attributes. */
#include "softcuda/api/memory/cu_managed_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

CUresult soft_managed_create(struct allocation *a)
{
	struct managed *m = calloc(1, sizeof *m);

	if (m)
		m->span = calloc(1, sizeof *m->span);
	if (!m || !m->span) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->n = m->room = 1;
	if (a->pool)
		m->span->preferred = a->pool->location;
	a->managed = m;
	return CUDA_SUCCESS;
}

void soft_managed_free(struct managed *m)
{
	if (!m)
		return;
	free(m->span);
	free(m);
}

/* Return the index of the span that contains offset. */
static size_t span_at(const struct managed *m, size_t offset)
{
	size_t i = m->n - 1;

	while (m->span[i].offset > offset)
		i--;
	return i;
}

/* Divide a span, unless a span begins at the offset; *index is set to the span that begins there.  Returns false if out of memory. */
static bool split_at(struct managed *m, size_t offset, size_t *index)
{
	size_t i = span_at(m, offset);

	if (m->span[i].offset == offset) {
		*index = i;
		return true;
	}
	if (m->n == m->room) {
		struct managed_span *bigger = realloc(m->span, 2 * m->room * sizeof *bigger);

		if (!bigger)
			return false;
		m->span = bigger;
		m->room *= 2;
	}
	memmove(&m->span[i + 2], &m->span[i + 1], (m->n - i - 1) * sizeof *m->span);
	m->span[i + 1] = m->span[i];
	m->span[i + 1].offset = offset;
	m->n++;
	*index = i + 1;
	return true;
}

CUresult soft_managed_find(const struct allocation *a, CUdeviceptr address, size_t bytes, bool split, struct managed_range *out)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), from, to, first, end;
	struct managed *m = a ? a->managed : NULL;

	if (!m || !bytes || bytes > a->bytes - (address - a->base))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "%zu bytes at %#llx are not managed memory", bytes, address);
	from = (address - a->base) / page * page;
	to = (address - a->base + bytes + page - 1) / page * page;
	if (!split) {
		first = span_at(m, from);
		end = span_at(m, to - 1) + 1;
	} else if (!split_at(m, from, &first)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	} else if (to >= a->bytes) {
		end = m->n;
	} else if (!split_at(m, to, &end)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*out = (struct managed_range){ m->span + first, m->span + end };
	return CUDA_SUCCESS;
}

/* ---- attributes -------------------------------------------------------------------------------- */

/* Return the location that all spans have in common; type 0: none. */
static CUmemLocation common_location(const struct managed_range *r, bool prefetched)
{
	const CUmemLocation first = prefetched ? r->first->prefetched : r->first->preferred;

	for (const struct managed_span *s = r->first; s < r->end; s++) {
		const CUmemLocation *l = prefetched ? &s->prefetched : &s->preferred;

		if (l->type != first.type || l->id != first.id)
			return (CUmemLocation){ 0 };
	}
	return first;
}

static int as_device(CUmemLocation l)
{
	if (!l.type)
		return CU_DEVICE_INVALID;
	return l.type == CU_MEM_LOCATION_TYPE_DEVICE ? l.id : CU_DEVICE_CPU;
}

static int is_read_mostly(const struct managed_range *r)
{
	for (const struct managed_span *s = r->first; s < r->end; s++)
		if (!s->read_mostly)
			return 0;
	return 1;
}

/* List the devices that have the advice for all spans, then the CPU (cuda-bindings' tests expect this order), then CU_DEVICE_INVALID. */
static void list_users(const struct managed_range *r, int *list, size_t n)
{
	uint32_t devices = UINT32_MAX;
	bool cpu = true;
	size_t k = 0;

	for (const struct managed_span *s = r->first; s < r->end; s++) {
		devices &= s->accessed_by;
		cpu &= s->accessed_by_cpu;
	}
	for (int d = 0; d < MAX_DEVICES && k < n; d++)
		if (devices >> d & 1)
			list[k++] = d;
	if (cpu && k < n)
		list[k++] = CU_DEVICE_CPU;
	while (k < n)
		list[k++] = CU_DEVICE_INVALID;
}

CUresult soft_managed_attribute(const struct managed_range *r, CUmem_range_attribute attribute, void *data, size_t data_bytes)
{
	int value;

	if (!data || !data_bytes || data_bytes % sizeof(int) ||
	    (attribute != CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY && data_bytes != sizeof(int)))
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		value = is_read_mostly(r);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		value = as_device(common_location(r, false));
		break;
	case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
		list_users(r, data, data_bytes / sizeof(int));
		return CUDA_SUCCESS;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		value = as_device(common_location(r, true));
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		value = (int)common_location(r, false).type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		value = common_location(r, false).id;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		value = (int)common_location(r, true).type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		value = common_location(r, true).id;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(data, &value, sizeof value);
	return CUDA_SUCCESS;
}
