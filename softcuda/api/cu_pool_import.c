/* cu_pool_import.c — imports memory from a pool of another process; no context needs to be current. */
#include "softcuda/api/cu_context_internal.h"
#include "softcuda/api/memory/cu_pool_file_internal.h"

/* Find the context that will own imported memory: the current context, or the primary context of the pool's device. */
static CUresult find_importer(const struct pool *p, struct context **out)
{
	CUresult r = CUDA_SUCCESS;

	if (soft_current())
		r = soft_find_context(soft_current(), out);
	else
		r = soft_primary_use(p->device ? p->device : &soft.device[0], out);
	return r ? r : (*out)->fault;
}

EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *from)
{
	struct context *ctx;
	struct pool *p;
	CUresult r = soft_check_initialised();

	if (r)
		return r;
	soft_lock();
	r = out && from ? soft_pool_find(pool, &p) : CUDA_ERROR_INVALID_VALUE;
	if (!r && !soft_pool_is_imported(p))
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuMemPoolImportPointer: the pool was created in this process: expected a pool of "
				"cuMemPoolImportFromShareableHandle");
	if (!r)
		r = find_importer(p, &ctx);
	if (!r)
		r = soft_pool_import_pointer(ctx, p, from, out);
	soft_unlock();
	return r;
}
