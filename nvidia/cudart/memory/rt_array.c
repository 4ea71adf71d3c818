/* rt_array.c — CUDA arrays and mipmapped arrays: memory with a layout for fast texture reads.
 *
 * Sizes are in elements.  A height or depth of 0 means that the array does not have this dimension; with both 0, it is
 * a 1D array.
 * Source: CUDA Runtime API, Memory Management. */
#include "nvidia/cudart/memory/rt_memory_internal.h"

_Static_assert(cudaArrayLayered == CUDA_ARRAY3D_LAYERED && cudaArraySurfaceLoadStore == CUDA_ARRAY3D_SURFACE_LDST &&
		       cudaArrayCubemap == CUDA_ARRAY3D_CUBEMAP && cudaArrayTextureGather == CUDA_ARRAY3D_TEXTURE_GATHER &&
		       cudaArraySparse == CUDA_ARRAY3D_SPARSE,
	       "the flags of both interfaces are equal");

static cudaError_t describe(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned flags,
			    CUDA_ARRAY3D_DESCRIPTOR *out)
{
	*out = (CUDA_ARRAY3D_DESCRIPTOR){ .Width = extent.width, .Height = extent.height, .Depth = extent.depth, .Flags = flags };
	return gpul_rt_array_format(desc, &out->Format, &out->NumChannels);
}

cudaError_t cudaMalloc3DArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent, unsigned int flags)
{
	const gpul_driver *drv;
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUarray array;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = describe(desc, extent, flags, &d)))
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the array is NULL");
	if ((e = gpul_rt_cu(drv, cuArray3DCreate(&array, &d))))
		return e;
	*out = (cudaArray_t)array;
	return cudaSuccess;
}

cudaError_t cudaMallocArray(cudaArray_t *out, const struct cudaChannelFormatDesc *desc, size_t width, size_t height, unsigned int flags)
{
	return cudaMalloc3DArray(out, desc, (struct cudaExtent){ width, height, 0 }, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e || !array ? e : gpul_rt_cu(drv, cuArrayDestroy((CUarray)array));
}

/* ---- mipmapped arrays -------------------------------------------------------------------- */

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *out, const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
				     unsigned int n_levels, unsigned int flags)
{
	const gpul_driver *drv;
	CUDA_ARRAY3D_DESCRIPTOR d;
	CUmipmappedArray array;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = describe(desc, extent, flags, &d)))
		return e;
	if (!out)
		return gpul_rt_fail(cudaErrorInvalidValue, "the pointer for the mipmapped array is NULL");
	if ((e = gpul_rt_cu(drv, cuMipmappedArrayCreate(&array, &d, n_levels))))
		return e;
	*out = (cudaMipmappedArray_t)array;
	return cudaSuccess;
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
	const gpul_driver *drv;
	cudaError_t e = gpul_rt_enter(&drv);

	return e || !array ? e : gpul_rt_cu(drv, cuMipmappedArrayDestroy((CUmipmappedArray)array));
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *out, cudaMipmappedArray_const_t array, unsigned int level)
{
	const gpul_driver *drv;
	CUmipmappedArray same;
	CUarray found;
	cudaError_t e = gpul_rt_enter(&drv);

	__builtin_memcpy(&same, &array, sizeof same); /* the cast removes const, which the driver's prototype lacks */
	if (e || (e = gpul_rt_cu(drv, cuMipmappedArrayGetLevel(&found, same, level))))
		return e;
	*out = (cudaArray_t)found;
	return cudaSuccess;
}

/* ---- queries ----------------------------------------------------------------------------- */

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent, unsigned int *flags, cudaArray_t array)
{
	const gpul_driver *drv;
	CUDA_ARRAY3D_DESCRIPTOR d;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuArray3DGetDescriptor(&d, (CUarray)array))))
		return e;
	if (desc)
		*desc = gpul_rt_channels(d.Format, d.NumChannels);
	if (extent)
		*extent = (struct cudaExtent){ d.Width, d.Height, d.Depth };
	if (flags)
		*flags = d.Flags;
	return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
	return cudaArrayGetInfo(desc, NULL, NULL, (cudaArray_t)gpul_rt_array(array));
}

cudaError_t cudaArrayGetPlane(cudaArray_t *out, cudaArray_t array, unsigned int plane)
{
	const gpul_driver *drv;
	CUarray found;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuArrayGetPlane(&found, (CUarray)array, plane))))
		return e;
	*out = (cudaArray_t)found;
	return cudaSuccess;
}

_Static_assert(sizeof(struct cudaArraySparseProperties) == sizeof(CUDA_ARRAY_SPARSE_PROPERTIES) &&
		       sizeof(struct cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS),
	       "the properties of an array are the same in both interfaces");

GPUL_RT_FORWARD(cudaArrayGetSparseProperties, (struct cudaArraySparseProperties * out, cudaArray_t array),
		cuArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)(void *)out, (CUarray)array))
GPUL_RT_FORWARD(cudaMipmappedArrayGetSparseProperties, (struct cudaArraySparseProperties * out, cudaMipmappedArray_t array),
		cuMipmappedArrayGetSparseProperties((CUDA_ARRAY_SPARSE_PROPERTIES *)(void *)out, (CUmipmappedArray)array))
GPUL_RT_FORWARD(cudaArrayGetMemoryRequirements, (struct cudaArrayMemoryRequirements * out, cudaArray_t array, int ordinal),
		cuArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)(void *)out, (CUarray)array, ordinal))
GPUL_RT_FORWARD(cudaMipmappedArrayGetMemoryRequirements,
		(struct cudaArrayMemoryRequirements * out, cudaMipmappedArray_t array, int ordinal),
		cuMipmappedArrayGetMemoryRequirements((CUDA_ARRAY_MEMORY_REQUIREMENTS *)(void *)out, (CUmipmappedArray)array, ordinal))
