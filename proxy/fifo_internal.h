/* fifo_internal.h — what the FIFO's two ends share: the area, checked. */
#ifndef GPULOAD_PROXY_FIFO_INTERNAL_H
#define GPULOAD_PROXY_FIFO_INTERNAL_H

#include <assert.h>
#include <stddef.h>

#include "proxy/fifo.h"

enum { GPUL_FIFO_AREA_ALIGNMENT = 512 };  /* a warp's push of 32 slots is then whole lines */

/* Where the slots begin. */
size_t gpul_fifo_slots_offset(unsigned lanes);

/* Is it a FIFO, and of which shape?  Nothing in the area is trusted.  Errors: GPUL_EFORMAT. */
gpul_status gpul_fifo_area_check(const void *area, size_t bytes, gpul_fifo_shape *out, gpul_error *err);

/* Where the lines begin. */
static inline struct gpul_fifo_line *gpul_fifo_lines(void *area)
{
	return (void *)((char *)area + sizeof(struct gpul_fifo_header));
}

/* End every wait of the kernels of an area that has been checked; the first code stays. */
void gpul_fifo_area_abort(void *area, unsigned lanes, uint32_t code);
/* The code that was raised.  A kernel's is handed on to all lanes. */
uint32_t gpul_fifo_area_aborted(void *area, unsigned lanes);

#endif
