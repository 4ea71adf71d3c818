/* bench_fifo_bus.c — measures how fast a GPU can store to, poll and fence host memory: the limits of any queue to a CPU.
 *
 *     bench_fifo_bus [--driver auto|nvidia|soft] [--rounds 2000]
 *
 * Each thread is a block of its own, and repeats a round, depending on the row: store 16 bytes to its own lines in host
 * memory, execute a fence, poll a line there, or several of these.  No thread waits for another thread or for a CPU, so a
 * queue that needs a fence or a poll for each trigger cannot be faster than this.  Each figure is the time of a round in
 * nanoseconds, the median of five; the figure in brackets is the number of rounds of all threads together, in millions a
 * second. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "cli/lib/bench/samples.h"

enum { POLL = 1, POLL_ONE_LINE = 2, FENCE = 4, GPU_FENCE = 8, STORE = 16 };
enum { RUNS = 5, MOST_THREADS = 512, THREAD_BYTES = 1024, LINE_BYTES = 64 };
enum { BYTES = MOST_THREADS * (THREAD_BYTES + LINE_BYTES) };

static const struct {
	const char *name, *title;
	int what;
} rows[] = {
	{ "store", "store 16 bytes", STORE },
	{ "fence", "fence.acq_rel.sys", FENCE },
	{ "fence_store", "fence.acq_rel.sys, store", FENCE | STORE },
	{ "gpu_fence_store", "fence.acq_rel.gpu, store", GPU_FENCE | STORE },
	{ "poll", "poll, each thread of its own line", POLL },
	{ "poll_one", "poll, all threads of one line", POLL_ONE_LINE },
	{ "poll_fence", "poll, fence.acq_rel.sys", POLL | FENCE },
};
static const unsigned threads[] = { 1, 8, 64, 512 };
enum { N_ROWS = sizeof rows / sizeof *rows, N_THREADS = sizeof threads / sizeof *threads };

struct bench {
	const gpul_driver *drv;
	gpul_module *module;
	void *host;
	uint64_t rounds;
	struct timed timed;
};

static void write_kernel(FILE *to, const char *name, int what)
{
	fprintf(to,
		".visible .entry %s(.param .u64 lines, .param .u64 slots, .param .u64 rounds)\n{\n"
		"	.reg .u64 %%line, %%slots, %%slot, %%i, %%n, %%tail, %%abort, %%seen;\n	.reg .u32 %%b;\n	.reg .pred %%q;\n"
		"	ld.param.u64 %%line, [lines];\n	ld.param.u64 %%slots, [slots];\n	ld.param.u64 %%n, [rounds];\n"
		"	mov.u32 %%b, %%ctaid.x;\n	mad.wide.u32 %%slots, %%b, %d, %%slots;\n",
		name, THREAD_BYTES);
	if (!(what & POLL_ONE_LINE))
		fprintf(to, "	mad.wide.u32 %%line, %%b, %d, %%line;\n", LINE_BYTES);
	fputs("	mov.u64 %i, 0;\n	mov.u64 %seen, 0;\nmore:\n", to);
	if (what & (POLL | POLL_ONE_LINE))
		fputs("	ld.acquire.sys.global.v2.u64 {%tail, %abort}, [%line];\n"
		      "	or.b64 %seen, %seen, %tail;\n",
		      to);
	if (what & FENCE)
		fputs("	fence.acq_rel.sys;\n", to);
	if (what & GPU_FENCE)
		fputs("	fence.acq_rel.gpu;\n", to);
	if (what & STORE)
		fprintf(to,
			"	shl.b64 %%slot, %%i, 4;\n	and.b64 %%slot, %%slot, %d;\n"
			"	add.u64 %%slot, %%slot, %%slots;\n"
			"	st.relaxed.sys.global.v2.u64 [%%slot], {%%i, %%i};\n",
			THREAD_BYTES - 16);
	fputs("	add.u64 %i, %i, 1;\n	setp.lt.u64 %q, %i, %n;\n	@%q bra more;\n"
	      "	st.global.u64 [%slots], %seen;\n	ret;\n}\n",
	      to); /* uses the polled value, so that the driver cannot remove the loads */
}

static void write_kernels(FILE *to)
{
	for (int r = 0; r < N_ROWS; r++)
		write_kernel(to, rows[r].name, rows[r].what);
}

/* Measure the median time of a launch with n threads, in milliseconds. */
static gpul_status median_ms(struct bench *b, const gpul_kernel *kernel, unsigned n, double *out, gpul_error *err)
{
	const gpul_launch_config config = { .grid = { n, 1, 1 }, .block = { 1, 1, 1 }, .stream = b->timed.stream };
	uint64_t lines = (uintptr_t)b->host, slots = lines + MOST_THREADS * LINE_BYTES;
	void *args[] = { &lines, &slots, &b->rounds };
	static const size_t sizes[] = { 8, 8, 8 };
	double ms[RUNS + 1];
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i <= RUNS; i++) { /* the first run is a warm-up */
		st = timed_begin(&b->timed, err);
		st = st ? st : gpul_kernel_launch(kernel, &config, args, sizes, 3, err);
		st = st ? st : timed_end(&b->timed, &ms[i], err);
	}
	if (!st)
		*out = samples_spread_of(ms + 1, RUNS).median;
	return st;
}

static gpul_status measure_rows(struct bench *b, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	puts("| a round, ns (all threads, M/s) | 1 thread | 8 | 64 | 512 |\n|---|--:|--:|--:|--:|");
	for (int r = 0; !st && r < N_ROWS; r++) {
		const gpul_kernel *kernel = NULL;

		st = gpul_kernel_find(b->module, rows[r].name, &kernel, err);
		printf("| %s |", rows[r].title);
		for (int t = 0; !st && t < N_THREADS; t++) {
			double ms = 0;

			st = median_ms(b, kernel, threads[t], &ms, err);
			printf(" %.0f (%.3g) |", ms * 1e6 / (double)b->rounds, threads[t] * (double)b->rounds / ms * 1e-3);
		}
		puts("");
	}
	return st;
}

static gpul_status run_bench(const gpul_driver *drv, void *bench, gpul_error *err)
{
	struct bench *b = bench;
	gpul_status st = timed_load_ptx(drv, ".version 6.4\n.target sm_70\n.address_size 64\n", write_kernels, &b->module, err);

	b->drv = drv;
	st = st ? st : timed_open(&b->timed, drv, err);
	st = st ? st : gpul_cu(drv, err, cuMemHostAlloc(&b->host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
	if (!st) {
		memset(b->host, 0, BYTES);
		st = measure_rows(b, err);
	}
	if (b->host)
		drv->cuMemFreeHost(b->host);
	timed_close(&b->timed);
	gpul_module_unload(b->module);
	return st;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "driver", required_argument, NULL, 'd' },
					       { "rounds", required_argument, NULL, 'r' },
					       { NULL, 0, NULL, 0 } };
	struct bench b = { .rounds = 2000 };
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	bool good = true;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;)
		good &= opt == 'd'   ? gpul_driver_choice_parse(optarg, &choice)
			: opt == 'r' ? (b.rounds = strtoull(optarg, NULL, 10)) > 0
				     : false;
	if (!good) {
		fputs("usage: bench_fifo_bus [--driver D] [--rounds N]\n", stderr);
		return 2;
	}
	return timed_run("bench_fifo_bus", choice, 0, run_bench, &b);
}
