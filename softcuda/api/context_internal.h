/* context_internal.h — create and destroy contexts; all under the lock. */
#ifndef GPULOAD_SOFTCUDA_API_CONTEXT_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_CONTEXT_INTERNAL_H

#include "softcuda/api/base/state_internal.h"

/* The CU_CTX_* flags that are accepted: how to wait, and that host memory is mapped. */
enum {
	CONTEXT_FLAGS = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX |
			CU_CTX_SYNC_MEMOPS,
};

CUresult soft_context_create(struct device *dev, unsigned flags, struct context **out);
void soft_context_destroy(struct context *ctx);
/* Create, or destroy, everything that a context owns; its handle stays. */
CUresult soft_context_bring_up(struct context *ctx, unsigned flags);
void soft_context_tear_down(struct context *ctx);

#endif
