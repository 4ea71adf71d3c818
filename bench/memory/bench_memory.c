/* bench_memory.c — measures operations on memory that GPUs, CPUs and processes share, and compares
 * them with the driver's bare calls.
 *
 *     bench_memory [--driver auto|nvidia|soft] [--bytes 64M] [--big 1G] [--runs N] [--json]
 *                  [--only alloc|attach|gpu|cpu]
 *
 * gpuload's functions and the bare calls alternate, so that other load on the machine affects both.
 * Each pair of measurements has a ratio; the table shows the median of these ratios.  On the software
 * driver the kernels read 16 MiB unless --big gives another size. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/memory/memory.h"
#include "cli/lib/value.h"

enum { VICTIMS = 50 };

struct request {
	gpul_driver_choice choice;
	const char *only;
	bool json;
	struct memory_bench bench;
	struct memory_owner *owner;
	struct memory_victims *victims;
};

static bool is_requested(const struct request *r, const char *part)
{
	return !r->only || !strcmp(r->only, part);
}

static gpul_status open_all(struct request *r, gpul_error *err)
{
	struct memory_bench *b = &r->bench;
	gpul_status st = gpul_driver_open(r->choice, &b->drv, err);

	st = st ? st : gpul_context_open(b->drv, 0, &b->context, err);
	st = st ? st : gpul_cu(b->drv, err, cuDeviceGetCount(&b->n_devices));
	if (!st && b->big_bytes == 0)
		b->big_bytes = strcmp(b->drv->name, "soft") ? (size_t)1 << 30 : (size_t)16 << 20;
	return st;
}

static gpul_status measure(struct request *r, gpul_error *err)
{
	struct memory_bench *b = &r->bench;
	gpul_status st = GPUL_OK;

	memory_rows_begin(b);
	if (!st && r->victims)
		st = memory_kill(r->victims, err);
	if (!st && is_requested(r, "alloc"))
		st = memory_alloc(b, err);
	if (!st && r->owner)
		st = memory_attach(b, r->owner, err);
	if (!st && is_requested(r, "gpu"))
		st = memory_gpu(b, err);
	if (!st && is_requested(r, "cpu"))
		st = memory_cpu(b, err);
	if (!st && r->json)
		memory_rows_json(b);
	return st;
}

static int run(struct request *r)
{
	gpul_error err = { 0 };
	gpul_status st;

	if (is_requested(r, "cpu"))
		r->victims = memory_victims_start(VICTIMS);
	if (is_requested(r, "attach"))
		r->owner = memory_owner_start(r->choice, r->bench.bytes);
	st = open_all(r, &err);
	st = st ? st : measure(r, &err);
	memory_owner_stop(r->owner);
	memory_victims_stop(r->victims);
	gpul_context_close(&r->bench.context);
	if (st)
		fprintf(stderr, "bench_memory: %s\n", err.text);
	return st ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option known[] = {
		{ "driver", required_argument, NULL, 'd' },
		{ "bytes", required_argument, NULL, 'b' },
		{ "big", required_argument, NULL, 'g' },
		{ "runs", required_argument, NULL, 'r' },
		{ "only", required_argument, NULL, 'o' },
		{ "json", no_argument, NULL, 'j' },
		{ 0 },
	};
	struct request r = { .bench = { .bytes = (size_t)64 << 20, .runs = 21 } };
	bool good = true;

	for (int opt; (opt = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		if (opt == 'd')
			good &= gpul_driver_choice_parse(optarg, &r.choice);
		else if (opt == 'b')
			good &= value_parse_size(optarg, strlen(optarg), &r.bench.bytes, NULL) == GPUL_OK;
		else if (opt == 'g')
			good &= value_parse_size(optarg, strlen(optarg), &r.bench.big_bytes, NULL) == GPUL_OK;
		else if (opt == 'r')
			r.bench.runs = atoi(optarg);
		else if (opt == 'o')
			r.only = optarg;
		else if (opt == 'j')
			r.json = true;
		else
			good = false;
	}
	if (!good || r.bench.runs < 15 || r.bench.runs > MEMORY_MAX_SAMPLES || r.bench.bytes == 0) {
		fputs("usage: bench_memory [--driver D] [--bytes B] [--big B] [--runs 15...] "
		      "[--only PART] [--json]\n",
		      stderr);
		return 2;
	}
	return run(&r);
}
