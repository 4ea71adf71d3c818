/* bench_launch.c — measures the time that gpul_kernel_launch() adds to the driver's cuLaunchKernel().
 *
 *     bench_launch [--driver auto|nvidia|soft] [--launches N] [--pairs N]
 *
 * Launches an empty kernel with two arguments, alternately a batch by the one function and a batch by the
 * other, and waits after each batch.  So other load on the machine affects both; the ratio is the median
 * of the pairs of batches. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "cli/lib/bench/samples.h"
#include "core/clock.h"

static const char text[] = ".version 7.0\n.target sm_52\n.address_size 64\n"
			   ".visible .entry k(.param .u64 a, .param .u32 n) { ret; }\n";

struct bench {
	const gpul_driver *drv;
	gpul_module *ours;
	const gpul_kernel *kernel;
	CUlibrary bare;
	CUfunction fn;
	int launches, pairs;
};

static gpul_status open_all(struct bench *b, gpul_error *err)
{
	CUkernel kernel = NULL;
	gpul_status st = gpul_module_load_ptx(b->drv, text, sizeof text - 1, "k.ptx", NULL, &b->ours, err);

	st = st ? st : gpul_kernel_find(b->ours, "k", &b->kernel, err);
	st = st ? st : gpul_cu(b->drv, err, cuLibraryLoadData(&b->bare, text, NULL, NULL, 0, NULL, NULL, 0));
	st = st ? st : gpul_cu(b->drv, err, cuLibraryGetKernel(&kernel, b->bare, "k"));
	return st ? st : gpul_cu(b->drv, err, cuKernelGetFunction(&b->fn, kernel));
}

static void close_all(struct bench *b)
{
	if (b->bare)
		b->drv->cuLibraryUnload(b->bare);
	gpul_module_unload(b->ours);
}

/* Time one batch of launches; *ns is set to the time of one launch. */
static gpul_status time_batch(const struct bench *b, bool bare, double *ns, gpul_error *err)
{
	static const gpul_launch_config config = { .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	static const size_t sizes[] = { 8, 4 };
	uint64_t a = 0, start = gpul_clock_ns();
	uint32_t n = 0;
	void *args[] = { &a, &n };
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i < b->launches; i++)
		st = bare ? gpul_cu(b->drv, err, cuLaunchKernel(b->fn, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL))
			  : gpul_kernel_launch(b->kernel, &config, args, sizes, 2, err);
	if (!st)
		st = gpul_cu(b->drv, err, cuCtxSynchronize());
	*ns = (double)(gpul_clock_ns() - start) / b->launches;
	return st;
}

static double median(double *v, int n)
{
	return samples_spread_of(v, (size_t)n).median;
}

static gpul_status measure_pairs(const struct bench *b, gpul_error *err)
{
	double *ours = calloc(3 * (size_t)b->pairs, sizeof *ours), *bare = ours + b->pairs;
	double *ratio = bare + b->pairs, warm;
	gpul_status st;

	if (!ours)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for %d pairs", b->pairs);
	st = time_batch(b, true, &warm, err);
	if (!st)
		st = time_batch(b, false, &warm, err);
	for (int i = 0; !st && i < b->pairs; i++) {
		st = time_batch(b, i % 2, i % 2 ? &bare[i] : &ours[i], err);
		if (!st)
			st = time_batch(b, !(i % 2), i % 2 ? &ours[i] : &bare[i], err);
		ratio[i] = bare[i] > 0 ? ours[i] / bare[i] : 0;
	}
	if (!st) {
		printf("| %d launches, %s driver | a launch |\n|---|---|\n", b->launches, b->drv->name);
		printf("| gpul_kernel_launch | %.0f ns |\n", median(ours, b->pairs));
		printf("| cuLaunchKernel | %.0f ns |\n", median(bare, b->pairs));
		printf("| ratio, paired | %.3f median of %d |\n", median(ratio, b->pairs), b->pairs);
	}
	free(ours);
	return st;
}

static gpul_status run_bench(const gpul_driver *drv, void *bench, gpul_error *err)
{
	struct bench *b = bench;
	gpul_status st;

	b->drv = drv;
	st = open_all(b, err);
	st = st ? st : measure_pairs(b, err);
	close_all(b);
	return st;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "driver", required_argument, NULL, 'd' },
						 { "launches", required_argument, NULL, 'n' },
						 { "pairs", required_argument, NULL, 'p' },
						 { 0 } };
	struct bench b = { .launches = 10000, .pairs = 21 };
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;

	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'n')
			b.launches = atoi(optarg);
		else if (c == 'p')
			b.pairs = atoi(optarg);
		else if (c != 'd' || !gpul_driver_choice_parse(optarg, &choice))
			return 2;
	}
	if (b.launches < 1 || b.pairs < 1)
		return 2;
	return timed_run("bench_launch", choice, 0, run_bench, &b);
}
