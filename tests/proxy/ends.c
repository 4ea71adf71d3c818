/* ends.c — test support for a FIFO between two processes: shares its memory, runs kernels that push, checks the triggers. */
#include "tests/proxy/ends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file/embed.h"

GPUL_EMBED(tests_push_ptx, "cli/kernels/fifo_push.ptx");

enum { ATTACH_MS = 20000 };

/* ---- the memory ------------------------------------------------------------------------- */

static void take_view(struct piece *p, const gpul_ipc_view *v)
{
	p->area = v->cpu;
	p->area_gpu = v->gpu;
	p->bytes = v->bytes;
}

gpul_status piece_offer(const gpul_driver *drv, gpul_mem_kind kind, const char *name, const gpul_fifo_shape *shape, struct piece *out,
			gpul_error *err)
{
	const int device = 0;
	const size_t bytes = gpul_fifo_area_bytes(shape);
	const gpul_mem_desc desc = { .kind = kind,
				     .bytes = GPUL_IPC_CONTROL_BYTES + bytes,
				     .node = GPUL_MEM_NODE_OF_GPU,
				     .devices = &device,
				     .n_devices = 1,
				     .exportable = true };
	const gpul_ipc_server_options options = { .name = name, .control = true, .bytes = bytes, .step_timeout_ms = ATTACH_MS };
	struct piece p = { .drv = drv, .slot = -1 };
	gpul_status st = gpul_mem_create(drv, &desc, &p.mem, err);

	/* format the area before another process can map it */
	st = st ? st : gpul_fifo_area_format((char *)gpul_mem_cpu(p.mem) + GPUL_IPC_CONTROL_BYTES, bytes, shape, err);
	st = st ? st : gpul_ipc_server_create(drv, p.mem, &options, &p.server, err);
	if (st) {
		gpul_mem_destroy(p.mem);
		return st;
	}
	take_view(&p, gpul_ipc_server_view(p.server));
	*out = p;
	return GPUL_OK;
}

gpul_status piece_attach(const gpul_driver *drv, const char *name, struct piece *out, gpul_error *err)
{
	const int device = 0;
	const gpul_ipc_client_options options = { .name = name, .fd = -1, .devices = &device, .n_devices = 1 };
	struct piece p = { .drv = drv, .slot = -1 };
	gpul_status st = gpul_ipc_attach(drv, &options, ATTACH_MS, &p.client, err);

	if (st)
		return st;
	take_view(&p, gpul_ipc_client_view(p.client));
	*out = p;
	return GPUL_OK;
}

gpul_status piece_drop(struct piece *p, gpul_error *err)
{
	gpul_status st = gpul_ipc_client_close(p->client, ATTACH_MS, err);

	gpul_ipc_server_destroy(p->server);
	gpul_mem_destroy(p->mem);
	*p = (struct piece){ .slot = -1 };
	return st;
}

gpul_status piece_event(struct piece *p, int timeout_ms, gpul_ipc_event *out, gpul_error *err)
{
	gpul_status st = p->client ? gpul_ipc_client_next(p->client, timeout_ms, out, err)
				   : gpul_ipc_server_next(p->server, timeout_ms, out, err);

	if (!st && out->kind == GPUL_IPC_ATTACHED)
		p->slot = out->peer;
	return st;
}

bool piece_is_lost(gpul_ipc_event_kind kind)
{
	return kind == GPUL_IPC_DETACHED || kind == GPUL_IPC_PEER_DIED || kind == GPUL_IPC_OWNER_DIED;
}

unsigned piece_watch(const struct piece *p, int fds[2])
{
	if (p->server)
		return gpul_ipc_server_peer_fds(p->server, p->slot, fds);
	fds[0] = gpul_ipc_client_fd(p->client);
	return 1;
}

void piece_unwatch(const struct piece *p, const int fds[2], unsigned n)
{
	for (unsigned i = 0; p->server && i < n; i++)
		close(fds[i]);
}

/* ---- kernels ------------------------------------------------------------------------------ */

static CUdeviceptr results_of(const struct kernels *k)
{
	return k->words + MOST_BLOCKS * sizeof(uint64_t);
}

gpul_status kernels_open(struct piece *p, struct kernels *out, gpul_error *err)
{
	const gpul_driver *drv = p->drv;
	const size_t bytes = MOST_BLOCKS * (sizeof(uint64_t) + sizeof(struct fifo_push_result));
	struct kernels k = { .piece = p };
	CUkernel kernel;
	char *ptx = NULL;
	gpul_status st = gpul_fifo_gpu_create(drv, p->area, p->area_gpu, p->bytes, &k.end, err);

	if (!st)
		st = gpul_fifo_gpu_hold_lifeline(k.end, err);
	if (!st)
		st = gpul_cu(drv, err, cuMemAlloc(&k.words, bytes));
	if (!st)
		st = gpul_cu(drv, err, cuStreamCreate(&k.stream, CU_STREAM_NON_BLOCKING));
	if (!st)
		st = gpul_embedded_text(&tests_push_ptx, &ptx, NULL, err);
	if (!st)
		st = gpul_cu(drv, err, cuLibraryLoadData(&k.library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	if (!st)
		st = gpul_cu(drv, err, cuLibraryGetKernel(&kernel, k.library, "fifo_push"));
	if (!st)
		st = gpul_cu(drv, err, cuKernelGetFunction(&k.push, kernel));
	free(ptx);
	*out = k;
	if (st)
		kernels_close(out);
	return st;
}

void kernels_close(struct kernels *k)
{
	const gpul_driver *drv = k->piece ? k->piece->drv : NULL;

	if (k->stream)
		drv->cuStreamDestroy(k->stream);
	if (k->library)
		drv->cuLibraryUnload(k->library);
	if (k->words)
		drv->cuMemFree(k->words);
	gpul_fifo_gpu_destroy(k->end);
	*k = (struct kernels){ 0 };
}

gpul_status kernels_start(struct kernels *k, const struct pushes *p, gpul_error *err)
{
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(k->end);
	CUdeviceptr first = k->words, results = results_of(k);
	uint64_t firsts[MOST_BLOCKS], count = p->count, timeout_ns = p->timeout_ns;
	unsigned flags = p->flags;
	void *args[] = { &fifo, &first, &count, &timeout_ns, &flags, &results };
	gpul_status st;

	if (p->n_blocks > MOST_BLOCKS)
		return gpul_fail(err, GPUL_EINVAL, 0, "%u blocks: expected at most %d", p->n_blocks, MOST_BLOCKS);
	k->n_blocks = p->n_blocks;
	for (unsigned i = 0; i < p->n_blocks; i++)
		firsts[i] = p->first;
	st = gpul_cu(k->piece->drv, err, cuMemcpyHtoD(first, firsts, p->n_blocks * sizeof(firsts[0])));
	if (!st)
		st = gpul_cu(k->piece->drv, err, cuLaunchKernel(k->push, p->n_blocks, 1, 1, 1, 1, 1, 0, k->stream, args, NULL));
	return st;
}

static gpul_status read_results(struct kernels *k, struct pushed *out, gpul_error *err)
{
	struct fifo_push_result r[MOST_BLOCKS];
	gpul_status st = gpul_cu(k->piece->drv, err, cuMemcpyDtoH(r, results_of(k), k->n_blocks * sizeof(r[0])));

	for (unsigned i = 0; !st && i < k->n_blocks; i++) {
		out->n += r[i].pushed;
		if (r[i].result > out->result)
			out->result = r[i].result;
	}
	out->code = gpul_fifo_gpu_aborted(k->end);
	return st;
}

/* Wait for one event; if it reports the end of the other process, store its kind in *lost. */
static gpul_status wait_for_loss(struct kernels *k, int timeout_ms, gpul_ipc_event_kind *lost, gpul_error *err)
{
	gpul_ipc_event event = { .kind = GPUL_IPC_NONE };
	gpul_status st = piece_event(k->piece, timeout_ms, &event, err);

	if (piece_is_lost(event.kind))
		*lost = event.kind;
	return st;
}

gpul_status kernels_wait(struct kernels *k, bool aborts, int timeout_ms, struct pushed *out, gpul_error *err)
{
	const uint64_t until = gpul_clock_ns() + (uint64_t)timeout_ms * 1000000;
	gpul_status st = GPUL_OK;
	CUresult r;

	*out = (struct pushed){ .lost = GPUL_IPC_NONE };
	while (!st && (r = k->piece->drv->cuStreamQuery(k->stream)) == CUDA_ERROR_NOT_READY) {
		if (gpul_clock_ns() > until)
			return gpul_fail(err, GPUL_ESYS, ETIMEDOUT, "the kernel did not end within %d ms", timeout_ms);
		if (out->lost == GPUL_IPC_NONE)
			st = wait_for_loss(k, 1, &out->lost, err);
		else
			usleep(1000);
		if (aborts && (out->lost != GPUL_IPC_NONE || gpul_fifo_gpu_peer_died(k->end)))
			gpul_fifo_gpu_abort(k->end, GPUL_FIFO_CODE_PEER_GONE);
	}
	/* the lifeline may report the other process's end before the event does, so wait for the event */
	if (!st && gpul_fifo_gpu_peer_died(k->end) && out->lost == GPUL_IPC_NONE)
		st = wait_for_loss(k, timeout_ms, &out->lost, err);
	if (!st)
		st = gpul_cu_status(k->piece->drv, err, r, "cuStreamQuery(the kernel's stream)");
	return st ? st : read_results(k, out, err);
}

/* ---- checking triggers -------------------------------------------------------------------- */

static bool is_right(struct check *c, const gpul_fifo_item *item)
{
	const uint64_t block = item->word[1] & 0xffff;

	if (item->word[1] >> 16 != (uint64_t)FIFO_PUSH_KIND << (GPUL_FIFO_KIND_SHIFT - 16) || block >= MOST_BLOCKS ||
	    item->lane != (block & (c->lanes - 1)))
		return false;
	if (c->begun[block] && item->word[0] != c->next[block])
		return false;
	c->begun[block] = true;
	c->next[block] = item->word[0] + 1;
	return true;
}

gpul_status check_items(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct check *c = context;

	(void)err;
	c->lanes = gpul_fifo_shape_of(fifo).lanes;
	for (unsigned i = 0; i < n; i++) {
		if (is_right(c, &items[i])) {
			c->n++;
			continue;
		}
		if (!c->n_wrong++)
			snprintf(c->wrong, sizeof(c->wrong), "lane %u, position %llu: words %#llx %#llx", items[i].lane,
				 (unsigned long long)items[i].position, (unsigned long long)items[i].word[0],
				 (unsigned long long)items[i].word[1]);
	}
	return GPUL_OK;
}
