/* fifo_clock.h — the GPU's clock and the CPU's: what was the time here, when a kernel read %globaltimer there?
 *
 *     CPU  before ──────────┬─ after         The GPU's reading lies between before and after, nobody knows where:
 *               ╲ ask      ╱ answer          the middle is wrong by at most half the round trip.  So of many such
 *     GPU        ╲────────╱                  samples the shortest counts; of one before a measurement and one after
 *                 gpu                        it, a line: the clocks do not run at quite the same speed.
 *
 *     fifo_clock_create ─ fifo_clock_take ─ ... what is measured ... ─ fifo_clock_take ─ fifo_clock_fit
 *
 * The GPU's clock is %globaltimer, in ns since some moment; the CPU's is gpul_clock_ns(). */
#ifndef GPULOAD_CLI_FIFO_CLOCK_FIFO_CLOCK_H
#define GPULOAD_CLI_FIFO_CLOCK_FIFO_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

/* One question and its answer. */
struct fifo_clock_sample {
	uint64_t before_ns, after_ns;  /* CPU */
	uint64_t gpu_ns;
};

/* The relation: a moment on both clocks, and how fast the CPU's runs beside the GPU's. */
struct fifo_clock_relation {
	uint64_t gpu_ns, cpu_ns;
	double drift;           /* CPU ns a GPU ns, less 1; 1e-6 is 1 ppm */
	double bound_ns;        /* a converted time is wrong by at most so much, between the first and the last sample */
	uint64_t shortest_ns;   /* round trip */
	uint64_t step_ns;       /* what the GPU's clock advances by at least */
};

/** Relate them by samples that were taken in the course of a measurement.
 *
 * The line goes through the shortest sample of the first half of the time and that of the second; it is wrong by half
 * the longer of their round trips.  A sample that this contradicts (a clock was set meanwhile) makes the bound larger.
 *
 * @samples  in the order they were taken
 * @n        their number
 * @step_ns  of the GPU's clock
 * @out      filled
 * Errors  GPUL_EINVAL no sample, or one whose answer came before the question
 * Threads any thread may call
 * Source  F. Cristian, Probabilistic clock synchronization, 1989 */
gpul_status fifo_clock_relate(const struct fifo_clock_sample *samples, size_t n, uint64_t step_ns,
			      struct fifo_clock_relation *out, gpul_error *err);

/* When it was gpu_ns there, in gpul_clock_ns()'s time; 0 for what lies before that began.  Any thread. */
uint64_t fifo_clock_cpu_ns(const struct fifo_clock_relation *r, uint64_t gpu_ns);

/* A kernel that answers, loaded, and memory for questions and answers. */
struct fifo_clock;

/** Load the kernel, onto the device too: nothing is left to be loaded when others run.
 *
 * @drv  borrowed; must outlive *out; a context must be current, the same for all calls
 * @out  owned by the caller: fifo_clock_destroy(); untouched on failure
 * Errors  GPUL_ECUDA, GPUL_ENOMEM
 * Threads one at a time
 * Source  PTX ISA, Special Registers: %globaltimer */
gpul_status fifo_clock_create(const gpul_driver *drv, struct fifo_clock **out, gpul_error *err);
void fifo_clock_destroy(struct fifo_clock *c);  /* NULL is fine */

/** Take samples, for about a millisecond; the stream is idle afterwards.
 *
 * @c       borrowed
 * @stream  its work so far ends without this thread; no such work still waits for it
 * Errors  GPUL_ESYS native = ETIMEDOUT: the kernel does not answer; GPUL_ECUDA, GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status fifo_clock_take(struct fifo_clock *c, CUstream stream, gpul_error *err);

/** fifo_clock_relate() of all samples that were taken, which it forgets then.
 *
 * @c    borrowed
 * @out  filled
 * Errors  those of fifo_clock_relate()
 * Threads one at a time
 * Source  - */
gpul_status fifo_clock_fit(struct fifo_clock *c, struct fifo_clock_relation *out, gpul_error *err);

#endif
