/* fifo_gpu.c — the kernels' end of the FIFO: creates its state in device memory, and finds the position at which new kernels continue. */
#include "proxy/fifo_internal.h"

#include <stdlib.h>

struct gpul_fifo_gpu {
	const gpul_driver *drv;
	void *area;
	CUdeviceptr lanes;
	gpul_lifeline *life; /* NULL until gpul_fifo_gpu_hold_lifeline() */
	struct gpul_fifo_device param;
};

static uint32_t *lifeline_word(const gpul_fifo_gpu *g, unsigned whose)
{
	return &((struct gpul_fifo_header *)g->area)->life[whose];
}

/* ---- continuing where earlier kernels stopped --------------------------------------- */

static const unsigned long long LAP = 1ull << 63;

/* Find the position after the triggers that a lane's slots contain without a gap.  Triggers after a gap
 * remain from kernels whose process was killed.  The proxy would take them as soon as the gap is filled, so their slots are emptied:
 * they get the previous lap's bit.  The tail may have any value and may increase meanwhile; it does not pass the first empty slot. */
static uint64_t find_end(const struct gpul_fifo_line *line, struct gpul_trigger *ring, unsigned shift)
{
	const uint64_t size = 1ull << shift, tail = gpul_fifo_load(&line->tail);
	uint64_t end = tail;
	bool gap = false;

	for (uint64_t at = tail; at - tail < size; at++) {
		struct gpul_trigger *slot = &ring[at & (size - 1)];
		const unsigned long long lap = ~(at >> shift) << 63;
		const bool a = !((gpul_fifo_load(&slot->word[0]) ^ lap) & LAP);
		const bool b = !((gpul_fifo_load(&slot->word[1]) ^ lap) & LAP);

		gap = gap || !a || !b;
		if (!gap)
			end = at + 1;
		else if (a || b)
			for (int i = 0; i < 2; i++)
				gpul_fifo_store(&slot->word[i], lap ^ LAP);
	}
	return end;
}

/* Initialise the lanes in device memory: no owner, no poller, and each head is the position after the triggers in the lane's slots. */
static gpul_status init_lanes(gpul_fifo_gpu *g, unsigned n_lanes, unsigned shift, gpul_error *err)
{
	const size_t bytes = n_lanes * sizeof(struct gpul_fifo_lane);
	struct gpul_trigger *slots = (void *)((char *)g->area + gpul_fifo_slots_offset(n_lanes));
	struct gpul_fifo_lane *lanes = calloc(n_lanes, sizeof(*lanes));
	gpul_status st;

	if (!lanes)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u lanes of a FIFO", n_lanes);
	for (unsigned i = 0; i < n_lanes; i++)
		lanes[i].head = find_end(&gpul_fifo_lines(g->area)[i], slots + ((size_t)i << shift), shift);
	st = gpul_cu(g->drv, err, cuMemcpyHtoD(g->lanes, lanes, bytes));
	/* wait here, because kernels on a non-blocking stream do not wait for this copy on the default stream */
	st = st ? st : gpul_cu(g->drv, err, cuStreamSynchronize(NULL));
	free(lanes);
	return st;
}

gpul_status gpul_fifo_gpu_create(const gpul_driver *drv, void *area, CUdeviceptr area_gpu, size_t bytes, gpul_fifo_gpu **out,
				 gpul_error *err)
{
	gpul_fifo_shape shape;
	gpul_fifo_gpu *g;
	gpul_status st = gpul_fifo_area_check(area, bytes, &shape, err);

	if (st)
		return st;
	g = calloc(1, sizeof(*g));
	if (!g)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the kernels' part of a FIFO");
	g->drv = drv;
	g->area = area;
	gpul_lifeline_forget(lifeline_word(g, GPUL_FIFO_LIFE_OF_PROXY));
	st = gpul_cu(drv, err, cuMemAlloc(&g->lanes, shape.lanes * sizeof(struct gpul_fifo_lane)));
	st = st ? st : init_lanes(g, shape.lanes, gpul_fifo_shift_of(&shape), err);
	if (st) {
		gpul_fifo_gpu_destroy(g);
		return st;
	}
	g->param = (struct gpul_fifo_device){
		/* device addresses, which only kernels dereference */
		.slots = (void *)(uintptr_t)(area_gpu + gpul_fifo_slots_offset(shape.lanes)),
		.lines = (void *)(uintptr_t)(area_gpu + sizeof(struct gpul_fifo_header)),
		.lanes = (void *)(uintptr_t)g->lanes,
		.raised = (void *)(uintptr_t)(area_gpu + offsetof(struct gpul_fifo_header, raised)),
		.n_lanes = shape.lanes,
		.lane_shift = gpul_fifo_shift_of(&shape),
	};
	*out = g;
	return GPUL_OK;
}

void gpul_fifo_gpu_destroy(gpul_fifo_gpu *g)
{
	if (!g)
		return;
	gpul_lifeline_let_go(g->life);
	if (g->lanes)
		g->drv->cuMemFree(g->lanes);
	free(g);
}

gpul_status gpul_fifo_gpu_reset(gpul_fifo_gpu *g, gpul_error *err)
{
	return init_lanes(g, g->param.n_lanes, g->param.lane_shift, err);
}

const struct gpul_fifo_device *gpul_fifo_gpu_param(const gpul_fifo_gpu *g)
{
	return &g->param;
}

void gpul_fifo_gpu_abort(const gpul_fifo_gpu *g, uint32_t code)
{
	gpul_fifo_area_abort(g->area, g->param.n_lanes, code);
}

uint32_t gpul_fifo_gpu_aborted(const gpul_fifo_gpu *g)
{
	return gpul_fifo_area_aborted(g->area, g->param.n_lanes);
}

gpul_status gpul_fifo_gpu_hold_lifeline(gpul_fifo_gpu *g, gpul_error *err)
{
	return g->life ? GPUL_OK : gpul_lifeline_hold(lifeline_word(g, GPUL_FIFO_LIFE_OF_KERNELS), &g->life, err);
}

bool gpul_fifo_gpu_peer_died(const gpul_fifo_gpu *g)
{
	return gpul_lifeline_read(lifeline_word(g, GPUL_FIFO_LIFE_OF_PROXY)) == GPUL_LIFE_LOST;
}
