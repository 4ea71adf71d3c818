/* probe_internal.h — what probing is made of, here and in the program gpuload-probe.
 *
 *     probe.c        every kind, kept                             probe_main.c
 *     probe_try.c    one kind: create, look, export, ask, look    │ import, look, leave bytes
 *     probe_child.c  the other process: found, started, asked ════╡ socketpair on descriptor 3
 *     probe_look.c   bytes by GPU and by CPU, on both sides ····· probe_look.c
 *
 * One packet each way: a question with at most one descriptor, an answer. */
#ifndef GPULOAD_MEMALLOC_PROBE_INTERNAL_H
#define GPULOAD_MEMALLOC_PROBE_INTERNAL_H

#include <sys/types.h>

#include "memalloc/probe.h"

enum {
	PROBE_BYTES = 4096,            /* that are written and looked at */
	PROBE_FD = 3,                  /* the child's end of the socketpair */
	PROBE_START_MS = 30000,        /* opening a driver of 8 GPUs takes seconds */
	PROBE_ANSWER_MS = 10000,
	PROBE_PROTOCOL = 0x70726f31,   /* another one: a gpuload-probe of another version */
};

struct probe_question {
	gpul_mem_offer offer;
	gpul_mem_handle handle;
	int device;
	bool has_handle;     /* else a descriptor comes with it */
	unsigned char seed;  /* of the bytes that are there; seed + 1 is to be left */
};

struct probe_answer {        /* also the first packet: whether the driver opened */
	unsigned protocol;
	gpul_error err;      /* GPUL_OK: it saw them, and left its own */
};

/* ---- probe_look.c: bytes that only this seed makes --------------------------------------- */

/* Have the GPU's copy engine write to, and read from, an address: from memory of its own, so that
 * no driver does it with the CPU.  `check` is GPUL_EUNSUPPORTED when other bytes are there. */
gpul_status gpul_probe_gpu_write(const gpul_driver *drv, CUdeviceptr at, unsigned char seed,
				 gpul_error *err);
gpul_status gpul_probe_gpu_check(const gpul_driver *drv, CUdeviceptr at, unsigned char seed,
				 gpul_error *err);
void gpul_probe_cpu_write(void *at, unsigned char seed);
gpul_status gpul_probe_cpu_check(const void *at, unsigned char seed, gpul_error *err);

/* The other process' part, in whichever process: import, look for the seed by CPU and GPU, leave
 * seed + 1. */
gpul_status gpul_probe_answer(const gpul_driver *drv, const struct probe_question *q, int fd,
			      gpul_error *err);

/* ---- probe_child.c ----------------------------------------------------------------------- */

struct probe_child {
	const gpul_driver *drv;  /* that it is to open, too */
	pid_t pid;               /* 0: not running */
	int socket;
	bool none;               /* there is no program: do not look again */
	gpul_error broken;       /* it did not start: do not wait for that again */
	int start_ms, answer_ms; /* 0: as above */
};

/* Start it if it does not run.  With c->none set there is no such program; any other failure is
 * that it did not start, or its driver did not open. */
gpul_status gpul_probe_child_start(struct probe_child *c, gpul_error *err);
/* Ask it.  When it dies or says nothing in time that is the error, and it does not run any more. */
gpul_status gpul_probe_child_ask(struct probe_child *c, const struct probe_question *q, int fd,
				 gpul_error *err);
void gpul_probe_child_stop(struct probe_child *c);

/* ---- probe_try.c ------------------------------------------------------------------------- */

/* Try one kind on a device; with fabric, device memory by fabric handle. */
void gpul_probe_try(struct probe_child *c, int device, gpul_mem_kind kind, bool fabric,
		    gpul_mem_verdict *out);

#endif
