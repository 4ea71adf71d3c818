/* netqueue.h — a receive queue that a kernel unpacks: the packets of a stream are received into bounce memory, and a kernel copies
 * the pieces to their destinations.
 *
 *     socket ── readv ──> slots of bounce memory ───────── 16-byte loads ──> kernel ── 16-byte stores ──> destination
 *       feeder.h             │ producer.h: where are the pieces?                ↑ │
 *                            └─> ring: {source, length, destination} ── polls ──┘ └── done[]: credits ──> the slots are free
 *
 * netqueue_layout.h draws the memory.  The kernel runs for one receive.  It checks each entry: an invalid one is refused and
 * reported, and its piece is not written.  gpul_netqueue_receive() (feeder.h) does all of this with one call; the functions here
 * are its steps, for programs that write the entries themselves. */
#ifndef GPULOAD_LAB_NETQUEUE_NETQUEUE_H
#define GPULOAD_LAB_NETQUEUE_NETQUEUE_H

#include "lab/netqueue/producer.h"
#include "driver/driver.h"
#include "memalloc/mem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number of 0 means the default. */
typedef struct gpul_netqueue_desc {
	int device;                /* ordinal of the GPU; its primary context must be current */
	gpul_mem_kind kind;        /* kind of the bounce memory: AUTO (host memory), a host kind, or DEVICE, which the CPU cannot write */
	gpul_netqueue_shape shape; /* n_blocks is reduced if necessary, because all blocks of the
					 * kernel must be resident at the same time */
	uint32_t n_threads;        /* threads of a block: a multiple of 32, GPUL_NETQUEUE_MIN_THREADS ... MAX_THREADS */
	int timeout_ms;            /* time-out of a wait for the sender or the kernel; < 0: no time-out.  The kernel's own time-out
				    * for an entry is 25 % longer */
} gpul_netqueue_desc;

typedef struct gpul_netqueue gpul_netqueue; /* opaque; the struct is defined in netqueue.c */

/** Allocate the bounce memory, the ring and the control memory, and load the kernel.
 *
 * @drv   borrowed; must outlive *out
 * @desc  copied
 * @out   owned by the caller: gpul_netqueue_destroy(); untouched on failure
 * Errors  GPUL_EINVAL a number is out of range; the errors of gpul_mem_create(); GPUL_ECUDA; GPUL_ENOMEM
 * Threads any thread with the context current; one thread at a time uses the object, except gpul_netqueue_abort() */
gpul_status gpul_netqueue_create(const gpul_driver *drv, const gpul_netqueue_desc *desc, gpul_netqueue **out, gpul_error *err);
void gpul_netqueue_destroy(gpul_netqueue *q); /* waits for the kernel to end; NULL is fine */

/* Return the description with all defaults filled in.  Valid as long as q. */
const gpul_netqueue_desc *gpul_netqueue_about(const gpul_netqueue *q);
/* Return the bounce memory. */
const gpul_mem *gpul_netqueue_bounce(const gpul_netqueue *q);

/** Empty the ring, and launch the kernel.
 *
 * @q            none of its kernels may be running
 * @destination  GPU address; any alignment.  The kernel writes to nothing else
 * @bytes        its size
 * Errors  GPUL_EINVAL a kernel runs, or bytes is 0; GPUL_ECUDA
 * Threads as gpul_netqueue_create() */
gpul_status gpul_netqueue_begin(gpul_netqueue *q, CUdeviceptr destination, uint64_t bytes, gpul_error *err);

/* gpul_netqueue_begin() in two steps, gpul_netqueue_empty() and gpul_netqueue_launch(): the caller can write entries before the kernel
 * starts, and chooses the stream of the kernel.  gpul_netqueue_wait() need not be called before this stream has been synchronised. */
void gpul_netqueue_empty(gpul_netqueue *q);
/** Launch the kernel.
 *
 * @q            after gpul_netqueue_empty()
 * @destination  as for gpul_netqueue_begin()
 * @bytes        its size
 * @stream       any stream
 * Errors  as gpul_netqueue_begin()
 * Threads as gpul_netqueue_create() */
gpul_status gpul_netqueue_launch(gpul_netqueue *q, CUdeviceptr destination, uint64_t bytes, CUstream stream, gpul_error *err);

/* Write entry n, before gpul_netqueue_publish().  The entry must be free (gpul_netqueue_credit()), and its piece must have been
 * written.  For tests, any words are allowed. */
void gpul_netqueue_write(gpul_netqueue *q, uint64_t n, const gpul_netqueue_entry *entry);
/* Read the numbers of entries that the blocks have finished: [n_blocks].  The pieces of these entries may then be overwritten. */
void gpul_netqueue_read_done(const gpul_netqueue *q, uint64_t *done);
/* Publish the number of written entries.  all: there will be no more entries, so the kernel ends when it has processed them. */
void gpul_netqueue_publish(gpul_netqueue *q, uint64_t n_entries, bool all);
/* Make the kernel end.  Any thread may call. */
void gpul_netqueue_abort(gpul_netqueue *q);

typedef struct gpul_netqueue_result {
	gpul_netqueue_counts counts;
	uint32_t n_reports; /* number of valid elements of reports: the first refusals, in the order in which they were found */
	gpul_netqueue_report reports[GPUL_NETQUEUE_MAX_REPORTS];
	gpul_netqueue_report waited; /* if its `ready` is 1, the kernel has waited too long for this entry */
} gpul_netqueue_result;

/** Test whether the kernel has ended.
 *
 * @q    after gpul_netqueue_begin()
 * @out  true: it has ended; call gpul_netqueue_wait()
 * Errors  GPUL_ECUDA
 * Threads as gpul_netqueue_create() */
gpul_status gpul_netqueue_poll(gpul_netqueue *q, bool *out, gpul_error *err);

/** Wait until the kernel has ended, and read its counters.
 *
 * @q    after gpul_netqueue_begin() or gpul_netqueue_launch(); all entries must have been published, or the queue aborted
 * @out  filled, even if entries were refused; untouched if a driver call fails
 * Errors  GPUL_EFORMAT entries were refused: the text explains the first one; GPUL_ESYS native = ETIMEDOUT: no entry came;
 *         GPUL_ECUDA
 * Threads as gpul_netqueue_create() */
gpul_status gpul_netqueue_wait(gpul_netqueue *q, gpul_netqueue_result *out, gpul_error *err);

enum { GPUL_NETQUEUE_TEXT_BYTES = 192 };
/* Describe a report in a sentence: "entry 17: the piece ends at byte 4100 of the destination, which has 4096 bytes". */
const char *gpul_netqueue_explain(const gpul_netqueue_report *report, char out[GPUL_NETQUEUE_TEXT_BYTES]);
/* Name of a field: "length", "destination end" and so on. */
const char *gpul_netqueue_field_name(uint32_t field);

#ifdef __cplusplus
}
#endif

#endif
