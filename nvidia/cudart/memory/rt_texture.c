/* rt_texture.c — creates, queries and destroys texture and surface objects.
 *
 * The runtime's structures are converted field by field, because their sizes differ between CUDA 12 and 13. Both versions have the
 * fields that are used.
 * Source: CUDA Runtime API, Texture Object Management; Surface Object Management. */
#include "nvidia/cudart/memory/rt_memory_internal.h"

_Static_assert((int)cudaResourceTypePitch2D == (int)CU_RESOURCE_TYPE_PITCH2D &&
		       (int)cudaAddressModeBorder == (int)CU_TR_ADDRESS_MODE_BORDER &&
		       (int)cudaFilterModeLinear == (int)CU_TR_FILTER_MODE_LINEAR &&
		       (int)cudaResViewFormatUnsignedBlockCompressed7 == (int)CU_RES_VIEW_FORMAT_UNSIGNED_BC7,
	       "the enumerations of both interfaces have the same numbers");

static cudaError_t convert_resource(const struct cudaResourceDesc *r, CUDA_RESOURCE_DESC *out)
{
	*out = (CUDA_RESOURCE_DESC){ .resType = (CUresourcetype)r->resType };
	switch (r->resType) {
	case cudaResourceTypeArray:
		out->res.array.hArray = (CUarray)r->res.array.array;
		return cudaSuccess;
	case cudaResourceTypeMipmappedArray:
		out->res.mipmap.hMipmappedArray = (CUmipmappedArray)r->res.mipmap.mipmap;
		return cudaSuccess;
	case cudaResourceTypeLinear:
		out->res.linear.devPtr = gpul_rt_address(r->res.linear.devPtr);
		out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
		return gpul_rt_array_format(&r->res.linear.desc, &out->res.linear.format, &out->res.linear.numChannels);
	case cudaResourceTypePitch2D:
		out->res.pitch2D.devPtr = gpul_rt_address(r->res.pitch2D.devPtr);
		out->res.pitch2D.width = r->res.pitch2D.width;
		out->res.pitch2D.height = r->res.pitch2D.height;
		out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
		return gpul_rt_array_format(&r->res.pitch2D.desc, &out->res.pitch2D.format, &out->res.pitch2D.numChannels);
	default:
		return gpul_rt_fail(cudaErrorInvalidValue, "unknown resource type %d", (int)r->resType);
	}
}

static void convert_resource_back(const CUDA_RESOURCE_DESC *r, struct cudaResourceDesc *out)
{
	out->resType = (enum cudaResourceType)r->resType;
	switch (r->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		out->res.array.array = (cudaArray_t)r->res.array.hArray;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		out->res.mipmap.mipmap = (cudaMipmappedArray_t)r->res.mipmap.hMipmappedArray;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		out->res.linear.devPtr = (void *)(uintptr_t)r->res.linear.devPtr;
		out->res.linear.desc = gpul_rt_channels(r->res.linear.format, r->res.linear.numChannels);
		out->res.linear.sizeInBytes = r->res.linear.sizeInBytes;
		break;
	default:
		out->res.pitch2D.devPtr = (void *)(uintptr_t)r->res.pitch2D.devPtr;
		out->res.pitch2D.desc = gpul_rt_channels(r->res.pitch2D.format, r->res.pitch2D.numChannels);
		out->res.pitch2D.width = r->res.pitch2D.width;
		out->res.pitch2D.height = r->res.pitch2D.height;
		out->res.pitch2D.pitchInBytes = r->res.pitch2D.pitchInBytes;
	}
}

static CUDA_TEXTURE_DESC convert_texture(const struct cudaTextureDesc *t)
{
	CUDA_TEXTURE_DESC out = {
		.filterMode = (CUfilter_mode)t->filterMode,
		.flags = (t->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0u) |
			 (t->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0u) | (t->sRGB ? CU_TRSF_SRGB : 0u) |
			 (t->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0u) |
			 (t->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0u),
		.maxAnisotropy = t->maxAnisotropy,
		.mipmapFilterMode = (CUfilter_mode)t->mipmapFilterMode,
		.mipmapLevelBias = t->mipmapLevelBias,
		.minMipmapLevelClamp = t->minMipmapLevelClamp,
		.maxMipmapLevelClamp = t->maxMipmapLevelClamp,
	};

	for (int i = 0; i < 3; i++)
		out.addressMode[i] = (CUaddress_mode)t->addressMode[i];
	for (int i = 0; i < 4; i++)
		out.borderColor[i] = t->borderColor[i];
	return out;
}

static void convert_texture_back(const CUDA_TEXTURE_DESC *t, struct cudaTextureDesc *out)
{
	*out = (struct cudaTextureDesc){
		.filterMode = (enum cudaTextureFilterMode)t->filterMode,
		.readMode = t->flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat,
		.sRGB = !!(t->flags & CU_TRSF_SRGB),
		.normalizedCoords = !!(t->flags & CU_TRSF_NORMALIZED_COORDINATES),
		.maxAnisotropy = t->maxAnisotropy,
		.mipmapFilterMode = (enum cudaTextureFilterMode)t->mipmapFilterMode,
		.mipmapLevelBias = t->mipmapLevelBias,
		.minMipmapLevelClamp = t->minMipmapLevelClamp,
		.maxMipmapLevelClamp = t->maxMipmapLevelClamp,
		.disableTrilinearOptimization = !!(t->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
		.seamlessCubemap = !!(t->flags & CU_TRSF_SEAMLESS_CUBEMAP),
	};
	for (int i = 0; i < 3; i++)
		out->addressMode[i] = (enum cudaTextureAddressMode)t->addressMode[i];
	for (int i = 0; i < 4; i++)
		out->borderColor[i] = t->borderColor[i];
}

static CUDA_RESOURCE_VIEW_DESC convert_view(const struct cudaResourceViewDesc *v)
{
	return (CUDA_RESOURCE_VIEW_DESC){
		.format = (CUresourceViewFormat)v->format,
		.width = v->width,
		.height = v->height,
		.depth = v->depth,
		.firstMipmapLevel = v->firstMipmapLevel,
		.lastMipmapLevel = v->lastMipmapLevel,
		.firstLayer = v->firstLayer,
		.lastLayer = v->lastLayer,
	};
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *out, const struct cudaResourceDesc *resource,
				    const struct cudaTextureDesc *texture, const struct cudaResourceViewDesc *view)
{
	const gpul_driver *drv;
	CUDA_RESOURCE_DESC r;
	CUDA_TEXTURE_DESC t;
	CUDA_RESOURCE_VIEW_DESC v;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out || !resource || !texture)
		return gpul_rt_fail(cudaErrorInvalidValue, "a texture object needs a resource and a texture descriptor");
	if ((e = convert_resource(resource, &r)))
		return e;
	t = convert_texture(texture);
	if (view)
		v = convert_view(view);
	return gpul_rt_cu(drv, cuTexObjectCreate(out, &r, &t, view ? &v : NULL));
}

GPUL_RT_FORWARD(cudaDestroyTextureObject, (cudaTextureObject_t texture), cuTexObjectDestroy(texture))

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *out, cudaTextureObject_t texture)
{
	const gpul_driver *drv;
	CUDA_RESOURCE_DESC r;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuTexObjectGetResourceDesc(&r, texture))))
		return e;
	convert_resource_back(&r, out);
	return cudaSuccess;
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *out, cudaTextureObject_t texture)
{
	const gpul_driver *drv;
	CUDA_TEXTURE_DESC t;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuTexObjectGetTextureDesc(&t, texture))))
		return e;
	convert_texture_back(&t, out);
	return cudaSuccess;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *out, cudaTextureObject_t texture)
{
	const gpul_driver *drv;
	CUDA_RESOURCE_VIEW_DESC v;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuTexObjectGetResourceViewDesc(&v, texture))))
		return e;
	out->format = (enum cudaResourceViewFormat)v.format;
	out->width = v.width;
	out->height = v.height;
	out->depth = v.depth;
	out->firstMipmapLevel = v.firstMipmapLevel;
	out->lastMipmapLevel = v.lastMipmapLevel;
	out->firstLayer = v.firstLayer;
	out->lastLayer = v.lastLayer;
	return cudaSuccess;
}

/* ---- surfaces ---------------------------------------------------------------------------- */

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *out, const struct cudaResourceDesc *resource)
{
	const gpul_driver *drv;
	CUDA_RESOURCE_DESC r;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e)
		return e;
	if (!out || !resource)
		return gpul_rt_fail(cudaErrorInvalidValue, "a surface object needs a resource descriptor");
	e = convert_resource(resource, &r);
	return e ? e : gpul_rt_cu(drv, cuSurfObjectCreate(out, &r));
}

GPUL_RT_FORWARD(cudaDestroySurfaceObject, (cudaSurfaceObject_t surface), cuSurfObjectDestroy(surface))

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *out, cudaSurfaceObject_t surface)
{
	const gpul_driver *drv;
	CUDA_RESOURCE_DESC r;
	cudaError_t e = gpul_rt_enter(&drv);

	if (e || (e = gpul_rt_cu(drv, cuSurfObjectGetResourceDesc(&r, surface))))
		return e;
	convert_resource_back(&r, out);
	return cudaSuccess;
}
