/* device_rig.h — a FIFO, kernels of device.cu (or of proxy/fifo.ptx) that push triggers, and code that checks them on the CPU. */
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
	uint64_t *results; /* host memory with the same address on the GPU; device.cu describes both arrays */
	volatile uint64_t *notes;
	gpul_fifo *fifo;
	gpul_fifo_shape shape;
	uint64_t seen[MAX_THREADS];   /* per thread: number of received triggers */
	uint64_t position[POSITIONS]; /* per lane: position of the next trigger */
	bool notes_first;             /* the kernel's note must be visible when its trigger arrives */
	bool shared;
};

/* Set-up and tear-down of a cmocka group: rig_open() loads the kernels of the file named by *state, and sets *state to a struct rig. */
int rig_open(void **state);
int rig_close(void **state);

/* Create a new FIFO and reset the checks. */
void rig_fifo(struct rig *r, unsigned slots, unsigned lanes);
void rig_fifo_close(struct rig *r);

struct rig_kernel {
	const char *name;
	unsigned blocks, threads, count;
	uint64_t first, timeout_ns;
};
void rig_launch(struct rig *r, const struct rig_kernel *k);
bool rig_ended(struct rig *r); /* true: the kernel has ended */
void rig_wait(struct rig *r);  /* wait until the kernel has ended */

/* Poll up to max triggers, check them and write the CPU's notes, but do not release them.  Returns their number. */
unsigned rig_take(struct rig *r, unsigned max);
/* Poll, check and release n triggers; the test fails if they do not arrive. */
void rig_serve(struct rig *r, uint64_t n);
/* Reset the checks for a new kernel, in which each thread starts with trigger 0. */
void rig_forget_threads(struct rig *r);
/* Check that each of the kernel's n threads has this result and this number of pushes. */
void rig_expect(const struct rig *r, unsigned n_threads, unsigned result, unsigned pushed);

#endif
