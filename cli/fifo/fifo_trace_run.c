/* fifo_trace_run.c — runs the kernel of gpuload fifo trace, handles its triggers, and records the times. */
#include "cli/fifo/fifo_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/cli_stop.h"
#include "core/clock.h"
#include "loader/embedded.h"
#include "loader/loader.h"
#include "proxy/fifo.h"

GPUL_EMBED(fifo_trace_ptx, "cli/kernels/fifo_trace.ptx");

/* ASK_NS: interval between calls of cuStreamQuery, each of which takes one or two microseconds, during which triggers wait. */
enum { ASK_NS = 100 * 1000, POLLS = 64 };
static const int64_t GRACE_NS = 5000000000; /* extra time that the CPU waits after the kernel's time-outs */

struct tracing {
	struct fifo_trace *t;
	const gpul_driver *drv;
	gpul_module *module;
	const gpul_kernel *kernel;
	struct fifo_clock *clock;
	CUstream stream;
	gpul_fifo *fifo;
	CUdeviceptr stamps, results;
	uint64_t began_ns;
	int64_t *free_since; /* for each slot, the time at which its previous trigger was released */
};

static int64_t now(const struct tracing *g)
{
	return (int64_t)(gpul_clock_ns() - g->began_ns);
}

/* ---- preparation: nothing may be loaded or allocated while a kernel waits for this thread -------------------- */

static gpul_status allocate_arrays(struct tracing *g, gpul_error *err)
{
	struct fifo_trace *t = g->t;

	t->n_triggers = t->ask.blocks * t->ask.triggers;
	t->triggers = calloc(t->n_triggers, sizeof *t->triggers);
	t->order = calloc(t->n_triggers, sizeof *t->order);
	t->batches = calloc(t->n_triggers, sizeof *t->batches);
	g->free_since = calloc(t->ask.slots, sizeof *g->free_since);
	if (!t->triggers || !t->order || !t->batches || !g->free_since)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace of %u triggers", t->n_triggers);
	for (unsigned i = 0; i < t->ask.slots; i++)
		g->free_since[i] = INT64_MIN; /* the slot was never used, so it has always been free */
	return GPUL_OK;
}

static gpul_status allocate_buffers(struct tracing *g, gpul_error *err)
{
	const gpul_driver *drv = g->drv;
	const size_t n_stamps = g->t->n_triggers * sizeof(struct fifo_trace_stamps);
	const size_t n_results = g->t->ask.blocks * sizeof(uint32_t);
	gpul_status st = gpul_cu(drv, err, cuStreamCreate(&g->stream, CU_STREAM_NON_BLOCKING));

	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&g->stamps, n_stamps));
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&g->results, n_results));
	st = st ? st : gpul_cu(drv, err, cuMemsetD8Async(g->stamps, 0, n_stamps, g->stream));
	st = st ? st : gpul_cu(drv, err, cuMemsetD8Async(g->results, 0, n_results, g->stream));
	return st ? st : gpul_cu(drv, err, cuStreamSynchronize(g->stream));
}

/* Choose the kernel: if there are as many lanes as blocks, each block owns its lane. */
static const char *kernel_name(const struct fifo_trace_request *q)
{
	if (q->blocks <= q->lanes)
		return q->sync ? "trace_own_sync" : "trace_own";
	return q->sync ? "trace_share_sync" : "trace_share";
}

static gpul_status prepare_trace(struct tracing *g, gpul_error *err)
{
	const struct fifo_trace_request *q = &g->t->ask;
	const gpul_fifo_shape shape = { .slots = q->slots, .lanes = q->lanes };
	CUdevice device;
	gpul_status st = allocate_arrays(g, err);

	st = st ? st : gpul_cu(g->drv, err, cuCtxGetDevice(&device));
	st = st ? st : gpul_cu(g->drv, err, cuDeviceGetName(g->t->device, sizeof g->t->device, device));
	st = st ? st : gpul_fifo_create(g->drv, q->kind, q->devices.ordinal[0], &shape, &g->fifo, err);
	if (st)
		return st;
	g->t->kind = gpul_mem_kind_name(gpul_mem_about(gpul_fifo_mem_of(g->fifo))->kind);
	st = gpul_module_load_embedded(g->drv, &fifo_trace_ptx, &g->module, err);
	st = st ? st : gpul_kernel_find(g->module, kernel_name(q), &g->kernel, err);
	st = st ? st : gpul_kernel_prepare(g->kernel, err);
	st = st ? st : allocate_buffers(g, err);
	return st ? st : fifo_clock_create(g->drv, &g->clock, err);
}

static gpul_status launch_kernel(struct tracing *g, gpul_error *err)
{
	const struct fifo_trace_request *q = &g->t->ask;
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(g->fifo));
	uint32_t triggers = q->triggers;
	uint64_t timeout = q->timeout_ns;
	gpul_launch_config config = { .grid = { q->blocks, 1, 1 }, .block = { 1, 1, 1 }, .stream = g->stream };
	void *args[] = { &fifo, &g->stamps, &g->results, &triggers, &timeout };
	const size_t bytes[] = { sizeof fifo, sizeof g->stamps, sizeof g->results, sizeof triggers, sizeof timeout };

	g->began_ns = gpul_clock_ns();
	return gpul_kernel_launch(g->kernel, &config, args, bytes, 5, err);
}

/* ---- while the kernel runs -------------------------------------------------------------------------------------- */

/* Find the record of a trigger; NULL: not a trigger of this trace, or a trigger that was received before. */
static struct fifo_trace_trigger *trigger_of(const struct tracing *g, const gpul_fifo_item *item)
{
	const struct fifo_trace_request *q = &g->t->ask;
	const uint64_t block = item->word[0] >> 32;
	const uint32_t number = (uint32_t)item->word[0];
	struct fifo_trace_trigger *of;

	if (block >= q->blocks || number >= q->triggers || item->word[1] != (uint32_t)~number)
		return NULL;
	of = &g->t->triggers[block * q->triggers + number];
	return of->popped ? NULL : of;
}

/* Return the index of the trigger's slot among all slots. */
static size_t slot_of(const struct tracing *g, const gpul_fifo_item *item)
{
	const unsigned each = g->t->ask.slots / g->t->ask.lanes;

	return (size_t)item->lane * each + (item->position & (each - 1));
}

static gpul_status handle_trigger(struct tracing *g, const gpul_fifo_item *item, int64_t popped, gpul_error *err)
{
	struct fifo_trace *t = g->t;
	struct fifo_trace_trigger *of = trigger_of(g, item);

	if (!of)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "lane %u, position %" PRIu64 ": %#" PRIx64 " %#" PRIx64
				 " is not a trigger of this trace, or was received before",
				 item->lane, item->position, item->word[0], item->word[1]);
	*of = (struct fifo_trace_trigger){ .lane = item->lane,
					   .position = item->position,
					   .batch = t->n_batches,
					   .room = g->free_since[slot_of(g, item)],
					   .popped = popped };
	t->order[t->n_popped++] = (unsigned)(of - t->triggers);
	of->handling = now(g);
	do {
		of->handled = now(g);
	} while (of->handled - of->handling < (int64_t)t->ask.handler_ns);
	return GPUL_OK;
}

static gpul_status handle_batch(struct tracing *g, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	struct fifo_trace *t = g->t;
	struct fifo_trace_batch *batch = &t->batches[t->n_batches];
	const unsigned first = t->n_popped;
	gpul_status st = GPUL_OK;

	*batch = (struct fifo_trace_batch){ .popped = now(g), .n = n };
	for (unsigned i = 0; !st && i < n; i++)
		st = handle_trigger(g, &items[i], batch->popped, err);
	if (st)
		return st;
	batch->handled = now(g);
	gpul_fifo_release(g->fifo);
	batch->released = now(g);
	for (unsigned i = 0; i < n; i++) {
		t->triggers[t->order[first + i]].released = batch->released;
		g->free_since[slot_of(g, &items[i])] = batch->released;
	}
	t->n_batches++;
	return GPUL_OK;
}

/* After some time without triggers, check whether the kernel still runs.  *over is set if it has ended. */
static gpul_status check_kernel(struct tracing *g, int64_t idle_since, bool *over, gpul_error *err)
{
	const CUresult r = g->drv->cuStreamQuery(g->stream);

	*over = r == CUDA_SUCCESS;
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_READY)
		return gpul_cu_status(g->drv, err, r, "cuStreamQuery(stream)");
	(void)gpul_fifo_aborted(g->fifo); /* called because it copies an abort code of the kernel to all lanes */
	if (!*over && now(g) - idle_since > 2 * (int64_t)g->t->ask.timeout_ns + GRACE_NS)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
				 "the kernel stopped pushing triggers, but does not end; %u of %u triggers were received", g->t->n_popped,
				 g->t->n_triggers);
	return GPUL_OK;
}

static gpul_status serve_kernel(struct tracing *g, gpul_error *err)
{
	gpul_fifo_item items[FIFO_TRACE_BATCH];
	int64_t idle_since = now(g), asked = idle_since;
	bool over = false;
	gpul_status st = GPUL_OK;
	unsigned n = 0;

	for (unsigned polls = 1; !st && (!over || n); polls++) {
		n = gpul_fifo_poll(g->fifo, items, FIFO_TRACE_BATCH);
		if (n) {
			st = handle_batch(g, items, n, err);
			idle_since = now(g);
		} else if (polls % POLLS == 0 && now(g) - (asked > idle_since ? asked : idle_since) > ASK_NS) {
			st = check_kernel(g, idle_since, &over, err);
			asked = now(g);
			n = over; /* poll once more: the kernel may have pushed before it ended */
		} else if (polls % POLLS == 0) {
			sched_yield(); /* the software driver may need this CPU to run the kernel */
		}
		if (!st && stop_requested())
			st = gpul_fail(err, GPUL_ESYS, EINTR, "ended by %s", stop_requested());
	}
	return st;
}

/* ---- results ---------------------------------------------------------------------------------------------------- */

static gpul_status check_results(struct tracing *g, gpul_error *err)
{
	const unsigned n = g->t->ask.blocks;
	uint32_t *results = calloc(n, sizeof *results);
	char why[64];
	gpul_status st;

	if (!results)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the results of %u blocks", n);
	st = gpul_cu(g->drv, err, cuMemcpyDtoH(results, g->results, n * sizeof *results));
	for (unsigned i = 0; !st && i < n; i++)
		if (results[i])
			st = gpul_fail(err, GPUL_ESYS, results[i] == GPUL_FIFO_BUSY ? EBUSY : ETIMEDOUT,
				       "block %u could not push or sync: %s (%s)", i,
				       results[i] == GPUL_FIFO_TIMED_OUT ? "timed out"
				       : results[i] == GPUL_FIFO_BUSY    ? "another thread is using its lane"
									 : "aborted",
				       gpul_fifo_code_text(gpul_fifo_aborted(g->fifo), why));
	free(results);
	if (!st && g->t->n_popped != g->t->n_triggers)
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%u triggers were pushed, but %u were received", g->t->n_triggers, g->t->n_popped);
	return st;
}

static gpul_status convert_stamps(struct tracing *g, gpul_error *err)
{
	struct fifo_trace *t = g->t;
	struct fifo_trace_stamps *stamps = calloc(t->n_triggers, sizeof *stamps);
	gpul_status st;

	if (!stamps)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the times of %u triggers", t->n_triggers);
	st = gpul_cu(g->drv, err, cuMemcpyDtoH(stamps, g->stamps, t->n_triggers * sizeof *stamps));
	for (unsigned i = 0; !st && i < t->n_triggers; i++) {
		struct fifo_trace_trigger *to = &t->triggers[i];

		to->begun = (int64_t)(fifo_clock_cpu_ns(&t->relation, stamps[i].begun) - g->began_ns);
		to->pushed = (int64_t)(fifo_clock_cpu_ns(&t->relation, stamps[i].pushed) - g->began_ns);
		if (t->ask.sync)
			to->synced = (int64_t)(fifo_clock_cpu_ns(&t->relation, stamps[i].synced) - g->began_ns);
	}
	free(stamps);
	return st;
}

static gpul_status run_trace(struct tracing *g, gpul_error *err)
{
	gpul_status st = fifo_clock_take(g->clock, g->stream, err);

	st = st ? st : launch_kernel(g, err);
	if (st)
		return st;
	st = serve_kernel(g, err);
	if (st) {
		gpul_fifo_abort(g->fifo, GPUL_FIFO_CODE_STOPPED); /* let the kernel stop waiting, so that it ends */
		(void)g->drv->cuStreamSynchronize(g->stream);
		return st;
	}
	st = gpul_cu(g->drv, err, cuStreamSynchronize(g->stream));
	st = st ? st : check_results(g, err);
	st = st ? st : fifo_clock_take(g->clock, g->stream, err);
	st = st ? st : fifo_clock_fit(g->clock, &g->t->relation, err);
	return st ? st : convert_stamps(g, err);
}

static void free_tracing(struct tracing *g)
{
	free(g->free_since);
	fifo_clock_destroy(g->clock);
	if (g->results)
		g->drv->cuMemFree(g->results);
	if (g->stamps)
		g->drv->cuMemFree(g->stamps);
	if (g->stream)
		g->drv->cuStreamDestroy(g->stream);
	gpul_module_unload(g->module);
	gpul_fifo_close(g->fifo);
}

gpul_status fifo_trace_with(const gpul_driver *drv, const struct fifo_trace_request *ask, struct fifo_trace *out, gpul_error *err)
{
	struct tracing g = { .t = out, .drv = drv };
	gpul_status st;

	*out = (struct fifo_trace){ .ask = *ask, .driver = drv->name };
	st = prepare_trace(&g, err);
	st = st ? st : run_trace(&g, err);
	free_tracing(&g);
	if (st)
		fifo_trace_free(out);
	return st;
}

gpul_status fifo_trace_run(const struct fifo_trace_request *ask, struct fifo_trace *out, gpul_error *err)
{
	struct devices_arg devices = ask->devices;
	gpul_status st;

	*out = (struct fifo_trace){ 0 };
	st = devices_arg_open(&devices, err);
	if (st)
		return st;
	st = fifo_trace_with(devices.drv, ask, out, err);
	devices_arg_close(&devices);
	return st;
}

void fifo_trace_free(struct fifo_trace *t)
{
	free(t->triggers);
	free(t->order);
	free(t->batches);
	*t = (struct fifo_trace){ 0 };
}
