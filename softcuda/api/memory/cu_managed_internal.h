/* cu_managed_internal.h — the advice and the prefetch location for each part of managed memory.  The CPU and kernels use the same
 * pages, so advice and prefetches move nothing; they are stored only because programs can query them. */
#ifndef GPULOAD_SOFTCUDA_API_MEMORY_CU_MANAGED_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_MEMORY_CU_MANAGED_INTERNAL_H

#include "softcuda/api/memory/cu_memory_internal.h"

/* a range of managed memory, which ends where the next span begins */
struct managed_span {
	size_t offset; /* offset in the allocation; a multiple of the page size */
	bool read_mostly;
	CUmemLocation preferred;  /* the preferred location; type 0: none */
	CUmemLocation prefetched; /* location of the last prefetch; type 0: never prefetched */
	uint32_t accessed_by;     /* devices that access the span, according to the advice; bit d: device d */
	bool accessed_by_cpu;
};

struct managed {
	size_t n, room;
	struct managed_span *span; /* in the order of their offsets; the first has offset 0 */
};

struct managed_range {
	struct managed_span *first, *end;
};

/* Find the spans that contain [address, address + bytes), rounded to whole pages, in the allocation a (may be NULL).  split: divide the
 * first and last span at the ends of the range, so that the result can be changed.  CUDA_ERROR_INVALID_VALUE: not managed memory. */
CUresult soft_managed_find(const struct allocation *a, CUdeviceptr address, size_t bytes, bool split, struct managed_range *out);
/* Store the value of one attribute of the spans in the caller's memory. */
CUresult soft_managed_attribute(const struct managed_range *r, CUmem_range_attribute attribute, void *data, size_t data_bytes);

#endif
