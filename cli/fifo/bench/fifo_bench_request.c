/* fifo_bench_request.c — see fifo_bench.h: what the command line asks for. */
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fifo/fifo.h"
#include "cli/fifo/bench/fifo_bench.h"
#include "cli/lib/value.h"

enum { DEFAULT_REPEAT = 5, DEFAULT_TIMEOUT_MS = 10000, MOST_NUMBERS = 16, MOST_PARALLEL = 4096 };

/* The configurations that figures of others exist for. */
static const struct fifo_config usual[] = {
	{ 1, 1 }, { 128, 1 }, { 128, 8 }, { 128, 64 }, { 128, 128 },
	{ 512, 1 }, { 512, 8 }, { 512, 64 }, { 512, 256 }, { 512, 512 },
};
static const unsigned usual_sizes[] = { 1, 128, 512 }, usual_parallel[] = { 1, 8, 64 };

/* A whole number of an option; NULL: not given. */
static gpul_status parse_number(const char *option, const char *text, uint64_t least, uint64_t most, uint64_t *out,
				gpul_error *err)
{
	char *end;
	unsigned long long n;

	if (!text)
		return GPUL_OK;
	n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : ULLONG_MAX;
	if (n < least || n > most || *end)
		return gpul_fail(err, GPUL_EINVAL, 0, "--%s takes a number from %llu to %llu, not '%.40s'", option,
				 (unsigned long long)least, (unsigned long long)most, text);
	*out = n;
	return GPUL_OK;
}

struct numbers {
	unsigned n, at[MOST_NUMBERS];
};

static gpul_status parse_numbers(const char *option, const char *list, unsigned most, struct numbers *out,
				 gpul_error *err)
{
	for (const char *at = list;; at++) {
		char *end = NULL;
		const unsigned long long n = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;

		if (n < 1 || n > most || (*end && *end != ','))
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "--%s takes numbers from 1 to %u with commas between, such as 1,8,64; not "
					 "'%.40s'",
					 option, most, list);
		if (out->n == MOST_NUMBERS)
			return gpul_fail(err, GPUL_EINVAL, 0, "--%s names more than %d numbers", option, MOST_NUMBERS);
		out->at[out->n++] = (unsigned)n;
		at = end;
		if (!*at)
			return GPUL_OK;
	}
}

static gpul_status fill_numbers(const char *option, const char *list, const unsigned *otherwise, unsigned n_otherwise,
				unsigned most, struct numbers *out, gpul_error *err)
{
	if (list)
		return parse_numbers(option, list, most, out, err);
	for (unsigned i = 0; i < n_otherwise; i++)
		out->at[out->n++] = otherwise[i];
	return GPUL_OK;
}

/* Sizes x threads, without those that have more threads than slots: one of them would have no slot of its own. */
static gpul_status parse_configs(const char *sizes, const char *parallel, struct fifo_bench_request *r, gpul_error *err)
{
	struct numbers size = { 0 }, threads = { 0 };
	gpul_status st;

	if (!sizes && !parallel) {
		for (r->n_configs = 0; r->n_configs < sizeof usual / sizeof *usual; r->n_configs++)
			r->config[r->n_configs] = usual[r->n_configs];
		return GPUL_OK;
	}
	st = fill_numbers("sizes", sizes, usual_sizes, 3, GPUL_FIFO_MAX_SLOTS, &size, err);
	st = st ? st : fill_numbers("parallel", parallel, usual_parallel, 3, MOST_PARALLEL, &threads, err);
	for (unsigned s = 0; !st && s < size.n; s++) {
		if (size.at[s] & (size.at[s] - 1))
			return gpul_fail(err, GPUL_EINVAL, 0, "--sizes: a ring has a power of two of slots, not %u",
					 size.at[s]);
		for (unsigned p = 0; !st && p < threads.n; p++) {
			if (threads.at[p] > size.at[s])
				r->n_left++;
			else if (r->n_configs == FIFO_MOST_CONFIGS)
				st = gpul_fail(err, GPUL_EINVAL, 0, "--sizes and --parallel make more than %d pairs",
					       FIFO_MOST_CONFIGS);
			else
				r->config[r->n_configs++] = (struct fifo_config){ size.at[s], threads.at[p] };
		}
	}
	if (!st && !r->n_configs)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--parallel: more threads than slots in each of the pairs with --sizes; a thread "
				 "needs one slot at least");
	return st;
}

static gpul_status parse_mode(const char *text, struct fifo_bench_request *r, gpul_error *err)
{
	const bool both = !text || !strcmp(text, "both");

	for (int i = 0; i < FIFO_N_MODES; i++)
		r->mode[i] = both || !strcmp(text, fifo_mode_names[i]);
	if (!r->mode[FIFO_SHARED] && !r->mode[FIFO_LANES])
		return gpul_fail(err, GPUL_EINVAL, 0, "--mode is shared, lanes or both, not '%.40s'", text);
	return GPUL_OK;
}

static gpul_status parse_kind(const char *text, gpul_mem_kind *out, gpul_error *err)
{
	*out = GPUL_MEM_AUTO;
	if (text && (!gpul_mem_kind_parse(text, out) || *out == GPUL_MEM_DEVICE || *out == GPUL_MEM_DEVICE_IPC))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--kind is auto, host-numa, memfd, shm or pinned, as the CPU reads the triggers; not "
				 "'%.40s'",
				 text);
	return GPUL_OK;
}

static gpul_status parse_timeout(const char *text, int *out_ms, gpul_error *err)
{
	gpul_status st = text ? value_parse_seconds("timeout", text, out_ms, err) : GPUL_OK;

	if (!st && *out_ms == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "--timeout takes more than 0 seconds");
	return st;
}

gpul_status fifo_bench_parse(const struct cli_args *args, struct fifo_bench_request *r, gpul_error *err)
{
	uint64_t repeat = DEFAULT_REPEAT, cpu = 0, batch = 0;
	gpul_status st;

	*r = (struct fifo_bench_request){ .timeout_ms = DEFAULT_TIMEOUT_MS,
					  .json = cli_value(args, FIFO_BENCH_JSON),
					  .force = cli_value(args, FIFO_BENCH_FORCE),
					  .plot = cli_value(args, FIFO_BENCH_PLOT) };
	if (args->n_operands)
		return gpul_fail(err, GPUL_EINVAL, 0, "'%.40s': fifo bench takes options alone", args->operands[0]);
	if (r->json && r->plot && !strcmp(r->plot, "-"))
		return gpul_fail(err, GPUL_EINVAL, 0, "--plot - and --json both want stdout");
	st = parse_configs(cli_value(args, FIFO_BENCH_SIZES), cli_value(args, FIFO_BENCH_PARALLEL), r, err);
	st = st ? st : parse_mode(cli_value(args, FIFO_BENCH_MODE), r, err);
	st = st ? st : parse_number("repeat", cli_value(args, FIFO_BENCH_REPEAT), 1, FIFO_MOST_RUNS, &repeat, err);
	st = st ? st : parse_number("triggers", cli_value(args, FIFO_BENCH_TRIGGERS), 1, 1 << 24, &r->triggers, err);
	st = st ? st : parse_number("batch", cli_value(args, FIFO_BENCH_BATCH), 1, FIFO_MOST_BATCH, &batch, err);
	st = st ? st : parse_number("cpu", cli_value(args, FIFO_BENCH_CPU), 0, CPU_SETSIZE - 1, &cpu, err);
	st = st ? st : parse_timeout(cli_value(args, FIFO_BENCH_TIMEOUT), &r->timeout_ms, err);
	st = st ? st : parse_kind(cli_value(args, FIFO_BENCH_KIND), &r->kind, err);
	st = st ? st : devices_arg_parse(cli_value(args, FIFO_BENCH_DRIVER), cli_value(args, FIFO_BENCH_DEVICE),
					 &r->devices, err);
	if (!st && r->devices.n > 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "--device takes one number, not '%.40s'",
				 cli_value(args, FIFO_BENCH_DEVICE));
	r->repeat = (unsigned)repeat;
	r->batch = (unsigned)batch;
	r->cpu = cli_value(args, FIFO_BENCH_CPU) ? (int)cpu : -1;
	return st;
}
