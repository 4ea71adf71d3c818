/* fifo_bench.c — gpuload fifo bench: measures all configurations, one after the other. */
#include "cli/fifo/bench/fifo_bench.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lib/bench/bench_output.h"
#include "cli/lib/cli_stop.h"

enum { MIN_TRIGGERS = 1000, WARM_UP = 100, LATENCY_TRIGGERS = 20000, LATENCY_EACH = 100, WARP_PUSHES = 1 << 19 };

/* Numbers of triggers and pushes if the driver interprets kernels, which is far slower. */
enum { SOFT_TRIGGERS = 512, SOFT_EACH = 2, SOFT_WARP_PUSHES = 256 };

static const unsigned warps[FIFO_MOST_WARPS] = { 1, 8, 64 };

/* Number of triggers per thread in each kind of run. */
struct amount {
	uint64_t triggers, warm_up, latency, warp_pushes;
};

static uint64_t at_least(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct amount amount_of(const struct fifo_bench_request *r, bool interprets, struct fifo_config c)
{
	struct amount a = { .triggers = at_least(MIN_TRIGGERS, 10ull * c.size),
			    .warm_up = at_least(WARM_UP, 2ull * c.size),
			    .latency = at_least(LATENCY_TRIGGERS / c.parallel, LATENCY_EACH) };

	if (interprets)
		a = (struct amount){ .triggers = at_least(SOFT_TRIGGERS / c.parallel, SOFT_EACH),
				     .warm_up = SOFT_EACH,
				     .latency = at_least(SOFT_TRIGGERS / c.parallel, SOFT_EACH) };
	if (r->triggers)
		a.triggers = a.latency = r->triggers;
	return a;
}

static unsigned power_of_two(unsigned n)
{
	unsigned p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* ---- measuring ------------------------------------------------------------------- */

static gpul_status measure_op(const struct fifo_bench_request *r, struct fifo_bench *b, enum fifo_op op, const struct amount *a,
			      struct fifo_row *row, gpul_error *err)
{
	const unsigned parallel = row->config.parallel;
	double per_s[FIFO_MOST_RUNS];
	uint64_t ns;
	gpul_status st = fifo_bench_push(b, row->mode, op, parallel, a->warm_up, &ns, err);

	for (unsigned i = 0; !st && i < r->repeat; i++) {
		st = fifo_bench_push(b, row->mode, op, parallel, a->triggers, &ns, err);
		per_s[i] = (double)(a->triggers * parallel) * 1e9 / (double)ns;
	}
	if (!st)
		row->rate[op] = samples_spread_of(per_s, r->repeat);
	return st;
}

static gpul_status measure_row(const struct fifo_bench_request *r, struct fifo_bench *b, bool interprets, struct fifo_row *row,
			       gpul_error *err)
{
	const struct amount a = amount_of(r, interprets, row->config);
	gpul_status st;

	row->lanes = row->mode == FIFO_LANES ? power_of_two(row->config.parallel) : 1;
	row->triggers = a.triggers;
	st = fifo_bench_create_fifo(b, (gpul_fifo_shape){ .slots = row->config.size, .lanes = row->lanes }, err);
	for (int op = 0; !st && op < FIFO_N_OPS; op++)
		st = measure_op(r, b, (enum fifo_op)op, &a, row, err);
	st = st ? st : fifo_bench_latency(b, row->mode, row->config.parallel, a.warm_up, &row->latency, err);
	return st ? st : fifo_bench_latency(b, row->mode, row->config.parallel, a.latency, &row->latency, err);
}

static gpul_status measure_warps(const struct fifo_bench_request *r, struct fifo_bench *b, bool interprets, struct fifo_warp_row *row,
				 gpul_error *err)
{
	const uint64_t pushes = (uint64_t)(interprets ? SOFT_WARP_PUSHES : WARP_PUSHES) / row->warps;
	double per_s[FIFO_MOST_RUNS];
	uint64_t ns;
	gpul_status st;

	row->lanes = row->mode == FIFO_LANES ? power_of_two(row->warps) : 1;
	row->slots = pushes * row->warps * 32;
	st = fifo_bench_create_fifo(b, (gpul_fifo_shape){ .slots = FIFO_WARP_SLOTS, .lanes = row->lanes }, err);
	st = st ? st : fifo_bench_warp_push(b, row->mode, row->warps, at_least(pushes / 8, 1), &ns, err);
	for (unsigned i = 0; !st && i < r->repeat; i++) {
		st = fifo_bench_warp_push(b, row->mode, row->warps, pushes, &ns, err);
		per_s[i] = (double)row->slots * 1e9 / (double)ns;
	}
	if (!st)
		row->rate = samples_spread_of(per_s, r->repeat);
	return st;
}

static gpul_status measure_all(const struct fifo_bench_request *r, struct fifo_bench *b, struct fifo_bench_result *result, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (int mode = 0; mode < FIFO_N_MODES; mode++) {
		for (unsigned i = 0; !st && r->mode[mode] && i < r->n_configs; i++) {
			struct fifo_row *row = &result->row[result->n_rows++];

			*row = (struct fifo_row){ .mode = (enum fifo_mode)mode, .config = r->config[i] };
			st = measure_row(r, b, result->interprets, row, err);
		}
		for (unsigned i = 0; !st && r->mode[mode] && i < FIFO_MOST_WARPS; i++) {
			struct fifo_warp_row *row = &result->warp[result->n_warps++];

			*row = (struct fifo_warp_row){ .mode = (enum fifo_mode)mode, .warps = warps[i] };
			st = measure_warps(r, b, result->interprets, row, err);
		}
	}
	return st;
}

/* ---- the command ----------------------------------------------------------------- */

static gpul_status pin_to(int cpu, gpul_error *err)
{
	cpu_set_t one;

	if (cpu < 0)
		return GPUL_OK;
	CPU_ZERO(&one);
	CPU_SET((unsigned)cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one))
		return gpul_fail(err, errno == EINVAL ? GPUL_EINVAL : GPUL_ESYS, errno, "--cpu %d: cannot run on this CPU: %s", cpu,
				 strerror(errno));
	return GPUL_OK;
}

static gpul_status describe_machine(const struct devices_arg *d, const struct fifo_bench *b, struct fifo_bench_result *out, gpul_error *err)
{
	const gpul_mem_info *memory = fifo_bench_memory(b);

	out->kind = memory->kind;
	out->node = memory->node;
	if (getcpu(&out->cpu, &out->cpu_node))
		return gpul_fail(err, GPUL_ESYS, errno, "getcpu: %s", strerror(errno));
	return gpul_cu(d->drv, err, cuDeviceGetName(out->gpu, (int)sizeof out->gpu, d->context[0].device));
}

static gpul_status run_benchmark(struct fifo_bench_request *r, struct fifo_bench_result *result, gpul_error *err)
{
	struct fifo_bench *b = NULL;
	gpul_status st = devices_arg_open(&r->devices, err);

	if (st)
		return st;
	result->driver = r->devices.drv->name;
	result->driver_version = r->devices.drv->version;
	result->interprets = r->devices.drv->interprets;
	st = fifo_bench_create(r->devices.drv, r->devices.ordinal[0], r->kind, r->batch, r->timeout_ms, &b, err);
	st = st ? st : stop_begin(err);
	st = st ? st : pin_to(r->cpu, err);
	st = st ? st : measure_all(r, b, result, err);
	st = st ? st : describe_machine(&r->devices, b, result, err);
	fifo_bench_destroy(b);
	devices_arg_close(&r->devices);
	return st;
}

static gpul_status print_results(const struct fifo_bench_request *r, const struct fifo_bench_result *result, gpul_error *err)
{
	struct output o = { .plot = r->plot, .force = r->force, .json = r->json };

	if (r->json)
		fifo_bench_json(r, result, &o.text);
	else if (!r->plot || strcmp(r->plot, "-") != 0)
		fifo_bench_text(r, result, &o.text.out);
	if (r->plot)
		fifo_bench_svg(r, result, &o.svg);
	return output_write(&o, err);
}

static int cmd_fifo_bench(const struct cli_args *args, gpul_error *err)
{
	struct fifo_bench_request *r = calloc(1, sizeof *r);
	struct fifo_bench_result *result = calloc(1, sizeof *result);
	gpul_status st = GPUL_OK;

	if (!r || !result)
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a benchmark");
	st = st ? st : fifo_bench_parse(args, r, err);
	st = st ? st : output_check(r->plot, r->force, err);
	st = st ? st : run_benchmark(r, result, err);
	st = st ? st : print_results(r, result, err);
	free(result);
	free(r);
	return cli_exit_code(st);
}

/* clang-format off */
const struct cli_cmd cli_fifo_bench = {
	"fifo bench", "", "measure throughput and latency of the queue by size and parallelism",
	fifo_bench_details, fifo_bench_opts, cmd_fifo_bench, NULL, NULL,
};
/* clang-format on */
