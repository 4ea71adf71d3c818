/* bench_netqueue.c — measures how fast a netqueue's kernel copies pieces to their destinations, and compares it with plain
 * copies of the same bytes.
 *
 *     bench_netqueue [--driver auto|nvidia|soft] [--bytes 1024M] [--blocks N] [--threads N] [--chunk N]
 *
 * Before the kernel starts, all pieces are in bounce memory and all entries in the ring, so neither a sender nor the CPU limits
 * it.  Rows: bounce memory in host or in device memory; pieces of 4 KiB, of 64 KiB, and of 1 to 65536 bytes, aligned to 16 bytes
 * or at any address.  For comparison, in the same run, with the same source and destination: a kernel that copies with 16-byte
 * loads and stores, four of them in flight in each thread, and cuMemcpyAsync.  Each figure is the median of five.  The last
 * column is the netqueue's rate divided by the kernel's. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/timed.h"
#include "cli/lib/bench/samples.h"
#include "lab/netqueue/netqueue.h"

enum { RUNS = 5, SLOT_BYTES = 512 << 10, COPY_THREADS = 512, COPY_LOADS = 4, COPY_BLOCKS_PER_MULTIPROCESSOR = 4 };

struct bench {
	const gpul_driver *drv;
	uint64_t bytes; /* size of the bounce memory */
	gpul_netqueue_desc desc;
	gpul_module *module;
	struct timed timed;
	gpul_netqueue *queue;
	CUdeviceptr destination;
	uint32_t n_multiprocessors;
	uint64_t seed;
};

struct row {
	uint32_t least, most; /* smallest and largest size of a piece in bytes */
	bool aligned;
};

static const struct row rows[] = {
	{ 4096, 4096, true }, { 4096, 4096, false }, { 65536, 65536, true }, { 65536, 65536, false }, { 1, 65536, false },
};

/* ---- the plain copy kernel ---- */

static void write_kernels(FILE *to)
{
	fputs(".visible .entry copy(.param .u64 to, .param .u64 from, .param .u64 n)\n{\n"
	      "	.reg .u64 %to, %from, %n, %i, %all, %at, %end;\n	.reg .u32 %a, %b, %c;\n	.reg .pred %p<8>;\n	.reg .u32 %v<32>;\n"
	      "	ld.param.u64 %to, [to];\n	ld.param.u64 %from, [from];\n	ld.param.u64 %n, [n];\n"
	      "	mov.u32 %a, %ctaid.x;\n	mov.u32 %b, %ntid.x;\n	mov.u32 %c, %tid.x;\n	mad.lo.u32 %a, %a, %b, %c;\n"
	      "	cvt.u64.u32 %i, %a;\n	mov.u32 %a, %nctaid.x;\n	mul.lo.u32 %a, %a, %b;\n	cvt.u64.u32 %all, %a;\n"
	      "more:\n	setp.ge.u64 %p7, %i, %n;\n	@%p7 bra done;\n	mov.u64 %end, %i;\n",
	      to);
	for (int k = 0; k < COPY_LOADS; k++)
		fprintf(to,
			"	setp.lt.u64 %%p%d, %%end, %%n;\n	shl.b64 %%at, %%end, 4;\n	add.u64 %%at, %%at, %%from;\n"
			"	@%%p%d ld.global.v4.u32 {%%v%d, %%v%d, %%v%d, %%v%d}, [%%at];\n	add.u64 %%end, %%end, %%all;\n",
			k, k, 4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3);
	for (int k = 0; k < COPY_LOADS; k++)
		fprintf(to,
			"	shl.b64 %%at, %%i, 4;\n	add.u64 %%at, %%at, %%to;\n"
			"	@%%p%d st.global.v4.u32 [%%at], {%%v%d, %%v%d, %%v%d, %%v%d};\n	add.u64 %%i, %%i, %%all;\n",
			k, 4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3);
	fputs("	bra more;\ndone:\n	ret;\n}\n", to);
}

static gpul_status run_copy(struct bench *b, uint64_t bytes, gpul_error *err)
{
	CUdeviceptr from = gpul_mem_gpu(gpul_netqueue_bounce(b->queue));
	uint64_t n = bytes / 16;
	const gpul_launch_config config = { .grid = { b->n_multiprocessors * COPY_BLOCKS_PER_MULTIPROCESSOR, 1, 1 },
					    .block = { b->drv->interprets ? 64 : COPY_THREADS, 1, 1 },
					    .stream = b->timed.stream };
	void *args[] = { &b->destination, &from, &n };
	const gpul_kernel *kernel;
	gpul_status st = gpul_kernel_find(b->module, "copy", &kernel, err);

	return st ? st : gpul_kernel_launch(kernel, &config, args, (const size_t[]){ 8, 8, 8 }, 3, err);
}

static gpul_status run_memcpy(struct bench *b, uint64_t bytes, gpul_error *err)
{
	return gpul_cu(b->drv, err, cuMemcpyAsync(b->destination, gpul_mem_gpu(gpul_netqueue_bounce(b->queue)), bytes, b->timed.stream));
}

/* ---- the netqueue ---- */

static uint64_t below(struct bench *b, uint64_t n)
{
	b->seed = b->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (b->seed >> 24) % n;
}

/* Write ring entries for consecutive pieces, as many as fit into the bounce memory.  Returns their
 * number; *bytes is set to the sum of their sizes. */
static uint64_t write_entries(struct bench *b, const struct row *row, uint64_t *bytes)
{
	const uint32_t n_entries = gpul_netqueue_about(b->queue)->shape.n_entries;
	uint64_t n = 0, source = 0;

	*bytes = 0;
	for (b->seed = 1; n < n_entries; n++) {
		const uint32_t length = row->least + (uint32_t)below(b, row->most - row->least + 1);
		const uint64_t shift = row->aligned ? 0 : below(b, 16);

		if (source % SLOT_BYTES + shift + length > SLOT_BYTES)
			source = (source / SLOT_BYTES + 1) * SLOT_BYTES;
		if (source + shift + length > b->bytes)
			break;
		const gpul_netqueue_entry e = gpul_netqueue_pack(gpul_netqueue_lap(n, n_entries), source + shift, length, *bytes);

		gpul_netqueue_write(b->queue, n, &e);
		*bytes += length;
		source = (source + shift + length + 15) / 16 * 16;
	}
	gpul_netqueue_publish(b->queue, n, true);
	return n;
}

static gpul_status time_netqueue(struct bench *b, const struct row *row, uint64_t *bytes, double *ms, gpul_error *err)
{
	gpul_netqueue_result result;
	uint64_t n;
	gpul_status st;

	gpul_netqueue_empty(b->queue);
	n = write_entries(b, row, bytes);
	st = timed_begin(&b->timed, err);
	st = st ? st : gpul_netqueue_launch(b->queue, b->destination + (row->aligned ? 0 : 5), b->bytes, b->timed.stream, err);
	st = st ? st : timed_end(&b->timed, ms, err);
	st = st ? st : gpul_netqueue_wait(b->queue, &result, err);
	if (!st && (result.counts.n_pieces != n || result.counts.n_bytes != *bytes))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "%llu of %llu pieces were copied", (unsigned long long)result.counts.n_pieces,
			       (unsigned long long)n);
	return st;
}

static gpul_status time_call(struct bench *b, gpul_status (*call)(struct bench *, uint64_t, gpul_error *), uint64_t bytes, double *ms,
			     gpul_error *err)
{
	gpul_status st = timed_begin(&b->timed, err);

	st = st ? st : call(b, bytes, err);
	return st ? st : timed_end(&b->timed, ms, err);
}

/* Time the netqueue, the copy kernel and cuMemcpyAsync in turn, and compute the medians; the first round does not count. */
static gpul_status measure_row(struct bench *b, const struct row *row, const char *memory, gpul_error *err)
{
	double ms[3][RUNS + 1], rate[3];
	uint64_t bytes = 0;
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i <= RUNS; i++) {
		st = time_netqueue(b, row, &bytes, &ms[0][i], err);
		st = st ? st : time_call(b, run_copy, bytes, &ms[1][i], err);
		st = st ? st : time_call(b, run_memcpy, bytes, &ms[2][i], err);
	}
	if (st)
		return st;
	for (int k = 0; k < 3; k++)
		rate[k] = (double)bytes / samples_spread_of(&ms[k][1], RUNS).median / 1e6;
	if (row->least == row->most)
		printf("| %-9s | %7u |", memory, row->most);
	else
		printf("| %-9s | 1-%u |", memory, row->most);
	printf(" %-6s | %8.2f | %11.2f | %11.2f | %5.3f |\n", row->aligned ? "16" : "any", rate[0], rate[1], rate[2], rate[0] / rate[1]);
	return GPUL_OK;
}

static gpul_status measure_memory(struct bench *b, gpul_mem_kind kind, gpul_error *err)
{
	gpul_netqueue_desc desc = b->desc;
	gpul_status st;

	desc.kind = kind;
	desc.shape.slot_bytes = SLOT_BYTES;
	desc.shape.n_slots = (uint32_t)(b->bytes / SLOT_BYTES);
	desc.shape.n_entries = 256;
	while (desc.shape.n_entries < b->bytes / rows[0].least)
		desc.shape.n_entries *= 2;
	st = gpul_netqueue_create(b->drv, &desc, &b->queue, err);
	if (!st) {
		const gpul_netqueue_desc *about = gpul_netqueue_about(b->queue);

		printf("| %s, %u x %u threads, chunks of %u | piece | aligned | netqueue GB/s | copy kernel | cuMemcpy | ratio |\n"
		       "|---|---|---|---|---|---|---|\n",
		       gpul_mem_kind_name(about->kind), about->shape.n_blocks, about->n_threads, about->shape.chunk_entries);
	}
	for (unsigned i = 0; !st && i < sizeof rows / sizeof *rows; i++)
		st = measure_row(b, &rows[i], gpul_mem_kind_name(gpul_netqueue_about(b->queue)->kind), err);
	gpul_netqueue_destroy(b->queue);
	b->queue = NULL;
	return st;
}

static gpul_status measure(const gpul_driver *drv, void *context, gpul_error *err)
{
	struct bench *b = context;
	int n = 0;
	gpul_status st;

	b->drv = drv;
	b->bytes = b->bytes ? b->bytes : drv->interprets ? 4 << 20 : 1 << 30;
	st = gpul_cu(drv, err, cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	b->n_multiprocessors = (uint32_t)n;
	st = st ? st : timed_load_ptx(drv, ".version 6.4\n.target sm_70\n.address_size 64\n", write_kernels, &b->module, err);
	st = st ? st : timed_open(&b->timed, drv, err);
	st = st ? st : gpul_cu(drv, err, cuMemAlloc(&b->destination, b->bytes + 16));
	st = st ? st : measure_memory(b, GPUL_MEM_AUTO, err);
	st = st ? st : measure_memory(b, GPUL_MEM_DEVICE, err);
	if (b->destination)
		drv->cuMemFree(b->destination);
	timed_close(&b->timed);
	gpul_module_unload(b->module);
	return st;
}

/* Parse a size in bytes, a power of two; M may follow. */
static uint64_t parse_bytes(const char *text)
{
	char *end;
	const uint64_t n = strtoull(text, &end, 10) << (strcmp(end, "M") ? 0 : 20);

	return n >= 2 * SLOT_BYTES && (n & (n - 1)) == 0 ? n : 0;
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "driver", required_argument, NULL, 'd' }, { "bytes", required_argument, NULL, 'n' },
					       { "blocks", required_argument, NULL, 'b' }, { "threads", required_argument, NULL, 't' },
					       { "chunk", required_argument, NULL, 'c' },  { NULL, 0, NULL, 0 } };
	struct bench b = { .bytes = 0 };
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	bool good = true;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;)
		switch (opt) {
		case 'd':
			good = good && gpul_driver_choice_parse(optarg, &choice);
			break;
		case 'n':
			b.bytes = parse_bytes(optarg);
			good = good && b.bytes;
			break;
		case 'b':
			b.desc.shape.n_blocks = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 't':
			b.desc.n_threads = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			b.desc.shape.chunk_entries = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		default:
			good = false;
		}
	if (!good) {
		fprintf(stderr,
			"usage: bench_netqueue [--driver auto|nvidia|soft] [--bytes N[M], a power of two] [--blocks N] [--threads N] "
			"[--chunk N]\n");
		return 2;
	}
	return timed_run("bench_netqueue", choice, 0, measure, &b);
}
