/* soft.c — gpuload soft: sets the environment, reports that in one line, and executes the program. */
#include "cli/soft/soft.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/calls/log/session.h"
#include "cli/lib/message.h"
#include "cli/soft/soft_internal.h"
#include "core/text.h"

/* clang-format off */
enum { SOFT_GPUS, SOFT_SM, SOFT_CUDA, SOFT_MEMORY, SOFT_TOOLS, SOFT_STRICT, SOFT_PCI, SOFT_CALLS, SOFT_CALLS_FORMAT, SOFT_CALLS_OUTPUT, SOFT_ENV, SOFT_QUIET, MAX_GPUS = 16 };
/* clang-format on */

/* clang-format off */
static const struct cli_opt soft_opts[] = {
	[SOFT_GPUS] = { "gpus", "N", "the number of GPUs, 1 to 16 (default: 1)", NULL },
	[SOFT_SM] = { "sm", "NN", "compute capability of the GPUs, as in sm_90 (default: 90)", "75 80 86 89 90 100 120" },
	[SOFT_CUDA] = { "cuda", "X.Y", "the CUDA version that the driver reports (default: 13.0); it has the calls of CUDA 13.0", "12.0 12.9 13.0 13.4" },
	[SOFT_MEMORY] = { "memory", "BYTES", "the memory of each GPU; K, M, G or T may follow (default: that of the machine)", NULL },
	[SOFT_TOOLS] = { "tools", "LIST", "watch the kernels: memcheck, racecheck, synccheck, profile, trace ..., with options as in "
					  "GPULOAD_SOFT_TOOLS; the exit status is 1 if a tool finds an error", "memcheck racecheck synccheck profile trace help" },
	[SOFT_STRICT] = { "strict-ptx", NULL, "refuse the PTX that NVIDIA's ptxas refuses, with the reason on stderr", NULL },
	[SOFT_PCI] = { "pci", NULL, "list the GPUs in /sys/bus/pci/devices and /proc/driver/nvidia/gpus, for libraries that look there "
				"(MSCCL++, UCCL)", NULL },
	[SOFT_CALLS] = { "calls", "[=LIST]", "log all CUDA calls, or those in LIST (gpuload help calls)", "all memory launch driver runtime" },
	[SOFT_CALLS_FORMAT] = { "calls-format", "NAME", "text, json or perfetto (default: text)", "text json perfetto" },
	[SOFT_CALLS_OUTPUT] = { "calls-output", "FILE", "write the log to this file (default: stderr; -: stdout)", CLI_FILES },
	[SOFT_ENV] = { "env", NULL, "print the variables as NAME=VALUE lines instead, for a CI system or env(1)", NULL },
	[SOFT_QUIET] = { "quiet", NULL, "do not print the line that describes the software driver in use", NULL },
	{ 0 },
};
/* clang-format on */

static const char soft_details[] =
	"COMMAND runs with the software driver as libcuda, whether or not the machine has a GPU:\n"
	"\n"
	"    gpuload soft -- python3 -m pytest tests/\n"
	"    gpuload soft --gpus 2 --memory 8G -- ./a.out\n"
	"    gpuload soft --tools memcheck -- python3 train.py\n"
	"\n"
	"Libraries beside the driver replace NVIDIA's run-time compiler, linker and packer (NVRTC,\n"
	"nvJitLink, nvFatbin), call the originals, and produce PTX where a program requests machine code. They are found through\n"
	"LD_LIBRARY_PATH and LD_PRELOAD. Variables of Numba, CuPy, Triton and Warp that are not set\n"
	"are set for the software driver: its path, its assembler, a separate cache for compiled kernels.\n"
	"Calls of a CUDA runtime that is linked into a program (nvcc's default) are redirected to gpuload's\n"
	"CUDA runtime by LD_AUDIT.\n"
	"If CUDA_HOME is not set, it is set to the CUDA tool chain of the Python packages.\n"
	"\n"
	"gpuload replaces itself by COMMAND, so that its signals and its exit status are those of COMMAND. With --calls it waits for COMMAND,\n"
	"passes signals on, and ends with its exit status.\n";

static bool is_number(const char *text, long low, long high)
{
	char *end;
	long n = strtol(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && n >= low && n <= high;
}

/* True for a version from 11.0 to 99.9, which the driver accepts. */
static bool is_version(const char *text)
{
	char *dot;
	long major = strtol(text, &dot, 10);

	return *text >= '1' && *text <= '9' && major >= 11 && major <= 99 && *dot == '.' && dot[1] >= '0' && dot[1] <= '9' && !dot[2];
}

static gpul_status read_options(const struct cli_args *args, struct soft_setup *s, gpul_error *err)
{
	uint64_t bytes;

	s->gpus = cli_value(args, SOFT_GPUS);
	s->sm = cli_value(args, SOFT_SM);
	s->cuda = cli_value(args, SOFT_CUDA);
	s->memory = cli_value(args, SOFT_MEMORY);
	s->tools = cli_value(args, SOFT_TOOLS);
	s->strict_ptx = cli_value(args, SOFT_STRICT) != NULL;
	if (s->sm && !strncmp(s->sm, "sm_", 3))
		s->sm += 3;
	if (s->gpus && !is_number(s->gpus, 1, MAX_GPUS))
		return gpul_fail(err, GPUL_EINVAL, 0, "--gpus must be a number from 1 to %d, not '%s'", MAX_GPUS, s->gpus);
	if (s->sm && !is_number(s->sm, 30, 999))
		return gpul_fail(err, GPUL_EINVAL, 0, "--sm must be a compute capability such as 75, 80 or 90, not '%s'", s->sm);
	if (s->cuda && !is_version(s->cuda))
		return gpul_fail(err, GPUL_EINVAL, 0, "--cuda must be a version of CUDA such as 12.9 or 13.4, not '%s'", s->cuda);
	if (s->memory && (!gpul_text_bytes(s->memory, &bytes) || !bytes))
		return gpul_fail(err, GPUL_EINVAL, 0, "--memory must be a number of bytes such as 512M or 8G, not '%s'", s->memory);
	if (!args->n_operands == !cli_value(args, SOFT_ENV))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 args->n_operands ? "--env only prints the variables, so it cannot be combined with a command"
						  : "a command is missing; for example: gpuload soft -- python3 program.py");
	if (cli_value(args, SOFT_PCI) && cli_value(args, SOFT_ENV))
		return gpul_fail(err, GPUL_EINVAL, 0, "--pci needs a command to run, so it cannot be combined with --env");
	return GPUL_OK;
}

static void report(const struct soft_setup *s, const char *command)
{
	cli_message("soft", "%s runs on the software driver in %s: %s GPU%s, sm_%s, %s%s%s%s%s%s", command, s->folder,
		    s->gpus ? s->gpus : "1", s->gpus && strcmp(s->gpus, "1") ? "s" : "", s->sm ? s->sm : "90",
		    s->memory ? s->memory : "the machine's", " memory", s->tools ? ", tools " : "", s->tools ? s->tools : "",
		    *s->toolkit ? "; CUDA_HOME " : "; no CUDA toolkit found", s->toolkit);
}

/* Read the options for --calls; false: --calls was not given. */
static bool read_calls(const struct cli_args *args, struct calls_options *out)
{
	*out = (struct calls_options){ cli_value(args, SOFT_CALLS), cli_value(args, SOFT_CALLS_FORMAT), cli_value(args, SOFT_CALLS_OUTPUT),
				       false, "soft" };
	return out->filter != NULL;
}

static gpul_status check_calls(const struct cli_args *args, gpul_error *err)
{
	struct calls_options calls;

	if (read_calls(args, &calls))
		return cli_value(args, SOFT_ENV)
			       ? gpul_fail(err, GPUL_EINVAL, 0, "--calls needs a command to run, so it cannot be combined with --env")
			       : calls_check(&calls, err);
	return calls.format || calls.output ? gpul_fail(err, GPUL_EINVAL, 0, "--calls-format and --calls-output need --calls") : GPUL_OK;
}

/* Replace this process by the command; returns only after a failure. */
static gpul_status become(const struct cli_args *args, gpul_error *err)
{
	char **argv = calloc(args->n_operands + 1, sizeof *argv);

	if (!argv)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the arguments of the command");
	for (size_t i = 0; i < args->n_operands; i++)
		argv[i] = (char *)(uintptr_t)args->operands[i];
	fflush(stdout);
	execvp(argv[0], argv);
	free(argv);
	return gpul_fail(err, GPUL_ESYS, errno, "cannot run %s: %s", args->operands[0], strerror(errno));
}

static int run_soft(const struct cli_args *args, gpul_error *err)
{
	struct soft_setup s = { 0 };
	const char *command = args->n_operands ? args->operands[0] : NULL;
	struct calls_options calls;
	int status = 0;
	gpul_status st = read_options(args, &s, err);

	if (!st)
		st = check_calls(args, err);
	if (!st && cli_value(args, SOFT_PCI))
		st = soft_pci(s.gpus ? (unsigned)atoi(s.gpus) : 1, err);
	if (!st)
		st = soft_setup(&s, command, err);
	for (size_t i = 0; i < s.variables.n && !st && cli_value(args, SOFT_ENV); i++)
		printf("%s=%s\n", s.variables.at[i].name, s.variables.at[i].value);
	if (!st && command)
		st = soft_setup_apply(&s, err);
	if (!st && command) {
		if (!cli_value(args, SOFT_QUIET))
			report(&s, command);
		st = read_calls(args, &calls) ? calls_run(&calls, args->operands, args->n_operands, &status, err) : become(args, err);
	}
	soft_setup_free(&s);
	return st ? cli_exit_code(st) : status;
}

/* clang-format off */
const struct cli_cmd cli_soft = {
	"soft", "-- COMMAND [ARG...]", "run any program on the software driver: tests on a machine without a GPU", soft_details, soft_opts, run_soft,
	CLI_FILES, NULL,
};
/* clang-format on */
