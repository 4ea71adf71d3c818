/* cu_build.c — converts the descriptors of <cuda.h> to the struct texture that the interpreter reads. */
#include "softcuda/api/texture/cu_texture_use_internal.h"
#include "softcuda/api/memory/cu_memory_internal.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTURE_ALIGN = 512, PITCH_MULTIPLE = 32, MAX_LINEAR = 1 << 28, MAX_PITCH_WIDTH = 131072, MAX_PITCH_HEIGHT = 65000 };

/* ---- channel formats ------------------------------------------------------------------------ */

static enum channel_type channel_of(CUarray_format format, bool *unorm)
{
	static const uint8_t by_width[] = { CHANNEL_U8, CHANNEL_U16, CHANNEL_S8, CHANNEL_S16 };

	*unorm = format >= CU_AD_FORMAT_UNORM_INT8X1;
	if (*unorm)
		return by_width[((unsigned)format - CU_AD_FORMAT_UNORM_INT8X1) / 3];
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
		return CHANNEL_U8;
	case CU_AD_FORMAT_UNSIGNED_INT16:
		return CHANNEL_U16;
	case CU_AD_FORMAT_UNSIGNED_INT32:
		return CHANNEL_U32;
	case CU_AD_FORMAT_SIGNED_INT8:
		return CHANNEL_S8;
	case CU_AD_FORMAT_SIGNED_INT16:
		return CHANNEL_S16;
	case CU_AD_FORMAT_SIGNED_INT32:
		return CHANNEL_S32;
	case CU_AD_FORMAT_HALF:
		return CHANNEL_F16;
	default:
		return CHANNEL_F32;
	}
}

static CUresult set_format(struct texture *t, CUarray_format format, unsigned channels, unsigned flags)
{
	CUresult r = soft_format_check(format, channels);

	if (r)
		return r;
	t->channel = (uint8_t)channel_of(format, &t->unorm);
	t->n_channels = (uint8_t)channels;
	t->element_bytes = (uint8_t)soft_format_bytes(format, channels);
	t->read_integer = t->channel == CHANNEL_U32 || t->channel == CHANNEL_S32 ||
			  (t->channel < CHANNEL_F16 && !t->unorm && flags & CU_TRSF_READ_AS_INTEGER);
	t->srgb = flags & CU_TRSF_SRGB && t->channel == CHANNEL_U8;
	return CUDA_SUCCESS;
}

/* Convert the format of a view.  CUresourceViewFormat lists each type of channel with 1, 2 and 4 channels. */
static CUresult view_format(CUresourceViewFormat view, CUarray_format *format, unsigned *channels)
{
	static const uint8_t formats[] = { CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8,    CU_AD_FORMAT_UNSIGNED_INT16,
					   CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
					   CU_AD_FORMAT_HALF,          CU_AD_FORMAT_FLOAT };
	static const uint8_t counts[] = { 1, 2, 4 };
	const unsigned n = (unsigned)view - CU_RES_VIEW_FORMAT_UINT_1X8;

	if (view == CU_RES_VIEW_FORMAT_NONE)
		return CUDA_SUCCESS;
	if (n >= 3 * sizeof formats)
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "texture: view format 0x%x (block-compressed) is not supported",
				   (unsigned)view);
	*format = (CUarray_format)formats[n / 3];
	*channels = counts[n % 3];
	return CUDA_SUCCESS;
}

/* ---- resources (arrays and linear memory) --------------------------------------------------- */

static struct texture_level level_of(const struct array *a)
{
	const bool slices = a->desc.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);

	return (struct texture_level){ .at = (const uint8_t *)a->at,
				       .width = (uint32_t)a->desc.Width,
				       .height = (uint32_t)a->height,
				       .depth = slices ? 1 : (uint32_t)a->depth,
				       .pitch = a->row_bytes,
				       .slice = a->slice_bytes };
}

static void set_shape(struct texture *t, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	t->layered = d->Flags & CUDA_ARRAY3D_LAYERED;
	t->cube = d->Flags & CUDA_ARRAY3D_CUBEMAP;
	t->n_layers = t->layered || t->cube ? (uint32_t)d->Depth : 0;
	t->dimensions = !d->Height ? 1 : d->Depth && !t->layered && !t->cube ? 3 : 2;
}

static CUresult build_array(const CUDA_RESOURCE_DESC *r, unsigned flags, const CUDA_RESOURCE_VIEW_DESC *view, struct bound *b)
{
	struct texture *t = &b->texture;
	struct array *a, *const *levels = &a;
	unsigned n = 1, first = 0, channels;
	CUarray_format format;
	struct mipmap *m;
	CUresult result;

	if (r->resType == CU_RESOURCE_TYPE_ARRAY) {
		result = soft_array_find(r->res.array.hArray, &a);
	} else {
		result = soft_mipmap_find(r->res.mipmap.hMipmappedArray, &m);
		if (!result) {
			levels = m->level;
			n = m->n_levels;
		}
	}
	if (result)
		return result;
	if (view && (view->lastMipmapLevel >= n || view->firstMipmapLevel > view->lastMipmapLevel))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "texture: the view needs levels %u to %u, but the array has %u levels, numbered from 0",
				   view->firstMipmapLevel, view->lastMipmapLevel, n);
	if (view) {
		first = view->firstMipmapLevel;
		n = view->lastMipmapLevel + 1;
	}
	a = levels[first];
	format = a->desc.Format;
	channels = a->desc.NumChannels;
	set_shape(t, &a->desc);
	result = view ? view_format(view->format, &format, &channels) : CUDA_SUCCESS;
	if (!result)
		result = set_format(t, format, channels, flags);
	if (result)
		return result;
	if (t->element_bytes != a->element_bytes)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "texture: the elements of the view have %u bytes, but the elements of the array have %zu bytes",
				   t->element_bytes, a->element_bytes);
	for (unsigned k = first; k < n; k++)
		t->level[t->n_levels++] = level_of(levels[k]);
	if (view && t->n_layers && view->lastLayer) {
		if (view->lastLayer >= t->n_layers || view->firstLayer > view->lastLayer)
			return CUDA_ERROR_INVALID_VALUE;
		for (unsigned k = 0; k < t->n_levels; k++)
			t->level[k].at += view->firstLayer * t->level[k].slice;
		t->n_layers = view->lastLayer - view->firstLayer + 1;
	}
	b->memory = a->memory;
	b->memory->refs++;
	return CUDA_SUCCESS;
}

static CUresult build_linear(const CUDA_RESOURCE_DESC *r, unsigned flags, struct texture *t)
{
	const uint64_t at = r->res.linear.devPtr;
	CUresult result = set_format(t, r->res.linear.format, r->res.linear.numChannels, flags);
	size_t n;

	if (result)
		return result;
	n = r->res.linear.sizeInBytes / t->element_bytes;
	if (!n || n > MAX_LINEAR || at % TEXTURE_ALIGN || !soft_is_known(at, 1))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "texture: invalid linear memory of %zu elements at 0x%llx; expected 1 to 2^28 elements in "
				   "device memory, at a multiple of %d",
				   n, (unsigned long long)at, TEXTURE_ALIGN);
	t->in_table = t->linear_memory = true;
	t->dimensions = 1;
	t->n_levels = 1;
	t->level[0] = (struct texture_level){ (const uint8_t *)(uintptr_t)at, (uint32_t)n, 1, 1, 0, 0 };
	return CUDA_SUCCESS;
}

static CUresult build_pitch(const CUDA_RESOURCE_DESC *r, unsigned flags, struct texture *t)
{
	const uint64_t at = r->res.pitch2D.devPtr;
	const size_t width = r->res.pitch2D.width, height = r->res.pitch2D.height, pitch = r->res.pitch2D.pitchInBytes;
	CUresult result = set_format(t, r->res.pitch2D.format, r->res.pitch2D.numChannels, flags);

	if (result)
		return result;
	if (!width || width > MAX_PITCH_WIDTH || !height || height > MAX_PITCH_HEIGHT || at % TEXTURE_ALIGN || !soft_is_known(at, 1) ||
	    pitch % PITCH_MULTIPLE || pitch < width * t->element_bytes)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "texture: invalid pitched memory of %zu x %zu elements with a pitch of %zu bytes at 0x%llx; "
				   "expected device memory at a multiple of %d, and a pitch that is a multiple of %d and holds a "
				   "row",
				   width, height, pitch, (unsigned long long)at, TEXTURE_ALIGN, PITCH_MULTIPLE);
	t->in_table = true;
	t->dimensions = 2;
	t->n_levels = 1;
	t->level[0] = (struct texture_level){ (const uint8_t *)(uintptr_t)at, (uint32_t)width, (uint32_t)height, 1, pitch, pitch * height };
	return CUDA_SUCCESS;
}

/* ---- samplers --------------------------------------------------------------------------------- */

static CUresult build_sampler(const CUDA_TEXTURE_DESC *d, struct texture *t)
{
	struct sampler *s = &t->sampler;
	uint32_t border[4];

	for (unsigned k = 0; k < 3; k++) {
		if ((unsigned)d->addressMode[k] > CU_TR_ADDRESS_MODE_BORDER)
			return soft_refuse(CUDA_ERROR_INVALID_VALUE, "texture: unknown address mode %u", (unsigned)d->addressMode[k]);
		s->address[k] = (uint8_t)d->addressMode[k];
	}
	if ((unsigned)d->filterMode > CU_TR_FILTER_MODE_LINEAR || (unsigned)d->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "texture: unknown filter mode");
	s->normalised = d->flags & CU_TRSF_NORMALIZED_COORDINATES;
	s->linear = d->filterMode == CU_TR_FILTER_MODE_LINEAR;
	s->linear_levels = d->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
	s->bias = d->mipmapLevelBias;
	s->least_level = d->minMipmapLevelClamp;
	s->most_level = d->maxMipmapLevelClamp;
	memcpy(border, d->borderColor, sizeof border);
	gpul_texture_set_border(t, border);
	return CUDA_SUCCESS;
}

CUresult soft_bound_new(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *sampler, const CUDA_RESOURCE_VIEW_DESC *view,
			struct bound **out)
{
	const unsigned flags = sampler ? sampler->flags : CU_TRSF_READ_AS_INTEGER;
	struct bound *b = calloc(1, sizeof *b);
	CUresult r = b ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;

	if (!b)
		return r;
	if (resource->resType == CU_RESOURCE_TYPE_ARRAY || (resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && sampler))
		r = build_array(resource, flags, view, b);
	else if (resource->resType == CU_RESOURCE_TYPE_LINEAR && sampler)
		r = build_linear(resource, flags, &b->texture);
	else if (resource->resType == CU_RESOURCE_TYPE_PITCH2D && sampler)
		r = build_pitch(resource, flags, &b->texture);
	else
		soft_refuse(r, "texture: resource type %d cannot be used here", (int)resource->resType);
	if (b->texture.cube && sampler) /* a surface treats the faces of a cubemap as layers */
		b->texture.n_layers /= 6;
	if (!r && sampler)
		r = build_sampler(sampler, &b->texture);
	if (r) {
		soft_array_memory_release(b->memory);
		free(b);
		return r;
	}
	*out = b;
	return CUDA_SUCCESS;
}

void soft_bound_free(struct bound *b)
{
	if (!b)
		return;
	gpul_exec_machine_settle(soft.machine);
	soft_array_memory_release(b->memory);
	free(b);
}
