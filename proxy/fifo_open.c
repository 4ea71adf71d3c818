/* fifo_open.c — opens, resets and closes the CPU's end; gpul_fifo_create() also creates the memory and the kernels' end. */
#include "proxy/fifo_internal.h"

#include <stdlib.h>

/* Set the positions of this end to the tails in the area; any value is a valid position. */
static void start_at_tails(gpul_fifo *f)
{
	f->turn = 0;
	f->pending = f->owing_groups = 0;
	for (unsigned group = 0; group < GPUL_FIFO_MAX_GROUPS; group++)
		f->owing[group] = f->awaited[group] = 0;
	for (unsigned lane = 0; lane < f->lanes; lane++) {
		const uint64_t tail = gpul_fifo_load(&f->lines[lane].tail);

		f->taken[lane] = f->released[lane] = tail;
		f->awaited[lane / GPUL_FIFO_GROUP] |= (~(tail >> f->shift) & 1) << lane % GPUL_FIFO_GROUP;
	}
}

gpul_status gpul_fifo_open(void *area, size_t bytes, gpul_fifo **out, gpul_error *err)
{
	gpul_fifo_shape shape;
	gpul_fifo *f;
	gpul_status st = gpul_fifo_area_check(area, bytes, &shape, err);

	if (st)
		return st;
	f = calloc(1, sizeof(*f));
	if (f)
		f->taken = calloc(2 * (size_t)shape.lanes, sizeof(*f->taken));
	if (!f || !f->taken) {
		free(f);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a FIFO of %u lanes", shape.lanes);
	}
	f->released = f->taken + shape.lanes;
	f->header = area;
	f->lines = gpul_fifo_lines(area);
	f->slots = (void *)((char *)area + gpul_fifo_slots_offset(shape.lanes));
	f->lanes = shape.lanes;
	f->shift = gpul_fifo_shift_of(&shape);
	f->mask = (1ull << f->shift) - 1;
	start_at_tails(f);
	gpul_fifo_forget_deaths(f);
	*out = f;
	return GPUL_OK;
}

gpul_status gpul_fifo_create(const gpul_driver *drv, gpul_mem_kind kind, int device, const gpul_fifo_shape *shape, gpul_fifo **out,
			     gpul_error *err)
{
	const gpul_mem_desc desc = { .kind = kind,
				     .bytes = gpul_fifo_area_bytes(shape),
				     .node = GPUL_MEM_NODE_OF_GPU,
				     .devices = &device,
				     .n_devices = 1,
				     .exportable = false };
	gpul_mem *mem = NULL;
	gpul_fifo_gpu *gpu = NULL;
	gpul_fifo *f = NULL;
	gpul_status st;

	if (!desc.bytes)
		return gpul_fifo_area_format(NULL, 0, shape, err);
	if (kind == GPUL_MEM_DEVICE || kind == GPUL_MEM_DEVICE_IPC)
		return gpul_fail(err, GPUL_EINVAL, 0, "a FIFO cannot be in %s memory, which the CPU cannot access",
				 gpul_mem_kind_name(kind));
	st = gpul_mem_create(drv, &desc, &mem, err);
	if (st)
		return st;
	st = gpul_fifo_area_format(gpul_mem_cpu(mem), desc.bytes, shape, err);
	st = st ? st : gpul_fifo_gpu_create(drv, gpul_mem_cpu(mem), gpul_mem_gpu(mem), desc.bytes, &gpu, err);
	st = st ? st : gpul_fifo_open(gpul_mem_cpu(mem), desc.bytes, &f, err);
	if (st) {
		gpul_fifo_gpu_destroy(gpu);
		gpul_mem_destroy(mem);
		return st;
	}
	f->mem = mem;
	f->gpu = gpu;
	*out = f;
	return GPUL_OK;
}

gpul_status gpul_fifo_reset(gpul_fifo *f, gpul_error *err)
{
	const gpul_fifo_shape shape = gpul_fifo_shape_of(f);

	gpul_fifo_area_empty(f->header, &shape);
	start_at_tails(f);
	gpul_fifo_forget_deaths(f);
	return f->gpu ? gpul_fifo_gpu_reset(f->gpu, err) : GPUL_OK;
}

void gpul_fifo_close(gpul_fifo *f)
{
	if (!f)
		return;
	gpul_lifeline_let_go(f->life); /* released before the memory is freed, because the lifeline's word is in that memory */
	gpul_fifo_gpu_destroy(f->gpu);
	gpul_mem_destroy(f->mem);
	free(f->taken);
	free(f);
}

const gpul_fifo_gpu *gpul_fifo_gpu_of(const gpul_fifo *f)
{
	return f->gpu;
}

const gpul_mem *gpul_fifo_mem_of(const gpul_fifo *f)
{
	return f->mem;
}

gpul_fifo_shape gpul_fifo_shape_of(const gpul_fifo *f)
{
	return (gpul_fifo_shape){ .slots = f->lanes << f->shift, .lanes = f->lanes };
}

/* ---- detecting the end of the other process -------------------------------------- */

gpul_status gpul_fifo_hold_lifeline(gpul_fifo *f, gpul_error *err)
{
	return f->life ? GPUL_OK : gpul_lifeline_hold(&f->header->life[GPUL_FIFO_LIFE_OF_PROXY], &f->life, err);
}

bool gpul_fifo_peer_died(const gpul_fifo *f)
{
	return gpul_lifeline_read(&f->header->life[GPUL_FIFO_LIFE_OF_KERNELS]) == GPUL_LIFE_LOST;
}
