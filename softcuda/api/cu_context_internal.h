/* cu_context_internal.h — create and destroy contexts; the caller of each function holds the lock. */
#ifndef GPULOAD_SOFTCUDA_API_CU_CONTEXT_INTERNAL_H
#define GPULOAD_SOFTCUDA_API_CU_CONTEXT_INTERNAL_H

#include "softcuda/api/base/cu_state_internal.h"

/* The CU_CTX_* flags that are accepted; all others are refused. */
enum {
	CONTEXT_FLAGS = CU_CTX_SCHED_MASK | CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX | CU_CTX_SYNC_MEMOPS,
};

CUresult soft_context_create(struct device *dev, unsigned flags, struct context **out);
/* Create, or destroy, everything that a context owns except its handle. */
CUresult soft_context_bring_up(struct context *ctx, unsigned flags);
void soft_context_tear_down(struct context *ctx);
/* cu_primary.c: get the primary context of a device, creating or activating it if needed.  The caller does not get a reference. */
CUresult soft_primary_use(struct device *d, struct context **out);

#endif
