/* device_rig.h — a FIFO, a kernel of device.cu (or of proxy/fifo.ptx) that pushes into it, and a CPU that checks. */
#ifndef GPULOAD_TESTS_PROXY_DEVICE_RIG_H
#define GPULOAD_TESTS_PROXY_DEVICE_RIG_H

#include "driver/context.h"
#include "proxy/fifo.h"

enum { MAX_THREADS = 1024, POSITIONS = 4096 };

#define FOR_EVER UINT64_MAX

struct rig {
	const gpul_driver *drv;
	gpul_context context;
	CUlibrary library;
	CUstream stream;
	uint64_t *results;  /* device.cu says what is in both; host memory that the GPU sees under the same address */
	volatile uint64_t *notes;
	gpul_fifo *fifo;
	gpul_fifo_shape shape;
	uint64_t seen[MAX_THREADS];         /* of each thread: triggers that came */
	uint64_t position[POSITIONS];       /* of each lane: the next one */
	bool notes_first;                   /* a trigger's note must be there before it is */
	bool shared;
};

/* cmocka's group set-up and tear-down: load the kernels of the file *state; then *state is a struct rig. */
int rig_open(void **state);
int rig_close(void **state);

/* A fresh FIFO, nothing seen. */
void rig_fifo(struct rig *r, unsigned slots, unsigned lanes);
void rig_fifo_close(struct rig *r);

struct rig_kernel {
	const char *name;
	unsigned blocks, threads, count;
	uint64_t first, timeout_ns;
};
void rig_launch(struct rig *r, const struct rig_kernel *k);
bool rig_ended(struct rig *r);       /* the kernel has */
void rig_wait(struct rig *r);        /* until it has */

/* Take out what is there, at most so many, check and answer it; not released yet. */
unsigned rig_take(struct rig *r, unsigned max);
/* Take out, check and release until n came in all; the test fails when they do not. */
void rig_serve(struct rig *r, uint64_t n);
/* The next kernel's threads are others, and begin with i = 0 again. */
void rig_forget_threads(struct rig *r);
/* The kernel's n threads came to that result, each, having pushed so many. */
void rig_expect(const struct rig *r, unsigned n_threads, unsigned result, unsigned pushed);

#endif
