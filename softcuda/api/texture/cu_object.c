/* cu_object.c — texture objects and surface objects. */
#include "softcuda/api/stream/cu_queue_internal.h"
#include "softcuda/api/texture/cu_texture_use_internal.h"

#include <stdlib.h>

/* Find the texture or surface object with this handle in the context. */
static CUresult find_object(struct context *ctx, uint64_t handle, enum texture_kind kind, struct texture_use **out)
{
	for (struct link *i = ctx->textures.next; gpul_texture_is(handle, kind) && i != &ctx->textures; i = i->next) {
		struct texture_use *u = CONTAINER(i, struct texture_use, link);

		if (u->handle == handle && !u->reference) {
			*out = u;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

void soft_texture_free(struct texture_use *u)
{
	if (u->reference)
		gpul_texture_bind(u->handle, NULL); /* unbind only: the handle belongs to the module's reference */
	else
		gpul_texture_remove(u->handle);
	soft_handle_free(u->reference);
	list_remove(&u->link);
	soft_bound_free(u->bound);
	free(u);
}

static CUresult create_object(struct context *ctx, enum texture_kind kind, const CUDA_RESOURCE_DESC *resource,
			      const CUDA_TEXTURE_DESC *sampler, const CUDA_RESOURCE_VIEW_DESC *view, uint64_t *out)
{
	struct texture_use *u = calloc(1, sizeof *u);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!u)
		return r;
	list_init(&u->link);
	u->ctx = ctx;
	u->resource = *resource;
	u->sampler = sampler ? *sampler : (CUDA_TEXTURE_DESC){ 0 };
	u->has_view = view;
	u->view = view ? *view : (CUDA_RESOURCE_VIEW_DESC){ 0 };
	r = soft_bound_new(resource, sampler, view, &u->bound);
	if (r)
		goto free_u;
	u->handle = gpul_texture_add(kind, &u->bound->texture);
	if (!u->handle) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
		goto free_bound;
	}
	list_append(&ctx->textures, &u->link);
	*out = u->handle;
	return CUDA_SUCCESS;
free_bound:
	soft_bound_free(u->bound);
free_u:
	free(u);
	return r;
}

EXPORT CUresult cuTexObjectCreate(CUtexObject *out, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *sampler,
				  const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct context *ctx;
	uint64_t handle;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = out && resource && sampler ? create_object(ctx, TEXTURE_OBJECT, resource, sampler, view, &handle) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = handle;
	soft_unlock();
	return r;
}

EXPORT CUresult cuSurfObjectCreate(CUsurfObject *out, const CUDA_RESOURCE_DESC *resource)
{
	struct context *ctx;
	uint64_t handle;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = out && resource ? create_object(ctx, SURFACE_OBJECT, resource, NULL, NULL, &handle) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = handle;
	soft_unlock();
	return r;
}

/* Destroy an object after the context's work has ended, like cuMemFree, because running kernels can use the object. */
static CUresult destroy_object(uint64_t handle, enum texture_kind kind)
{
	struct context *ctx;
	struct texture_use *u;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	r = find_object(ctx, handle, kind, &u);
	if (!r) {
		soft_context_wait(ctx);
		r = find_object(ctx, handle, kind, &u); /* search again: another thread may have destroyed the object meanwhile */
	}
	if (!r)
		soft_texture_free(u);
	soft_unlock();
	return r;
}

EXPORT CUresult cuTexObjectDestroy(CUtexObject handle)
{
	return destroy_object(handle, TEXTURE_OBJECT);
}

EXPORT CUresult cuSurfObjectDestroy(CUsurfObject handle)
{
	return destroy_object(handle, SURFACE_OBJECT);
}

/* ---- queries -------------------------------------------------------------------------------- */

/* Find the object for a query that writes to out; the lock is held on success. */
static CUresult enter_object(const void *out, uint64_t handle, enum texture_kind kind, struct texture_use **u)
{
	struct context *ctx;
	CUresult r = out ? soft_enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	r = find_object(ctx, handle, kind, u);
	if (r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUtexObject handle)
{
	struct texture_use *u;
	CUresult r = enter_object(out, handle, TEXTURE_OBJECT, &u);

	if (r)
		return r;
	*out = u->resource;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *out, CUtexObject handle)
{
	struct texture_use *u;
	CUresult r = enter_object(out, handle, TEXTURE_OBJECT, &u);

	if (r)
		return r;
	*out = u->sampler;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC *out, CUtexObject handle)
{
	struct texture_use *u;
	CUresult r = enter_object(out, handle, TEXTURE_OBJECT, &u);

	if (r)
		return r;
	*out = u->view; /* zeros if there is no view: NVIDIA documents an error, but its driver 580 succeeds */
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *out, CUsurfObject handle)
{
	struct texture_use *u;
	CUresult r = enter_object(out, handle, SURFACE_OBJECT, &u);

	if (r)
		return r;
	*out = u->resource;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *out, CUarray_format format, unsigned channels, CUdevice dev)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (!r)
		r = out ? soft_format_check(format, channels) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*out = 1 << 28; /* CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH */
	return r;
}
