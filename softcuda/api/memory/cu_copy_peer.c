/* cu_copy_peer.c — copies between contexts.  Addresses are unified, so the bytes are copied as in any other copy.
 *
 * A call without Async is also ordered with the work of the three contexts:
 *
 *     source's context       ... work ──┐            ┌── later work ...
 *     current context        ... work ──┼──> copy ───┼── later work ...
 *     destination's context  ... work ──┘            └── later work ...
 *
 * A call with Async is ordered only with its stream. */
#include "softcuda/api/memory/cu_memory_internal.h"

/* Queue a marker in `ctx`, for which later work of ctx waits.  The marker waits for earlier work of ctx and for the operation
 * `after`, which may be NULL.  Free *out with soft_op_release().  The caller holds the lock. */
static CUresult add_marker(struct context *ctx, struct op *after, struct op **out)
{
	struct op *op = soft_op_new(ctx->legacy, &soft_marker);
	CUresult r = op ? soft_capture_check_legacy(ctx->legacy) : CUDA_ERROR_OUT_OF_MEMORY;

	if (!r)
		r = soft_op_submit(op, after);
	if (r && op)
		soft_op_release(op);
	else if (!r)
		*out = op;
	return r;
}

/* Make later work of `ctx` wait for all queued work of `other`; the caller holds the lock. */
static CUresult wait_for_context(struct context *ctx, struct context *other)
{
	struct op *theirs, *ours;
	CUresult r;

	if (ctx == other)
		return CUDA_SUCCESS;
	r = add_marker(other, NULL, &theirs);
	if (r)
		return r;
	r = add_marker(ctx, theirs, &ours);
	soft_op_release(theirs);
	if (!r)
		soft_op_release(ours);
	return r;
}

/* Find both contexts of a copy; each may be the current context.  The lock is held on success. */
static CUresult enter_pair(CUcontext dst, CUcontext src, struct context **ctx, struct context *pair[2])
{
	CUresult r = soft_enter(ctx);

	if (r)
		return r;
	r = soft_find_context(dst, &pair[0]);
	if (!r)
		r = soft_find_context(src, &pair[1]);
	if (!r)
		r = pair[0]->fault ? pair[0]->fault : pair[1]->fault;
	if (r) {
		soft_unlock();
		return r == CUDA_ERROR_CONTEXT_IS_DESTROYED ? CUDA_ERROR_INVALID_CONTEXT : r;
	}
	return CUDA_SUCCESS;
}

static CUresult check_pair(CUcontext dst, CUcontext src)
{
	struct context *ctx, *pair[2];
	CUresult r = enter_pair(dst, src, &ctx, pair);

	if (!r)
		soft_unlock();
	return r;
}

/* Order a copy with the work of both contexts.  before: the current context waits for dst and src; else (afterwards) both wait for it. */
static CUresult order_contexts(CUcontext dst, CUcontext src, bool before)
{
	struct context *ctx, *pair[2];
	CUresult r = enter_pair(dst, src, &ctx, pair);

	if (r)
		return r;
	for (int i = 0; !r && i < 2; i++)
		r = before ? wait_for_context(ctx, pair[i]) : wait_for_context(pair[i], ctx);
	soft_unlock();
	return r;
}

CUresult soft_copy_peer(CUstream stream, CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes)
{
	CUresult r = order_contexts(dst_context, src_context, true);

	if (!r)
		r = soft_copy(stream, dst, SIDE_DEVICE, src, SIDE_DEVICE, bytes, QUEUED);
	return r ? r : order_contexts(dst_context, src_context, false);
}

EXPORT CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes)
{
	return soft_copy_peer(CU_STREAM_LEGACY, dst, dst_context, src, src_context, bytes);
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes,
				  CUstream stream)
{
	CUresult r = check_pair(dst_context, src_context);

	return r ? r : soft_copy(stream, dst, SIDE_DEVICE, src, SIDE_DEVICE, bytes, QUEUED);
}

/* Return the parameters of the copy without its contexts, which are not needed because addresses are unified. */
static CUDA_MEMCPY3D_v2 without_contexts(const CUDA_MEMCPY3D_PEER *c)
{
	return (CUDA_MEMCPY3D_v2){
		.srcXInBytes = c->srcXInBytes,
		.srcY = c->srcY,
		.srcZ = c->srcZ,
		.srcMemoryType = c->srcMemoryType,
		.srcHost = c->srcHost,
		.srcDevice = c->srcDevice,
		.srcArray = c->srcArray,
		.srcLOD = c->srcLOD,
		.srcPitch = c->srcPitch,
		.srcHeight = c->srcHeight,
		.dstXInBytes = c->dstXInBytes,
		.dstY = c->dstY,
		.dstZ = c->dstZ,
		.dstMemoryType = c->dstMemoryType,
		.dstHost = c->dstHost,
		.dstDevice = c->dstDevice,
		.dstArray = c->dstArray,
		.dstLOD = c->dstLOD,
		.dstPitch = c->dstPitch,
		.dstHeight = c->dstHeight,
		.WidthInBytes = c->WidthInBytes,
		.Height = c->Height,
		.Depth = c->Depth,
	};
}

CUresult soft_copy_3d_peer(CUstream stream, const CUDA_MEMCPY3D_PEER *c)
{
	CUDA_MEMCPY3D_v2 box;
	CUresult r = c ? order_contexts(c->dstContext, c->srcContext, true) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	box = without_contexts(c);
	r = soft_copy_3d(stream, &box, WAITED_FOR);
	return r ? r : order_contexts(c->dstContext, c->srcContext, false);
}

EXPORT CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *c)
{
	return soft_copy_3d_peer(CU_STREAM_LEGACY, c);
}

EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *c, CUstream stream)
{
	CUDA_MEMCPY3D_v2 box;
	CUresult r = c ? check_pair(c->dstContext, c->srcContext) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	box = without_contexts(c);
	return soft_copy_3d(stream, &box, QUEUED);
}
