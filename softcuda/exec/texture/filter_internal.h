/* filter_internal.h — the texels that one read filters, and their weights; sample.c collects them, filter.c adds them. */
#ifndef GPULOAD_SOFTCUDA_EXEC_TEXTURE_FILTER_INTERNAL_H
#define GPULOAD_SOFTCUDA_EXEC_TEXTURE_FILTER_INTERNAL_H

#include "softcuda/exec/texture/texture_internal.h"

enum { MAX_TAPS = 16, WHOLE = 256 };         /* 8 texels in each of two levels; the sum of all weights */

struct tap {
	const uint8_t *at;                   /* the element in memory, or the border */
	uint32_t weight;                     /* 1 to WHOLE */
	uint8_t group;                       /* texels of one slice of one level: floats are added group by group */
};

struct taps {
	unsigned n, n_groups;
	struct tap tap[MAX_TAPS];
};

/* Compute the weighted sum of the texels; 0 for absent channels. */
void gpul_texture_filter(const struct texture *t, const struct taps *taps, uint32_t out[4]);

#endif
