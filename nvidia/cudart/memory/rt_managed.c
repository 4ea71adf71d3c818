/* rt_managed.c — managed memory, which has one address for host and device: advice and prefetching.
 *
 * Compiled for CUDA 12 and for CUDA 13 (rt_abi_internal.h), each a second time for per-thread default streams (rt_runtime_internal.h).
 * Source: CUDA Runtime API, Memory Management. */
#include "nvidia/cudart/rt_abi_internal.h"

_Static_assert((int)cudaMemAdviseUnsetAccessedBy == (int)CU_MEM_ADVISE_UNSET_ACCESSED_BY &&
		       (int)cudaMemRangeAttributeLastPrefetchLocation == (int)CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION &&
		       cudaMemAttachGlobal == CU_MEM_ATTACH_GLOBAL && cudaCpuDeviceId == CU_DEVICE_CPU,
	       "the numbers of both interfaces are the same");

static CUmemLocation driver_location(struct cudaMemLocation location)
{
	CUmemLocation same;

	_Static_assert(sizeof same == sizeof location, "a location is the same in both interfaces");
	__builtin_memcpy(&same, &location, sizeof same);
	return same;
}

GPUL_RT_FORWARD_AS(GPUL_RT_NEW_PTSZ("cudaMemPrefetchAsync"), gpul_rt_prefetch,
		   (const void *p, size_t bytes, struct cudaMemLocation location, unsigned int flags, cudaStream_t stream),
		   cuMemPrefetchAsync_v2(gpul_rt_address(p), bytes, driver_location(location), flags, gpul_rt_stream(stream)))

#if GPUL_RT_ABI < 13
static CUmemLocation location_of(int ordinal)
{
	return (CUmemLocation){
		.type = ordinal == cudaCpuDeviceId ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
		.id = ordinal == cudaCpuDeviceId ? 0 : ordinal,
	};
}

GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaMemPrefetchAsync"), gpul_rt_prefetch_to_device,
		   (const void *p, size_t bytes, int ordinal, cudaStream_t stream),
		   cuMemPrefetchAsync_v2(gpul_rt_address(p), bytes, location_of(ordinal), 0, gpul_rt_stream(stream)))
#endif

/* The functions below have no stream argument, so they have no second version for per-thread default streams. */
#ifndef GPUL_RT_PER_THREAD

GPUL_RT_FORWARD_AS(GPUL_RT_NEW("cudaMemAdvise"), gpul_rt_advise,
		   (const void *p, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation location),
		   cuMemAdvise_v2(gpul_rt_address(p), bytes, (CUmem_advise)advice, driver_location(location)))
#if GPUL_RT_ABI < 13
GPUL_RT_FORWARD_AS(GPUL_RT_OLD("cudaMemAdvise"), gpul_rt_advise_device,
		   (const void *p, size_t bytes, enum cudaMemoryAdvise advice, int ordinal),
		   cuMemAdvise_v2(gpul_rt_address(p), bytes, (CUmem_advise)advice, location_of(ordinal)))
#endif

#endif
