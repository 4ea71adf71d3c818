/* grants.h — limits the total number of bytes in flight from all senders to a receiver.  A state
 * machine: no I/O, no clock, no allocation after create.
 *
 *     rank S                                                      rank R
 *     kernel posts step n ─ may it go? ─ yes ─> put of the slot ══> inbox
 *                              │ no                                   │ tail
 *                              └ asked = n + 1 ═════════════════════> asks[block] ── admission (comm/net/admission.h)
 *             grants[block] <════════════════════════════════════════ granted = n + 1 ┘
 *
 * Each rank has one **window** for each of its NICs.  Half of it is divided among the routes that end there: a sender may have its
 * share, the **free bytes**, in flight without asking, so small messages cost no round trip; it gets free bytes back when the
 * fabric acknowledges its puts.  The other half is for **grants**: a sender that needs more asks for the steps that its kernels
 * have posted, and the receiver grants slots in the order of the admission, each one when the window has room for it.  A granted
 * step counts as a whole slot from its grant until the receiver's proxy reads its tail.
 *
 * asked and granted are step numbers of one channel, like head and tail: they only increase, each has one writer, and a late or
 * repeated word does no harm.  A receiver with one route has no window, because a single sender cannot cause incast.
 *
 * **No deadlock.**  A sender that waits for a grant waits for room in the window.  Room is used only by steps that kernels have
 * posted, and whose slots the receiver's kernels have already freed.  So each of them is put as soon as its grant arrives, and
 * reaches the receiver, whatever the kernels of both ranks wait for.  That is why room becomes free when the data has arrived, not
 * when a kernel has read it, and why nothing is granted in advance: tests/comm/model/grants.pml shows that each of these would
 * allow a deadlock.  A sender that has failed leaves, which frees its credits; the credits of a sender whose process is stopped do
 * not count during that time. */
#ifndef GPULOAD_COMM_NET_GRANTS_H
#define GPULOAD_COMM_NET_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm_grants gpul_comm_grants; /* defined in grants.c */

typedef struct gpul_comm_grants_desc {
	unsigned n_routes, n_blocks; /* at least 1 */
	uint32_t slot_bytes;         /* size of a slot, at least 1; a granted step counts as this many bytes */
	uint64_t window_bytes;       /* limit of the bytes in flight to this receiver; a smaller value than two slots counts as two slots */
	uint64_t late_ns;            /* see gpul_admission_desc */
} gpul_comm_grants_desc;

/* Return the bytes that each sender may have in flight without a grant. */
uint64_t gpul_comm_grants_free_bytes(const gpul_comm_grants_desc *desc);

/* Called by the sender: true if step `step` of a channel may be put now. `granted` steps of the channel are granted, and free_left
 * free bytes are unused. *free_bytes is set to the free bytes that the step uses; 0 if the step has a grant. */
bool gpul_comm_grants_may_go(uint64_t step, uint64_t granted, uint64_t free_left, uint32_t n_bytes, uint32_t *free_bytes);

/** Create the state machine that grants the steps of a receiver.
 *
 * @desc  copied
 * @out   owned by the caller: gpul_comm_grants_destroy(); untouched on failure
 * Errors  GPUL_EINVAL a field is out of range; GPUL_ENOMEM
 * Threads the object belongs to one thread at a time */
gpul_status gpul_comm_grants_create(const gpul_comm_grants_desc *desc, gpul_comm_grants **out, gpul_error *err);
void gpul_comm_grants_destroy(gpul_comm_grants *g); /* accepts NULL */

/* Report the tail of a channel, which is the number of steps that have arrived.  Call it before gpul_comm_grants_requested(), and
 * regularly as long as gpul_comm_grants_watches() returns true. */
void gpul_comm_grants_arrived(gpul_comm_grants *g, unsigned route, unsigned block, uint64_t tail);
bool gpul_comm_grants_watches(const gpul_comm_grants *g, unsigned route, unsigned block);

/* Report that a sender requests all steps of a channel below `asked`.  The value that was reported last has no effect. */
void gpul_comm_grants_requested(gpul_comm_grants *g, unsigned route, unsigned block, uint64_t asked);
/* Return the last value of `asked` that was reported for a channel. */
uint64_t gpul_comm_grants_requested_for(const gpul_comm_grants *g, unsigned route, unsigned block);

/** Grant one more step, if there is room.
 *
 * @g      grants
 * @route  route of the channel
 * @block  block of the channel; gpul_comm_grants_granted() returns its new number
 * Returns false if no step waits, or the window is full.  After each input, call it until it returns false
 * Threads  the thread of g */
bool gpul_comm_grants_next(gpul_comm_grants *g, unsigned *route, unsigned *block);

/* Return the number of steps of a channel that may be put. */
uint64_t gpul_comm_grants_granted(const gpul_comm_grants *g, unsigned route, unsigned block);

/* Remove a sender that has failed: its credits are freed, and it gets no more grants. */
void gpul_comm_grants_leave(gpul_comm_grants *g, unsigned route);

/* Set the time, which must not decrease.  Call it regularly while grants are in flight. */
void gpul_comm_grants_tick(gpul_comm_grants *g, uint64_t now_ns);

/* Return the number of bytes that have been granted and have not arrived. */
uint64_t gpul_comm_grants_in_flight(const gpul_comm_grants *g);

#ifdef __cplusplus
}
#endif

#endif
