/* devices_memory.h — gpuload devices --memory: which kinds work on a device, and why not. */
#ifndef GPULOAD_CLI_DEVICES_DEVICES_MEMORY_H
#define GPULOAD_CLI_DEVICES_DEVICES_MEMORY_H

#include "cli/lib/json.h"
#include "memalloc/probe.h"

/** Probe a device; its primary context is open meanwhile.
 *
 * @drv     borrowed
 * @device  ordinal
 * @out     lives until the process ends
 * Errors  as gpul_context_open(), gpul_mem_probe()
 * Threads any thread
 * Source  - */
gpul_status devices_memory_probe(const gpul_driver *drv, int device, const gpul_mem_probe_report **out,
				 gpul_error *err);

/* A table on stdout; a member "memory" of the JSON object that is open. */
void devices_memory_print(int device, const gpul_mem_probe_report *r);
void devices_memory_json(struct json *j, const gpul_mem_probe_report *r);

#endif
