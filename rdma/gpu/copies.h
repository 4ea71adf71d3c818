/* copies.h — copies between GPU memory and staging buffers, for fabrics that cannot access GPU memory.
 *
 *     GPU memory ── COPY_OUT ─> stages 0 ... n - 1    ── the fabric sends them
 *     GPU memory <─ COPY_IN ─── stages n ... 2n - 1  <─ the fabric writes them
 *
 * Each direction has its own stream, so its copies end in the order in which they were posted.  Only create allocates memory. */
#ifndef GPULOAD_RDMA_GPU_COPIES_H
#define GPULOAD_RDMA_GPU_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"
#include "memalloc/mem.h"
#include "rdma/protocol/protocol_failure.h"
#include "rdma/protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_rdma_copies gpul_rdma_copies; /* opaque: the struct is in copies.c */

/* maximum number of staging buffers per direction */
enum { GPUL_RDMA_MAX_STAGES = 64 };

/** Allocate the staging buffers, streams and events for one GPU.
 *
 * The buffers are host memory near the GPU (GPUL_MEM_AUTO), one allocation.  The GPU's primary context is retained.
 *
 * @drv          borrowed; must outlive *out
 * @gpu          ordinal
 * @n_stages     buffers per direction, 1 to GPUL_RDMA_MAX_STAGES
 * @stage_bytes  size of one buffer, at least 1
 * @out          owned by the caller: gpul_rdma_copies_destroy(); untouched on failure
 * @err          explains a failure
 * Errors  GPUL_EINVAL a number is out of range, or no such GPU; as for gpul_mem_create(); GPUL_ENOMEM; GPUL_ECUDA
 * Threads any thread may call, with any context or none; create and destroy leave the thread's context as it was.  post, poll and
 *         drain belong to one thread at a time; on a thread without a context they leave the GPU's primary context current
 * Source  CUDA Driver API, Stream Management, Event Management, cuMemcpyDtoHAsync, cuMemcpyHtoDAsync */
gpul_status gpul_rdma_copies_create(const gpul_driver *drv, int gpu, unsigned n_stages, size_t stage_bytes, gpul_rdma_copies **out,
				    gpul_error *err);
/* Wait until no copy is in flight, then free everything.  NULL is fine; cannot fail. */
void gpul_rdma_copies_destroy(gpul_rdma_copies *c);

/* Return the 2 * n_stages staging buffers, which are contiguous; valid as long as c. */
void *gpul_rdma_copies_stages(const gpul_rdma_copies *c);
/* Return the properties of the buffers' memory, such as its kind and its NUMA node.  Valid as long as c. */
const gpul_mem_info *gpul_rdma_copies_about(const gpul_rdma_copies *c);

/** Start copies, in order.
 *
 * The copies of one call share an event for each direction, so that fewer calls of the driver are needed.
 *
 * @c         copies
 * @ops       n operations COPY_OUT or COPY_IN, whose op.local is the address of a staging buffer, or lies inside one
 * @n         number of operations
 * @n_posted  how many were started; fewer than n when n_stages copies of one direction are in flight: post the rest later
 * @why       explains a failure; the first failure of c is returned by every later call
 * Errors  GPUL_EINVAL an operation of another kind, or outside of the staging buffers; GPUL_ECUDA
 * Threads one thread at a time */
gpul_status gpul_rdma_copies_post(gpul_rdma_copies *c, const gpul_rdma_op *ops, unsigned n, unsigned *n_posted, gpul_rdma_failure *why);

/** Report copies that have ended.
 *
 * @c    copies
 * @ids  receives the ids of their operations; those of one direction in the order of the posts
 * @max  room in ids
 * @n    number of ids; 0: no copy has ended; on failure: the number of copies that ended before the failure
 * @why  explains a failure, for example the fault of a kernel in this context
 * Errors  GPUL_ECUDA; the first failure of c
 * Threads one thread at a time
 * Source  CUDA Driver API: cuEventQuery */
gpul_status gpul_rdma_copies_poll(gpul_rdma_copies *c, uint64_t *ids, unsigned max, unsigned *n, gpul_rdma_failure *why);

/* True while copies are in flight, or have ended but poll has not reported them. */
bool gpul_rdma_copies_busy(const gpul_rdma_copies *c);

/* Wait until no copy accesses GPU memory, even if a copy has failed.  poll still reports the copies that have ended. */
void gpul_rdma_copies_drain(gpul_rdma_copies *c);

#ifdef __cplusplus
}
#endif

#endif
