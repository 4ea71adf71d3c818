/* probed_internal.h — the probe's reports: gpul_mem_probe() adds them, AUTO reads them. */
#ifndef GPULOAD_MEMALLOC_PROBED_INTERNAL_H
#define GPULOAD_MEMALLOC_PROBED_INTERNAL_H

#include "memalloc/probe.h"

/* A report of one driver's device; gpul_mem_probed() finds it from then on. */
struct probe_entry {
	const gpul_driver *drv;
	int device;
	gpul_mem_probe_report report;
	struct probe_entry *next;
};

/* Add a filled entry, which is never freed. */
void gpul_mem_add_report(struct probe_entry *e);

#endif
