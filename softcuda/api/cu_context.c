/* cu_context.c — create, destroy, push, pop and synchronize contexts.
 *
 * Every thread has a stack of current contexts (base/cu_state.c).  After the fault of a kernel all later calls in its
 * context return that error until the context is destroyed, as on a GPU. */
#include "softcuda/api/cu_context_internal.h"
#include "softcuda/api/array/cu_array_internal.h"
#include "softcuda/api/texture/cu_texture_use_internal.h"
#include "softcuda/api/stream/cu_event_internal.h"
#include "softcuda/api/memory/cu_memory_internal.h"
#include "softcuda/api/code/cu_code_internal.h"

#include <stdlib.h>

#include "softcuda/tools/memcheck/memcheck_internal.h"
#include "softcuda/api/stream/cu_order_internal.h"

CUresult soft_context_bring_up(struct context *ctx, unsigned flags)
{
	CUresult r;

	ctx->flags = flags;
	ctx->fault = CUDA_SUCCESS;
	ctx->cache_config = CU_FUNC_CACHE_PREFER_NONE;
	ctx->next_grid_id = 1;
	ctx->limit[CU_LIMIT_STACK_SIZE] = 1024;
	ctx->limit[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	ctx->limit[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	ctx->limit[CU_LIMIT_PERSISTING_L2_CACHE_SIZE] = 0;
	list_init(&ctx->streams);
	list_init(&ctx->events);
	list_init(&ctx->modules);
	list_init(&ctx->allocations);
	list_init(&ctx->arrays);
	list_init(&ctx->textures);
	list_init(&ctx->pending);
	r = soft_stream_create(ctx, CU_STREAM_DEFAULT, 0, &ctx->legacy);
	ctx->active = !r;
	return r;
}

static void free_leaked(struct allocation *a)
{
	gpul_memcheck_leaked(a->base);
	soft_allocation_free(a);
}

void soft_context_tear_down(struct context *ctx)
{
	struct link *i;

	if (!ctx->active)
		return;
	soft_tools_await(ctx);
	soft_context_abort(ctx);
	while (!list_empty(i = &ctx->events))
		soft_event_destroy(CONTAINER(i->next, struct event, link));
	while (!list_empty(i = &ctx->modules))
		soft_module_destroy(CONTAINER(i->next, struct module, link));
	while (!list_empty(i = &ctx->textures))
		soft_texture_free(CONTAINER(i->next, struct texture_use, link));
	while (!list_empty(i = &ctx->arrays))
		soft_array_free(CONTAINER(i->next, struct array, link));
	while (!list_empty(i = &ctx->allocations))
		free_leaked(CONTAINER(i->next, struct allocation, link));
	while (!list_empty(i = &ctx->streams))
		soft_stream_destroy(CONTAINER(i->next, struct stream, link));
	ctx->legacy = NULL;
	ctx->gate = NULL;
	soft_peer_forget(ctx);
	ctx->active = false;
}

CUresult soft_context_create(struct device *dev, unsigned flags, struct context **out)
{
	struct context *ctx = calloc(1, sizeof *ctx);
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!ctx)
		return r;
	ctx->device = dev;
	list_append(&soft.contexts, &ctx->link);
	ctx->handle = soft_handle_new(HANDLE_CONTEXT, ctx);
	if (!ctx->handle)
		goto free_ctx;
	r = soft_context_bring_up(ctx, flags);
	if (r)
		goto free_handle;
	*out = ctx;
	return CUDA_SUCCESS;
free_handle:
	soft_handle_free(ctx->handle);
free_ctx:
	list_remove(&ctx->link);
	free(ctx);
	return r;
}

static void destroy_context(struct context *ctx)
{
	soft_context_tear_down(ctx);
	soft_handle_free(ctx->handle);
	list_remove(&ctx->link);
	soft_order_drop(ctx->order);
	free(ctx);
}

/* ---- creating and destroying -------------------------------------------------------------- */

EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice dev)
{
	struct context *ctx;
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (!out || flags & ~(unsigned)CONTEXT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	r = soft_context_create(d, flags, &ctx);
	if (!r && !soft_push_current(ctx->handle)) {
		destroy_context(ctx);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!r)
		*out = ctx->handle;
	soft_unlock();
	return r;
}

EXPORT CUresult cuCtxCreate(CUcontext *out, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(out, flags, dev);
}

EXPORT CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int n_affinity, unsigned int flags, CUdevice dev)
{
	if (affinity || n_affinity)
		return soft_refuse(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "cuCtxCreate: execution affinity is not supported");
	return cuCtxCreate_v2(out, flags, dev);
}

EXPORT CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	if (params && params->cigParams)
		return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "cuCtxCreate: CIG (graphics) contexts are not supported");
	return cuCtxCreate_v3(out, params ? params->execAffinityParams : NULL, params ? params->numExecAffinityParams : 0, flags, dev);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext handle)
{
	struct context *ctx = NULL;
	CUresult r = handle ? soft_check_initialised() : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	soft_lock();
	r = soft_find_context(handle, &ctx);
	if (!r && ctx->is_primary)
		r = soft_refuse(CUDA_ERROR_INVALID_CONTEXT, "cuCtxDestroy: this is a primary context: call cuDevicePrimaryCtxRelease");
	if (!r) {
		void *popped;

		if (soft_current() == (void *)handle)
			soft_pop_current(&popped);
		destroy_context(ctx);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

/* Increment the number of users of the current context, which is 1 after cuCtxCreate.  Deprecated since CUDA 4.0. */
EXPORT CUresult cuCtxAttach(CUcontext *out, unsigned int flags)
{
	struct context *ctx;
	CUresult r = out && !flags ? soft_enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	ctx->n_attached++;
	*out = ctx->handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

/* Decrement the number of users; if it becomes 0, the context is destroyed. */
EXPORT CUresult cuCtxDetach(CUcontext handle)
{
	struct context *ctx;
	CUresult r = handle ? soft_enter_after_fault(&ctx) : CUDA_ERROR_INVALID_VALUE;
	bool is_last;

	if (r)
		return r;
	if (ctx->handle != (void *)handle) {
		soft_unlock();
		return soft_refuse(CUDA_ERROR_INVALID_CONTEXT, "cuCtxDetach: the context is not current to this thread");
	}
	is_last = !ctx->n_attached;
	if (!is_last)
		ctx->n_attached--;
	soft_unlock();
	return is_last ? cuCtxDestroy_v2(handle) : CUDA_SUCCESS;
}

/* ---- the current context -------------------------------------------------------------------- */

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
	struct context *ctx;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = soft_find_context(handle, &ctx);
	soft_unlock();
	if (r == CUDA_ERROR_CONTEXT_IS_DESTROYED)
		r = CUDA_SUCCESS; /* as with NVIDIA's driver, this succeeds even for a context with a fault; later calls return the fault */
	if (!r && !soft_push_current(handle))
		r = soft_refuse(CUDA_ERROR_OUT_OF_MEMORY, "cuCtxPushCurrent: no memory for the thread's stack of contexts");
	return r;
}

EXPORT CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out)
{
	void *handle;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!soft_pop_current(&handle))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (out)
		*out = handle;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxPopCurrent(CUcontext *out)
{
	return cuCtxPopCurrent_v2(out);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext handle)
{
	struct context *ctx;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (handle) {
		soft_lock();
		r = soft_find_context(handle, &ctx);
		soft_unlock();
	}
	if (!r)
		soft_set_current(handle);
	return r;
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = soft_current();
	return CUDA_SUCCESS;
}

/* Find the context of the handle; a handle of NULL is the current context.  The lock is held on success. */
static CUresult enter_context(CUcontext handle, struct context **out)
{
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = soft_find_context(handle ? handle : soft_current(), out);
	if (r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext handle)
{
	struct context *ctx;
	CUresult r = out ? enter_context(handle, &ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*out = ctx->device->ordinal;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetDevice(CUdevice *out)
{
	return cuCtxGetDevice_v2(out, NULL);
}

EXPORT CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	struct context *ctx;
	CUresult r = enter_context(handle, &ctx);

	if (r)
		return r;
	r = soft_capture_refuse_in(ctx, "cuCtxSynchronize");
	if (!r) {
		soft_context_wait(ctx);
		r = ctx->fault;
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuCtxSynchronize(void)
{
	return cuCtxSynchronize_v2(NULL);
}

EXPORT CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct context *ctx;
	CUresult r = flags ? soft_enter_after_fault(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*flags = ctx->flags;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetFlags(unsigned int flags)
{
	struct context *ctx;
	CUresult r;

	if (flags & ~(unsigned)CONTEXT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_enter(&ctx);
	if (r)
		return r;
	ctx->flags = flags;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	struct context *ctx;
	CUresult r = id ? enter_context(handle, &ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*id = (uintptr_t)ctx->handle;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
	struct context *ctx;
	CUresult r = version ? enter_context(handle, &ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*version = 3020; /* the same for every context since cuCtxCreate_v2 */
	soft_unlock();
	return CUDA_SUCCESS;
}
