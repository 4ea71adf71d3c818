/* devices.h — the command gpuload devices. */
#ifndef GPULOAD_CLI_DEVICES_DEVICES_H
#define GPULOAD_CLI_DEVICES_DEVICES_H

#include "cli/lib/command.h"
#include "cli/lib/json/cli_json.h"
#include "memalloc/probe.h"

extern const struct cli_cmd cli_devices;

/* ---- devices_memory.c: gpuload devices --memory tests which kinds of memory work on a device ---- */

/** Probe a device, with its primary context open during the probe.
 *
 * @drv     borrowed
 * @device  ordinal
 * @out     valid until the process ends
 * Errors  as gpul_context_open(), gpul_mem_probe() */
gpul_status devices_memory_probe(const gpul_driver *drv, int device, const gpul_mem_probe_report **out, gpul_error *err);

/* Print the report as a table on stdout, or as the member "memory" of an open JSON object. */
void devices_memory_print(int device, const gpul_mem_probe_report *r);
void devices_memory_json(struct json *j, const gpul_mem_probe_report *r);

#endif
