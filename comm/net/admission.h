/* admission.h — receiver-driven admission: decides which sender may send how many bytes now.  A
 * state machine: no I/O, no clock, no allocation after create.
 *
 *     request: a sender has a message ──> ┌───────────┐
 *     arrived: granted bytes are here ──> │ admission │ ──> next: a grant, bytes of a sender's first message
 *     leave: a sender has ended ────────> └───────────┘
 *     tick: the time                        in flight: granted, not arrived; at most the window
 *
 * The sum of the **credits** in flight, granted bytes that have not arrived, is limited by one window for all senders together.
 * A window of about one bandwidth-delay product keeps the link busy, and limits the queues in the network to that size; the
 * rest of the data waits in the senders' memory.  With one window per sender, as in TCP, the queues would grow with the number
 * of senders.
 *
 *     fair       senders that always have messages get equal shares of the bytes, whatever the sizes of their messages
 *     conserving work-conserving: while a message waits, credits are in flight; a single sender gets the whole window
 *     bounded    no sender holds more than its share of the window plus one grant
 *     robust     credits of a sender that has returned none for late_ns, or that has left, do not count
 *
 * The state machine does not know how a grant is sent.  Over the send path, a grant is a
 * receive (gpul_rdma_irecv): its clear-to-send slot is the permission to send. */
#ifndef GPULOAD_COMM_NET_ADMISSION_H
#define GPULOAD_COMM_NET_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_admission gpul_admission; /* defined in admission.c */

typedef struct gpul_admission_desc {
	unsigned n_senders; /* 1 to 65536; senders are numbered from 0 */
	/* limit of the messages of one sender that have been requested and have not been granted completely; at least 1 */
	unsigned max_messages;
	uint64_t window_bytes; /* limit of the bytes in flight, at least 1.  If nothing is in flight, one grant is always possible */
	uint64_t grant_bytes;  /* limit of the bytes of one grant, at least 1; a longer message gets several grants */
	uint64_t late_ns;      /* a sender that returns no credit for this time is late; 0: senders are never late */
} gpul_admission_desc;

/* A permission to send `bytes` bytes of a message, starting at `offset`.  The grants of one sender are in the order of its requests. */
typedef struct gpul_admission_grant {
	unsigned sender;
	uint64_t message; /* number of the sender's request, from 0 */
	uint64_t offset, bytes;
	bool last; /* this is the last grant of the message */
} gpul_admission_grant;

/** Create an admission state machine.
 *
 * @desc  copied
 * @out   owned by the caller: gpul_admission_destroy(); untouched on failure
 * Errors  GPUL_EINVAL a field is out of range; GPUL_ENOMEM
 * Threads an admission belongs to one thread at a time */
gpul_status gpul_admission_create(const gpul_admission_desc *desc, gpul_admission **out, gpul_error *err);
void gpul_admission_destroy(gpul_admission *a); /* accepts NULL */

/* Request grants for a sender's message of `bytes` bytes, at least 1.  Returns false if max_messages messages of the sender are
 * waiting already, or the sender has left. */
bool gpul_admission_request(gpul_admission *a, unsigned sender, uint64_t bytes);

/** Give the next grant.
 *
 * @a    admission
 * @out  the grant; untouched if false
 * Returns false if no message waits, or the window is full.  After each input, call it until it returns false
 * Threads  the admission's thread
 * Source   P. Goyal, H. Vin, H. Cheng: Start-Time Fair Queueing, SIGCOMM 1996; B. Montazeri et al.: Homa, SIGCOMM 2018 (grants by
 *          the receiver) */
bool gpul_admission_next(gpul_admission *a, gpul_admission_grant *out);

/* Free the credits of granted bytes that have arrived, or that will never arrive because the message was shorter. bytes: at most
 * gpul_admission_held_by(). */
void gpul_admission_arrived(gpul_admission *a, unsigned sender, uint64_t bytes);

/* Remove a sender that has ended or is unreachable: its requests are dropped, its credits are freed, and it gets no more grants. */
void gpul_admission_leave(gpul_admission *a, unsigned sender);

/* Set the time, which must not decrease, and detect late senders.  Call it regularly. */
void gpul_admission_tick(gpul_admission *a, uint64_t now_ns);

/* Return the credits in flight: of all senders except late ones; of all senders; of one sender. */
uint64_t gpul_admission_in_flight(const gpul_admission *a);
uint64_t gpul_admission_held(const gpul_admission *a);
uint64_t gpul_admission_held_by(const gpul_admission *a, unsigned sender);
bool gpul_admission_is_late(const gpul_admission *a, unsigned sender);
/* Return the bytes that all senders have requested and that have not been granted. */
uint64_t gpul_admission_waiting(const gpul_admission *a);

#ifdef __cplusplus
}
#endif

#endif
