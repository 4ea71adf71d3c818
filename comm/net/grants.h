/* grants.h — how a receiver limits what is on its way to it, from all senders together.  A state machine: no I/O, no clock, no
 * allocation after create.
 *
 *     rank S                                                      rank R
 *     kernel posts step n ─ may it go? ─ yes ─> put of the slot ══> inbox
 *                              │ no                                   │ tail
 *                              └ asked = n + 1 ═════════════════════> asks[block] ── admission (comm/net/admission.h)
 *             grants[block] <════════════════════════════════════════ granted = n + 1 ┘
 *
 * Each rank has one **window** for each of its NICs.  Half of it is divided among the routes that end there: a sender may have that
 * many **free bytes** on their way without asking, so small messages cost no round trip; it counts them by the ends of its puts,
 * which the fabric acknowledges.  The other half is for **grants**: a sender that has more asks for the steps that its kernels have
 * posted, and the receiver grants slots, in the order of the admission, each when there is room for it.  A granted step counts as a
 * whole slot from its grant until the receiver's proxy sees its tail.
 *
 * asked and granted are numbers of steps of one channel, as head and tail are: they only grow, each has one writer, and a late or
 * repeated word means no harm.  A receiver with one route has no window: one sender cannot be too many.
 *
 * No wait without end: a wait for a grant is a wait for room in the window.  Room is taken only by steps that kernels have posted,
 * whose slots the receiver's kernels have freed before; so each of them is put as soon as the grant is there, and arrives, whatever
 * the kernels of both ranks wait for.  That is why a credit returns when the data has arrived, not when a kernel has read it, and why
 * nothing is granted in advance: tests/comm/model/grants.pml shows the circle that either of them would permit.  A sender that has
 * failed leaves, and frees what it holds; one that stands still for a while does not count for that while. */
#ifndef GPULOAD_COMM_NET_GRANTS_H
#define GPULOAD_COMM_NET_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_comm_grants gpul_comm_grants;  /* opaque: grants.c */

typedef struct gpul_comm_grants_desc {
	unsigned n_routes, n_blocks;  /* at least 1 */
	uint32_t slot_bytes;          /* of a step that is granted, at least 1 */
	uint64_t window_bytes;        /* less than two slots count as two */
	uint64_t late_ns;             /* as in gpul_admission_desc */
} gpul_comm_grants_desc;

/* The bytes that each sender may have on their way without a grant. */
uint64_t gpul_comm_grants_free_bytes(const gpul_comm_grants_desc *desc);

/* The sender's side: may a step of a channel be put, of which `granted` steps are granted, while free_left of the free bytes are
 * not on their way?  *free_bytes: what it takes of them; 0 with a grant. */
bool gpul_comm_grants_may_go(uint64_t step, uint64_t granted, uint64_t free_left, uint32_t n_bytes, uint32_t *free_bytes);

/** Create the grants of a receiver.
 *
 * @desc  copied
 * @out   owned by the caller: gpul_comm_grants_destroy(); untouched on failure
 * Errors  GPUL_EINVAL a field is out of range; GPUL_ENOMEM
 * Threads the object belongs to one thread at a time */
gpul_status gpul_comm_grants_create(const gpul_comm_grants_desc *desc, gpul_comm_grants **out, gpul_error *err);
void gpul_comm_grants_destroy(gpul_comm_grants *g);  /* NULL is fine */

/* The tail of a channel: that many steps have arrived.  Report it before gpul_comm_grants_asked(), and as long as
 * gpul_comm_grants_watches(). */
void gpul_comm_grants_arrived(gpul_comm_grants *g, unsigned route, unsigned block, uint64_t tail);
bool gpul_comm_grants_watches(const gpul_comm_grants *g, unsigned route, unsigned block);

/* A sender has asked for the steps of a channel before `asked`; a word that is not new changes nothing. */
void gpul_comm_grants_asked(gpul_comm_grants *g, unsigned route, unsigned block, uint64_t asked);
/* The newest word of a channel. */
uint64_t gpul_comm_grants_asked_for(const gpul_comm_grants *g, unsigned route, unsigned block);

/** Grant one more step, if there is room.
 *
 * @g      grants
 * @route  of the channel
 * @block  of the channel; gpul_comm_grants_granted() has its new number
 * Returns false if no step waits, or the window is full.  Call it until it returns false after each of the inputs
 * Threads  the thread of g */
bool gpul_comm_grants_next(gpul_comm_grants *g, unsigned *route, unsigned *block);

/* The steps of a channel that may be put: those before this number. */
uint64_t gpul_comm_grants_granted(const gpul_comm_grants *g, unsigned route, unsigned block);

/* A sender has failed: what it holds is free, and it gets no more grants. */
void gpul_comm_grants_leave(gpul_comm_grants *g, unsigned route);

/* The time, which never goes back.  Call it now and then while something is granted. */
void gpul_comm_grants_tick(gpul_comm_grants *g, uint64_t now_ns);

/* Bytes that are granted and have not arrived. */
uint64_t gpul_comm_grants_in_flight(const gpul_comm_grants *g);

#ifdef __cplusplus
}
#endif

#endif
