/* cli_comm.h — the command gpuload comm; comm_bench.h and others declare its verbs. */
#ifndef GPULOAD_CLI_COMM_CLI_COMM_H
#define GPULOAD_CLI_COMM_CLI_COMM_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_comm;

#endif
