/* fifo.c — see fifo.h: the CPU's end.
 *
 * A lane's two counters are private to this end; what is in the area is only ever compared with them.
 *
 *     released ≤ taken ≤ released + slots        taken: poll gave what is below;  released: the tail as written */
#include "proxy/fifo_internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct lane {
	uint64_t taken, released;
};

struct gpul_fifo {
	struct gpul_fifo_header *header;
	struct gpul_fifo_line *lines;
	struct gpul_trigger *slots;
	unsigned lanes, shift;
	unsigned turn;         /* the lane that poll begins with */
	struct lane *lane;
	unsigned *touched;     /* lanes that poll took from since the last release */
	unsigned n_touched;
	gpul_mem *mem;         /* created, not opened */
	gpul_fifo_gpu *gpu;
};

static const uint64_t LAP = 1ull << 63;

/* ---- taking out ------------------------------------------------------------------ */

static uint64_t load(const unsigned long long *word)
{
	return atomic_load_explicit((_Atomic unsigned long long *)(uintptr_t)word, memory_order_acquire);
}

static void store(unsigned long long *word, uint64_t value)
{
	atomic_store_explicit((_Atomic unsigned long long *)word, value, memory_order_release);
}

static unsigned take_from(gpul_fifo *f, unsigned lane, gpul_fifo_item *items, unsigned max)
{
	const uint64_t mask = (1ull << f->shift) - 1;
	const struct gpul_trigger *ring = f->slots + ((size_t)lane << f->shift);
	const uint64_t first = f->lane[lane].taken, room = f->lane[lane].released + mask + 1 - first;
	uint64_t at = first;

	if (max > room)  /* no more than a lap, whatever is in the slots */
		max = (unsigned)room;
	for (; at - first < max; at++) {
		const uint64_t lap = ~(at >> f->shift) << 63;
		const uint64_t a = load(&ring[at & mask].word[0]), b = load(&ring[at & mask].word[1]);

		if (((a ^ lap) | (b ^ lap)) & LAP)
			break;
		*items++ = (gpul_fifo_item){ .word = { a & ~LAP, b & ~LAP }, .position = at, .lane = lane };
	}
	f->lane[lane].taken = at;
	return (unsigned)(at - first);
}

unsigned gpul_fifo_poll(gpul_fifo *f, gpul_fifo_item *items, unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->lanes && n < max; i++) {
		const unsigned lane = f->turn;
		const bool untouched = f->lane[lane].taken == f->lane[lane].released;
		const unsigned took = take_from(f, lane, items + n, max - n);

		f->turn = (lane + 1) & (f->lanes - 1);
		n += took;
		if (took && untouched)
			f->touched[f->n_touched++] = lane;
	}
	return n;
}

void gpul_fifo_release_lane(gpul_fifo *f, unsigned lane, uint64_t upto)
{
	f->lane[lane].released = upto;
	store(&f->lines[lane].tail, upto);
}

void gpul_fifo_release(gpul_fifo *f)
{
	for (unsigned i = 0; i < f->n_touched; i++)
		gpul_fifo_release_lane(f, f->touched[i], f->lane[f->touched[i]].taken);
	f->n_touched = 0;
}

/* ---- giving up ------------------------------------------------------------------- */

void gpul_fifo_abort(gpul_fifo *f, uint32_t code)
{
	gpul_fifo_area_abort(f->header, f->lanes, code);
}

uint32_t gpul_fifo_aborted(gpul_fifo *f)
{
	return gpul_fifo_area_aborted(f->header, f->lanes);
}

const char *gpul_fifo_code_text(uint32_t code, char buf[64])
{
	switch (code) {
	case 0: return "not aborted";
	case GPUL_FIFO_CODE_TIMED_OUT: return "a kernel's time-out";
	case GPUL_FIFO_CODE_STOPPED: return "the proxy was stopped";
	case GPUL_FIFO_CODE_PEER_GONE: return "the other process has ended";
	}
	snprintf(buf, 64, "code %u", code);
	return buf;
}

/* ---- opening --------------------------------------------------------------------- */

gpul_status gpul_fifo_open(void *area, size_t bytes, gpul_fifo **out, gpul_error *err)
{
	gpul_fifo_shape shape;
	gpul_fifo *f;
	gpul_status st = gpul_fifo_area_check(area, bytes, &shape, err);

	if (st)
		return st;
	f = calloc(1, sizeof(*f));
	if (f)
		f->lane = calloc(shape.lanes, sizeof(*f->lane));
	if (f)
		f->touched = calloc(shape.lanes, sizeof(*f->touched));
	if (!f || !f->lane || !f->touched) {
		gpul_fifo_close(f);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a FIFO of %u lanes", shape.lanes);
	}
	f->header = area;
	f->lines = gpul_fifo_lines(area);
	f->slots = (void *)((char *)area + gpul_fifo_slots_offset(shape.lanes));
	f->lanes = shape.lanes;
	while (shape.lanes << f->shift < shape.slots)
		f->shift++;
	for (unsigned i = 0; i < f->lanes; i++)
		f->lane[i].taken = f->lane[i].released = load(&f->lines[i].tail);
	*out = f;
	return GPUL_OK;
}

gpul_status gpul_fifo_create(const gpul_driver *drv, gpul_mem_kind kind, int device, const gpul_fifo_shape *shape,
			     gpul_fifo **out, gpul_error *err)
{
	const gpul_mem_desc desc = { .kind = kind, .bytes = gpul_fifo_area_bytes(shape), .node = GPUL_MEM_NODE_OF_GPU,
				     .devices = &device, .n_devices = 1, .exportable = false };
	gpul_mem *mem = NULL;
	gpul_fifo_gpu *gpu = NULL;
	gpul_fifo *f = NULL;
	gpul_status st;

	if (!desc.bytes)
		return gpul_fifo_area_format(NULL, 0, shape, err);
	if (kind == GPUL_MEM_DEVICE || kind == GPUL_MEM_DEVICE_IPC)
		return gpul_fail(err, GPUL_EINVAL, 0, "a FIFO in %s memory: the CPU has to see it",
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

void gpul_fifo_close(gpul_fifo *f)
{
	if (!f)
		return;
	gpul_fifo_gpu_destroy(f->gpu);
	gpul_mem_destroy(f->mem);
	free(f->lane);
	free(f->touched);
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
