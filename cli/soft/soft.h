/* soft.h — gpuload soft: any program on the software driver. */
#ifndef GPULOAD_CLI_SOFT_SOFT_H
#define GPULOAD_CLI_SOFT_SOFT_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_soft;

#endif
