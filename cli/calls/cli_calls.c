/* cli_calls.c — gpuload calls: parses its options, and chooses the driver for the program. */
#include "cli/calls/cli_calls.h"

#include <stdint.h>
#include <stdlib.h>

#include "cli/calls/log/session.h"
#include "cli/soft/soft.h"

enum { CALLS_DRIVER, CALLS_FILTER, CALLS_FORMAT, CALLS_OUTPUT, CALLS_SUMMARY };

/* clang-format off */
static const struct cli_opt calls_opts[] = {
	[CALLS_DRIVER] = CLI_DRIVER_OPT,
	[CALLS_FILTER] = { "filter", "LIST", "calls to record: names, patterns and classes, separated by commas; a leading ! excludes "
					     "(default: all)",
			   "all memory vmm launch stream event module graph texture context device driver runtime" },
	[CALLS_FORMAT] = { "format", "NAME", "text, json (one object per line) or perfetto (for ui.perfetto.dev); default: text", "text json perfetto" },
	[CALLS_OUTPUT] = { "output", "FILE", "write the log to this file (default: stderr; -: stdout)", CLI_FILES },
	[CALLS_SUMMARY] = { "summary", NULL, "print a summary with count, time and errors of each function instead of listing the "
					     "calls", NULL },
	{ 0 },
};
/* clang-format on */

static const char calls_details[] =
	"Prints each call of the CUDA driver and of the CUDA runtime that COMMAND makes: arguments and results by their names, what the call\n"
	"returned through pointers, when it began and how long it took. COMMAND need not be built for it.\n"
	"\n"
	"    gpuload calls -- ./a.out\n"
	"    gpuload calls --filter launch,memory -- python3 train.py\n"
	"    gpuload calls --filter '!device' --output calls.txt -- ./a.out\n"
	"    gpuload calls --summary -- ./a.out\n"
	"    gpuload calls --format perfetto --output calls.json -- ./a.out\n"
	"\n"
	"The classes are memory, vmm, launch, stream, event, module, graph, texture, context, device, other, driver and runtime.\n"
	"A name without a version suffix matches all versions of the call: cuMemAlloc also matches cuMemAlloc_v2.\n"
	"\n"
	"With NVIDIA's driver, calls to a CUDA runtime that is linked statically into a program (nvcc's default) are not recorded, but the\n"
	"driver calls that this runtime makes are. With the software driver, both are recorded. Processes that COMMAND starts are recorded,\n"
	"too.\n"
	"The exit status is that of COMMAND.\n";

/* Set the environment variables for a driver.  Only "auto" opens NVIDIA's driver, because finding out whether it exists takes time. */
static gpul_status choose_driver(const char *wanted, const char *command, gpul_error *err)
{
	gpul_driver_choice choice = GPUL_DRIVER_AUTO;
	const gpul_driver *drv;
	gpul_status st;

	if (wanted && !gpul_driver_choice_parse(wanted, &choice))
		return gpul_fail(err, GPUL_EINVAL, 0, "--driver must be auto, nvidia or soft, not '%s'", wanted);
	if (choice == GPUL_DRIVER_NVIDIA)
		return setenv("GPULOAD_DRIVER", "nvidia", 1) ? gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment") : GPUL_OK;
	st = soft_open_driver(choice, &drv, err);
	return st || !drv->interprets ? st : soft_set_environment(command, err);
}

static int run_calls(const struct cli_args *args, gpul_error *err)
{
	struct calls_options options = { cli_value(args, CALLS_FILTER), cli_value(args, CALLS_FORMAT), cli_value(args, CALLS_OUTPUT),
					 cli_value(args, CALLS_SUMMARY) != NULL, "calls" };
	gpul_status st = calls_check(&options, err);
	int status = 0;

	if (!st && !args->n_operands)
		st = gpul_fail(err, GPUL_EINVAL, 0, "a command is missing; for example: gpuload calls -- ./a.out");
	if (!st)
		st = choose_driver(cli_value(args, CALLS_DRIVER), args->operands[0], err);
	if (!st)
		st = calls_run(&options, args->operands, args->n_operands, &status, err);
	return st ? cli_exit_code(st) : status;
}

/* clang-format off */
const struct cli_cmd cli_calls = {
	"calls", "-- COMMAND [ARG...]", "log the CUDA calls of any program, with arguments, results and times", calls_details, calls_opts,
	run_calls, CLI_FILES, NULL,
};
/* clang-format on */
