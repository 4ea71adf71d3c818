/* select_internal.h — selection over a plain array, as gpul_select() has it from a list. */
#ifndef GPULOAD_LOADER_CHOOSE_SELECT_INTERNAL_H
#define GPULOAD_LOADER_CHOOSE_SELECT_INTERNAL_H

#include <stddef.h>

#include "loader/choose/select.h"

/* The images of a unit stand together, as in the list. */
void gpul_select_among(const gpul_image *images, size_t n, const gpul_target *target,
		       gpul_verdict *verdicts);

/* The one that a driver would rather have: > 0: a, < 0: b, 0: the driver goes by their order.
 * Both fit the target. */
int gpul_select_order(const gpul_image *a, const gpul_image *b, const gpul_target *target);

#endif
