/* driver_internal.h — functions that open.c, driver_table.c and search.c share. */
#ifndef GPULOAD_DRIVER_DRIVER_INTERNAL_H
#define GPULOAD_DRIVER_DRIVER_INTERNAL_H

#include "driver/driver.h"

/* Fill the table from an opened shared object.  An entry point that the object lacks gets a function that returns
 * CUDA_ERROR_NOT_SUPPORTED. Errors: GPUL_EUNSUPPORTED the object is not a CUDA driver. */
gpul_status gpul_driver_fill(void *handle, const char *path, gpul_driver *out, gpul_error *err);

enum { GPUL_MAX_CANDIDATES = 9 };

/* Paths where libcuda-soft.so may be, in the order of the search; each is malloc'ed.  Returns their number. */
int gpul_driver_soft_candidates(char *paths[GPUL_MAX_CANDIDATES]);

#endif
