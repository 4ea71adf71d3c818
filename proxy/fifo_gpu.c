/* fifo_gpu.c — see fifo.h: the kernels' end. */
#include "proxy/fifo_internal.h"

#include <stdlib.h>

struct gpul_fifo_gpu {
	const gpul_driver *drv;
	CUdeviceptr lanes;
	struct gpul_fifo_device param;
};

static unsigned shift_of(gpul_fifo_shape shape)
{
	unsigned shift = 0;

	while (shape.lanes << shift < shape.slots)
		shift++;
	return shift;
}

/* Device addresses become pointers that kernels alone follow. */
static void *as_kernels_see(CUdeviceptr p)
{
	return (void *)(uintptr_t)p;
}

gpul_status gpul_fifo_gpu_create(const gpul_driver *drv, const void *area, CUdeviceptr area_gpu, size_t bytes,
				 gpul_fifo_gpu **out, gpul_error *err)
{
	gpul_fifo_shape shape;
	gpul_fifo_gpu *g;
	gpul_status st = gpul_fifo_area_check(area, bytes, &shape, err);

	if (st)
		return st;
	g = calloc(1, sizeof(*g));
	if (!g)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the kernels' end of a FIFO");
	g->drv = drv;
	st = gpul_cu(drv, err, cuMemAlloc(&g->lanes, shape.lanes * sizeof(struct gpul_fifo_lane)));
	st = st ? st : gpul_cu(drv, err, cuMemsetD8Async(g->lanes, 0, shape.lanes * sizeof(struct gpul_fifo_lane), NULL));
	/* a kernel on a stream that waits for no other would not wait for the memset */
	st = st ? st : gpul_cu(drv, err, cuStreamSynchronize(NULL));
	if (st) {
		gpul_fifo_gpu_destroy(g);
		return st;
	}
	g->param = (struct gpul_fifo_device){
		.slots = as_kernels_see(area_gpu + gpul_fifo_slots_offset(shape.lanes)),
		.lines = as_kernels_see(area_gpu + sizeof(struct gpul_fifo_header)),
		.lanes = as_kernels_see(g->lanes),
		.raised = as_kernels_see(area_gpu + offsetof(struct gpul_fifo_header, raised)),
		.n_lanes = shape.lanes,
		.lane_shift = shift_of(shape),
	};
	*out = g;
	return GPUL_OK;
}

void gpul_fifo_gpu_destroy(gpul_fifo_gpu *g)
{
	if (!g)
		return;
	if (g->lanes)
		g->drv->cuMemFree(g->lanes);
	free(g);
}

const struct gpul_fifo_device *gpul_fifo_gpu_param(const gpul_fifo_gpu *g)
{
	return &g->param;
}
