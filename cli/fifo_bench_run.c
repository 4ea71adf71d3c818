/* fifo_bench_run.c — see fifo_bench.h: one run of a kernel against this thread. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fifo_bench.h"
#include "cli/fifo_clock.h"
#include "cli/fifo_count.h"
#include "cli/stop.h"
#include "core/clock.h"

/* fifo_bench.ptx as it stands in the source: the assembler reads it, from the folder that the compiler runs in. */
__asm__(".pushsection .rodata\n"
	".global gpuload_fifo_bench_ptx, gpuload_fifo_bench_ptx_end\n"
	"gpuload_fifo_bench_ptx: .incbin \"cli/fifo_bench.ptx\"\n"
	"gpuload_fifo_bench_ptx_end: .byte 0\n"
	".popsection");
extern const char gpuload_fifo_bench_ptx[], gpuload_fifo_bench_ptx_end[];

/* IDLE_LOOKS: so often poll gives nothing before this thread looks at what else may have happened, and lets others
 * have its CPU.  Some 10 us: a busy kernel never leaves the ring empty for so long. */
enum { BATCH = 64, IDLE_LOOKS = 1024, WARP = 32 };

const char *const fifo_mode_names[FIFO_N_MODES] = { "shared", "lanes" };
const char *const fifo_way_names[FIFO_N_WAYS] = { "push", "push_release", "push_sync", "push_release_sync" };
const double fifo_percentiles[FIFO_N_PERCENTILES] = { 50, 90, 99, 99.9, 100 };

struct fifo_bench {
	const gpul_driver *drv;
	int device, timeout_ms;
	gpul_mem_kind kind;
	gpul_module *module;
	CUstream stream;
	CUdeviceptr failed;  /* a kernel's gpul_fifo_result, 0: none failed */
	gpul_fifo *fifo;     /* NULL: none yet */
	struct fifo_clock *clock;
	struct fifo_count count;
};

gpul_status fifo_bench_create(const gpul_driver *drv, int device, gpul_mem_kind kind, int timeout_ms,
			      struct fifo_bench **out, gpul_error *err)
{
	struct fifo_bench *b = calloc(1, sizeof *b);
	const unsigned none = 0;
	gpul_status st;

	if (!b)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a benchmark");
	*b = (struct fifo_bench){ .drv = drv, .device = device, .kind = kind, .timeout_ms = timeout_ms };
	st = gpul_module_load_ptx(drv, gpuload_fifo_bench_ptx,
				  (size_t)(gpuload_fifo_bench_ptx_end - gpuload_fifo_bench_ptx), "fifo_bench.ptx",
				  NULL, &b->module, err);
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

gpul_status fifo_bench_take_fifo(struct fifo_bench *b, gpul_fifo_shape shape, gpul_error *err)
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
	unsigned blocks, threads;   /* of the grid; of a block */
	uint64_t pushes;            /* calls of each thread */
	CUdeviceptr stamps;         /* 0: the kernel keeps none */
	/* What is done with a batch that was taken out. */
	void (*take)(struct run *run, const gpul_fifo_item *items, unsigned n);
	uint64_t total, taken;      /* triggers */
	uint64_t wrong;             /* that no thread has pushed, or not now */
	uint64_t *next;             /* take_stamp, take_warp: of each block, the number that its next trigger has */
	uint64_t *popped_ns;        /* take_stamp: when, by gpul_clock_ns() */
	uint64_t sum;               /* take_count: of the threads' numbers */
	uint64_t ns;                /* it took */
};

static gpul_status launch(const struct run *run, gpul_error *err)
{
	const struct fifo_bench *b = run->b;
	const gpul_kernel *kernel;
	struct gpul_fifo_device fifo = *gpul_fifo_gpu_param(gpul_fifo_gpu_of(b->fifo));
	uint64_t pushes = run->pushes, timeout_ns = (uint64_t)b->timeout_ms * 1000000;
	CUdeviceptr failed = b->failed, stamps = run->stamps;
	void *args[] = { &fifo, &pushes, &timeout_ns, &failed, &stamps };
	const size_t bytes[] = { sizeof fifo, sizeof pushes, sizeof timeout_ns, sizeof failed, sizeof stamps };
	const gpul_launch_config config = { .grid = { run->blocks, 1, 1 }, .block = { run->threads, 1, 1 },
					    .stream = b->stream };
	gpul_status st = gpul_kernel_find(b->module, run->kernel, &kernel, err);

	return st ? st : gpul_kernel_launch(kernel, &config, args, bytes, 5, err);
}

static gpul_status gave_up(const struct run *run, uint32_t code, gpul_error *err)
{
	char text[64];

	return gpul_fail(err, GPUL_ESYS, code == GPUL_FIFO_CODE_TIMED_OUT ? ETIMEDOUT : ECANCELED,
			 "%s gave up after %" PRIu64 " of %" PRIu64 " triggers: %s", run->kernel, run->taken,
			 run->total, gpul_fifo_code_text(code, text));
}

/* Nothing came for a while: is anything still to come?  *ended: the kernel has ended, and so a next poll that gives
 * nothing is the last. */
static gpul_status look_around(const struct run *run, uint64_t idle_since_ns, bool *ended, gpul_error *err)
{
	const struct fifo_bench *b = run->b;
	const uint32_t code = gpul_fifo_aborted(b->fifo);
	const char *signal = stop_asked();
	CUresult r;

	if (code)
		return gave_up(run, code, err);
	if (signal)
		return gpul_fail(err, GPUL_ESYS, EINTR, "stopped: %s", signal);
	if (*ended)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s has ended, but only %" PRIu64 " of its %" PRIu64 " triggers came", run->kernel,
				 run->taken, run->total);
	if (gpul_clock_ns() - idle_since_ns > (uint64_t)b->timeout_ms * 1000000)
		return gpul_fail(err, GPUL_ESYS, ETIMEDOUT,
				 "%s: no trigger came for %d ms, after %" PRIu64 " of %" PRIu64 " (--timeout)",
				 run->kernel, b->timeout_ms, run->taken, run->total);
	r = b->drv->cuStreamQuery(b->stream);
	*ended = r == CUDA_SUCCESS;
	sched_yield();
	return r == CUDA_SUCCESS || r == CUDA_ERROR_NOT_READY ? GPUL_OK
							      : gpul_cu_status(b->drv, err, r, "cuStreamQuery");
}

static gpul_status consume(struct run *run, gpul_error *err)
{
	gpul_fifo *fifo = run->b->fifo;
	gpul_fifo_item items[BATCH];
	uint64_t idle_since_ns = 0;
	unsigned idle = 0;
	bool ended = false;

	while (run->taken < run->total) {
		const unsigned n = gpul_fifo_poll(fifo, items, BATCH);
		gpul_status st;

		if (n) {
			run->take(run, items, n);
			gpul_fifo_release(fifo);
			run->taken += n;
			idle = 0;
			continue;
		}
		if (++idle % IDLE_LOOKS)
			continue;
		idle_since_ns = idle == IDLE_LOOKS ? gpul_clock_ns() : idle_since_ns;
		st = look_around(run, idle_since_ns, &ended, err);
		if (st)
			return st;
	}
	return GPUL_OK;
}

/* What the kernel says, when all that it pushed has come. */
static gpul_status check_kernel(const struct run *run, gpul_error *err)
{
	unsigned failed;
	gpul_status st = gpul_cu(run->b->drv, err, cuMemcpyDtoH(&failed, run->b->failed, sizeof failed));

	if (!st && failed)
		return gpul_fail(err, GPUL_ESYS, failed == GPUL_FIFO_TIMED_OUT ? ETIMEDOUT : ECANCELED,
				 "%s: a thread's call came to %s", run->kernel,
				 failed == GPUL_FIFO_TIMED_OUT ? "its time-out"
				 : failed == GPUL_FIFO_BUSY    ? "a lane that has an owner"
							       : "an abort");
	return st;
}

/* No way out of here leaves a kernel behind: a wait of its ends by its time-out at last. */
static gpul_status run_kernel(struct run *run, gpul_error *err)
{
	const struct fifo_bench *b = run->b;
	const uint64_t start_ns = gpul_clock_ns();
	gpul_status st = launch(run, err), ended;

	if (st)
		return st;
	st = consume(run, err);
	if (st)
		gpul_fifo_abort(b->fifo, GPUL_FIFO_CODE_STOPPED);
	ended = gpul_cu(b->drv, st ? NULL : err, cuStreamSynchronize(b->stream));
	run->ns = gpul_clock_ns() - start_ns;
	st = st ? st : ended;
	st = st ? st : check_kernel(run, err);
	if (!st && run->wrong)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s: %" PRIu64 " of %" PRIu64 " triggers are wrong, repeated or out of order",
				 run->kernel, run->wrong, run->total);
	return st;
}

/* ---- throughput ------------------------------------------------------------------ */

static void take_count(struct run *run, const gpul_fifo_item *items, unsigned n)
{
	struct fifo_count *count = &run->b->count;

	for (unsigned i = 0; i < n; i++) {
		if (items[i].word[0] < run->pushes)  /* else the map would have to grow */
			fifo_count_add(count, items[i].word[0]);
		run->sum += items[i].word[1];
	}
}

gpul_status fifo_bench_push(struct fifo_bench *b, enum fifo_mode mode, enum fifo_way way, unsigned parallel,
			    uint64_t triggers, uint64_t *out_ns, gpul_error *err)
{
	struct run run = { .b = b, .blocks = parallel, .threads = 1, .pushes = triggers, .take = take_count,
			   .total = triggers * parallel };
	gpul_status st = fifo_count_clear(&b->count, triggers, err);

	snprintf(run.kernel, sizeof run.kernel, "%s_%s", fifo_mode_names[mode], fifo_way_names[way]);
	st = st ? st : run_kernel(&run, err);
	if (st)
		return st;
	for (uint64_t i = 0; i < triggers; i++)
		run.wrong += fifo_count_of(&b->count, i) != parallel;
	if (run.wrong || run.sum != triggers * ((uint64_t)parallel * (parallel - 1) / 2))
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "%s: of %" PRIu64 " triggers that each of %u threads pushed, %" PRIu64
				 " were not seen just as often; the sum of the threads' numbers is %" PRIu64,
				 run.kernel, triggers, parallel, run.wrong, run.sum);
	*out_ns = run.ns;
	return GPUL_OK;
}

/* ---- warps ----------------------------------------------------------------------- */

/* A warp's slots stand side by side, so the number that comes next mostly is in a register. */
static void take_warp(struct run *run, const gpul_fifo_item *items, unsigned n)
{
	uint64_t warp = items[0].word[1], wrong = 0, next;

	if (warp >= run->blocks) {
		run->wrong++;
		return;
	}
	next = run->next[warp];
	for (unsigned i = 0; i < n; i++) {
		if (items[i].word[1] != warp) {
			run->next[warp] = next;
			warp = items[i].word[1] < run->blocks ? items[i].word[1] : 0;
			wrong += items[i].word[1] >= run->blocks;
			next = run->next[warp];
		}
		wrong += items[i].word[0] != next++;
	}
	run->next[warp] = next;
	run->wrong += wrong;
}

gpul_status fifo_bench_warp_push(struct fifo_bench *b, enum fifo_mode mode, unsigned warps, uint64_t pushes,
				 uint64_t *out_ns, gpul_error *err)
{
	struct run run = { .b = b, .blocks = warps, .threads = WARP, .pushes = pushes, .take = take_warp,
			   .total = pushes * warps * WARP, .next = calloc(warps, sizeof *run.next) };
	gpul_status st;

	if (!run.next)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %u warps", warps);
	snprintf(run.kernel, sizeof run.kernel, "%s_warp", fifo_mode_names[mode]);
	st = run_kernel(&run, err);
	if (!st)
		*out_ns = run.ns;
	free(run.next);
	return st;
}

/* ---- latency --------------------------------------------------------------------- */

static void take_stamp(struct run *run, const gpul_fifo_item *items, unsigned n)
{
	const uint64_t now_ns = gpul_clock_ns();

	for (unsigned i = 0; i < n; i++) {
		const uint64_t number = items[i].word[0], thread = items[i].word[1];

		if (thread >= run->blocks || number >= run->pushes || number != run->next[thread]) {
			run->wrong++;
			continue;
		}
		run->next[thread]++;
		run->popped_ns[thread * run->pushes + number] = now_ns;
	}
}

static int by_value(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The least of them that as many per cent do not exceed. */
static void find_percentiles(int64_t *ns, uint64_t n, struct fifo_latency *out)
{
	qsort(ns, n, sizeof *ns, by_value);
	for (int i = 0; i < FIFO_N_PERCENTILES; i++) {
		const uint64_t at = (uint64_t)((double)n * fifo_percentiles[i] / 100 + 0.999999);

		out->ns[i] = ns[at > n ? n - 1 : at > 0 ? at - 1 : 0];
	}
}

/* stamps: two of each trigger.  ns: room for one of each. */
static void evaluate(const struct run *run, const uint64_t *stamps, const struct fifo_clock_relation *clocks,
		     int64_t *ns, struct fifo_latencies *out)
{
	for (uint64_t i = 0; i < run->total; i++)
		ns[i] = (int64_t)(stamps[2 * i + 1] - stamps[2 * i]);
	out->n = run->total;
	find_percentiles(ns, run->total, &out->to_sync);
	for (uint64_t i = 0; i < run->total; i++)
		ns[i] = (int64_t)(run->popped_ns[i] - fifo_clock_cpu_ns(clocks, stamps[2 * i]));
	find_percentiles(ns, run->total, &out->to_pop);
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

gpul_status fifo_bench_stamp(struct fifo_bench *b, enum fifo_mode mode, unsigned parallel, uint64_t triggers,
			     struct fifo_latencies *out, gpul_error *err)
{
	struct run run = { .b = b, .blocks = parallel, .threads = 1, .pushes = triggers, .take = take_stamp,
			   .total = triggers * parallel, .next = calloc(parallel, sizeof *run.next),
			   .popped_ns = calloc(triggers * parallel, sizeof *run.popped_ns) };
	const size_t bytes = 2 * run.total * sizeof(uint64_t);
	uint64_t *stamps = malloc(bytes);
	int64_t *ns = malloc(run.total * sizeof *ns);
	struct fifo_clock_relation clocks;
	gpul_status st = GPUL_OK;

	if (!run.next || !run.popped_ns || !stamps || !ns)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the times of %" PRIu64 " triggers", run.total);
	snprintf(run.kernel, sizeof run.kernel, "%s_latency", fifo_mode_names[mode]);
	st = st ? st : gpul_cu(b->drv, err, cuMemAlloc(&run.stamps, bytes));
	st = st ? st : run_between_clocks(&run, &clocks, err);
	st = st ? st : gpul_cu(b->drv, err, cuMemcpyDtoH(stamps, run.stamps, bytes));
	if (!st)
		evaluate(&run, stamps, &clocks, ns, out);
	if (run.stamps)
		b->drv->cuMemFree(run.stamps);
	free(ns);
	free(stamps);
	free(run.popped_ns);
	free(run.next);
	return st;
}
