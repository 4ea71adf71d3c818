/* regcache_driver.c — registers host memory with the CUDA driver, for the registration cache. */
#include "memalloc/regcache.h"

/* Return how many bytes, from an address on, the driver has allocated or registered already; 0: none. */
static size_t known_bytes(const gpul_driver *drv, uintptr_t at)
{
	CUdeviceptr start = 0;
	size_t bytes = 0;
	int type;

	if (drv->cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) ||
	    drv->cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, at) ||
	    drv->cuPointerGetAttribute(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, at))
		return 0;
	return start <= at && at - start < bytes ? start + bytes - at : 0;
}

static gpul_status register_host(void *user, void *at, size_t bytes, void **token, gpul_error *err)
{
	const gpul_driver *drv = user;
	size_t known = 0, step;

	while (known < bytes && (step = known_bytes(drv, (uintptr_t)at + known)) > 0)
		known += step;
	*token = NULL;
	if (known >= bytes)
		return GPUL_OK;
	if (known > 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "only the first %zu of %zu bytes at %p are already allocated or registered with the CUDA "
				 "driver: split the range there, and register the two parts separately",
				 known, bytes, at);
	*token = at;
	return gpul_cu(drv, err, cuMemHostRegister(at, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
}

static void unregister_host(void *user, void *at, size_t bytes, void *token)
{
	const gpul_driver *drv = user;

	(void)bytes;
	if (token)
		drv->cuMemHostUnregister(at);
}

gpul_reg_ops gpul_reg_ops_driver(const gpul_driver *drv)
{
	return (gpul_reg_ops){
		.reg = register_host,
		.dereg = unregister_host,
		.user = (void *)(uintptr_t)drv, /* the cast removes const; the callbacks only read *drv */
	};
}
