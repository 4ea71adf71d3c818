/* cu_mipmap.c — mipmapped arrays: each level has half the extents of the level before; all levels share one block of memory. */
#include "softcuda/api/array/cu_array_internal.h"
#include "softcuda/api/stream/cu_queue_internal.h"

#include <stdlib.h>

enum { LEVEL_ALIGN = 64 };

CUresult soft_mipmap_find(CUmipmappedArray handle, struct mipmap **out)
{
	*out = soft_handle_find(HANDLE_MIPMAP, handle);
	return *out ? CUDA_SUCCESS : soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_MIPMAP, handle);
}

/* Return an extent at a level: halved for each level, rounded down, and at least 1.  An extent of 0 (no such dimension) stays 0. */
static size_t extent_of_level(size_t extent, unsigned level)
{
	return !extent ? 0 : extent >> level ? extent >> level : 1;
}

static CUDA_ARRAY3D_DESCRIPTOR describe_level(const CUDA_ARRAY3D_DESCRIPTOR *whole, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR d = *whole;

	d.Width = extent_of_level(d.Width, level);
	d.Height = extent_of_level(d.Height, level);
	if (!(d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)))
		d.Depth = extent_of_level(d.Depth, level);
	return d;
}

/* Return the number of levels of a complete mipmapped array, whose last level has only extents of 1. */
static unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	size_t most = d->Width > d->Height ? d->Width : d->Height;
	unsigned n = 1;

	if (!(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) && d->Depth > most)
		most = d->Depth;
	for (; most > 1; most >>= 1)
		n++;
	return n < MAX_MIPMAP_LEVELS ? n : MAX_MIPMAP_LEVELS;
}

/* Create the levels; level k begins at offset[k] of the memory. */
static CUresult create_levels(struct mipmap *m, const size_t *offset)
{
	for (unsigned k = 0; k < m->n_levels; k++) {
		struct array *a = calloc(1, sizeof *a);

		if (!a)
			return CUDA_ERROR_OUT_OF_MEMORY;
		m->level[k] = a;
		list_init(&a->link);
		a->ctx = m->whole.ctx;
		a->of = m;
		a->memory = m->whole.memory;
		a->desc = describe_level(&m->whole.desc, k);
		a->at = m->whole.memory->block + offset[k];
		soft_array_lay_out(a);
		a->handle = soft_handle_new(HANDLE_ARRAY, a);
		if (!a->handle)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

static CUresult create_mipmap(struct context *ctx, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned n_levels, CUmipmappedArray *out)
{
	struct mipmap *m = calloc(1, sizeof *m);
	size_t offset[MAX_MIPMAP_LEVELS], at = 0;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!m)
		return r;
	m->whole.of = m;
	m->whole.ctx = ctx;
	list_init(&m->whole.link);
	m->n_levels = n_levels;
	for (unsigned k = 0; k < n_levels; k++) {
		size_t bytes;

		m->whole.desc = describe_level(desc, k);
		bytes = soft_array_lay_out(&m->whole);
		offset[k] = at;
		at += (bytes + LEVEL_ALIGN - 1) / LEVEL_ALIGN * LEVEL_ALIGN;
		if (!bytes || at > SIZE_MAX / 4)
			goto free_m;
	}
	m->whole.desc = *desc;
	soft_array_lay_out(&m->whole);
	r = soft_array_memory_new(ctx, at, &m->whole.memory);
	if (r)
		goto free_m;
	m->whole.at = m->whole.memory->block;
	r = create_levels(m, offset);
	if (!r)
		m->whole.handle = soft_handle_new(HANDLE_MIPMAP, m);
	if (!m->whole.handle) {
		soft_array_free(&m->whole);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	list_append(&ctx->arrays, &m->whole.link);
	*out = m->whole.handle;
	return CUDA_SUCCESS;
free_m:
	free(m);
	return r;
}

EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned n_levels)
{
	struct context *ctx;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = out && desc && n_levels ? soft_capture_check_unsafe("cuMipmappedArrayCreate") : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = soft_array_check(desc, true);
	if (!r)
		r = create_mipmap(ctx, desc, n_levels < most_levels(desc) ? n_levels : most_levels(desc), out);
	soft_unlock();
	return r;
}

EXPORT CUresult cuMipmappedArrayGetLevel(CUarray *out, CUmipmappedArray handle, unsigned level)
{
	struct context *ctx;
	struct mipmap *m;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = out ? soft_mipmap_find(handle, &m) : CUDA_ERROR_INVALID_VALUE;
	if (!r && level >= m->n_levels)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuMipmappedArrayGetLevel: level %u does not exist: the array has %u levels, numbered from 0", level,
				m->n_levels);
	if (!r)
		*out = m->level[level]->handle;
	soft_unlock();
	return r;
}

EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
	struct context *ctx;
	struct mipmap *m;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = soft_capture_check_unsafe("cuMipmappedArrayDestroy");
	if (!r)
		r = soft_mipmap_find(handle, &m);
	if (!r) {
		soft_context_wait(m->whole.ctx);
		r = soft_mipmap_find(handle, &m);
	}
	if (!r)
		soft_array_free(&m->whole);
	soft_unlock();
	return r;
}

static CUresult refuse_query(const void *out, CUmipmappedArray handle, const char *why)
{
	struct context *ctx;
	struct mipmap *m;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = out ? soft_mipmap_find(handle, &m) : CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r ? r : soft_refuse(CUDA_ERROR_INVALID_VALUE, "%s", why);
}

EXPORT CUresult cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *out, CUmipmappedArray handle)
{
	return refuse_query(out, handle, "cuMipmappedArrayGetSparseProperties: the array is not sparse");
}

EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray handle, CUdevice dev)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	return r ? r : refuse_query(out, handle, "cuMipmappedArrayGetMemoryRequirements: the array was created without deferred mapping");
}
