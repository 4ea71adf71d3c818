/* cli_rdma.h — the command gpuload rdma; rdma_devices.h and others declare its verbs. */
#ifndef GPULOAD_CLI_RDMA_CLI_RDMA_H
#define GPULOAD_CLI_RDMA_CLI_RDMA_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_rdma;

#endif
