/* fifo_clock.h — converts times of the GPU's clock to the CPU's clock.
 *
 *     CPU  before ──────────┬─ after         The GPU reads its clock at an unknown time between before and after, so the
 *               ╲ question ╱ answer          middle is wrong by at most half the round trip.  The sample with the
 *     GPU        ╲────────╱                  shortest round trip is the best.  One sample before and one after a
 *                 gpu                        measurement give a line, because the two clocks differ in speed.
 *
 *     fifo_clock_create ─ fifo_clock_take ─ ... the measurement ... ─ fifo_clock_take ─ fifo_clock_fit
 *
 * The GPU's clock is %globaltimer, in ns from an unspecified origin; the CPU's is gpul_clock_ns(). */
#ifndef GPULOAD_CLI_FIFO_CLOCK_FIFO_CLOCK_H
#define GPULOAD_CLI_FIFO_CLOCK_FIFO_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"

/* One sample: when the CPU wrote a question and read the answer, and the time of the GPU in the answer. */
struct fifo_clock_sample {
	uint64_t before_ns, after_ns; /* times of the CPU's clock */
	uint64_t gpu_ns;
};

/* The relation of the clocks: the time of one moment on both clocks, and their relative speed. */
struct fifo_clock_relation {
	uint64_t gpu_ns, cpu_ns;
	double drift;         /* duration on the CPU's clock divided by duration on the GPU's clock, minus 1; 1e-6 is 1 ppm */
	double bound_ns;      /* largest error of a converted time between the first and the last sample */
	uint64_t shortest_ns; /* shortest round trip */
	uint64_t step_ns;     /* smallest step of the GPU's clock */
};

/** Compute the relation from samples taken before and after a measurement.
 *
 * The line goes through two samples, those with the shortest round trip of each half of the samples; between them, its error is at most
 * half the longer of the two round trips.  So as many samples must be taken before the measurement as after it.  A sample that
 * contradicts the line (a clock was set meanwhile) enlarges the bound.
 *
 * @samples  in the order they were taken
 * @n        their number
 * @step_ns  step of the GPU's clock
 * @out      filled in
 * Errors  GPUL_EINVAL no sample, or a sample that ends before it begins
 * Source  F. Cristian, Probabilistic clock synchronization, 1989 */
gpul_status fifo_clock_relate(const struct fifo_clock_sample *samples, size_t n, uint64_t step_ns, struct fifo_clock_relation *out,
			      gpul_error *err);

/* Convert a GPU time to a time of gpul_clock_ns(); 0 if it is before the origin of that clock.  Any thread may call. */
uint64_t fifo_clock_cpu_ns(const struct fifo_clock_relation *r, uint64_t gpu_ns);

/* The loaded clock kernel, and memory for questions and answers. */
struct fifo_clock;

/** Load the kernel onto the device, so that nothing must be loaded while other kernels run.
 *
 * @drv  borrowed; must outlive *out; all calls need the same current context
 * @out  owned by the caller: fifo_clock_destroy(); untouched on failure
 * Errors  GPUL_ECUDA, GPUL_ENOMEM
 * Threads one at a time
 * Source  PTX ISA, Special Registers: %globaltimer */
gpul_status fifo_clock_create(const gpul_driver *drv, struct fifo_clock **out, gpul_error *err);
void fifo_clock_destroy(struct fifo_clock *c); /* accepts NULL */

/** Take samples for about a millisecond; the stream is idle afterwards.
 *
 * @c       borrowed
 * @stream  earlier work in it must not wait for this thread
 * Errors  GPUL_ESYS native = ETIMEDOUT: the kernel does not answer; GPUL_ECUDA, GPUL_ENOMEM
 * Threads one at a time */
gpul_status fifo_clock_take(struct fifo_clock *c, CUstream stream, gpul_error *err);

/** Compute the relation from all samples, and discard them.
 *
 * @c    borrowed
 * @out  filled in
 * Errors  as fifo_clock_relate()
 * Threads one at a time */
gpul_status fifo_clock_fit(struct fifo_clock *c, struct fifo_clock_relation *out, gpul_error *err);

#endif
