/* context.c — retains and releases the primary context of a device. */
#include "driver/context.h"

gpul_status gpul_context_open(const gpul_driver *drv, int ordinal, gpul_context *out, gpul_error *err)
{
	gpul_context c = { .drv = drv };
	int n_devices;
	gpul_status st = gpul_cu(drv, err, cuDeviceGetCount(&n_devices));

	if (st)
		return st;
	if (ordinal < 0 || ordinal >= n_devices)
		return gpul_fail(err, GPUL_EINVAL, ordinal, "device %d does not exist: the %s driver has %d, numbered from 0", ordinal,
				 drv->name, n_devices);
	st = gpul_cu(drv, err, cuDeviceGet(&c.device, ordinal));
	if (st)
		return st;
	st = gpul_cu(drv, err, cuDevicePrimaryCtxRetain(&c.handle, c.device));
	if (st)
		return st;
	st = gpul_cu(drv, err, cuCtxSetCurrent(c.handle));
	if (st)
		goto release;
	*out = c;
	return GPUL_OK;
release:
	drv->cuDevicePrimaryCtxRelease(c.device);
	return st;
}

void gpul_context_close(gpul_context *c)
{
	CUcontext current = NULL;

	if (!c || !c->handle)
		return;
	/* A released context must not stay current on this thread; if another context is current, it stays so. */
	if (c->drv->cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == c->handle)
		(void)c->drv->cuCtxSetCurrent(NULL);
	(void)c->drv->cuDevicePrimaryCtxRelease(c->device);
	*c = (gpul_context){ 0 };
}
