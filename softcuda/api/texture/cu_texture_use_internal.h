/* cu_texture_use_internal.h — texture objects and references, and the memory to which they are bound. */
#ifndef GPULOAD_SOFTCUDA_API_TEXTURE_CU_TEXTURE_USE_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_TEXTURE_CU_TEXTURE_USE_INTERNAL_H

#include "softcuda/api/array/cu_array_internal.h"
#include "softcuda/exec/texture/texture_internal.h"

struct bound {                       /* memory and its format; never changes; holds a reference to the memory */
	struct texture texture;      /* must be the first member */
	struct array_memory *memory; /* the array's memory; NULL: linear memory */
};

struct texture_use {      /* a texture or surface object, or a reference of a module */
	struct link link; /* link in context->textures */
	struct context *ctx;
	uint64_t handle;     /* handle in the interpreter; for an object also the application's handle; 0: a reference without a module */
	void *reference;     /* handle of a texture or surface reference; NULL: the struct is for an object */
	struct bound *bound; /* the memory with its format; NULL: the reference is not bound */
	bool has_resource, has_view;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC sampler;
	CUDA_RESOURCE_VIEW_DESC view;
	CUarray_format format; /* format of the linear memory of a reference */
	unsigned channels;
};

/* The caller of each function holds the lock. */

/* Convert the descriptors (cu_build.c).  view NULL: there is no view; sampler NULL: for a surface. */
CUresult soft_bound_new(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *sampler, const CUDA_RESOURCE_VIEW_DESC *view,
			struct bound **out);
void soft_bound_free(struct bound *b);         /* accepts NULL; waits for running instructions that use b */
void soft_texture_free(struct texture_use *u); /* defined in cu_object.c */

#endif
