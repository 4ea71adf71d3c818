/* cu_reference.c — texture and surface references of modules: handles that the application binds to an array or to memory.
 *
 * A call that changes a reference first waits for the context's work, because earlier launches must still use the old binding. */
#include "softcuda/api/code/cu_code_internal.h"
#include "softcuda/api/stream/cu_queue_internal.h"
#include "softcuda/api/texture/cu_texture_use_internal.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGN = 512 };

/* ---- finding and creating ------------------------------------------------------------------------ */

static CUresult new_reference(struct context *ctx, enum handle_kind kind, uint64_t handle, struct texture_use **out)
{
	struct texture_use *u = calloc(1, sizeof *u);

	if (!u)
		return CUDA_ERROR_OUT_OF_MEMORY;
	list_init(&u->link);
	u->ctx = ctx;
	u->handle = handle;
	u->format = CU_AD_FORMAT_FLOAT;
	u->channels = 1;
	u->sampler.addressMode[0] = u->sampler.addressMode[1] = u->sampler.addressMode[2] = CU_TR_ADDRESS_MODE_CLAMP;
	u->reference = soft_handle_new(kind, u);
	if (!u->reference) {
		free(u);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	list_append(&ctx->textures, &u->link);
	*out = u;
	return CUDA_SUCCESS;
}

/* Get the texture or surface reference with this name in a module; later calls return the same handle. */
static CUresult get_reference(CUmodule handle, const char *name, enum handle_kind kind, void **out)
{
	struct context *ctx;
	struct texture_use *u = NULL;
	struct module *m;
	uint64_t at = 0;
	CUresult r = out && name ? soft_enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	m = soft_handle_find(HANDLE_MODULE, handle);
	if (m)
		at = gpul_exec_find_reference(m->code->program, name, kind == HANDLE_SURFACE_REF);
	if (!at)
		r = m ? CUDA_ERROR_NOT_FOUND : soft_refuse_handle(CUDA_ERROR_INVALID_HANDLE, HANDLE_MODULE, handle);
	for (struct link *i = ctx->textures.next; at && !u && i != &ctx->textures; i = i->next)
		if (CONTAINER(i, struct texture_use, link)->handle == at)
			u = CONTAINER(i, struct texture_use, link);
	if (!r && !u)
		r = new_reference(ctx, kind, at, &u);
	if (!r)
		*out = u->reference;
	soft_unlock();
	return r;
}

EXPORT CUresult cuModuleGetTexRef(CUtexref *out, CUmodule module, const char *name)
{
	return get_reference(module, name, HANDLE_TEXTURE_REF, (void **)out);
}

EXPORT CUresult cuModuleGetSurfRef(CUsurfref *out, CUmodule module, const char *name)
{
	return get_reference(module, name, HANDLE_SURFACE_REF, (void **)out);
}

/* Find a reference; the lock is held on success. */
static CUresult enter_reference(const void *handle, enum handle_kind kind, struct texture_use **out)
{
	struct context *ctx;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	*out = soft_handle_find(kind, handle);
	if (*out)
		return CUDA_SUCCESS;
	soft_unlock();
	return CUDA_ERROR_INVALID_HANDLE;
}

/* Bind the memory again, because properties of the reference have changed, and release the lock. */
static CUresult leave_changed(struct texture_use *u)
{
	const void *handle = u->reference;
	const bool surface = soft_handle_find(HANDLE_SURFACE_REF, handle);
	struct bound *b = NULL, *was;
	CUresult r = CUDA_SUCCESS;

	soft_context_wait(u->ctx);
	if (soft_handle_find(surface ? HANDLE_SURFACE_REF : HANDLE_TEXTURE_REF, handle) != u) {
		soft_unlock();
		return CUDA_ERROR_INVALID_HANDLE;
	}
	if (u->has_resource)
		r = soft_bound_new(&u->resource, surface ? NULL : &u->sampler, NULL, &b);
	if (!r) {
		was = u->bound;
		u->bound = b;
		gpul_texture_bind(u->handle, b ? &b->texture : NULL);
		soft_bound_free(was);
	}
	soft_unlock();
	return r;
}

/* ---- binding --------------------------------------------------------------------------------------- */

static CUresult bind_resource(const void *handle, enum handle_kind kind, const CUDA_RESOURCE_DESC *resource)
{
	struct texture_use *u;
	CUresult r = enter_reference(handle, kind, &u);

	if (r)
		return r;
	u->resource = *resource;
	u->has_resource = true;
	return leave_changed(u);
}

EXPORT CUresult cuTexRefSetArray(CUtexref t, CUarray array, unsigned flags)
{
	const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array };

	return flags & ~(unsigned)CU_TRSA_OVERRIDE_FORMAT ? CUDA_ERROR_INVALID_VALUE : bind_resource(t, HANDLE_TEXTURE_REF, &r);
}

EXPORT CUresult cuTexRefSetMipmappedArray(CUtexref t, CUmipmappedArray array, unsigned flags)
{
	const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, .res.mipmap.hMipmappedArray = array };

	return flags & ~(unsigned)CU_TRSA_OVERRIDE_FORMAT ? CUDA_ERROR_INVALID_VALUE : bind_resource(t, HANDLE_TEXTURE_REF, &r);
}

EXPORT CUresult cuSurfRefSetArray(CUsurfref s, CUarray array, unsigned flags)
{
	const CUDA_RESOURCE_DESC r = { .resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array };

	return flags ? CUDA_ERROR_INVALID_VALUE : bind_resource(s, HANDLE_SURFACE_REF, &r);
}

/* The address is rounded down to a valid alignment; kernels must add *offset to their coordinate. */
EXPORT CUresult cuTexRefSetAddress_v2(size_t *offset, CUtexref t, CUdeviceptr at, size_t bytes)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_LINEAR };
	struct texture_use *u;
	CUresult r = !offset && at % ALIGN ? CUDA_ERROR_INVALID_VALUE : enter_reference(t, HANDLE_TEXTURE_REF, &u);

	if (r)
		return r;
	d.res.linear.devPtr = at - at % ALIGN;
	d.res.linear.format = u->format;
	d.res.linear.numChannels = u->channels;
	d.res.linear.sizeInBytes = bytes + at % ALIGN;
	u->resource = d;
	u->has_resource = at != 0;
	if (offset)
		*offset = at % ALIGN;
	return leave_changed(u);
}

EXPORT CUresult cuTexRefSetAddress2D_v3(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr at, size_t pitch)
{
	CUDA_RESOURCE_DESC d = { .resType = CU_RESOURCE_TYPE_PITCH2D };

	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	d.res.pitch2D.devPtr = at;
	d.res.pitch2D.format = desc->Format;
	d.res.pitch2D.numChannels = desc->NumChannels;
	d.res.pitch2D.width = desc->Width;
	d.res.pitch2D.height = desc->Height;
	d.res.pitch2D.pitchInBytes = pitch;
	return bind_resource(t, HANDLE_TEXTURE_REF, &d);
}

EXPORT CUresult cuTexRefSetAddress2D_v2(CUtexref t, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr at, size_t pitch)
{
	return cuTexRefSetAddress2D_v3(t, desc, at, pitch);
}

/* ---- how kernels read a reference: format, addressing, filtering ------------------------------------- */

EXPORT CUresult cuTexRefSetFormat(CUtexref t, CUarray_format format, int channels)
{
	struct texture_use *u;
	CUresult r = enter_reference(t, HANDLE_TEXTURE_REF, &u);

	if (r)
		return r;
	r = soft_format_check(format, (unsigned)channels);
	if (!r) {
		u->format = format;
		u->channels = (unsigned)channels;
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuTexRefSetAddressMode(CUtexref t, int dimension, CUaddress_mode mode)
{
	struct texture_use *u;
	CUresult r = dimension < 0 || dimension > 2 || (unsigned)mode > CU_TR_ADDRESS_MODE_BORDER
			     ? CUDA_ERROR_INVALID_VALUE
			     : enter_reference(t, HANDLE_TEXTURE_REF, &u);

	if (r)
		return r;
	u->sampler.addressMode[dimension] = mode;
	return leave_changed(u);
}

EXPORT CUresult cuTexRefSetFilterMode(CUtexref t, CUfilter_mode mode)
{
	struct texture_use *u;
	CUresult r = (unsigned)mode > CU_TR_FILTER_MODE_LINEAR ? CUDA_ERROR_INVALID_VALUE : enter_reference(t, HANDLE_TEXTURE_REF, &u);

	if (r)
		return r;
	u->sampler.filterMode = mode;
	return leave_changed(u);
}

EXPORT CUresult cuTexRefSetFlags(CUtexref t, unsigned flags)
{
	struct texture_use *u;
	CUresult r = enter_reference(t, HANDLE_TEXTURE_REF, &u);

	if (r)
		return r;
	u->sampler.flags = flags;
	return leave_changed(u);
}

EXPORT CUresult cuTexRefSetBorderColor(CUtexref t, float *color)
{
	struct texture_use *u;
	CUresult r = color ? enter_reference(t, HANDLE_TEXTURE_REF, &u) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	memcpy(u->sampler.borderColor, color, sizeof u->sampler.borderColor);
	return leave_changed(u);
}

/* ---- queries ------------------------------------------------------------------------------------------ */

EXPORT CUresult cuTexRefGetArray(CUarray *out, CUtexref t)
{
	struct texture_use *u;
	CUresult r = out ? enter_reference(t, HANDLE_TEXTURE_REF, &u) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (u->has_resource && u->resource.resType == CU_RESOURCE_TYPE_ARRAY)
		*out = u->resource.res.array.hArray;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}

EXPORT CUresult cuTexRefGetFormat(CUarray_format *format, int *channels, CUtexref t)
{
	struct texture_use *u;
	CUresult r = format && channels ? enter_reference(t, HANDLE_TEXTURE_REF, &u) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*format = u->format;
	*channels = (int)u->channels;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefGetAddressMode(CUaddress_mode *out, CUtexref t, int dimension)
{
	struct texture_use *u;
	CUresult r = out && dimension >= 0 && dimension < 3 ? enter_reference(t, HANDLE_TEXTURE_REF, &u) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = u->sampler.addressMode[dimension];
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefGetFilterMode(CUfilter_mode *out, CUtexref t)
{
	struct texture_use *u;
	CUresult r = out ? enter_reference(t, HANDLE_TEXTURE_REF, &u) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = u->sampler.filterMode;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuTexRefGetFlags(unsigned *out, CUtexref t)
{
	struct texture_use *u;
	CUresult r = out ? enter_reference(t, HANDLE_TEXTURE_REF, &u) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = u->sampler.flags;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuSurfRefGetArray(CUarray *out, CUsurfref s)
{
	struct texture_use *u;
	CUresult r = out ? enter_reference(s, HANDLE_SURFACE_REF, &u) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (u->has_resource)
		*out = u->resource.res.array.hArray;
	else
		r = CUDA_ERROR_INVALID_VALUE;
	soft_unlock();
	return r;
}
