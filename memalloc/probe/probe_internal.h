/* probe_internal.h — the functions of the probe, in this process and in the program gpuload-probe.
 *
 *     probe.c        every kind; keeps the reports               probe_main.c
 *     probe_try.c    one kind: create, check, export, check      │ import, check, write bytes
 *     probe_child.c  find, start and query the child ════════════╡ socketpair on descriptor 3
 *     probe_bytes.c  patterns by GPU and by CPU, on both sides · probe_bytes.c
 *
 * The protocol is one packet each way: a question with at most one descriptor, then an answer. */
#ifndef GPULOAD_MEMALLOC_PROBE_INTERNAL_H
#define GPULOAD_MEMALLOC_PROBE_INTERNAL_H

#include <sys/types.h>

#include "memalloc/probe.h"

enum {
	PROBE_BYTES = 4096,          /* size of the pattern */
	PROBE_FD = 3,                /* the child's end of the socketpair */
	PROBE_START_MS = 30000,      /* time-out for the start: opening a driver of 8 GPUs takes seconds */
	PROBE_ANSWER_MS = 10000,     /* time-out for each answer */
	PROBE_PROTOCOL = 0x70726f31, /* identifies the version of the protocol */
};

struct probe_question {
	gpul_mem_offer offer;
	gpul_mem_handle handle;
	int device;
	bool has_handle;    /* false: the packet has a descriptor instead */
	unsigned char seed; /* selects the pattern in the memory; the child replaces it by the pattern of seed + 1 */
};

struct probe_answer { /* the child's first answer reports whether it could open its driver */
	unsigned protocol;
	gpul_error err; /* GPUL_OK: the child has found the pattern, and has written the next one */
};

/* ---- probe_bytes.c: a pattern of PROBE_BYTES for each seed ------------------------------- */

/* Write or check a pattern with the GPU's copy engine, through device memory, because a driver might copy between host addresses
 * with the CPU.  The check returns GPUL_EUNSUPPORTED if the memory contains other bytes. */
gpul_status gpul_probe_gpu_write(const gpul_driver *drv, CUdeviceptr at, unsigned char seed, gpul_error *err);
gpul_status gpul_probe_gpu_check(const gpul_driver *drv, CUdeviceptr at, unsigned char seed, gpul_error *err);
void gpul_probe_cpu_write(void *at, unsigned char seed);
gpul_status gpul_probe_cpu_check(const void *at, unsigned char seed, gpul_error *err);

/* Answer a question: import the memory, check the pattern of q->seed with CPU and GPU, and write the pattern of seed + 1.  Called
 * in the child; if gpuload-probe is missing, in this process. */
gpul_status gpul_probe_answer(const gpul_driver *drv, const struct probe_question *q, int fd, gpul_error *err);

/* ---- probe_child.c ----------------------------------------------------------------------- */

struct probe_child {
	const gpul_driver *drv; /* the child opens the same driver */
	pid_t pid;              /* process id of the child; 0: not running */
	int socket;
	bool none;               /* gpuload-probe was not found; do not search again */
	gpul_error broken;       /* the start failed with this error; do not try again */
	int start_ms, answer_ms; /* time-outs; 0: PROBE_START_MS, PROBE_ANSWER_MS */
};

/* Start the child unless it is running.  A failure with c->none set means that gpuload-probe was not found; any other
 * failure means that the child did not start, or that its driver did not open. */
gpul_status gpul_probe_child_start(struct probe_child *c, gpul_error *err);
/* Send a question to the child and wait for the answer.  A child that crashes or does not answer in time is stopped. */
gpul_status gpul_probe_child_query(struct probe_child *c, const struct probe_question *q, int fd, gpul_error *err);
void gpul_probe_child_stop(struct probe_child *c);

/* ---- probe_try.c ------------------------------------------------------------------------- */

/* Try one kind on a device.  fabric: try device memory that is shared as a fabric handle. */
void gpul_probe_try(struct probe_child *c, int device, gpul_mem_kind kind, bool fabric, gpul_mem_verdict *out);

#endif
