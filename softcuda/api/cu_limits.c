/* cu_limits.c — the limits of a context (cuCtxSetLimit), and cache preferences, which have no effect on a CPU. */
#include "softcuda/api/stream/cu_queue_internal.h"

static bool limit_is_known(CUlimit limit)
{
	return limit == CU_LIMIT_STACK_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE ||
	       limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT || limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY ||
	       limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

EXPORT CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	struct context *ctx;
	CUresult r;

	if (!value || (unsigned)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!limit_is_known(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	r = soft_enter(&ctx);
	if (r)
		return r;
	*value = limit == CU_LIMIT_MALLOC_HEAP_SIZE                   ? soft.heap_bytes
		 : limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT ? soft.pending_launches
								      : ctx->limit[limit];
	soft_unlock();
	return CUDA_SUCCESS;
}

/* Set the size of the buffer for pending launches by kernels, which cannot be changed after the first such launch has allocated it. */
static CUresult set_pending_launches(size_t n)
{
	enum { MOST = 1 << 20 };

	if (n == soft.pending_launches)
		return CUDA_SUCCESS;
	if (!n || n > MOST)
		return soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuCtxSetLimit: the number of pending launches is %zu: expected 1 to %d", n,
				   MOST);
	if (soft.machine && !gpul_exec_machine_set_pending_launches(soft.machine, (uint32_t)n))
		return soft_refuse(CUDA_ERROR_INVALID_VALUE,
				   "cuCtxSetLimit: the number of pending launches cannot be changed after the first launch by a kernel");
	soft.pending_launches = (uint32_t)n;
	return CUDA_SUCCESS;
}

/* The heap of malloc() in kernels is allocated at the first launch and cannot grow later. */
EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct context *ctx;
	CUresult r;

	if ((unsigned)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!limit_is_known(limit))
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	r = soft_enter(&ctx);
	if (r)
		return r;
	if (limit == CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT)
		r = set_pending_launches(value);
	else if (limit != CU_LIMIT_MALLOC_HEAP_SIZE)
		ctx->limit[limit] = value;
	else if (!soft.machine)
		soft.heap_bytes = value;
	else if (value != soft.heap_bytes)
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE, "cuCtxSetLimit: the device heap cannot be changed after the first launch");
	soft_unlock();
	return r;
}

EXPORT CUresult cuCtxResetPersistingL2Cache(void)
{
	struct context *ctx;
	CUresult r = soft_enter(&ctx);

	if (!r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	struct context *ctx;
	CUresult r = config ? soft_enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*config = ctx->cache_config;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	struct context *ctx;
	CUresult r;

	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_enter(&ctx);
	if (r)
		return r;
	ctx->cache_config = config;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct context *ctx;
	CUresult r = soft_enter(&ctx);

	if (r)
		return r;
	if (least)
		*least = LEAST_PRIORITY;
	if (greatest)
		*greatest = GREATEST_PRIORITY;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	struct context *ctx;
	CUresult r = config ? soft_enter(&ctx) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	struct context *ctx;
	CUresult r;

	if ((unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE)
		return CUDA_ERROR_INVALID_VALUE;
	r = soft_enter(&ctx);
	if (!r)
		soft_unlock(); /* the bank configuration has no effect, as on every GPU since 2014 */
	return r;
}
