/* cli_fifo.h — the command gpuload fifo; fifo_bench.h, fifo_trace.h and fifo_serve.h declare its verbs. */
#ifndef GPULOAD_CLI_FIFO_CLI_FIFO_H
#define GPULOAD_CLI_FIFO_CLI_FIFO_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_fifo;

#endif
