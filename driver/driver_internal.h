/* driver_internal.h — what open.c, table.c and status.c share. */
#ifndef GPULOAD_DRIVER_DRIVER_INTERNAL_H
#define GPULOAD_DRIVER_DRIVER_INTERNAL_H

#include <stdbool.h>

#include "driver/driver.h"

/* Fill the table from an opened shared object; entry points that it lacks get a stand-in.
 * Errors: GPUL_EUNSUPPORTED when it is no CUDA driver at all. */
gpul_status gpul_driver_fill(void *handle, const char *path, gpul_driver *out, gpul_error *err);

/* True when the table holds a stand-in for this entry point (named with or without its _v2). */
bool gpul_driver_lacks(const gpul_driver *drv, const char *entry_point);

enum { GPUL_MAX_CANDIDATES = 8 };

/* Where libcuda-soft.so may be, best first; each is malloc'ed.  Returns how many. */
int gpul_driver_soft_candidates(char *paths[GPUL_MAX_CANDIDATES]);

#endif
