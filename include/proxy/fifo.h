/* fifo.h — the CPU's side of the proxy FIFO, a queue from GPU threads to a CPU thread: create, poll, release, abort.
 *
 *     kernel: push ──> slots ──> gpul_fifo_poll ─ handle ─ gpul_fifo_release ──> tail ──> kernel: sync, next push
 *
 *     the CPU's loop                            n = gpul_fifo_poll(f, items, 64);
 *     (proxy.h has a thread that                handle n items;
 *     runs it)                                  gpul_fifo_release(f);
 *
 * A lane is a ring that keeps the order of its triggers; there is no order between lanes.  The FIFO's slots are
 * divided equally among its lanes.  fifo_layout.h draws the memory; fifo_device.cuh is the kernels' side.
 *
 * Two processes can share a FIFO: one of them creates the memory (ipc/) and formats it once.  Then the process with the
 * kernels calls gpul_fifo_gpu_create(), and the process with the proxy calls gpul_fifo_open(). */
#ifndef GPULOAD_PROXY_FIFO_H
#define GPULOAD_PROXY_FIFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/driver.h"
#include "memalloc/mem.h"
#include "proxy/fifo_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Both numbers are powers of two, and lanes <= slots. */
typedef struct gpul_fifo_shape {
	unsigned slots; /* slots of all lanes together: 1 ... GPUL_FIFO_MAX_SLOTS */
	unsigned lanes; /* 1 ... GPUL_FIFO_MAX_LANES */
} gpul_fifo_shape;

typedef struct gpul_fifo gpul_fifo;         /* the CPU's end: opaque, fifo_internal.h */
typedef struct gpul_fifo_gpu gpul_fifo_gpu; /* the kernels' end: opaque, fifo_gpu.c */

/* ---- memory ---- */

/* Size in bytes of the area in host memory; 0: the shape is invalid.  Any thread may call. */
size_t gpul_fifo_area_bytes(const gpul_fifo_shape *shape);

/** Write an empty FIFO into memory.
 *
 * @area   host memory, aligned to 512 bytes; no kernel and no proxy may be using it
 * @bytes  size of the memory; at least gpul_fifo_area_bytes()
 * @shape  copied
 * Errors  GPUL_EINVAL invalid shape (the message gives the limits), too few bytes, not aligned */
gpul_status gpul_fifo_area_format(void *area, size_t bytes, const gpul_fifo_shape *shape, gpul_error *err);

/* ---- both ends in one process ---- */

/** Allocate host memory on the GPU's NUMA node, format it, and open both ends.
 *
 * @drv     borrowed; must outlive *out; the device's primary context must be open and current
 * @kind    GPUL_MEM_AUTO, HOST_NUMA, MEMFD, SHM or PINNED
 * @device  ordinal of the GPU whose kernels push
 * @shape   copied
 * @out     owned by the caller: gpul_fifo_close(); untouched on failure
 * Errors  GPUL_EINVAL; as gpul_mem_create() and gpul_fifo_gpu_create() */
gpul_status gpul_fifo_create(const gpul_driver *drv, gpul_mem_kind kind, int device, const gpul_fifo_shape *shape, gpul_fifo **out,
			     gpul_error *err);

/* Return the kernels' end, and the memory, of a FIFO from gpul_fifo_create(); else NULL.  Valid until gpul_fifo_close(). */
const gpul_fifo_gpu *gpul_fifo_gpu_of(const gpul_fifo *f);
const gpul_mem *gpul_fifo_mem_of(const gpul_fifo *f);

/* ---- the kernels' end ---- */

/** Allocate the kernels' state in device memory, and fill in the kernel parameter.
 *
 * A FIFO serves the kernels of one GPU, in one process at a time.  New kernels continue after the triggers in the slots: triggers
 * that kernels of an earlier process pushed before it was killed are still handled.  Slots that those kernels left half written,
 * and those after a gap, are emptied.  The earlier process must have ended (its pidfd is readable); a closed connection is not
 * enough, because its GPU may still store into the area.
 *
 * @drv       borrowed; must outlive *out; a context of the GPU must be current, for gpul_fifo_gpu_destroy(), too
 * @area      CPU address of the formatted memory; borrowed, must outlive *out
 * @area_gpu  GPU address of the same memory
 * @bytes     size of the memory
 * @out       owned by the caller: gpul_fifo_gpu_destroy(), when no kernel uses it any more; untouched on failure
 * Errors  GPUL_EFORMAT the memory holds no FIFO, or is smaller than its header claims; GPUL_ENOMEM, GPUL_ECUDA */
gpul_status gpul_fifo_gpu_create(const gpul_driver *drv, void *area, CUdeviceptr area_gpu, size_t bytes, gpul_fifo_gpu **out,
				 gpul_error *err);
void gpul_fifo_gpu_destroy(gpul_fifo_gpu *g); /* accepts NULL */

/** Set the lanes' heads, the positions of the next triggers, by the slots in the area; call it after gpul_fifo_reset() in the proxy's
 * process.
 *
 * @g  no kernel may be using it; the kernel parameter does not change
 * Errors  GPUL_ENOMEM, GPUL_ECUDA: kernels must not use g after an error */
gpul_status gpul_fifo_gpu_reset(gpul_fifo_gpu *g, gpul_error *err);

/* Return the kernel parameter, passed by value; valid until gpul_fifo_gpu_destroy().  Any thread may call. */
const struct gpul_fifo_device *gpul_fifo_gpu_param(const gpul_fifo_gpu *g);

/* Like gpul_fifo_abort() and gpul_fifo_aborted(), for the process with the kernels: to abort when the proxy's process has
 * ended (GPUL_FIFO_CODE_PEER_GONE), and to read why the kernels were aborted.  Any thread may call. */
void gpul_fifo_gpu_abort(const gpul_fifo_gpu *g, uint32_t code);
uint32_t gpul_fifo_gpu_aborted(const gpul_fifo_gpu *g);

/* ---- the CPU's end ---- */

/* A trigger that poll has taken out of the FIFO; its lap bits are 0. */
typedef struct gpul_fifo_item {
	uint64_t word[2];
	uint64_t position; /* position in its lane: 0, 1, 2 ... */
	uint32_t lane, zero;
} gpul_fifo_item;

/* Return the kind of a trigger, by which a proxy selects the handler: bits 59-62 of word 1.  Any thread may call. */
static inline unsigned gpul_fifo_kind(const gpul_fifo_item *item)
{
	return (unsigned)(item->word[1] >> GPUL_FIFO_KIND_SHIFT) & (GPUL_FIFO_N_KINDS - 1);
}

/** Open the CPU's end of formatted memory.
 *
 * It begins at the lanes' tails: triggers that an earlier CPU's end took out, but did not release, are taken out again.
 *
 * @area   host memory; borrowed, must outlive *out; its contents are checked, not trusted
 * @bytes  size of the memory
 * @out    owned by the caller: gpul_fifo_close(); untouched on failure
 * Errors  GPUL_EFORMAT the memory holds no FIFO, one of another version, or is smaller than its header claims; GPUL_ENOMEM
 * Threads any thread may call; only one thread at a time may poll and release, and only one CPU's end at a time may be open */
gpul_status gpul_fifo_open(void *area, size_t bytes, gpul_fifo **out, gpul_error *err);
/* Close f, and free what gpul_fifo_create() allocated; NULL is fine.  No kernel may use the FIFO any more. */
void gpul_fifo_close(gpul_fifo *f);

/* Return the number of slots and lanes.  Any thread may call. */
gpul_fifo_shape gpul_fifo_shape_of(const gpul_fifo *f);

/* Take out up to max triggers without waiting; returns their number, 0 if all lanes are empty.  A poll scans groups of 64 lanes and
 * returns the triggers of the first group that has any, so that they need not wait for a scan of the others.  If a scan finds more
 * than max triggers, the next polls return the rest without a new scan, so a small max, which allows an early release, costs
 * little.  Lanes are served in turn: after a batch from a lane that is always full, the scan begins with the next lane.  Of each
 * lane, at most as many triggers as it has slots are taken out and not released.  Everything that the kernel wrote before a
 * push_release is visible when poll returns that trigger.  Only the polling thread may call. */
unsigned gpul_fifo_poll(gpul_fifo *f, gpul_fifo_item *items, unsigned max);

/* A run: consecutive triggers of one lane, which the caller reads in place, in the ring.  This saves a copy for programs that read
 * millions of triggers. */
typedef struct gpul_fifo_run {
	const struct gpul_trigger *triggers; /* n triggers, valid until the next release or poll; another process may
					       * change them, so read each word only once */
	uint64_t lap;                        /* (word ^ lap) is the word that was pushed */
	uint64_t position;                   /* position of the first trigger */
	uint32_t lane, n;
} gpul_fifo_run;

/* Take out triggers like gpul_fifo_poll(), but consecutive ones of one lane, without copying them.  Returns their number; if it is
 * 0, *run is untouched.  Only the polling thread may call. */
unsigned gpul_fifo_poll_run(gpul_fifo *f, gpul_fifo_run *run, unsigned max);
/* Release all triggers that poll has returned: their slots are free, and kernels that sync on them continue.  Release as soon as a
 * batch has been handled; it costs one store per lane, whatever the number of triggers.  Only the polling thread may call. */
void gpul_fifo_release(gpul_fifo *f);
/* Release the positions of one lane below upto, which poll must have returned; for triggers whose work ends only after the next
 * poll.  Only the polling thread may call. */
void gpul_fifo_release_lane(gpul_fifo *f, unsigned lane, uint64_t upto);

/* Abort: end every wait of the kernels with a code other than 0; later codes are ignored.  Pushes that need not wait still succeed,
 * and poll still returns their triggers.  Any thread may call, even while another thread polls. */
void gpul_fifo_abort(gpul_fifo *f, uint32_t code);
/* Return the abort code, from the CPU or from a kernel (its low 32 bits); 0: not aborted.  This call, and each poll that scans,
 * copies a kernel's code into the abort words of all lanes.  Any thread may call, even while another thread polls. */
uint32_t gpul_fifo_aborted(gpul_fifo *f);

/** Empty the FIFO after an abort: each lane begins at position 0 again, and the abort code is cleared.
 *
 * Triggers that were not taken out are dropped; poll first to get them.  (Kernel threads that timed out may have left
 * gaps; triggers after a gap are never taken out.)  The memory, its addresses and the kernel
 * parameter do not change, so a CUDA graph that contains the parameter stays valid.
 *
 * @f  no thread may be polling it, and no kernel using it.  If the kernels' end is in another process, that process
 *     calls gpul_fifo_gpu_reset() afterwards
 * Errors  as gpul_fifo_gpu_reset(), for an f of gpul_fifo_create()
 * Threads the polling thread */
gpul_status gpul_fifo_reset(gpul_fifo *f, gpul_error *err);

/* ---- two processes: each detects that the other was killed ---- */

/** Ask the operating system to mark the FIFO at the moment this process is killed or exits (core/thread/lifeline.h).
 *
 * A pidfd or a socket reports it only after the process' memory has been freed, which takes long for a large process.  After
 * gpul_fifo_close(), which ends the lifeline, the FIFO is not marked.  A second call changes nothing.
 *
 * @f  this process has the CPU's end
 * Errors  gpul_lifeline_hold()'s */
gpul_status gpul_fifo_hold_lifeline(gpul_fifo *f, gpul_error *err);

/** Hold the lifeline of the process with the kernels, as gpul_fifo_hold_lifeline() does for the proxy's process.
 *
 * @g  this process has the kernels' end; gpul_fifo_gpu_destroy() ends the lifeline
 * Errors  gpul_lifeline_hold()'s */
gpul_status gpul_fifo_gpu_hold_lifeline(gpul_fifo_gpu *g, gpul_error *err);

/* Return whether the process with the other end has died after this end was opened, after its last reset, and after the start of its proxy.
 * False if that process does not hold a lifeline.  While a proxy runs, its thread checks this.  Any thread may call. */
bool gpul_fifo_peer_died(const gpul_fifo *f);
bool gpul_fifo_gpu_peer_died(const gpul_fifo_gpu *g);

/* Describe an abort code: "a kernel's time-out", "a handler failed with status 5", "code 4711".  Returns a constant text, or
 * buf if the text contains a number.  Any thread may call. */
const char *gpul_fifo_code_text(uint32_t code, char buf[64]);

#ifdef __cplusplus
}
#endif

#endif
