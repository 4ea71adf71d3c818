/* context.h — opens the primary context of a device. */
#ifndef GPULOAD_DRIVER_CONTEXT_H
#define GPULOAD_DRIVER_CONTEXT_H

#include "driver/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_context {
	const gpul_driver *drv; /* borrowed */
	CUdevice device;
	CUcontext handle; /* the retained primary context */
} gpul_context;

/** Retain the primary context of a device and make it current on this thread.
 *
 * @drv      borrowed; must outlive *out
 * @ordinal  device ordinal, from 0
 * @out      owned by the caller: gpul_context_close(); untouched on failure
 * Errors  GPUL_EINVAL no such device, the text has the number of devices; GPUL_ECUDA
 * Threads any thread may call; the context becomes current on the calling thread only
 * Source  CUDA Driver API, Primary Context Management */
gpul_status gpul_context_open(const gpul_driver *drv, int ordinal, gpul_context *out, gpul_error *err);
void gpul_context_close(gpul_context *c); /* accepts a zeroed context; cannot fail */

#ifdef __cplusplus
}
#endif

#endif
