/* select_internal.h — gpul_select() for an array of images, and the order of two images. */
#ifndef GPULOAD_LOADER_CHOOSE_SELECT_INTERNAL_H
#define GPULOAD_LOADER_CHOOSE_SELECT_INTERNAL_H

#include <stddef.h>

#include "loader/choose/select.h"

/* gpul_select() for an array of images; the images of a unit must be adjacent. */
void gpul_select_among(const gpul_image *images, size_t n, const gpul_target *target,
		       gpul_verdict *verdicts);

/* Compare two images that suit the target: > 0 if the driver prefers a, < 0 if b, 0 if their position decides. */
int gpul_select_order(const gpul_image *a, const gpul_image *b, const gpul_target *target);

#endif
