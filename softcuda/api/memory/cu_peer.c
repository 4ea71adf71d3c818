/* cu_peer.c — accesses of kernels to the memory of another device.
 *
 *     context A (device 0) ── cuCtxEnablePeerAccess(B) ──> kernels of A may access allocations of B
 *
 * All devices share one memory, so only permissions are recorded.  A kernel without permission faults, as on a GPU. */
#include "softcuda/api/memory/cu_memory_internal.h"

static bool has_peer(const struct context *ctx, const struct context *peer)
{
	for (unsigned i = 0; i < ctx->n_peers; i++)
		if (ctx->peer[i] == peer)
			return true;
	return false;
}

static bool remove_peer(struct context *ctx, const struct context *peer)
{
	for (unsigned i = 0; i < ctx->n_peers; i++) {
		if (ctx->peer[i] == peer) {
			ctx->peer[i] = ctx->peer[--ctx->n_peers];
			return true;
		}
	}
	return false;
}

void soft_peer_forget(struct context *ctx)
{
	for (struct link *i = soft.contexts.next; i != &soft.contexts; i = i->next)
		remove_peer(CONTAINER(i, struct context, link), ctx);
	while (ctx->n_peers) {
		struct context *owner = ctx->peer[--ctx->n_peers];

		soft_update_peers(owner);
	}
}

/* Find the current context and the context of a peer; the lock is held on success. */
static CUresult enter_with_peer(CUcontext handle, struct context **ctx, struct context **peer)
{
	CUresult r = soft_enter(ctx);

	if (r)
		return r;
	r = soft_find_context(handle, peer);
	if (r) {
		soft_unlock();
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags)
{
	struct context *ctx, *peer;
	CUresult r = enter_with_peer(handle, &ctx, &peer);

	if (r)
		return r;
	if (flags)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (ctx->device == peer->device)
		r = soft_refuse(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
				"cuCtxEnablePeerAccess: both contexts are on device %d: no peer access is needed", ctx->device->ordinal);
	else if (has_peer(ctx, peer))
		r = CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	else if (ctx->n_peers == MAX_DEVICES)
		r = soft_refuse(CUDA_ERROR_TOO_MANY_PEERS, "cuCtxEnablePeerAccess: a context can have at most %d peers", MAX_DEVICES);
	if (!r) {
		ctx->peer[ctx->n_peers++] = peer;
		soft_update_peers(peer);
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext handle)
{
	struct context *ctx, *peer;
	CUresult r = enter_with_peer(handle, &ctx, &peer);

	if (r)
		return r;
	if (remove_peer(ctx, peer))
		soft_update_peers(peer);
	else
		r = CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	soft_unlock();
	return r;
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice dev, CUdevice peer)
{
	struct device *a, *b;
	CUresult r = soft_find_device(dev, &a);

	if (!r)
		r = soft_find_device(peer, &b);
	if (r)
		return r;
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	*can = a != b;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
	struct device *a, *b;
	CUresult r = soft_find_device(from, &a);

	if (!r)
		r = soft_find_device(to, &b);
	if (r)
		return r;
	if (a == b)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)attribute) {
	case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
	case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
		*value = 1;
		return CUDA_SUCCESS;
	case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:            /* rank 0 is the best */
	case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED: /* 0: a texture object can be used only in its own context */
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
