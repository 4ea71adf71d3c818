/* fifo_bench_run.c — one run of gpuload fifo bench: the kernel pushes, this thread polls, checks and releases. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fifo/bench/fifo_bench.h"
#include "cli/fifo/bench/fifo_bench_check.h"
#include "cli/fifo/clock/fifo_clock.h"
#include "cli/lib/cli_stop.h"
#include "core/clock.h"
#include "loader/embedded.h"

GPUL_EMBED(fifo_bench_ptx, "cli/kernels/fifo_bench.ptx");

/* IDLE_POLLS: number of empty polls (about 10 us) before the kernel is checked; a busy kernel fills the ring much sooner. */
enum { BATCH = 64, WARP_BATCH = 1024, IDLE_POLLS = 1024, WARP = 32 };
_Static_assert(WARP_BATCH + 0 <= FIFO_MOST_BATCH + 0, "a batch fits into the items of one poll");

const char *const fifo_mode_names[FIFO_N_MODES] = { "shared", "lanes" };
const char *const fifo_op_names[FIFO_N_OPS] = { "push", "push_release", "push_sync", "push_release_sync" };

struct fifo_bench {
	const gpul_driver *drv;
	int device, timeout_ms;
	unsigned batch; /* triggers that the CPU takes at a time; 0: BATCH, or WARP_BATCH for warp pushes */
	gpul_mem_kind kind;
	gpul_module *module;
	CUstream stream;
	CUdeviceptr failed; /* word in device memory: gpul_fifo_result of a thread that failed; 0: none */
	gpul_fifo *fifo;    /* the current FIFO; NULL before fifo_bench_create_fifo() */
	struct fifo_clock *clock;
	struct fifo_count count;
};

gpul_status fifo_bench_create(const gpul_driver *drv, int device, gpul_mem_kind kind, unsigned batch, int timeout_ms,
			      struct fifo_bench **out, gpul_error *err)
{
	struct fifo_bench *b = calloc(1, sizeof *b);
	const unsigned none = 0;
	gpul_status st;

	if (!b)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a benchmark");
	*b = (struct fifo_bench){ .drv = drv, .device = device, .kind = kind, .batch = batch, .timeout_ms = timeout_ms };
	st = gpul_module_load_embedded(drv, &fifo_bench_ptx, &b->module, err);
	st = st ? st : gpul_cu(drv, err, cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING));
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&b->failed, sizeof none));
	st = st ? st : gpul_cu(drv, err, cuMemcpyHtoD(b->failed, &none, sizeof none));
	st = st ? st : fifo_clock_create(drv, &b->clock, err);
	if (st) {
		fifo_bench_destroy(b);
		return st;
	}
	*out = b;
	return GPUL_OK;
}

void fifo_bench_destroy(struct fifo_bench *b)
{
	if (!b)
		return;
	gpul_fifo_close(b->fifo);
	fifo_clock_destroy(b->clock);
	fifo_count_free(&b->count);
	if (b->failed)
		b->drv->cuMemFree(b->failed);
	if (b->stream)
		b->drv->cuStreamDestroy(b->stream);
	gpul_module_unload(b->module);
	free(b);
}

gpul_status fifo_bench_create_fifo(struct fifo_bench *b, gpul_fifo_shape shape, gpul_error *err)
{
	gpul_fifo_close(b->fifo);
	b->fifo = NULL;
	return gpul_fifo_create(b->drv, b->kind, b->device, &shape, &b->fifo, err);
}

const gpul_mem_info *fifo_bench_memory(const struct fifo_bench *b)
{
	return gpul_mem_about(gpul_fifo_mem_of(b->fifo));
}

/* ---- a run ----------------------------------------------------------------------- */

struct run {
	struct fifo_bench *b;
	char kernel[40];
	unsigned threads;   /* threads per block */
	unsigned batch;     /* maximum number of triggers between two releases */
	uint64_t pushes;    /* number of pushes per thread */
	CUdeviceptr stamps; /* array in device memory for times; 0: the kernel records no times */
	struct fifo_check check;
	/* Checks a batch.  NULL: gpul_fifo_poll_run() and fifo_check_order() are used instead. */
	void (*take)(struct fifo_check *check, const gpul_fifo_item *items, unsigned n);
	uint64_t total, taken; /* numbers of triggers: expected, received */
	uint64_t ns;           /* duration of the run */
};

static gpul_status launch_kernel(const struct run *run, gpul_error *err)
{
	const struct fifo_bench *b = run->b;
	const gpul_kernel *kernel;
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(b->fifo));
	uint64_t pushes = run->pushes, timeout_ns = (uint64_t)b->timeout_ms * 1000000;
	CUdeviceptr failed = b->failed, stamps = run->stamps;
	void *args[] = { &fifo, &pushes, &timeout_ns, &failed, &stamps };
	const size_t bytes[] = { sizeof fifo, sizeof pushes, sizeof timeout_ns, sizeof failed, sizeof stamps };
	const gpul_launch_config config = { .grid = { run->check.blocks, 1, 1 }, .block = { run->threads, 1, 1 }, .stream = b->stream };
	gpul_status st = gpul_kernel_find(b->module, run->kernel, &kernel, err);

	return st ? st : gpul_kernel_launch(kernel, &config, args, bytes, 5, err);
}

static gpul_status report_abort(const struct run *run, uint32_t code, gpul_error *err)
{
	char text[64];

	return gpul_fail(err, GPUL_ESYS, code == GPUL_FIFO_CODE_TIMED_OUT ? ETIMEDOUT : ECANCELED,
			 "%s was aborted after %" PRIu64 " of %" PRIu64 " triggers: %s", run->kernel, run->taken, run->total,
			 gpul_fifo_code_text(code, text));
}

/* After some time without triggers, check whether more can arrive.  *ended is set when the kernel has ended; triggers can then
 * arrive only in the next poll. */
static gpul_status check_kernel_state(const struct run *run, uint64_t idle_since_ns, bool *ended, gpul_error *err)
{
	const struct fifo_bench *b = run->b;
	const uint32_t code = gpul_fifo_aborted(b->fifo);
	const char *signal = stop_requested();
	CUresult r;

	if (code)
		return report_abort(run, code, err);
	if (signal)
		return gpul_fail(err, GPUL_ESYS, EINTR, "stopped: %s", signal);
	if (*ended)
		return gpul_fail(err, GPUL_EFORMAT, 0, "%s has ended, but only %" PRIu64 " of its %" PRIu64 " triggers were received",
				 run->kernel, run->taken, run->total);
	if (gpul_clock_ns() - idle_since_ns > (uint64_t)b->timeout_ms * 1000000)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
				 "%s: no trigger arrived for %d ms, after %" PRIu64 " of %" PRIu64 " (--timeout)", run->kernel,
				 b->timeout_ms, run->taken, run->total);
	r = b->drv->cuStreamQuery(b->stream);
	*ended = r == CUDA_SUCCESS;
	sched_yield();
	return r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY ? GPUL_OK : gpul_cu_status(b->drv, err, r, "cuStreamQuery");
}

/* Check a batch, and release the slots of each lane up to its last trigger in the batch. */
static void check_and_release(struct run *run, const gpul_fifo_item *items, unsigned n)
{
	gpul_fifo *fifo = run->b->fifo;

	run->take(&run->check, items, n);
	for (unsigned i = 0; i < n; i++)
		if (i + 1 == n || items[i + 1].lane != items[i].lane)
			gpul_fifo_release_lane(fifo, items[i].lane, items[i].position + 1);
}

/* Poll, check and release; returns the number of triggers.  One poll takes many batches out of the FIFO, because polling 64 lanes fetches
 * cache lines that the GPU writes again soon.  Slots are released after each batch, because a late release makes the kernel wait. */
static unsigned take_batch(struct run *run, gpul_fifo_item items[FIFO_MOST_BATCH])
{
	gpul_fifo *fifo = run->b->fifo;
	gpul_fifo_run in_ring;
	unsigned n;

	if (run->take) {
		n = gpul_fifo_poll(fifo, items, FIFO_MOST_BATCH);
		for (unsigned at = 0; at < n; at += run->batch)
			check_and_release(run, items + at, n - at < run->batch ? n - at : run->batch);
		return n;
	}
	n = gpul_fifo_poll_run(fifo, &in_ring, run->batch);
	if (n) {
		fifo_check_order(&run->check, &in_ring);
		gpul_fifo_release(fifo);
	}
	return n;
}

static gpul_status consume_triggers(struct run *run, gpul_error *err)
{
	gpul_fifo_item items[FIFO_MOST_BATCH];
	uint64_t idle_since_ns = 0;
	unsigned idle = 0;
	bool ended = false;

	while (run->taken < run->total) {
		const unsigned n = take_batch(run, items);
		gpul_status st;

		if (n) {
			run->taken += n;
			idle = 0;
			continue;
		}
		if (++idle % IDLE_POLLS)
			continue;
		idle_since_ns = idle == IDLE_POLLS ? gpul_clock_ns() : idle_since_ns;
		st = check_kernel_state(run, idle_since_ns, &ended, err);
		if (st)
			return st;
	}
	return GPUL_OK;
}

static gpul_status check_kernel(const struct run *run, gpul_error *err)
{
	unsigned failed;
	gpul_status st = gpul_cu(run->b->drv, err, cuMemcpyDtoH(&failed, run->b->failed, sizeof failed));

	if (!st && failed)
		return gpul_fail(err, GPUL_ESYS, failed == GPUL_FIFO_TIMED_OUT ? ETIMEDOUT : ECANCELED, "%s: a thread %s", run->kernel,
				 failed == GPUL_FIFO_TIMED_OUT ? "timed out"
				 : failed == GPUL_FIFO_BUSY    ? "could not become the only user of its lane"
							       : "was aborted");
	return st;
}

/* Launch the kernel and receive its triggers.  Returns when the kernel has ended, or after a time-out. */
static gpul_status run_kernel(struct run *run, gpul_error *err)
{
	const struct fifo_bench *b = run->b;
	uint64_t start_ns;
	gpul_status st, ended;

	run->total = run->check.triggers * run->check.blocks;
	start_ns = gpul_clock_ns();
	st = launch_kernel(run, err);
	if (st)
		return st;
	st = consume_triggers(run, err);
	if (st)
		gpul_fifo_abort(b->fifo, GPUL_FIFO_CODE_STOPPED);
	ended = gpul_cu(b->drv, st ? NULL : err, cuStreamSynchronize(b->stream));
	run->ns = gpul_clock_ns() - start_ns;
	st = st ? st : ended;
	st = st ? st : check_kernel(run, err);
	return st ? st : fifo_check_result(&run->check, run->kernel, err);
}

/* ---- the three kinds of run ------------------------------------------------------ */

gpul_status fifo_bench_push(struct fifo_bench *b, enum fifo_mode mode, enum fifo_op op, unsigned parallel, uint64_t triggers,
			    uint64_t *out_ns, gpul_error *err)
{
	struct run run = { .b = b,
			   .threads = 1,
			   .batch = b->batch ? b->batch : BATCH,
			   .pushes = triggers,
			   .take = fifo_check_count,
			   .check = { .blocks = parallel, .triggers = triggers, .count = &b->count } };
	gpul_status st = fifo_count_clear(&b->count, triggers, err);

	snprintf(run.kernel, sizeof run.kernel, "%s_%s", fifo_mode_names[mode], fifo_op_names[op]);
	st = st ? st : run_kernel(&run, err);
	if (!st)
		*out_ns = run.ns;
	return st;
}

gpul_status fifo_bench_warp_push(struct fifo_bench *b, enum fifo_mode mode, unsigned warps, uint64_t pushes, uint64_t *out_ns,
				 gpul_error *err)
{
	struct run run = { .b = b,
			   .threads = WARP,
			   .batch = b->batch ? b->batch : WARP_BATCH,
			   .pushes = pushes,
			   .check = { .blocks = warps, .triggers = pushes * WARP } };
	gpul_status st = fifo_check_begin(&run.check, err);

	snprintf(run.kernel, sizeof run.kernel, "%s_warp", fifo_mode_names[mode]);
	st = st ? st : run_kernel(&run, err);
	if (!st)
		*out_ns = run.ns;
	fifo_check_end(&run.check);
	return st;
}

void fifo_latency_of(int64_t *ns, uint64_t n, struct fifo_latency *out)
{
	static const unsigned per_mille[FIFO_N_PERCENTILES] = { 500, 900, 990, 999, 1000 };

	samples_sort_ns(ns, n);
	for (int i = 0; i < FIFO_N_PERCENTILES; i++) {
		out->ns[i] = samples_percentile(ns, n, per_mille[i]);
		out->ns[i] = out->ns[i] > 0 ? out->ns[i] : 0;
	}
}

/* Compute latencies.  stamps has two times per trigger; ns is scratch space for one time per trigger. */
static void compute_latencies(const uint64_t *stamps, const uint64_t *popped_ns, const struct fifo_clock_relation *clocks, int64_t *ns,
			      uint64_t n, struct fifo_latencies *out)
{
	for (uint64_t i = 0; i < n; i++)
		ns[i] = (int64_t)(stamps[2 * i + 1] - stamps[2 * i]);
	fifo_latency_of(ns, n, &out->to_sync);
	for (uint64_t i = 0; i < n; i++)
		ns[i] = (int64_t)(popped_ns[i] - fifo_clock_cpu_ns(clocks, stamps[2 * i]));
	fifo_latency_of(ns, n, &out->to_pop);
	out->n = n;
	out->to_pop_bound_ns = clocks->bound_ns;
}

static gpul_status run_between_clocks(struct run *run, struct fifo_clock_relation *out, gpul_error *err)
{
	struct fifo_bench *b = run->b;
	gpul_status st = fifo_clock_take(b->clock, b->stream, err);

	st = st ? st : run_kernel(run, err);
	st = st ? st : fifo_clock_take(b->clock, b->stream, err);
	return st ? st : fifo_clock_fit(b->clock, out, err);
}

gpul_status fifo_bench_latency(struct fifo_bench *b, enum fifo_mode mode, unsigned parallel, uint64_t triggers, struct fifo_latencies *out,
			       gpul_error *err)
{
	struct run run = { .b = b,
			   .threads = 1,
			   .batch = b->batch ? b->batch : BATCH,
			   .pushes = triggers,
			   .take = fifo_check_stamp,
			   .check = { .blocks = parallel, .triggers = triggers } };
	const uint64_t n = triggers * parallel, bytes = 2 * n * sizeof(uint64_t);
	uint64_t *stamps = malloc(bytes), *popped_ns = calloc(n, sizeof *popped_ns);
	int64_t *ns = malloc(n * sizeof *ns);
	struct fifo_clock_relation clocks;
	gpul_status st = GPUL_OK;

	if (!stamps || !popped_ns || !ns)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the times of %" PRIu64 " triggers", n);
	run.check.popped_ns = popped_ns;
	snprintf(run.kernel, sizeof run.kernel, "%s_latency", fifo_mode_names[mode]);
	st = st ? st : fifo_check_begin(&run.check, err);
	st = st ? st : gpul_cu(b->drv, err, cuMemAlloc(&run.stamps, bytes));
	st = st ? st : run_between_clocks(&run, &clocks, err);
	st = st ? st : gpul_cu(b->drv, err, cuMemcpyDtoH(stamps, run.stamps, bytes));
	if (!st)
		compute_latencies(stamps, popped_ns, &clocks, ns, n, out);
	if (run.stamps)
		b->drv->cuMemFree(run.stamps);
	fifo_check_end(&run.check);
	free(ns);
	free(popped_ns);
	free(stamps);
	return st;
}
