/* step.h — a step: a process kills (or stops) itself when it reaches a named point for the n-th time.
 *
 * Points between library calls are named by their callers (owner.c, attacher.c).  Points inside library calls are
 * system calls, which step.c replaces (the linker prefers a program's bind() to libc's), and driver calls of a table
 * whose entries it wraps.  The library has no code for this. */
#ifndef GPULOAD_TESTS_FAULT_STEP_H
#define GPULOAD_TESTS_FAULT_STEP_H

#include <stdint.h>

#include "driver/driver.h"

struct step {
	const char *what; /* description of the step, for messages */
	const char *point;
	int nth;    /* the n-th time that the point is reached, from 1 */
	int signal; /* the signal that the process sends to itself; 0: SIGKILL */
};

/* Make this process the victim of a step; NULL: it is not a victim. */
void step_arm(const struct step *s);

/* Called at each point: send the signal if this is the step.  The time before the signal is stored in *step_time_ns. */
void step_reached(const char *point);
extern _Atomic uint64_t *step_time_ns;

/* Copy a driver table; calls of the copy are points: "exported", "imported", "mapped", "draining", "launching",
 * "launched", "asking". */
void step_wrap(const gpul_driver *drv, gpul_driver *out);

#endif
