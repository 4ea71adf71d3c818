/* step.h — where a process is killed (or stopped): by itself, at the n-th time that it reaches a point.
 *
 * Points between library calls are named by who makes the calls (owner.c, attacher.c).  Those inside are the
 * system calls that step.c stands before (the linker takes a program's own bind() before libc's), and the driver
 * calls of a table whose entries it has wrapped.  The library knows nothing of it. */
#ifndef GPULOAD_TESTS_FAULT_STEP_H
#define GPULOAD_TESTS_FAULT_STEP_H

#include <stdint.h>

#include "driver/driver.h"

struct step {
	const char *what;   /* for people */
	const char *point;
	int nth;            /* from 1 */
	int signal;         /* 0: SIGKILL */
};

/* From now on this process is a victim; NULL: it is none. */
void step_arm(const struct step *s);

/* The signal, if this is the step; the time before it goes into step_time_ns, where that is not NULL. */
void step_reached(const char *point);
extern _Atomic uint64_t *step_time_ns;

/* A copy of a table whose calls are points: "exported", "imported", "mapped", "draining", "launching", "launched",
 * "asking". */
void step_wrap(const gpul_driver *drv, gpul_driver *out);

#endif
