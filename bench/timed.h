/* timed.h — a stream, and how long what is queued on it takes by the GPU's own clock. */
#ifndef GPULOAD_BENCH_TIMED_H
#define GPULOAD_BENCH_TIMED_H

#include "driver/driver.h"

struct timed {
	const gpul_driver *drv;  /* borrowed */
	CUstream stream;
	CUevent start, stop;
};

/* A stream that waits for no other.  On failure, too, timed_close() is due. */
gpul_status timed_open(struct timed *t, const gpul_driver *drv, gpul_error *err);
void timed_close(struct timed *t);  /* a zeroed one is fine */

/* Around what is queued; end waits for it, and tells how many milliseconds it took. */
gpul_status timed_begin(struct timed *t, gpul_error *err);
gpul_status timed_end(struct timed *t, double *ms, gpul_error *err);

#endif
