/* bench_fifo_bus.c — what the bus allows a queue from GPU to CPU: stores, fences and looks, with nothing around them.
 *
 *     bench_fifo_bus [--driver auto|nvidia|soft] [--rounds 2000]
 *
 * Blocks of one thread do the same thing over and over: store 16 bytes to lines of their own in host memory, fence, or
 * look at a line there.  Nobody waits for anybody and no CPU takes part, so no queue that fences before each trigger, or
 * looks before each, is faster.  A figure is nanoseconds a round, the median of five; in brackets the rounds of all
 * threads together, in millions a second. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "driver/context.h"
#include "loader/loader.h"

enum { LOOK = 1, LOOK_AT_ONE = 2, FENCE = 4, GPU_FENCE = 8, STORE = 16 };
enum { RUNS = 5, MOST_THREADS = 512, THREAD_BYTES = 1024, LINE_BYTES = 64 };
enum { BYTES = MOST_THREADS * (THREAD_BYTES + LINE_BYTES) };

static const struct { const char *name, *title; int what; } rows[] = {
	{ "store", "store 16 bytes", STORE },
	{ "fence", "fence.acq_rel.sys", FENCE },
	{ "fence_store", "fence.acq_rel.sys, store", FENCE | STORE },
	{ "gpu_fence_store", "fence.acq_rel.gpu, store", GPU_FENCE | STORE },
	{ "look", "look, each at its own line", LOOK },
	{ "look_one", "look, all at one line", LOOK_AT_ONE },
	{ "look_fence", "look, fence.acq_rel.sys", LOOK | FENCE },
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
	if (!(what & LOOK_AT_ONE))
		fprintf(to, "	mad.wide.u32 %%line, %%b, %d, %%line;\n", LINE_BYTES);
	fputs("	mov.u64 %i, 0;\n	mov.u64 %seen, 0;\nmore:\n", to);
	if (what & (LOOK | LOOK_AT_ONE))
		fputs("	ld.acquire.sys.global.v2.u64 {%tail, %abort}, [%line];\n"
		      "	or.b64 %seen, %seen, %tail;\n", to);
	if (what & FENCE)
		fputs("	fence.acq_rel.sys;\n", to);
	if (what & GPU_FENCE)
		fputs("	fence.acq_rel.gpu;\n", to);
	if (what & STORE)
		fprintf(to, "	shl.b64 %%slot, %%i, 4;\n	and.b64 %%slot, %%slot, %d;\n"
			    "	add.u64 %%slot, %%slot, %%slots;\n"
			    "	st.relaxed.sys.global.v2.u64 [%%slot], {%%i, %%i};\n", THREAD_BYTES - 16);
	fputs("	add.u64 %i, %i, 1;\n	setp.lt.u64 %q, %i, %n;\n	@%q bra more;\n"
	      "	st.global.u64 [%slots], %seen;\n	ret;\n}\n", to);  /* so that the looks have to be made */
}

static gpul_status load(struct bench *b, gpul_error *err)
{
	char *text = NULL;
	size_t n_bytes;
	FILE *f = open_memstream(&text, &n_bytes);
	gpul_status st;

	if (!f)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the kernels");
	fputs(".version 6.4\n.target sm_70\n.address_size 64\n", f);
	for (int r = 0; r < N_ROWS; r++)
		write_kernel(f, rows[r].name, rows[r].what);
	fclose(f);
	st = gpul_module_load_ptx(b->drv, text, n_bytes, "bus.ptx", NULL, &b->module, err);
	free(text);
	return st;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Milliseconds. */
static gpul_status median_ms(struct bench *b, const gpul_kernel *kernel, unsigned n, double *out, gpul_error *err)
{
	const gpul_launch_config config = { .grid = { n, 1, 1 }, .block = { 1, 1, 1 }, .stream = b->timed.stream };
	uint64_t lines = (uintptr_t)b->host, slots = lines + MOST_THREADS * LINE_BYTES;
	void *args[] = { &lines, &slots, &b->rounds };
	static const size_t sizes[] = { 8, 8, 8 };
	double ms[RUNS + 1];
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i <= RUNS; i++) {  /* the first warms up */
		st = timed_begin(&b->timed, err);
		st = st ? st : gpul_kernel_launch(kernel, &config, args, sizes, 3, err);
		st = st ? st : timed_end(&b->timed, &ms[i], err);
	}
	if (st)
		return st;
	qsort(ms + 1, RUNS, sizeof *ms, by_size);
	*out = ms[1 + RUNS / 2];
	return GPUL_OK;
}

static gpul_status measure(struct bench *b, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	puts("| a round, ns (all together, M/s) | 1 thread | 8 | 64 | 512 |\n|---|--:|--:|--:|--:|");
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

static gpul_status make(struct bench *b, gpul_error *err)
{
	gpul_status st = load(b, err);

	st = st ? st : timed_open(&b->timed, b->drv, err);
	st = st ? st : gpul_cu(b->drv, err, cuMemHostAlloc(&b->host, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
	if (!st)
		memset(b->host, 0, BYTES);
	return st;
}

static void drop(struct bench *b)
{
	if (b->host)
		b->drv->cuMemFreeHost(b->host);
	timed_close(&b->timed);
	gpul_module_unload(b->module);
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "driver", required_argument, NULL, 'd' },
					       { "rounds", required_argument, NULL, 'r' }, { NULL, 0, NULL, 0 } };
	struct bench b = { .rounds = 2000 };
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	gpul_context context;
	gpul_error err = { 0 };
	gpul_status st;
	bool good = true;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;)
		good &= opt == 'd'   ? gpul_driver_choice_parse(optarg, &choice)
			: opt == 'r' ? (b.rounds = strtoull(optarg, NULL, 10)) > 0
				     : false;
	if (!good) {
		fputs("usage: bench_fifo_bus [--driver D] [--rounds N]\n", stderr);
		return 2;
	}
	st = gpul_driver_open(choice, &b.drv, &err);
	st = st ? st : gpul_context_open(b.drv, 0, &context, &err);
	if (!st) {
		st = make(&b, &err);
		st = st ? st : measure(&b, &err);
		drop(&b);
		gpul_context_close(&context);
	}
	if (st)
		fprintf(stderr, "bench_fifo_bus: %s\n", err.text);
	return st != GPUL_OK;
}
