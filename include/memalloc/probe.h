/* probe.h — finds out which kinds of memory work on this machine, by trying each of them. */
#ifndef GPULOAD_MEMALLOC_PROBE_H
#define GPULOAD_MEMALLOC_PROBE_H

#include "memalloc/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_mem_verdict {
	bool works;          /* the memory was created; CPU and GPU each read the bytes that the other wrote */
	bool shares;         /* another process imported the memory and exchanged bytes with this process */
	bool tested_another; /* true: the import was tried in another process; false: in this process */
	size_t granularity_bytes;
	char why[248]; /* the first failure, with advice; "": `works` and `shares` are both true */
} gpul_mem_verdict;

typedef struct gpul_mem_probe_report {
	gpul_mem_verdict kind[GPUL_MEM_N_KINDS]; /* indexed by gpul_mem_kind; [AUTO]: a copy of kind[taken] */
	gpul_mem_verdict fabric;                 /* device memory that is shared as a fabric handle */
	gpul_mem_kind taken;                     /* the kind that AUTO uses; AUTO: no kind works */
} gpul_mem_probe_report;

/** Try every kind: create it, map it, export it, and import it in a child process.
 *
 * The driver's attributes are not used, because some drivers report support for a call that then fails.  A process that has used CUDA
 * cannot fork and use CUDA in the child, so the child is a program, gpuload-probe, which is installed beside the command (or named by
 * $GPULOAD_PROBE).  Without that program, this process imports its own export, and the verdict says so (tested_another).  The result is
 * kept: later calls for the same device return it immediately, and gpul_mem_create() with AUTO skips the kinds that did not work.
 *
 * @drv     borrowed
 * @device  ordinal; its primary context must be open and current
 * @out     valid until the process ends
 * Errors  GPUL_EINVAL no such device; GPUL_ENOMEM.  A kind that does not work is a verdict, not an error
 * Threads any thread may call, even concurrently: one thread probes, the others wait */
gpul_status gpul_mem_probe(const gpul_driver *drv, int device, const gpul_mem_probe_report **out, gpul_error *err);

/* Return the report of an earlier gpul_mem_probe() of that device; NULL: it has not been probed.  Any thread may call. */
const gpul_mem_probe_report *gpul_mem_probed(const gpul_driver *drv, int device);

#ifdef __cplusplus
}
#endif

#endif
