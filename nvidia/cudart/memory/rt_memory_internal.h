/* rt_memory_internal.h — converts structures of the runtime to those of the driver, for arrays and copies. */
#ifndef GPULOAD_NVIDIA_CUDART_MEMORY_RT_MEMORY_INTERNAL_H
#define GPULOAD_NVIDIA_CUDART_MEMORY_RT_MEMORY_INTERNAL_H

#include "nvidia/cudart/rt_runtime_internal.h"

/* Convert a channel descriptor to the driver's format and number of channels.  Errors: cudaErrorInvalidChannelDescriptor. */
cudaError_t gpul_rt_array_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format, unsigned *n_channels);

/* The reverse of gpul_rt_array_format().  If cudaChannelFormatDesc cannot express the format, the result has cudaChannelFormatKindNone. */
struct cudaChannelFormatDesc gpul_rt_channels(CUarray_format format, unsigned n_channels);

/* Get the size in bytes of the elements of an array. */
cudaError_t gpul_rt_element_bytes(const gpul_driver *drv, cudaArray_const_t array, size_t *bytes);

/* Convert the parameters of a copy.  Errors: cudaErrorInvalidValue if the source or destination is not exactly one array or
 * pointer, cudaErrorInvalidMemcpyDirection, cudaErrorInvalidPitchValue. */
cudaError_t gpul_rt_describe_copy(const gpul_driver *drv, const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out);
cudaError_t gpul_rt_describe_copy_back(const gpul_driver *drv, const CUDA_MEMCPY3D *c, struct cudaMemcpy3DParms *out);

/* Make the parameters of a copy of `bytes` contiguous bytes. */
void gpul_rt_describe_bytes(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, struct cudaMemcpy3DParms *out);

/* Remove const from an array handle: the driver's prototypes lack const even for arrays that are only read. */
static inline CUarray gpul_rt_array(cudaArray_const_t array)
{
	CUarray a;

	__builtin_memcpy(&a, &array, sizeof a);
	return a;
}

#endif
