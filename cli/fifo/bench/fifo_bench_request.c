/* fifo_bench_request.c — parses the command line of gpuload fifo bench. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fifo/bench/fifo_bench.h"
#include "cli/lib/value.h"

/* clang-format off */
enum {
	OPT_SIZES, OPT_PARALLEL, OPT_MODE, OPT_REPEAT, OPT_TRIGGERS, OPT_PLOT,
	OPT_FORCE, OPT_BATCH, OPT_KIND, OPT_DEVICE, OPT_CPU, OPT_TIMEOUT, OPT_DRIVER,
	OPT_JSON,
};
/* clang-format on */

/* clang-format off */
const struct cli_opt fifo_bench_opts[] = {
	[OPT_SIZES] = { "sizes", "LIST",
		"total number of slots, powers of two, such as 1,128,512 (default)", NULL },
	[OPT_PARALLEL] = { "parallel", "LIST",
		"threads that push, each in a separate block, such as 1,8,64", NULL },
	[OPT_MODE] = { "mode", "MODE",
		"one queue for all threads, or one lane per thread (default: both)", "shared lanes both" },
	[OPT_REPEAT] = { "repeat", "N",
		"run each measurement N times and print the median (default: 5)", NULL },
	[OPT_TRIGGERS] = { "triggers", "N",
		"number of triggers per thread (default: the larger of 1000 and 10 x size)", NULL },
	[OPT_PLOT] = { "plot", "FILE",
		"also draw throughput and latency as SVG; - is stdout, without the tables", CLI_FILES },
	[OPT_FORCE] = { "force", NULL, "replace FILE if it exists", NULL },
	[OPT_BATCH] = { "batch", "N",
		"the CPU releases slots after at most N triggers (default: 64; warp push: 1024)", NULL },
	[OPT_KIND] = { "kind", "KIND",
		"kind of host memory (default: auto, the first that works)", "auto host-numa memfd shm pinned" },
	[OPT_DEVICE] = { "device", "N", "number of the GPU, counted from 0 (default: 0)", NULL },
	[OPT_CPU] = { "cpu", "N",
		"the CPU whose thread takes the triggers out of the queue (default: chosen by the system)", NULL },
	[OPT_TIMEOUT] = { "timeout", "SECONDS",
		"fail if no trigger arrives for this many seconds (default: 10)", NULL },
	[OPT_DRIVER] = CLI_DRIVER_OPT,
	[OPT_JSON] = CLI_JSON_OPT,
	{ 0 },
};
/* clang-format on */

const char fifo_bench_details[] = "Blocks of one thread push triggers; this program's main thread takes them out while the\n"
				  "kernel runs and counts each in a hash map. Throughput is the number of triggers over the\n"
				  "time from the launch until the stream is synchronised. All counts are checked.\n"
				  "\n"
				  "    push           16 bytes; earlier writes of the thread may become visible later\n"
				  "    push release   earlier writes are visible to a CPU thread that sees the trigger\n"
				  "    + sync each    wait after each push until the CPU has handled the trigger\n"
				  "    push to pop    time from a push until the CPU takes the trigger out\n"
				  "    push to sync   time from a push until the thread sees that it has been handled\n"
				  "    warp push      32 triggers at a time; the CPU reads and checks each\n"
				  "\n"
				  "Default: 1 slot with 1 thread; 128 slots with 1, 8, 64, 128 threads; 512 slots with 1, 8,\n"
				  "64, 256, 512 threads. With only one of --sizes and --parallel, the other is 1,128,512 or\n"
				  "1,8,64. Pairs with more threads than slots are left out. Mode lanes has one lane per thread,\n"
				  "and as many slots as mode shared.\n"
				  "\n"
				  "On the software driver fewer triggers are pushed; the output gives their number.\n";

enum { DEFAULT_REPEAT = 5, DEFAULT_TIMEOUT_MS = 10000, MOST_NUMBERS = 16, MOST_PARALLEL = 4096 };

/* The default configurations, which are also those of fifo_bench_peer.c. */
static const struct fifo_config usual[] = {
	{ 1, 1 }, { 128, 1 }, { 128, 8 }, { 128, 64 }, { 128, 128 }, { 512, 1 }, { 512, 8 }, { 512, 64 }, { 512, 256 }, { 512, 512 },
};
static const unsigned usual_sizes[] = { 1, 128, 512 }, usual_parallel[] = { 1, 8, 64 };

struct numbers {
	unsigned n, at[MOST_NUMBERS];
};

static gpul_status parse_numbers(const char *option, const char *list, unsigned most, struct numbers *out, gpul_error *err)
{
	for (const char *at = list;; at++) {
		char *end = NULL;
		const unsigned long long n = *at >= '0' && *at <= '9' ? strtoull(at, &end, 10) : 0;

		if (n < 1 || n > most || (*end && *end != ','))
			return gpul_fail(err, GPUL_EINVAL, 0,
					 "--%s must be numbers from 1 to %u separated by commas, such as 1,8,64; not "
					 "'%s'",
					 option, most, list);
		if (out->n == MOST_NUMBERS)
			return gpul_fail(err, GPUL_EINVAL, 0, "--%s has more than %d numbers", option, MOST_NUMBERS);
		out->at[out->n++] = (unsigned)n;
		at = end;
		if (!*at)
			return GPUL_OK;
	}
}

static gpul_status fill_numbers(const char *option, const char *list, const unsigned *otherwise, unsigned n_otherwise, unsigned most,
				struct numbers *out, gpul_error *err)
{
	if (list)
		return parse_numbers(option, list, most, out, err);
	for (unsigned i = 0; i < n_otherwise; i++)
		out->at[out->n++] = otherwise[i];
	return GPUL_OK;
}

/* Form all pairs of sizes and threads, except pairs with more threads than slots: each thread needs a slot. */
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
			return gpul_fail(err, GPUL_EINVAL, 0, "--sizes: %u is not a power of two", size.at[s]);
		for (unsigned p = 0; !st && p < threads.n; p++) {
			if (threads.at[p] > size.at[s])
				r->n_left++;
			else if (r->n_configs == FIFO_MOST_CONFIGS)
				st = gpul_fail(err, GPUL_EINVAL, 0, "--sizes and --parallel give more than %d pairs", FIFO_MOST_CONFIGS);
			else
				r->config[r->n_configs++] = (struct fifo_config){ size.at[s], threads.at[p] };
		}
	}
	if (!st && !r->n_configs)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--parallel and --sizes: every pair has more threads than slots; a thread needs at least "
				 "one slot");
	return st;
}

static gpul_status parse_mode(const char *text, struct fifo_bench_request *r, gpul_error *err)
{
	const bool both = !text || !strcmp(text, "both");

	for (int i = 0; i < FIFO_N_MODES; i++)
		r->mode[i] = both || !strcmp(text, fifo_mode_names[i]);
	if (!r->mode[FIFO_SHARED] && !r->mode[FIFO_LANES])
		return gpul_fail(err, GPUL_EINVAL, 0, "--mode must be shared, lanes or both, not '%s'", text);
	return GPUL_OK;
}

static gpul_status parse_kind(const char *text, gpul_mem_kind *out, gpul_error *err)
{
	*out = GPUL_MEM_AUTO;
	if (text && (!gpul_mem_kind_parse(text, out) || *out == GPUL_MEM_DEVICE || *out == GPUL_MEM_DEVICE_IPC))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "--kind must be auto, host-numa, memfd, shm or pinned, which the CPU can access; not "
				 "'%s'",
				 text);
	return GPUL_OK;
}

gpul_status fifo_bench_parse(const struct cli_args *args, struct fifo_bench_request *r, gpul_error *err)
{
	uint64_t repeat = DEFAULT_REPEAT, cpu = 0, batch = 0;
	gpul_status st;

	*r = (struct fifo_bench_request){ .timeout_ms = DEFAULT_TIMEOUT_MS,
					  .json = cli_value(args, OPT_JSON),
					  .force = cli_value(args, OPT_FORCE),
					  .plot = cli_value(args, OPT_PLOT) };
	if (args->n_operands)
		return gpul_fail(err, GPUL_EINVAL, 0, "unexpected operand '%s': fifo bench has only options", args->operands[0]);
	if (r->json && r->plot && !strcmp(r->plot, "-"))
		return gpul_fail(err, GPUL_EINVAL, 0, "--plot - and --json both write to stdout");
	st = parse_configs(cli_value(args, OPT_SIZES), cli_value(args, OPT_PARALLEL), r, err);
	st = st ? st : parse_mode(cli_value(args, OPT_MODE), r, err);
	st = st ? st : value_parse_count("--repeat", cli_value(args, OPT_REPEAT), 1, FIFO_MOST_RUNS, &repeat, err);
	st = st ? st : value_parse_count("--triggers", cli_value(args, OPT_TRIGGERS), 1, 1 << 24, &r->triggers, err);
	st = st ? st : value_parse_count("--batch", cli_value(args, OPT_BATCH), 1, FIFO_MOST_BATCH, &batch, err);
	st = st ? st : value_parse_count("--cpu", cli_value(args, OPT_CPU), 0, CPU_SETSIZE - 1, &cpu, err);
	st = st ? st : value_parse_time("timeout", cli_value(args, OPT_TIMEOUT), &r->timeout_ms, err);
	st = st ? st : parse_kind(cli_value(args, OPT_KIND), &r->kind, err);
	st = st ? st : devices_arg_parse(cli_value(args, OPT_DRIVER), cli_value(args, OPT_DEVICE), &r->devices, err);
	if (!st && r->devices.n > 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "--device must be one number, not '%s'", cli_value(args, OPT_DEVICE));
	r->repeat = (unsigned)repeat;
	r->batch = (unsigned)batch;
	r->cpu = cli_value(args, OPT_CPU) ? (int)cpu : -1;
	return st;
}
