/* devices.h — the command gpuload devices. */
#ifndef GPULOAD_CLI_DEVICES_DEVICES_H
#define GPULOAD_CLI_DEVICES_DEVICES_H

#include "cli/lib/command.h"

extern const struct cli_cmd cli_devices;

#endif
