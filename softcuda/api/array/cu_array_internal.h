/* cu_array_internal.h — CUDA arrays and mipmapped arrays.
 *
 *     array  ──────────────────────> array_memory: rows one after another, without gaps
 *     mipmapped array ── level[n] ─> arrays that share one array_memory
 *
 * Queued copies, textures and surfaces hold references to the memory, so it can outlive the array's handle. */
#ifndef GPULOAD_SOFTCUDA_API_ARRAY_CU_ARRAY_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_ARRAY_CU_ARRAY_INTERNAL_H

#include "softcuda/api/base/cu_state_internal.h"

/* enough levels for the maximum width of 131072 elements, which is 2^17 */
enum { MAX_MIPMAP_LEVELS = 18 };

struct array_memory {
	unsigned refs;
	struct device *device;
	size_t bytes;
	char *block;
};

struct array {
	struct link link; /* link in context->arrays; a level of a mipmapped array is not linked */
	void *handle;
	struct context *ctx;
	struct array_memory *memory;
	struct mipmap *of;            /* the mipmapped array of which this array is a level; NULL: none */
	CUDA_ARRAY3D_DESCRIPTOR desc; /* Depth is the number of layers of a layered array, or of faces of a cubemap */
	char *at;                     /* start of the array's bytes in memory->block */
	size_t element_bytes, row_bytes, slice_bytes;
	size_t height, depth; /* height and depth in desc, but at least 1 */
};

struct mipmap {
	struct array whole; /* must be the first member; describes level 0, but its handle is the handle of the mipmapped array */
	unsigned n_levels;
	struct array *level[MAX_MIPMAP_LEVELS];
};

/* ---- cu_format.c ----------------------------------------------------------------------------- */

/* Return the number of bytes of an element with this many channels; 0: the format is unknown or not supported. */
size_t soft_format_bytes(CUarray_format format, unsigned channels);
/* CUDA_ERROR_INVALID_VALUE: not a format of array elements; CUDA_ERROR_NOT_SUPPORTED: a block-compressed or video format. */
CUresult soft_format_check(CUarray_format format, unsigned channels);

/* ---- cu_array.c: the caller of each function holds the lock ----------------------------------- */

CUresult soft_array_find(CUarray handle, struct array **out);
void soft_array_memory_release(struct array_memory *m); /* accepts NULL */
/* Check an array's descriptor; is_mipmap: it describes level 0 of a mipmapped array. */
CUresult soft_array_check(const CUDA_ARRAY3D_DESCRIPTOR *desc, bool is_mipmap);
/* Compute the sizes in *a from a->desc, and return the number of bytes of the array; 0: the number overflows a size_t. */
size_t soft_array_lay_out(struct array *a);
CUresult soft_array_memory_new(struct context *ctx, size_t bytes, struct array_memory **out);
/* Free an array or a mipmapped array, and remove it from context->arrays. */
void soft_array_free(struct array *a);

/* ---- cu_mipmap.c ------------------------------------------------------------------------------ */

CUresult soft_mipmap_find(CUmipmappedArray handle, struct mipmap **out); /* the caller holds the lock */

#endif
