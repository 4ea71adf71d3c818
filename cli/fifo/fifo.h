/* fifo.h — the command gpuload fifo; its verbs are in fifo_bench.h, fifo_trace.h and fifo_serve.h. */
#ifndef GPULOAD_CLI_FIFO_FIFO_H
#define GPULOAD_CLI_FIFO_FIFO_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_fifo;

#endif
