/* cu_primary.c — the primary context of a device, which is reference-counted and shared by all its users in a process. */
#include "softcuda/api/cu_context_internal.h"

CUresult soft_primary_use(struct device *d, struct context **out)
{
	CUresult r = CUDA_SUCCESS;

	if (!d->primary) {
		r = soft_context_create(d, 0, &d->primary);
		if (!r)
			d->primary->is_primary = true;
	} else if (!d->primary->active) {
		r = soft_context_bring_up(d->primary, d->primary->flags);
	}
	if (!r)
		*out = d->primary;
	return r;
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev)
{
	struct context *ctx;
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	r = soft_primary_use(d, &ctx);
	if (!r) {
		ctx->n_retained++;
		*out = ctx->handle;
	}
	soft_unlock();
	return r;
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	soft_lock();
	if (!d->primary || !d->primary->n_retained)
		r = CUDA_ERROR_INVALID_CONTEXT;
	else if (--d->primary->n_retained == 0)
		soft_context_tear_down(d->primary);
	soft_unlock();
	return r;
}

EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	soft_lock();
	if (d->primary) {
		soft_context_tear_down(d->primary);
		d->primary->n_retained = 0;
		d->primary->flags = 0;
	}
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	*flags = d->primary ? d->primary->flags : 0;
	*active = d->primary && d->primary->active;
	soft_unlock();
	return CUDA_SUCCESS;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags)
{
	struct device *d;
	CUresult r = soft_find_device(dev, &d);

	if (r)
		return r;
	if (flags & ~(unsigned)CONTEXT_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	if (!d->primary) {
		r = soft_context_create(d, flags, &d->primary);
		if (!r) {
			d->primary->is_primary = true;
			soft_context_tear_down(d->primary);
		}
	}
	if (!r)
		d->primary->flags = flags;
	soft_unlock();
	return r;
}

EXPORT CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}
