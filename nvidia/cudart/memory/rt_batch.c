/* rt_batch.c — performs several copies, prefetches or discards in one call.
 *
 * Compiled for CUDA 12 and for CUDA 13 (rt_abi_internal.h), each a second time for per-thread default streams (rt_runtime_internal.h).
 * Source: CUDA Runtime API, Memory Management. */
#include "nvidia/cudart/rt_abi_internal.h"

#if CUDART_VERSION >= 13000
_Static_assert(sizeof(struct cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes) &&
		       sizeof(struct cudaMemcpy3DBatchOp) == sizeof(CUDA_MEMCPY3D_BATCH_OP) &&
		       sizeof(struct cudaMemLocation) == sizeof(CUmemLocation),
	       "the structures of both interfaces are the same");

#define ATTRIBUTES(a) ((CUmemcpyAttributes *)(void *)(a))
#define ADDRESSES(p)  ((CUdeviceptr *)(void *)(uintptr_t)(const void *)(p))

#if GPUL_RT_ABI >= 13
GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaMemcpyBatchAsync"), gpul_rt_copy_batch,
		   (void *const *to, const void *const *from, const size_t *bytes, size_t n, struct cudaMemcpyAttributes *attributes,
		    size_t *attribute_indices, size_t n_attributes, cudaStream_t stream),
		   cuMemcpyBatchAsync(ADDRESSES(to), ADDRESSES(from), (size_t *)(uintptr_t)bytes, n, ATTRIBUTES(attributes),
				      attribute_indices, n_attributes, gpul_rt_stream(stream)))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaMemcpy3DBatchAsync"), gpul_rt_copy_3d_batch,
		   (size_t n, struct cudaMemcpy3DBatchOp *list, unsigned long long flags, cudaStream_t stream),
		   cuMemcpy3DBatchAsync(n, (CUDA_MEMCPY3D_BATCH_OP *)(void *)list, flags, gpul_rt_stream(stream)))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaMemPrefetchBatchAsync"), gpul_rt_prefetch_batch,
		   (void **p, size_t *bytes, size_t n, struct cudaMemLocation *locations, size_t *location_indices, size_t n_locations,
		    unsigned long long flags, cudaStream_t stream),
		   cuMemPrefetchBatchAsync(ADDRESSES(p), bytes, n, (CUmemLocation *)(void *)locations, location_indices, n_locations, flags,
					   gpul_rt_stream(stream)))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaMemDiscardBatchAsync"), gpul_rt_discard_batch,
		   (void **p, size_t *bytes, size_t n, unsigned long long flags, cudaStream_t stream),
		   cuMemDiscardBatchAsync(ADDRESSES(p), bytes, n, flags, gpul_rt_stream(stream)))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaMemDiscardAndPrefetchBatchAsync"), gpul_rt_discard_and_prefetch_batch,
		   (void **p, size_t *bytes, size_t n, struct cudaMemLocation *locations, size_t *location_indices, size_t n_locations,
		    unsigned long long flags, cudaStream_t stream),
		   cuMemDiscardAndPrefetchBatchAsync(ADDRESSES(p), bytes, n, (CUmemLocation *)(void *)locations, location_indices,
						     n_locations, flags, gpul_rt_stream(stream)))
#else
/* Set *failed for calls of CUDA 12.8, which report the index of the copy that failed; SIZE_MAX: the error does not concern one copy. */
static size_t *no_index(size_t *failed)
{
	if (failed)
		*failed = SIZE_MAX;
	return failed;
}

GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaMemcpyBatchAsync"), gpul_rt_copy_batch_12,
		   (void **to, void **from, size_t *bytes, size_t n, struct cudaMemcpyAttributes *attributes, size_t *attribute_indices,
		    size_t n_attributes, size_t *failed, cudaStream_t stream),
		   cuMemcpyBatchAsync(ADDRESSES(to), ADDRESSES(from), bytes, n, ATTRIBUTES(attributes),
				      (no_index(failed), attribute_indices), n_attributes, gpul_rt_stream(stream)))
GPUL_RT_FORWARD_AS(GPUL_RT_OLD_PTSZ("cudaMemcpy3DBatchAsync"), gpul_rt_copy_3d_batch_12,
		   (size_t n, struct cudaMemcpy3DBatchOp *list, size_t *failed, unsigned long long flags, cudaStream_t stream),
		   cuMemcpy3DBatchAsync(n, (CUDA_MEMCPY3D_BATCH_OP *)(void *)list, (no_index(failed), flags), gpul_rt_stream(stream)))
#endif
#endif
