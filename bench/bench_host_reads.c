/* bench_host_reads.c — measures how fast kernels with different load instructions read host memory, and how fast the copy engine
 * does.
 *
 *     bench_host_reads [--driver auto|nvidia|soft] [--bytes 256M]
 *
 * The copy engine is faster, which is why cli/sum/sum_stage.c exists.  Each thread has eight loads of 16 bytes in flight.  A
 * block of 256 threads reads chunks of 32 KiB in a grid-stride loop; in the column "all", each block reads one chunk.  A rate is
 * the best of five. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "cli/lib/value.h"

enum { THREADS = 256, LOADS = 8, PIECE_BYTES = THREADS * LOADS * 16, RUNS = 5, OUT_BYTES = 4096 };

static const struct {
	const char *name, *op;
} kernels[] = {
	{ "plain", "" },           { "ca", ".ca" },
	{ "cg", ".cg" },           { "cs", ".cs" },
	{ "cv", ".cv" },           { "nc", ".nc" },
	{ "l2_64", ".L2::64B" },   { "l2_128", ".L2::128B" },
	{ "l2_256", ".L2::256B" }, { "nc_256", ".nc.L1::no_allocate.L2::256B" },
};
static const unsigned grids[] = { 8, 32, 132, 528, 0 }; /* numbers of blocks; 0: one block for each chunk */
enum { N_KERNELS = sizeof kernels / sizeof *kernels, N_GRIDS = sizeof grids / sizeof *grids };

struct bench {
	const gpul_driver *drv;
	gpul_module *module;
	size_t bytes;
	void *host;
	CUdeviceptr device, out;
	struct timed timed;
};

/* Write one kernel.  It combines all values into one stored word, so that the driver cannot remove the loads. */
static void write_kernel(FILE *to, const char *name, const char *op)
{
	fprintf(to,
		".visible .entry %s(.param .u64 at, .param .u64 end, .param .u64 out)\n{\n"
		"	.reg .u64 %%p, %%e, %%o, %%x, %%step;\n	.reg .u32 %%t, %%b, %%n, %%s, %%v<%d>;\n"
		"	.reg .pred %%q;\n"
		"	ld.param.u64 %%p, [at];\n	ld.param.u64 %%e, [end];\n	ld.param.u64 %%o, [out];\n"
		"	mov.u32 %%t, %%tid.x;\n	mov.u32 %%b, %%ctaid.x;\n	mov.u32 %%n, %%nctaid.x;\n"
		"	mad.wide.u32 %%p, %%b, %d, %%p;\n	mad.wide.u32 %%p, %%t, 16, %%p;\n"
		"	mul.wide.u32 %%step, %%n, %d;\n	mov.u32 %%s, 0;\n"
		"more:\n	setp.ge.u64 %%q, %%p, %%e;\n	@%%q bra done;\n",
		name, 4 * LOADS, PIECE_BYTES, PIECE_BYTES);
	for (int i = 0; i < LOADS; i++)
		fprintf(to, "	ld.global%s.v4.u32 {%%v%d, %%v%d, %%v%d, %%v%d}, [%%p+%d];\n", op, 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3,
			i * THREADS * 16);
	for (int i = 0; i < 4 * LOADS; i++)
		fprintf(to, "	xor.b32 %%s, %%s, %%v%d;\n", i);
	fputs("	add.u64 %p, %p, %step;\n	bra more;\ndone:\n"
	      "	mad.lo.u32 %t, %b, 256, %t;\n	and.b32 %t, %t, 1023;\n"
	      "	mad.wide.u32 %x, %t, 4, %o;\n	st.global.u32 [%x], %s;\n	ret;\n}\n",
	      to);
}

static void write_kernels(FILE *to)
{
	for (int k = 0; k < N_KERNELS; k++)
		write_kernel(to, kernels[k].name, kernels[k].op);
}

/* Enqueue a launch of the kernel; kernel NULL: a copy by the copy engine. */
static gpul_status queue_read(struct bench *b, const gpul_kernel *kernel, unsigned grid, gpul_error *err)
{
	uint64_t at = (uintptr_t)b->host, end = at + b->bytes, out = b->out;
	const gpul_launch_config config = { .grid = { grid ? grid : (unsigned)(b->bytes / PIECE_BYTES), 1, 1 },
					    .block = { THREADS, 1, 1 },
					    .stream = b->timed.stream };
	void *args[] = { &at, &end, &out };
	static const size_t sizes[] = { 8, 8, 8 };

	return kernel ? gpul_kernel_launch(kernel, &config, args, sizes, 3, err)
		      : gpul_cu(b->drv, err, cuMemcpyHtoDAsync(b->device, b->host, b->bytes, b->timed.stream));
}

static gpul_status best_gbs(struct bench *b, const gpul_kernel *kernel, unsigned grid, double *gbs, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	*gbs = 0;
	for (int i = 0; !st && i < RUNS; i++) {
		double ms = 0;

		st = timed_begin(&b->timed, err);
		st = st ? st : queue_read(b, kernel, grid, err);
		st = st ? st : timed_end(&b->timed, &ms, err);
		if (!st && (double)b->bytes / ms * 1e-6 > *gbs)
			*gbs = (double)b->bytes / ms * 1e-6;
	}
	return st;
}

static gpul_status measure_kernels(struct bench *b, gpul_error *err)
{
	double gbs, least = 0, most = 0;
	gpul_status st = best_gbs(b, NULL, 0, &gbs, err);

	if (st)
		return st;
	printf("copy engine: %.2f GB/s\n\n| loads | 8 blocks | 32 | 132 | 528 | all |\n|---|--:|--:|--:|--:|--:|\n", gbs);
	for (int k = 0; !st && k < N_KERNELS; k++) {
		const gpul_kernel *kernel = NULL;

		st = gpul_kernel_find(b->module, kernels[k].name, &kernel, err);
		printf("| %s |", kernels[k].name);
		for (int g = 0; !st && g < N_GRIDS; g++) {
			st = best_gbs(b, kernel, grids[g], &gbs, err);
			least = least <= 0 || gbs < least ? gbs : least;
			most = gbs > most ? gbs : most;
			printf(" %.2f |", gbs);
		}
		puts("");
	}
	printf("\nkernels: %.2f to %.2f GB/s\n", least, most);
	return st;
}

static gpul_status run_bench(const gpul_driver *drv, void *bench, gpul_error *err)
{
	struct bench *b = bench;
	gpul_status st = timed_load_ptx(drv, ".version 7.4\n.target sm_80\n.address_size 64\n", write_kernels, &b->module, err);

	b->drv = drv;
	st = st ? st : timed_open(&b->timed, drv, err);
	st = st ? st : gpul_cu(drv, err, cuMemHostAlloc(&b->host, b->bytes, CU_MEMHOSTALLOC_DEVICEMAP));
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&b->device, b->bytes));
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&b->out, OUT_BYTES));
	if (!st) {
		memset(b->host, 1, b->bytes);
		st = measure_kernels(b, err);
	}
	if (b->out)
		drv->cuMemFree(b->out);
	if (b->device)
		drv->cuMemFree(b->device);
	if (b->host)
		drv->cuMemFreeHost(b->host);
	timed_close(&b->timed);
	gpul_module_unload(b->module);
	return st;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "driver", required_argument, NULL, 'd' },
					       { "bytes", required_argument, NULL, 'b' },
					       { NULL, 0, NULL, 0 } };
	struct bench b = { .bytes = (size_t)256 << 20 };
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	bool good = true;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;)
		good &= opt == 'd'   ? gpul_driver_choice_parse(optarg, &choice)
			: opt == 'b' ? value_parse_size(optarg, strlen(optarg), &b.bytes, NULL) == GPUL_OK
				     : false;
	if (!good || b.bytes < PIECE_BYTES || b.bytes % PIECE_BYTES) {
		fputs("usage: bench_host_reads [--driver D] [--bytes a multiple of 32K]\n", stderr);
		return 2;
	}
	return timed_run("bench_host_reads", choice, 0, run_bench, &b);
}
