/* select_internal.h — gpul_select() for an array of images, and the order of two images. */
#ifndef GPULOAD_LOADER_CHOOSE_SELECT_INTERNAL_H
#define GPULOAD_LOADER_CHOOSE_SELECT_INTERNAL_H

#include <stddef.h>

#include "loader/choose/select.h"

/* The images of a unit are adjacent. */
void gpul_select_among(const gpul_image *images, size_t n, const gpul_target *target,
		       gpul_verdict *verdicts);

/* Which of two images the driver prefers: > 0: a, < 0: b, 0: decided by their position.  Both suit the
 * target. */
int gpul_select_order(const gpul_image *a, const gpul_image *b, const gpul_target *target);

#endif
