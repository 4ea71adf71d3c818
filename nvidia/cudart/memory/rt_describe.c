/* rt_describe.c — converts the parameters of a 3D copy to the driver's.
 *
 *     runtime   source and destination are arrays or pitched pointers; positions and the extent are in elements of the array, or in
 *               bytes if neither is an array
 *     driver    source and destination have a memory type; x and the width are in bytes
 *
 * Source: CUDA Runtime API, cudaMemcpy3DParms. */
#include "nvidia/cudart/memory/rt_memory_internal.h"

/* For each kind of copy, the memory types of source and destination. */
static const CUmemorytype types_of[][2] = {
	[cudaMemcpyHostToHost] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST },
	[cudaMemcpyHostToDevice] = { CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE },
	[cudaMemcpyDeviceToHost] = { CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST },
	[cudaMemcpyDeviceToDevice] = { CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE },
	[cudaMemcpyDefault] = { CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED },
};

/* Get the element sizes of source and destination; 1 for a pointer. */
static cudaError_t element_sizes(const gpul_driver *drv, const struct cudaMemcpy3DParms *p, size_t *from, size_t *to)
{
	cudaError_t e = cudaSuccess;

	*from = *to = 1;
	if (p->srcArray)
		e = gpul_rt_element_bytes(drv, p->srcArray, from);
	if (!e && p->dstArray)
		e = gpul_rt_element_bytes(drv, p->dstArray, to);
	return e;
}

static cudaError_t check_ends(const struct cudaMemcpy3DParms *p)
{
	if ((unsigned)p->kind > cudaMemcpyDefault)
		return gpul_rt_fail(cudaErrorInvalidMemcpyDirection, "invalid cudaMemcpyKind: %d", (int)p->kind);
	if (!!p->srcArray == !!p->srcPtr.ptr || !!p->dstArray == !!p->dstPtr.ptr)
		return gpul_rt_fail(cudaErrorInvalidValue,
				    "the source and the destination of a copy must each be either an array or a pointer: the %s is both, "
				    "or neither of them",
				    !!p->srcArray == !!p->srcPtr.ptr ? "source" : "destination");
	return cudaSuccess;
}

cudaError_t gpul_rt_describe_copy(const gpul_driver *drv, const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *out)
{
	size_t from = 1, to = 1, width;
	cudaError_t e;

	if (!p)
		return gpul_rt_fail(cudaErrorInvalidValue, "the parameters of the copy are NULL");
	if ((e = check_ends(p)) || (e = element_sizes(drv, p, &from, &to)))
		return e;
	width = p->extent.width * (p->srcArray ? from : to);
	if ((!p->srcArray && p->srcPtr.pitch && width > p->srcPtr.pitch) || (!p->dstArray && p->dstPtr.pitch && width > p->dstPtr.pitch))
		return gpul_rt_fail(cudaErrorInvalidPitchValue,
				    "rows of %zu bytes are longer than a pitch: the pitches are %zu and %zu bytes", width, p->srcPtr.pitch,
				    p->dstPtr.pitch);
	*out = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcPos.x * from,
		.srcY = p->srcPos.y,
		.srcZ = p->srcPos.z,
		.srcMemoryType = p->srcArray ? CU_MEMORYTYPE_ARRAY : types_of[p->kind][0],
		.srcHost = p->srcPtr.ptr,
		.srcDevice = gpul_rt_address(p->srcPtr.ptr),
		.srcArray = (CUarray)p->srcArray,
		.srcPitch = p->srcPtr.pitch,
		.srcHeight = p->srcPtr.ysize,
		.dstXInBytes = p->dstPos.x * to,
		.dstY = p->dstPos.y,
		.dstZ = p->dstPos.z,
		.dstMemoryType = p->dstArray ? CU_MEMORYTYPE_ARRAY : types_of[p->kind][1],
		.dstHost = p->dstPtr.ptr,
		.dstDevice = gpul_rt_address(p->dstPtr.ptr),
		.dstArray = (CUarray)p->dstArray,
		.dstPitch = p->dstPtr.pitch,
		.dstHeight = p->dstPtr.ysize,
		.WidthInBytes = width,
		.Height = p->extent.height,
		.Depth = p->extent.depth,
	};
	return cudaSuccess;
}

static enum cudaMemcpyKind kind_of(CUmemorytype from, CUmemorytype to)
{
	if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (from == CU_MEMORYTYPE_HOST)
		return to == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
	return to == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

static void *pointer_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
	if (type == CU_MEMORYTYPE_ARRAY)
		return NULL;
	return type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)host : (void *)(uintptr_t)device;
}

cudaError_t gpul_rt_describe_copy_back(const gpul_driver *drv, const CUDA_MEMCPY3D *c, struct cudaMemcpy3DParms *out)
{
	size_t from = 1, to = 1;
	cudaError_t e;

	*out = (struct cudaMemcpy3DParms){
		.srcArray = c->srcMemoryType == CU_MEMORYTYPE_ARRAY ? (cudaArray_t)c->srcArray : NULL,
		.srcPtr = { pointer_of(c->srcMemoryType, c->srcHost, c->srcDevice), c->srcPitch, c->WidthInBytes, c->srcHeight },
		.dstArray = c->dstMemoryType == CU_MEMORYTYPE_ARRAY ? (cudaArray_t)c->dstArray : NULL,
		.dstPtr = { pointer_of(c->dstMemoryType, c->dstHost, c->dstDevice), c->dstPitch, c->WidthInBytes, c->dstHeight },
		.kind = kind_of(c->srcMemoryType, c->dstMemoryType),
	};
	if ((e = element_sizes(drv, out, &from, &to)))
		return e;
	out->srcPos = (struct cudaPos){ c->srcXInBytes / from, c->srcY, c->srcZ };
	out->dstPos = (struct cudaPos){ c->dstXInBytes / to, c->dstY, c->dstZ };
	out->extent = (struct cudaExtent){ c->WidthInBytes / (out->srcArray ? from : to), c->Height, c->Depth };
	return cudaSuccess;
}

void gpul_rt_describe_bytes(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, struct cudaMemcpy3DParms *out)
{
	void *same = (void *)(uintptr_t)from;

	*out = (struct cudaMemcpy3DParms){
		.srcPtr = { same, bytes, bytes, 1 },
		.dstPtr = { to, bytes, bytes, 1 },
		.extent = { bytes, 1, 1 },
		.kind = kind,
	};
}
