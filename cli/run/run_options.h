/* run_options.h — the rows of the option table of gpuload run, and the options that watch the kernel. */
#ifndef GPULOAD_CLI_RUN_RUN_OPTIONS_H
#define GPULOAD_CLI_RUN_RUN_OPTIONS_H

#include <stdbool.h>

#include "cli/run/cli_run.h"

/* The rows of run_opts[], which is defined in run_options.c. */
/* clang-format off */
enum {
	RUN_KERNEL, RUN_GRID, RUN_BLOCK, RUN_SHARED, RUN_REPEAT, RUN_EXPECT, RUN_RTOL, RUN_ATOL,
	RUN_SAVE, RUN_FORCE, RUN_SHOW, RUN_TIMEOUT, RUN_DRIVER, RUN_DEVICE, RUN_JSON, RUN_INCLUDE, RUN_DEFINE,
	RUN_STD, RUN_SM, RUN_KIND, RUN_LINK_ARG, RUN_LINK_ALL, RUN_NO_CACHE, RUN_EXPLAIN,
	RUN_TRACE, RUN_TRACE_ONLY, RUN_BLOCKS, RUN_FROM, RUN_TRACE_LIMIT,
	RUN_SYNCCHECK, RUN_SYNCCHECK_TIMEOUT, RUN_SCHEDULE, RUN_MAX, RUN_RACECHECK, RUN_RACECHECK_SAME, RUN_RACECHECK_PTX, RUN_PROFILE, RUN_PROFILE_MOST, RUN_PROFILE_SM, RUN_PROFILE_REGISTERS, RUN_MEMCHECK, RUN_N_OPTS,
};
/* clang-format on */

/* ---- tools: options that watch the kernel, on the software driver -------------------------------------------------- */

/* an option of gpuload run, and the option of the tool to which its value is passed */
struct run_tool_option {
	int opt;
	const char *key;
};

/* A tool of the software driver.  The option opt of gpuload run adds NAME or NAME:KEY=VALUE to GPULOAD_SOFT_TOOLS, which starts it. */
struct run_tool {
	int opt, starter;                      /* starter: another option that starts the tool, but sets no KEY; 0: none */
	const char *name;                      /* name as in GPULOAD_SOFT_TOOLS; NULL ends run_tools[] */
	const char *key;                       /* KEY to which the value of opt is passed; NULL: opt has no value */
	const struct run_tool_option *options; /* further options of the tool; a row whose key is NULL ends the array; NULL: none */
};
extern const struct run_tool run_tools[];

/* True if the option belongs to a tool, because such options also apply to a program. */
bool run_tools_have(int opt);

/** Let the software driver start the tools that the options select: append them to GPULOAD_SOFT_TOOLS.
 *
 * @args    the parsed command line
 * @line    options of the file's `// gpuload run:` line; NULL: none
 * @driver  the choice so far; becomes GPUL_DRIVER_SOFT if an option selects a tool
 * Errors   GPUL_EINVAL a tool with --driver nvidia, or an option of a tool that is not selected; GPUL_ENOMEM
 * Threads  the main thread, before gpul_driver_open()
 * Source   softcuda/tools/tool_internal.h: gpul_tools_start() */
gpul_status run_tools_select(const struct cli_args *args, const struct cli_args *line, gpul_driver_choice *driver, gpul_error *err);

#endif
