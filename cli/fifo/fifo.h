/* fifo.h — the verbs of gpuload fifo, as rows of the table of commands (cli.h). */
#ifndef GPULOAD_CLI_FIFO_FIFO_H
#define GPULOAD_CLI_FIFO_FIFO_H

#include "cli/cli.h"

extern const struct cli_cmd fifo_verbs[];  /* ends with {0} */
extern const char fifo_details[];

enum fifo_bench_opt {
	FIFO_BENCH_SIZES, FIFO_BENCH_PARALLEL, FIFO_BENCH_MODE, FIFO_BENCH_REPEAT, FIFO_BENCH_TRIGGERS, FIFO_BENCH_PLOT,
	FIFO_BENCH_FORCE, FIFO_BENCH_BATCH, FIFO_BENCH_KIND, FIFO_BENCH_DEVICE, FIFO_BENCH_CPU, FIFO_BENCH_TIMEOUT, FIFO_BENCH_DRIVER,
	FIFO_BENCH_JSON,
};

#endif
