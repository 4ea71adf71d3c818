/* probe.h — which kinds of memory work here, found out by doing it. */
#ifndef GPULOAD_MEMALLOC_PROBE_H
#define GPULOAD_MEMALLOC_PROBE_H

#include "memalloc/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_mem_verdict {
	bool works;          /* created, and the CPU and the GPU saw each other's bytes */
	bool shares;         /* exported, and another process imported it and saw them, too */
	bool asked_another;  /* another process was really asked */
	size_t granularity_bytes;
	char why[248];       /* the first "no": what failed, what to do; "": both are yes */
} gpul_mem_verdict;

typedef struct gpul_mem_probe_report {
	gpul_mem_verdict kind[GPUL_MEM_N_KINDS];  /* by gpul_mem_kind; AUTO: of what it takes */
	gpul_mem_verdict fabric;                  /* device memory by fabric handle */
	gpul_mem_kind taken;                      /* by AUTO; AUTO: nothing works */
} gpul_mem_probe_report;

/** Try every kind: create, map, export, and import in a child process.
 *
 * Attributes of the driver are not believed: some say yes where the call fails.  A process that
 * has used CUDA cannot fork and use it again, so the child is a program, gpuload-probe, which lies
 * beside the command (or is named by $GPULOAD_PROBE); where it cannot be found, this process imports
 * what it exported, and the verdict says so.  The result is kept: later calls for the same device
 * return it at once, and gpul_mem_create() with AUTO skips the kinds that are known not to work.
 *
 * @drv     borrowed
 * @device  ordinal; its primary context must be open and current
 * @out     lives until the process ends
 * Errors  GPUL_EINVAL no such device; GPUL_ENOMEM.  A kind that does not work is no error
 * Threads any thread may call, also at once: one probes, the others wait
 * Source  - */
gpul_status gpul_mem_probe(const gpul_driver *drv, int device, const gpul_mem_probe_report **out,
			   gpul_error *err);

/* What an earlier gpul_mem_probe() of that device found; NULL: there was none.  Any thread. */
const gpul_mem_probe_report *gpul_mem_probed(const gpul_driver *drv, int device);

#ifdef __cplusplus
}
#endif

#endif
