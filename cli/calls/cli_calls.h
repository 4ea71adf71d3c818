/* cli_calls.h — gpuload calls: a log of the CUDA calls of any program. */
#ifndef GPULOAD_CLI_CALLS_CLI_CALLS_H
#define GPULOAD_CLI_CALLS_CLI_CALLS_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_calls;

#endif
