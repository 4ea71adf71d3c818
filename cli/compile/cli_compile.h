/* cli_compile.h — the commands gpuload compile, gpuload cache and gpuload explain. */
#ifndef GPULOAD_CLI_COMPILE_CLI_COMPILE_H
#define GPULOAD_CLI_COMPILE_CLI_COMPILE_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_compile, cli_cache, cli_explain;

#endif
