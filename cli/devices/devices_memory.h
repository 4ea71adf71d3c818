/* devices_memory.h — gpuload devices --memory: tests which kinds of memory work on a device. */
#ifndef GPULOAD_CLI_DEVICES_DEVICES_MEMORY_H
#define GPULOAD_CLI_DEVICES_DEVICES_MEMORY_H

#include "cli/lib/json/cli_json.h"
#include "memalloc/probe.h"

/** Probe a device, with its primary context open during the probe.
 *
 * @drv     borrowed
 * @device  ordinal
 * @out     valid until the process ends
 * Errors  as gpul_context_open(), gpul_mem_probe() */
gpul_status devices_memory_probe(const gpul_driver *drv, int device, const gpul_mem_probe_report **out,
				 gpul_error *err);

/* Print the report as a table on stdout, or as the member "memory" of an open JSON object. */
void devices_memory_print(int device, const gpul_mem_probe_report *r);
void devices_memory_json(struct json *j, const gpul_mem_probe_report *r);

#endif
