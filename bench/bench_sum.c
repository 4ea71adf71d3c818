/* bench_sum.c — measures how fast the sum kernels (cli/kernels/sum.cu) read memory, compared with the driver's copies.
 *
 *     bench_sum [--driver auto|nvidia|soft] [--device N] [--bytes 1G] [--type f32] [--runs N]
 *
 * A rate is the number of bytes read, divided by the time between two CUDA events, in the median run.  For a copy
 * within the device, only the bytes read count.  Each sum that the GPU computes is compared with that of the CPU. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "cli/lib/bench/samples.h"
#include "cli/lib/fill.h"
#include "cli/sum/cli_sum.h"
#include "core/clock.h"
#include "driver/context.h"
#include "memalloc/mem.h"

enum { MAX_RUNS = 101 };

struct bench {
	const gpul_driver *drv;
	struct timed timed;
	gpul_type type;
	size_t count, bytes;
	int runs, device_ordinal;
	struct sum_gpu *sum;
	void *pinned;              /* page-locked host memory that contains the data */
	CUdeviceptr device, other; /* device memory; device: contains the data; other: destination of copies */
	gpul_mem *numa;            /* host-numa memory; NULL: not available */
};

/* An operation to measure: the function enqueues it on b->timed.stream. */
typedef gpul_status work(struct bench *b, CUdeviceptr at, gpul_error *err);

static gpul_status queue_sum(struct bench *b, CUdeviceptr at, gpul_error *err)
{
	return sum_gpu_start(b->sum, at, b->count, b->timed.stream, err);
}

static gpul_status queue_copy_to_device(struct bench *b, CUdeviceptr at, gpul_error *err)
{
	return gpul_cu(b->drv, err, cuMemcpyHtoDAsync(b->other, (void *)(uintptr_t)at, b->bytes, b->timed.stream));
}

static gpul_status queue_copy_from_device(struct bench *b, CUdeviceptr at, gpul_error *err)
{
	return gpul_cu(b->drv, err, cuMemcpyDtoHAsync(b->pinned, at, b->bytes, b->timed.stream));
}

static gpul_status queue_copy_within_device(struct bench *b, CUdeviceptr at, gpul_error *err)
{
	return gpul_cu(b->drv, err, cuMemcpyDtoDAsync(b->other, at, b->bytes, b->timed.stream));
}

static gpul_status time_once(struct bench *b, work *w, CUdeviceptr at, double *ms, gpul_error *err)
{
	gpul_status st = timed_begin(&b->timed, err);

	st = st ? st : w(b, at, err);
	st = st ? st : timed_end(&b->timed, ms, err);
	return st;
}

static gpul_status measure_row(struct bench *b, const char *name, work *w, CUdeviceptr at, gpul_error *err)
{
	double ms[MAX_RUNS];
	gpul_status st = time_once(b, w, at, ms, err); /* a warm-up run */

	for (int i = 0; !st && i < b->runs; i++)
		st = time_once(b, w, at, &ms[i], err);
	if (st)
		return st;
	samples_sort(ms, (size_t)b->runs);
	printf("| %-36s | %9.3f | %9.3f | %9.1f |\n", name, ms[0], ms[b->runs / 2], (double)b->bytes / ms[b->runs / 2] * 1e-6);
	fflush(stdout);
	return GPUL_OK;
}

/* Measure a sum, and check its result. */
static gpul_status measure_sum(struct bench *b, const char *name, CUdeviceptr at, gpul_error *err)
{
	struct sum gpu, cpu;
	char text[2][VALUE_TEXT_BYTES];
	gpul_status st = measure_row(b, name, queue_sum, at, err);

	st = st ? st : sum_gpu_finish(b->sum, b->timed.stream, -1, &gpu, err);
	st = st ? st : sum_on_cpu(b->type, b->pinned, b->count, &cpu, err);
	if (!st && !sum_equal(&gpu, &cpu))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%s: %s, but the CPU's sum is %s", name, sum_print(&gpu, text[0]),
			       sum_print(&cpu, text[1]));
	return st;
}

/* Measure the sum of host memory in two ways: by kernels that read it over the bus, and by copies to staging buffers as
 * in gpuload mmap-sum. */
static gpul_status measure_host(struct bench *b, const char *kind, CUdeviceptr at, gpul_error *err)
{
	char name[64];
	gpul_status st;

	snprintf(name, sizeof name, "sum of %s, by loads over the bus", kind);
	sum_gpu_choose(b->sum, SUM_DIRECT);
	st = measure_sum(b, name, at, err);
	snprintf(name, sizeof name, "sum of %s, as in gpuload mmap-sum", kind);
	sum_gpu_choose(b->sum, SUM_QUICKEST);
	return st ? st : measure_sum(b, name, at, err);
}

static gpul_status measure_cpu(struct bench *b, gpul_error *err)
{
	struct sum sum;
	uint64_t start = gpul_clock_ns();
	gpul_status st = sum_on_cpu(b->type, b->pinned, b->count, &sum, err);
	double ms = (double)(gpul_clock_ns() - start) * 1e-6;

	if (!st)
		printf("| %-36s | %9.3f | %9.3f | %9.1f |\n", "sum on one CPU core (one run)", ms, ms, (double)b->bytes / ms * 1e-6);
	return st;
}

static gpul_status measure_all(struct bench *b, gpul_error *err)
{
	const CUdeviceptr pinned = (CUdeviceptr)(uintptr_t)b->pinned;
	gpul_status st;

	puts("| what                                 |    min ms | median ms |      GB/s |");
	puts("|--------------------------------------|----------:|----------:|----------:|");
	st = measure_row(b, "cuMemcpyHtoD, pinned", queue_copy_to_device, pinned, err);
	st = st ? st : measure_row(b, "cuMemcpyDtoH, pinned", queue_copy_from_device, b->device, err);
	st = st ? st : measure_host(b, "pinned", pinned, err);
	if (!st && b->numa) {
		st = measure_row(b, "cuMemcpyHtoD, host-numa", queue_copy_to_device, gpul_mem_gpu(b->numa), err);
		st = st ? st : measure_host(b, "host-numa", gpul_mem_gpu(b->numa), err);
	}
	st = st ? st : measure_row(b, "cuMemcpyDtoD, bytes read", queue_copy_within_device, b->device, err);
	st = st ? st : measure_sum(b, "sum of device memory", b->device, err);
	return st ? st : measure_cpu(b, err);
}

/* Create host-numa memory; if this is not possible, print a message and continue. */
static void create_numa(struct bench *b)
{
	gpul_mem_desc desc = {
		.kind = GPUL_MEM_HOST_NUMA, .bytes = b->bytes, .node = GPUL_MEM_NODE_OF_GPU, .devices = &b->device_ordinal, .n_devices = 1
	};
	gpul_error why = { 0 };

	if (gpul_mem_create(b->drv, &desc, &b->numa, &why))
		fprintf(stderr, "bench_sum: no host-numa memory: %s\n", why.text);
	else
		memcpy(gpul_mem_cpu(b->numa), b->pinned, b->bytes);
}

static gpul_status create_memory(struct bench *b, gpul_error *err)
{
	size_t count = b->count;
	void *data = NULL;
	gpul_status st = fill_make(b->type, "rand", NULL, &count, &data, err);

	st = st ? st : timed_open(&b->timed, b->drv, err);
	st = st ? st : gpul_cu(b->drv, err, cuMemHostAlloc(&b->pinned, b->bytes, CU_MEMHOSTALLOC_DEVICEMAP));
	st = st ? st : gpul_cu(b->drv, err, cuMemAlloc(&b->device, b->bytes));
	st = st ? st : gpul_cu(b->drv, err, cuMemAlloc(&b->other, b->bytes));
	st = st ? st : sum_gpu_create(b->drv, b->type, b->count, &b->sum, err);
	if (!st) {
		memcpy(b->pinned, data, b->bytes);
		st = gpul_cu(b->drv, err, cuMemcpyHtoD(b->device, b->pinned, b->bytes));
		create_numa(b);
	}
	free(data);
	return st;
}

static void free_memory(struct bench *b)
{
	gpul_mem_destroy(b->numa);
	sum_gpu_destroy(b->sum);
	if (b->other)
		b->drv->cuMemFree(b->other);
	if (b->device)
		b->drv->cuMemFree(b->device);
	if (b->pinned)
		b->drv->cuMemFreeHost(b->pinned);
	timed_close(&b->timed);
}

static gpul_status run_bench(const gpul_driver *drv, void *bench, gpul_error *err)
{
	struct bench *b = bench;
	gpul_status st;

	b->drv = drv;
	st = create_memory(b, err);
	st = st ? st : measure_all(b, err);
	free_memory(b);
	return st;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "driver", required_argument, NULL, 'd' }, { "device", required_argument, NULL, 'n' },
		{ "bytes", required_argument, NULL, 'b' },  { "type", required_argument, NULL, 't' },
		{ "runs", required_argument, NULL, 'r' },   { NULL, 0, NULL, 0 },
	};
	struct bench b = { .type = GPUL_F32, .bytes = (size_t)64 << 20, .runs = 21 };
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	bool good = true;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == 'd')
			good &= gpul_driver_choice_parse(optarg, &choice);
		else if (opt == 'n')
			b.device_ordinal = atoi(optarg);
		else if (opt == 'b')
			good &= value_parse_size(optarg, strlen(optarg), &b.bytes, NULL) == GPUL_OK;
		else if (opt == 't')
			good &= (b.type = value_type(optarg, strlen(optarg))) != GPUL_TYPE_NONE;
		else if (opt == 'r')
			b.runs = atoi(optarg);
		else
			good = false;
	}
	if (!good || b.runs < 1 || b.runs > MAX_RUNS || b.bytes < 16) {
		fputs("usage: bench_sum [--driver D] [--device N] [--bytes B] [--type T] [--runs 1..101]\n", stderr);
		return 2;
	}
	b.count = b.bytes / gpul_type_bytes(b.type);
	b.bytes = b.count * gpul_type_bytes(b.type);
	return timed_run("bench_sum", choice, b.device_ordinal, run_bench, &b);
}
