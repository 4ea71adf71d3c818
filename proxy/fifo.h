/* fifo.h — the proxy FIFO, host side: make one, give kernels their end, take triggers out and say that they are done.
 *
 *     kernel: push ──> slots ──> gpul_fifo_poll ─ handle ─ gpul_fifo_release ──> tail ──> kernel: sync, room
 *
 *     a program with a loop of its own          n = gpul_fifo_poll(f, items, 64);
 *     (a proxy thread does it for you:          handle n items;
 *     proxy.h)                                  gpul_fifo_release(f);
 *
 * One lane is one queue with a total order; more lanes are as many rings, each with an order of its own, among which
 * the slots are shared out.  fifo_layout.h draws the memory, fifo_device.cuh is the kernels' half.
 *
 * Two processes share one: either makes the memory (ipc/), formats it once, and each opens its end of it: the
 * kernels' gpul_fifo_gpu_create(), the proxy's gpul_fifo_open(). */
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

/* Both are powers of two, and lanes <= slots. */
typedef struct gpul_fifo_shape {
	unsigned slots;  /* in all: 1 ... GPUL_FIFO_MAX_SLOTS */
	unsigned lanes;  /* 1: one queue; ... GPUL_FIFO_MAX_LANES */
} gpul_fifo_shape;

typedef struct gpul_fifo gpul_fifo;          /* the CPU's end: opaque, fifo_internal.h */
typedef struct gpul_fifo_gpu gpul_fifo_gpu;  /* the kernels' end: opaque, fifo_gpu.c */

/* ---- memory ---- */

/* Bytes that the host part takes; 0: no such shape.  Any thread. */
size_t gpul_fifo_area_bytes(const gpul_fifo_shape *shape);

/** Write an empty FIFO into memory.
 *
 * @area   host memory, aligned to 512 bytes; nobody uses it yet
 * @bytes  of it; at least gpul_fifo_area_bytes()
 * @shape  copied
 * Errors  GPUL_EINVAL no such shape (says which there are), too few bytes, not aligned
 * Threads any thread may call
 * Source  - */
gpul_status gpul_fifo_area_format(void *area, size_t bytes, const gpul_fifo_shape *shape, gpul_error *err);

/* ---- all of it, in one process ---- */

/** Allocate host memory on the GPU's node, format it, open both ends.
 *
 * @drv     borrowed; must outlive *out; the device's primary context must be open and current
 * @kind    GPUL_MEM_AUTO, HOST_NUMA, MEMFD, SHM or PINNED
 * @device  ordinal of the GPU whose kernels push
 * @shape   copied
 * @out     owned by the caller: gpul_fifo_close(); untouched on failure
 * Errors  GPUL_EINVAL, and gpul_mem_create()'s and gpul_fifo_gpu_create()'s
 * Threads any thread may call
 * Source  - */
gpul_status gpul_fifo_create(const gpul_driver *drv, gpul_mem_kind kind, int device, const gpul_fifo_shape *shape,
			     gpul_fifo **out, gpul_error *err);

/* What gpul_fifo_create() made besides; NULL of one that was opened.  They live as long as f. */
const gpul_fifo_gpu *gpul_fifo_gpu_of(const gpul_fifo *f);
const gpul_mem *gpul_fifo_mem_of(const gpul_fifo *f);

/* ---- the kernels' end ---- */

/** Allocate what kernels keep in device memory, and fill in their parameter.
 *
 * One FIFO serves the kernels of one GPU, in one process at a time.  Each lane goes on behind what its slots hold: what
 * the kernels of an earlier process pushed before it died, the proxy still handles; slots that these left half written,
 * or behind a gap, are emptied.  That process must have ended (its pidfd tells), not only its connection: until then its
 * GPU may still store.
 *
 * @drv       borrowed; must outlive *out; a context of the GPU must be current, also when it is destroyed
 * @area      the formatted memory as the CPU sees it, and
 * @area_gpu  as the GPU sees it; borrowed, must outlive *out
 * @bytes     of it
 * @out       owned by the caller: gpul_fifo_gpu_destroy(), when no kernel uses it any more; untouched on failure
 * Errors  GPUL_EFORMAT no FIFO there, or not as large as it says; GPUL_ENOMEM, GPUL_ECUDA
 * Threads any thread may call
 * Source  - */
gpul_status gpul_fifo_gpu_create(const gpul_driver *drv, void *area, CUdeviceptr area_gpu, size_t bytes,
				 gpul_fifo_gpu **out, gpul_error *err);
void gpul_fifo_gpu_destroy(gpul_fifo_gpu *g);  /* NULL is fine */

/** Begin again where the area begins: after gpul_fifo_reset() in the proxy's process.
 *
 * @g  no kernel uses it; its parameter stays as it is
 * Errors  GPUL_ENOMEM, GPUL_ECUDA: kernels must not use it then
 * Threads any thread may call
 * Source  - */
gpul_status gpul_fifo_gpu_reset(gpul_fifo_gpu *g, gpul_error *err);

/* The kernels' parameter, passed by value; lives as long as g.  Any thread. */
const struct gpul_fifo_device *gpul_fifo_gpu_param(const gpul_fifo_gpu *g);

/* The same two as gpul_fifo_abort() and gpul_fifo_aborted(), for the process of the kernels: when it learns that the
 * proxy's has ended (GPUL_FIFO_CODE_PEER_GONE), and to learn why kernels were aborted.  Any thread. */
void gpul_fifo_gpu_abort(const gpul_fifo_gpu *g, uint32_t code);
uint32_t gpul_fifo_gpu_aborted(const gpul_fifo_gpu *g);

/* ---- the CPU's end ---- */

/* A trigger that was taken out; the lap bits are 0. */
typedef struct gpul_fifo_item {
	uint64_t word[2];
	uint64_t position;  /* in its lane: 0, 1, 2 ... */
	uint32_t lane, zero;
} gpul_fifo_item;

/* What a proxy chooses the handler by: GPUL_FIFO_KIND_SHIFT.  Any thread. */
static inline unsigned gpul_fifo_kind(const gpul_fifo_item *item)
{
	return (unsigned)(item->word[1] >> GPUL_FIFO_KIND_SHIFT) & (GPUL_FIFO_N_KINDS - 1);
}

/** Open the CPU's end of formatted memory.
 *
 * It begins where the lanes' tails are: what an earlier one took out and did not release comes again.
 *
 * @area   host memory; borrowed, must outlive *out; what a peer may have written there is checked, not trusted
 * @bytes  of it
 * @out    owned by the caller: gpul_fifo_close(); untouched on failure
 * Errors  GPUL_EFORMAT no FIFO there, of another version, or not as large as it says; GPUL_ENOMEM
 * Threads any thread may call; one thread at a time polls and releases, and one CPU end at a time is open
 * Source  - */
gpul_status gpul_fifo_open(void *area, size_t bytes, gpul_fifo **out, gpul_error *err);
/* Free it, and what gpul_fifo_create() made; NULL is fine.  The caller makes sure that no kernel uses it any more. */
void gpul_fifo_close(gpul_fifo *f);

/* How many slots and lanes.  Any thread. */
gpul_fifo_shape gpul_fifo_shape_of(const gpul_fifo *f);

/* Take out up to max triggers that are there, without waiting: 0 is none in any lane.  A poll looks at 64 lanes at a
 * time, and returns with what it found in the first of those groups that has any: so nothing waits for a long search.
 * When it finds more than max, the next polls begin with the rest, without another look; so a small max, which lets a
 * release come early, costs little.  The lanes get their turn one after the other; one that is full whenever it is
 * looked at takes a batch, and then it is the next one's turn.  Never more than a lane's slots are out.  What the kernel
 * wrote before a push_release of it is visible.  One thread. */
unsigned gpul_fifo_poll(gpul_fifo *f, gpul_fifo_item *items, unsigned max);

/* A run of one lane's triggers, where they lie in the ring: for who reads millions, and need not have them copied. */
typedef struct gpul_fifo_run {
	const struct gpul_trigger *triggers;  /* n of them, until they are released or polled again; another process
					       * that writes there could change them, so read each word once */
	uint64_t lap;       /* word ^ lap is what was pushed */
	uint64_t position;  /* of the first */
	uint32_t lane, n;
} gpul_fifo_run;

/* Take out as gpul_fifo_poll() does, but triggers of one lane, side by side in its ring, and not copied; 0 is none, and
 * then *run is untouched.  One thread, the one that polls. */
unsigned gpul_fifo_poll_run(gpul_fifo *f, gpul_fifo_run *run, unsigned max);
/* All that poll gave has been handled: its slots are free, who syncs on it goes on.  Release as soon as a batch is done:
 * a tail is one store a lane, however many it frees.  One thread, the one that polls. */
void gpul_fifo_release(gpul_fifo *f);
/* The positions of a lane below upto have been; upto is not above what poll gave.  For work that ends later than the
 * next poll.  One thread, the one that polls. */
void gpul_fifo_release_lane(gpul_fifo *f, unsigned lane, uint64_t upto);

/* End every wait of the kernels with a code, not 0; the first one stays.  Pushes that need not wait still succeed, and
 * poll still gives them.  Any thread, also while another polls. */
void gpul_fifo_abort(gpul_fifo *f, uint32_t code);
/* The code that was raised, here or by a kernel (whose code is cut to 32 bits); 0: none.  A kernel's is handed on to all
 * lanes by this call, and by polls that look.  Any thread, also while another polls. */
uint32_t gpul_fifo_aborted(gpul_fifo *f);

/** After an abort, when the kernels have ended: begin anew, empty, at position 0 of each lane, with no code raised.
 *
 * What was not taken out is dropped: poll first who wants it.  (Kernels that gave up may have left gaps, behind which
 * triggers are never taken.)  Memory, addresses and the kernels' parameter stay, so a graph that holds it stays good.
 *
 * @f  nobody polls it, no kernel uses it; whose kernels' end is in another process, that one calls
 *     gpul_fifo_gpu_reset() next
 * Errors  gpul_fifo_gpu_reset()'s, of what gpul_fifo_create() made
 * Threads one, the one that polls
 * Source  - */
gpul_status gpul_fifo_reset(gpul_fifo *f, gpul_error *err);

/* ---- two processes: whether the other one lives ---- */

/** Have the system write into the FIFO that this process has died, the moment it dies (core/lifeline.h): descriptors tell
 * it when the dead one's memory has been taken down, which takes long where there is much of it.
 *
 * It ends with gpul_fifo_close(), or gpul_fifo_gpu_destroy(): letting go in order is no death.  A second call changes
 * nothing.
 *
 * @f  this process has the CPU's end
 * Errors  gpul_lifeline_hold()'s
 * Threads any thread may call
 * Source  - */
gpul_status gpul_fifo_hold_lifeline(gpul_fifo *f, gpul_error *err);

/** The same for the process of the kernels.
 *
 * @g  this process has the kernels' end
 * Errors  gpul_lifeline_hold()'s
 * Threads any thread may call
 * Source  - */
gpul_status gpul_fifo_gpu_hold_lifeline(gpul_fifo_gpu *g, gpul_error *err);

/* Has the process with the other end, which had said that it would, died since this end was opened (or reset, or since its
 * proxy was started)?  A proxy's thread asks by itself.  False proves nothing.  Any thread. */
bool gpul_fifo_peer_died(const gpul_fifo *f);
bool gpul_fifo_gpu_peer_died(const gpul_fifo_gpu *g);

/* What a code says, for people: "a kernel's time-out", "a handler failed with status 5", "code 4711".  buf is room for
 * those that have a number; a text, which may be buf.  Any thread. */
const char *gpul_fifo_code_text(uint32_t code, char buf[64]);

#ifdef __cplusplus
}
#endif

#endif
