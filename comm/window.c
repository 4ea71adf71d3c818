/* window.c — windows: memory that all ranks map, from gpul_comm_alloc(). */
#include <string.h>

#include "comm/comm_internal.h"

static int free_entry(const gpul_comm *c)
{
	for (int w = 1; w < GPUL_COMM_MAX_WINDOWS; w++)
		if (!c->windows[w].mine)
			return w;
	return 0;
}

static void destroy_window(gpul_comm *c, struct window *w)
{
	for (int r = 0; r < c->n_ranks; r++)
		gpul_mem_destroy(w->theirs[r]);
	gpul_mem_destroy(w->mine);
	*w = (struct window){ 0 };
}

/* Write into the view the addresses at which this rank maps the other ranks' memory of the window. */
static gpul_status describe_window(gpul_comm *c, int index, gpul_error *err)
{
	const struct window *w = &c->windows[index];
	uint64_t *row = c->view_copy.windows[index];

	for (int r = 0; r < c->n_ranks; r++) {
		const gpul_mem *m = r == c->rank ? w->mine : w->theirs[r];

		row[r] = m && w->mapped ? gpul_mem_gpu(m) : 0;
	}
	return gpul_comm_view_upload(c, err);
}

static gpul_status alloc_window(gpul_comm *c, size_t bytes, CUdeviceptr *out, gpul_error *err)
{
	const gpul_mem_desc desc = { .kind = GPUL_MEM_DEVICE, .bytes = bytes, .devices = &c->device, .n_devices = 1, .exportable = true };
	const int index = free_entry(c);
	struct window w = { .mapped = c->direct };
	bool wanted[GPUL_COMM_MAX_PEERS];
	gpul_error why = { 0 };
	gpul_status st;

	if (index == 0)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "this communicator already has %d allocations of gpul_comm_alloc(), which is the limit: free "
				 "one first",
				 GPUL_COMM_MAX_WINDOWS - 1);
	for (int r = 0; r < c->n_ranks; r++)
		wanted[r] = c->direct;
	st = gpul_comm_map_all(c, &desc, wanted, &w.mine, w.theirs, c->options.create_timeout_ms, err);
	if (st) {
		destroy_window(c, &w);
		return st;
	}
	c->windows[index] = w;
	st = describe_window(c, index, &why);
	if (st) /* the other ranks have already mapped the window, so this failure affects them */
		return gpul_comm_rank_failed(c, &why, err);
	*out = gpul_mem_gpu(w.mine);
	return GPUL_OK;
}

gpul_status gpul_comm_alloc(gpul_comm *c, size_t bytes, CUdeviceptr *out, gpul_error *err)
{
	gpul_error why = { 0 };
	gpul_status st = gpul_comm_idle(c, err);
	CUstreamCaptureMode mode;

	if (st)
		return st;
	mode = gpul_comm_relax(c);
	st = alloc_window(c, bytes, out, &why);
	gpul_comm_unrelax(c, mode);
	return gpul_comm_explain(c, st, &why, err);
}

static gpul_status free_window(gpul_comm *c, CUdeviceptr at, gpul_error *err)
{
	gpul_status st;

	for (int i = 1; i < GPUL_COMM_MAX_WINDOWS; i++) {
		struct window *w = &c->windows[i];

		if (!w->mine || gpul_mem_gpu(w->mine) != at)
			continue;
		st = gpul_cu(c->drv, err, cuCtxSynchronize());
		st = st ? st : gpul_boot_barrier(c->boot, c->options.create_timeout_ms, err);
		destroy_window(c, w);
		return st ? st : describe_window(c, i, err);
	}
	return gpul_fail(err, GPUL_EINVAL, 0, "address %#llx was not returned by gpul_comm_alloc()", (unsigned long long)at);
}

gpul_status gpul_comm_free(gpul_comm *c, CUdeviceptr at, gpul_error *err)
{
	gpul_error why = { 0 };
	const gpul_status st = gpul_comm_idle(c, err);

	return st || at == 0 ? st : gpul_comm_explain(c, free_window(c, at, &why), &why, err);
}

void gpul_comm_windows_destroy(gpul_comm *c)
{
	for (int i = 1; i < GPUL_COMM_MAX_WINDOWS; i++)
		destroy_window(c, &c->windows[i]);
}

uint32_t gpul_comm_window_of(const gpul_comm *c, CUdeviceptr at, size_t n_bytes, uint64_t *offset)
{
	for (uint32_t i = 1; i < GPUL_COMM_MAX_WINDOWS; i++) {
		const struct window *w = &c->windows[i];

		if (!w->mine || !w->mapped)
			continue;
		const CUdeviceptr base = gpul_mem_gpu(w->mine);
		const size_t bytes = gpul_mem_about(w->mine)->mapped_bytes;

		if (at >= base && at - base <= bytes && n_bytes <= bytes - (at - base)) {
			*offset = at - base;
			return i;
		}
	}
	*offset = 0;
	return 0;
}
