/* cu_texture_use_internal.h — texture objects and references: the memory that they are bound to, and how it is read. */
#ifndef GPULOAD_SOFTCUDA_API_TEXTURE_CU_TEXTURE_USE_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_TEXTURE_CU_TEXTURE_USE_INTERNAL_H

#include "softcuda/api/array/cu_array_internal.h"
#include "softcuda/exec/texture/texture_internal.h"

struct bound {                       /* immutable; holds a reference to the memory */
	struct texture texture;      /* must be the first member */
	struct array_memory *memory; /* memory of the array; NULL: memory with an address */
};

struct texture_use {      /* a texture or surface object, or a reference of a module */
	struct link link; /* link in context->textures */
	struct context *ctx;
	uint64_t handle;     /* handle in the engine's table; for an object also the handle in cuda.h; 0: a reference without a module */
	void *reference;     /* HANDLE_TEXTURE_REF or HANDLE_SURFACE_REF; NULL: an object */
	struct bound *bound; /* the memory and its format; NULL: a reference that is not bound */
	bool has_resource, has_view;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC sampler;
	CUDA_RESOURCE_VIEW_DESC view;
	CUarray_format format; /* format of the linear memory of a reference */
	unsigned channels;
};

/* The caller of each function holds the lock. */

/* cu_build.c: convert the descriptors.  view NULL: there is no view; sampler NULL: create a surface. */
CUresult soft_bound_new(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *sampler, const CUDA_RESOURCE_VIEW_DESC *view,
			struct bound **out);
void soft_bound_free(struct bound *b);         /* accepts NULL; waits for instructions that use b */
void soft_texture_free(struct texture_use *u); /* defined in cu_object.c */

#endif
