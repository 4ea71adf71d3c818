/* cu_array.c — create and destroy CUDA arrays, and query their properties. */
#include "softcuda/api/array/cu_array_internal.h"
#include "softcuda/api/stream/cu_queue_internal.h"

#include <stdlib.h>

#include "core/memory_left.h"

enum {
	KNOWN_FLAGS = CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_TEXTURE_GATHER |
		      CUDA_ARRAY3D_DEPTH_TEXTURE | CUDA_ARRAY3D_COLOR_ATTACHMENT,
	SLACK_BYTES = 64,
};

CUresult soft_array_find(CUarray handle, struct array **out)
{
	*out = soft_handle_find(HANDLE_ARRAY, handle);
	return *out ? CUDA_SUCCESS : soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_ARRAY, handle);
}

/* ---- memory ------------------------------------------------------------------------------ */

CUresult soft_array_memory_new(struct context *ctx, size_t bytes, struct array_memory **out)
{
	struct device *d = ctx->device;
	struct array_memory *m;
	gpul_error err = { 0 };

	if (soft.in_group && gpul_memory_check("array", bytes, &err))
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "%s", err.text);
	if (bytes > soft.memory_bytes || d->allocated_bytes > soft.memory_bytes - bytes)
		return soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "array: %zu bytes were requested, but only %llu of %llu bytes are free", bytes,
				   (unsigned long long)(soft.memory_bytes - d->allocated_bytes), (unsigned long long)soft.memory_bytes);
	m = calloc(1, sizeof *m);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	m->block = calloc(1, bytes + SLACK_BYTES);
	if (!m->block) {
		free(m);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	m->refs = 1;
	m->device = d;
	m->bytes = bytes;
	d->allocated_bytes += bytes;
	*out = m;
	return CUDA_SUCCESS;
}

void soft_array_memory_release(struct array_memory *m)
{
	if (!m || --m->refs)
		return;
	m->device->allocated_bytes -= m->bytes;
	free(m->block);
	free(m);
}

size_t soft_array_lay_out(struct array *a)
{
	const CUDA_ARRAY3D_DESCRIPTOR *d = &a->desc;
	size_t bytes;

	a->element_bytes = soft_format_bytes(d->Format, d->NumChannels);
	a->height = d->Height ? d->Height : 1;
	a->depth = d->Depth ? d->Depth : 1;
	if (__builtin_mul_overflow(d->Width, a->element_bytes, &a->row_bytes) ||
	    __builtin_mul_overflow(a->row_bytes, a->height, &a->slice_bytes) || __builtin_mul_overflow(a->slice_bytes, a->depth, &bytes))
		return 0;
	return bytes;
}

/* ---- extents ------------------------------------------------------------------------------- */

/* The largest extents of a device of compute capability 9.0: CUDA C++ Programming Guide, Technical Specifications. */
static const struct extents {
	bool layered, cube;
	unsigned dimensions;
	size_t width, height, depth;
} largest[] = {
	{ false, false, 1, 131072, 0, 0 },     { false, false, 2, 131072, 65536, 0 },  { false, false, 3, 16384, 16384, 16384 },
	{ true, false, 1, 32768, 0, 2048 },    { true, false, 2, 32768, 32768, 2048 }, { false, true, 2, 32768, 32768, 6 },
	{ true, true, 2, 32768, 32768, 2046 },
};

static CUresult check_extents(const CUDA_ARRAY3D_DESCRIPTOR *d, bool is_mipmap)
{
	const bool layered = d->Flags & CUDA_ARRAY3D_LAYERED, cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;
	const unsigned dimensions = d->Height ? (d->Depth && !layered && !cube ? 3 : 2) : 1;

	for (size_t k = 0; k < sizeof largest / sizeof *largest; k++) {
		struct extents most = largest[k];

		if (most.layered != layered || most.cube != cube || most.dimensions != dimensions)
			continue;
		if ((is_mipmap && dimensions < 3) || (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER && dimensions == 2))
			most.width = 32768, most.height = most.height < 32768 ? most.height : 32768;
		if (d->Flags & CUDA_ARRAY3D_SURFACE_LDST && dimensions == 1)
			most.width = 32768;
		if (d->Width <= most.width && d->Height <= most.height && d->Depth <= most.depth)
			return CUDA_SUCCESS;
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "array: %zu x %zu x %zu elements are too many; at most %zu x %zu x %zu are possible", d->Width,
				   d->Height, d->Depth, most.width, most.height, most.depth);
	}
	return soft_refuse(CUDA_ERROR_INVALID_VALUE, "array: a cubemap has two dimensions, not %u", dimensions);
}

CUresult soft_array_check(const CUDA_ARRAY3D_DESCRIPTOR *d, bool is_mipmap)
{
	const bool layered = d->Flags & CUDA_ARRAY3D_LAYERED, cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;
	CUresult r = soft_format_check(d->Format, d->NumChannels);

	if (r)
		return r;
	if (d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_VIDEO_ENCODE_DECODE))
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "array: sparse arrays, deferred mapping and video are not supported");
	if (d->Flags & ~(unsigned)KNOWN_FLAGS)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "array: unknown flags 0x%x", d->Flags & ~(unsigned)KNOWN_FLAGS);
	if (!d->Width || (d->Depth && !d->Height && !layered))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "array: the extent %zu x %zu x %zu has no elements", d->Width, d->Height,
				   d->Depth);
	if (layered && !d->Depth)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "array: the Depth of a layered array is 0, but it must be the number of layers");
	if (cube && (d->Width != d->Height || (layered ? d->Depth % 6 : d->Depth != 6)))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "array: a cubemap needs Width equal to Height and a Depth of 6 (6 per layer if it is layered), "
				   "not %zu x %zu x %zu",
				   d->Width, d->Height, d->Depth);
	if (d->Flags & CUDA_ARRAY3D_TEXTURE_GATHER && (!d->Height || (d->Depth && !layered && !cube)))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "array: only arrays of two dimensions can have the flag CUDA_ARRAY3D_TEXTURE_GATHER");
	return check_extents(d, is_mipmap);
}

/* ---- creating and destroying --------------------------------------------------------------- */

static CUresult create_array(struct context *ctx, const CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray *out)
{
	struct array *a = calloc(1, sizeof *a);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	size_t bytes;

	if (!a)
		return r;
	a->ctx = ctx;
	a->desc = *desc;
	list_init(&a->link);
	bytes = soft_array_lay_out(a);
	if (bytes)
		r = soft_array_memory_new(ctx, bytes, &a->memory);
	if (r)
		goto free_a;
	a->at = a->memory->block;
	a->handle = soft_handle_new(HANDLE_ARRAY, a);
	if (!a->handle) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
		goto release_memory;
	}
	list_append(&ctx->arrays, &a->link);
	*out = a->handle;
	return CUDA_SUCCESS;
release_memory:
	soft_array_memory_release(a->memory);
free_a:
	free(a);
	return r;
}

static void free_levels(struct mipmap *m)
{
	for (unsigned k = 0; k < m->n_levels; k++) {
		if (m->level[k])
			soft_handle_free(m->level[k]->handle);
		free(m->level[k]);
	}
}

void soft_array_free(struct array *a)
{
	if (a->of)
		free_levels(a->of);
	soft_handle_free(a->handle);
	list_remove(&a->link);
	soft_array_memory_release(a->memory);
	free(a); /* for level 0 of a mipmapped array, this frees the whole struct mipmap, because the array is its first member */
}

EXPORT CUresult cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct context *ctx;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = out && desc ? soft_capture_check_unsafe("cuArray3DCreate") : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = soft_array_check(desc, false);
	if (!r)
		r = create_array(ctx, desc, out);
	soft_unlock();
	return r;
}

EXPORT CUresult cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	CUDA_ARRAY3D_DESCRIPTOR whole = { 0 };

	if (desc)
		whole = (CUDA_ARRAY3D_DESCRIPTOR){
			.Width = desc->Width, .Height = desc->Height, .Format = desc->Format, .NumChannels = desc->NumChannels
		};
	return cuArray3DCreate_v2(out, desc ? &whole : NULL);
}

/* Wait for the work of the array's context before freeing the array, like cuMemFree. */
EXPORT CUresult cuArrayDestroy(CUarray handle)
{
	struct context *ctx;
	struct array *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = soft_capture_check_unsafe("cuArrayDestroy");
	if (!r)
		r = soft_array_find(handle, &a);
	if (!r) {
		soft_context_wait(a->ctx);
		r = soft_array_find(handle, &a); /* search again: another thread may have destroyed the array while the lock was released */
	}
	if (!r && a->of)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuArrayDestroy: a level of a mipmapped array cannot be destroyed alone; use "
							  "cuMipmappedArrayDestroy to destroy the whole array");
	if (!r)
		soft_array_free(a);
	soft_unlock();
	return r;
}

/* ---- queries --------------------------------------------------------------------------------- */

EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *out, CUarray handle)
{
	struct context *ctx;
	struct array *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = out ? soft_array_find(handle, &a) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = a->desc;
	soft_unlock();
	return r;
}

EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *out, CUarray handle)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;
	CUresult r = out ? cuArray3DGetDescriptor_v2(&whole, handle) : CUDA_ERROR_INVALID_VALUE;

	if (!r && whole.Depth)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuArrayGetDescriptor: the array has a depth; use cuArray3DGetDescriptor");
	if (!r)
		*out = (CUDA_ARRAY_DESCRIPTOR){
			.Width = whole.Width, .Height = whole.Height, .Format = whole.Format, .NumChannels = whole.NumChannels
		};
	return r;
}

/* Check the arguments of a query about a property that this driver's arrays never have, and return an error with the reason. */
static CUresult refuse_query(const void *out, CUarray handle, const char *why)
{
	struct context *ctx;
	struct array *a;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = out ? soft_array_find(handle, &a) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r ? r : soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s", why);
}

EXPORT CUresult cuArrayGetPlane(CUarray *out, CUarray handle, unsigned plane)
{
	(void)plane;
	return refuse_query(out, handle, "cuArrayGetPlane: only arrays of planar formats have planes");
}

EXPORT CUresult cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUarray handle)
{
	return refuse_query(out, handle, "cuArrayGetSparseProperties: the array is not sparse");
}

EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray handle, CUdevice dev)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	return r ? r : refuse_query(out, handle, "cuArrayGetMemoryRequirements: the array was created without deferred mapping");
}
