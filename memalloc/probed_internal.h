/* probed_internal.h — the list of probe reports: gpul_mem_probe() adds reports, AUTO reads them. */
#ifndef GPULOAD_MEMALLOC_PROBED_INTERNAL_H
#define GPULOAD_MEMALLOC_PROBED_INTERNAL_H

#include "memalloc/probe.h"

/* The report of one device of one driver. */
struct probe_entry {
	const gpul_driver *drv;
	int device;
	gpul_mem_probe_report report;
	struct probe_entry *next;
};

/* Add an entry to the list, for gpul_mem_probed(); it is never freed. */
void gpul_mem_add_report(struct probe_entry *e);

#endif
