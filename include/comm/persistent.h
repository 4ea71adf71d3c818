/* persistent.h — a kernel that stays on the GPU and runs the collectives that the CPU posts to it, without a launch for each collective.
 *
 *     gpul_comm_persistent_start ──> kernel on a stream of its own          every rank calls it
 *       gpul_comm_persistent_post(p, call, &ticket)                         writes a few words into a queue in host memory
 *       gpul_comm_persistent_wait(p, ticket)                                waits until the kernel has finished that call
 *     gpul_comm_persistent_stop
 *
 * The kernel polls, and occupies the multiprocessors of its blocks until it is stopped.  While it runs, the communicator refuses
 * other calls, gpul_comm_alloc() and gpul_comm_free(); and nothing may wait for the whole device (cuCtxSynchronize, cuMemFree). The
 * kernel is not ordered with streams: before a post, wait for the work that fills its send buffer. */
#ifndef GPULOAD_COMM_PERSISTENT_H
#define GPULOAD_COMM_PERSISTENT_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm_persistent gpul_comm_persistent; /* opaque; the struct is defined in persistent.c */

/* Arguments of a collective, as in comm.h. */
typedef struct gpul_comm_posting {
	gpul_comm_call call; /* a collective other than ALLTOALL: one with RESIDENT rows in kernels/kernels.def */
	CUdeviceptr send, recv;
	size_t count;
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	int root; /* root rank, if the call has one */
} gpul_comm_posting;

/** Start the kernel.
 *
 * Every rank calls it, with the same n_blocks, and posts the same calls in the same order.
 *
 * @c         communicator; at most one persistent kernel at a time
 * @n_blocks  blocks of the kernel, at most as many as the communicator has; 0: chosen for the device
 * @out       owned by the caller: gpul_comm_persistent_stop(); untouched on failure
 * Errors  GPUL_EINVAL too many blocks, or one is running already; GPUL_EUNSUPPORTED some ranks use the network; GPUL_ENOMEM;
 *         GPUL_ECUDA; a failure of the communicator
 * Threads one at a time
 * Source  CUDA C++ Programming Guide, Page-Locked Host Memory */
gpul_status gpul_comm_persistent_start(gpul_comm *c, unsigned n_blocks, gpul_comm_persistent **out, gpul_error *err);

/** Post a collective.  Returns immediately, unless the queue is full: then it waits until the oldest call has ended.
 *
 * @p        persistent kernel
 * @posting  copied
 * @ticket   set; for gpul_comm_persistent_wait()
 * Errors  GPUL_EINVAL invalid arguments, as in comm.h; GPUL_EUNSUPPORTED a call that the kernel does not have; a failure of the
 *         communicator
 * Threads one at a time */
gpul_status gpul_comm_persistent_post(gpul_comm_persistent *p, const gpul_comm_posting *posting, uint64_t *ticket, gpul_error *err);

/** Wait until the kernel has finished a call and all calls before it.
 *
 * @p           persistent kernel
 * @ticket      ticket of gpul_comm_persistent_post()
 * @timeout_ms  after this time: GPUL_ESYS, native = ETIMEDOUT; < 0: no time-out
 * Errors  GPUL_EINVAL no such ticket; GPUL_ESYS; GPUL_ECOMM as gpul_comm_wait() */
gpul_status gpul_comm_persistent_wait(gpul_comm_persistent *p, uint64_t ticket, int timeout_ms, gpul_error *err);

/** Stop the kernel after the calls that have been posted.  gpul_comm_destroy() also stops it.
 *
 * @p  NULL is fine; must not be used any more
 * Errors  GPUL_ECOMM as gpul_comm_wait(); GPUL_ECUDA
 * Threads one at a time */
gpul_status gpul_comm_persistent_stop(gpul_comm_persistent *p, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
