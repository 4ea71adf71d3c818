/* timed.h — measures time for the benchmarks: on the CPU, and by events on a stream of the GPU; loads generated PTX. */
#ifndef GPULOAD_BENCH_TIMED_H
#define GPULOAD_BENCH_TIMED_H

#include <stdio.h>

#include "loader/loader.h"

double now_ms(void);
/* Return the CPU time of all threads of this process, which other processes hardly affect. */
double cpu_ms(void);

/* Lower *least to `now` if that is less; *least 0: no time was measured yet. */
static inline void keep_least(double *least, double now)
{
	if (*least <= 0 || now < *least)
		*least = now;
}

struct timed {
	const gpul_driver *drv; /* borrowed */
	CUstream stream;
	CUevent start, stop;
};

/* Create a non-blocking stream and two events.  Call timed_close() even after a failure. */
gpul_status timed_open(struct timed *t, const gpul_driver *drv, gpul_error *err);
void timed_close(struct timed *t); /* accepts a struct of zeros */

/* Call these before and after work is enqueued on the stream.  timed_end() waits for the work, and sets *ms to its time. */
gpul_status timed_begin(struct timed *t, gpul_error *err);
gpul_status timed_end(struct timed *t, double *ms, gpul_error *err);

/* Load PTX: `head` (.version, .target), then the text that write_kernels() writes. */
gpul_status timed_load_ptx(const gpul_driver *drv, const char *head, void (*write_kernels)(FILE *), gpul_module **out, gpul_error *err);

/* Open the driver and the context of a device, and run the benchmark; an error is printed.  Returns the exit status. */
int timed_run(const char *program, gpul_driver_choice choice, int device,
	      gpul_status (*run)(const gpul_driver *drv, void *bench, gpul_error *err), void *bench);

#endif
