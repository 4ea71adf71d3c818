/* as_kernel.h — a FIFO in this program's memory, with one pusher per lane that waits for free slots as a kernel does. */
#ifndef GPULOAD_TESTS_PROXY_AS_KERNEL_H
#define GPULOAD_TESTS_PROXY_AS_KERNEL_H

#include "proxy/fifo.h"
#include "tests/proxy/fifo/pusher.h"

struct as_kernel {
	gpul_fifo_shape shape;
	void *area;
	gpul_fifo *fifo;
	struct pusher *lane; /* one pusher per lane; only one thread may use a lane */
};

/* Open and close the FIFO; an error fails the running test. */
void as_kernel_open(struct as_kernel *k, unsigned slots, unsigned lanes);
void as_kernel_close(struct as_kernel *k);

/* Push a trigger: word 0 is a, word 1 contains kind and the lane's position.  Returns TIMED_OUT if the ring was full for 30 s. */
enum gpul_fifo_result as_kernel_push(struct as_kernel *k, unsigned lane, unsigned kind, uint64_t a);
/* Wait until all triggers of a lane have been handled. */
enum gpul_fifo_result as_kernel_sync(struct as_kernel *k, unsigned lane);

uint64_t as_kernel_tail(const struct as_kernel *k, unsigned lane);
uint64_t as_kernel_abort(const struct as_kernel *k, unsigned lane);
void as_kernel_raise(struct as_kernel *k, unsigned code);

#endif
