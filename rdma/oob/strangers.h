/* strangers.h — the listener's side of the handshake, for up to 64 clients ("strangers") at a time.
 *
 *     accept ──> silent ── HELLO ──> greeted ── welcome() ──> welcomed ── READY ──> ready ── take() ──> a connection
 *                  │                    │ refuse()               │
 *                  └── 10 s, garbage ───┴─── time limit, FAILED, process ended ──> gone
 *
 * With a key, a client first proves that it knows the secret (proof.h), and states the purpose of the connection: silent
 * ── IDENTIFY ──> challenged ── PROOF ──> proved ── HELLO.  Clients that fail to do so are refused, and never cause an event.
 *
 * Whatever a client sends or does not send, it cannot delay the listener or other clients. */
#ifndef GPULOAD_RDMA_OOB_STRANGERS_H
#define GPULOAD_RDMA_OOB_STRANGERS_H

#include "rdma/oob/channel.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_RDMA_MAX_STRANGERS = 64 };

typedef struct gpul_rdma_strangers gpul_rdma_strangers; /* opaque; the struct is defined in strangers.c */

typedef struct gpul_rdma_stranger {
	gpul_rdma_channel *channel;  /* the caller must not change it */
	gpul_rdma_hello hello;       /* the caller must not change it; valid after the HELLO event */
	gpul_rdma_identity identity; /* the caller must not change it; the client has proved it; all 0 without a key */
	void *user;                  /* the caller's pointer; initially NULL */
	int state;                   /* private, like all members below */
	uint64_t since_ns, deadline_ns;
	unsigned char proof[GPUL_SHA256_BYTES]; /* the proof that the client must send */
} gpul_rdma_stranger;

typedef enum gpul_rdma_stranger_event_kind {
	GPUL_RDMA_STRANGER_NONE,  /* the deadline has passed, or gpul_rdma_strangers_wake() was called */
	GPUL_RDMA_STRANGER_HELLO, /* a client has sent HELLO: call gpul_rdma_stranger_welcome() or _refuse(), now or later */
	GPUL_RDMA_STRANGER_READY, /* a client has sent READY: call gpul_rdma_stranger_take() */
	GPUL_RDMA_STRANGER_GONE,  /* a client has ended after its WELCOME, and has been removed: release what was created for it */
} gpul_rdma_stranger_event_kind;

typedef struct gpul_rdma_stranger_event {
	gpul_rdma_stranger_event_kind kind;
	gpul_rdma_stranger *who; /* the client, for HELLO and READY; NULL for GONE */
	void *user;              /* the .user of the client; valid for GONE, too */
	gpul_rdma_failure why;   /* for GONE: why the client has ended */
} gpul_rdma_stranger_event;

typedef struct gpul_rdma_strangers_desc {
	gpul_rdma_address address;
	const unsigned char *key; /* GPUL_SHA256_BYTES bytes, copied; NULL: no proof is required */
	unsigned hello_ms;        /* time for a HELLO after accept; 0 means 10000 */
	unsigned ready_ms;        /* time for a READY after WELCOME; 0 means 10000 */
} gpul_rdma_strangers_desc;

/** Start to listen.
 *
 * @desc  copied
 * @out   owned by the caller: gpul_rdma_strangers_destroy(); untouched on failure
 * @err   explains a failure
 * Errors  GPUL_ENOMEM; as gpul_rdma_port_open()
 * Threads one thread at a time, except wake */
gpul_status gpul_rdma_strangers_create(const gpul_rdma_strangers_desc *desc, gpul_rdma_strangers **out, gpul_error *err);
void gpul_rdma_strangers_destroy(gpul_rdma_strangers *s); /* closes the connections of all pending clients; NULL is fine */

/* Return the address of the listener, such as "0.0.0.0:18515", valid as long as s. */
const char *gpul_rdma_strangers_name(const gpul_rdma_strangers *s);
unsigned gpul_rdma_strangers_port(const gpul_rdma_strangers *s);

/* Refuse clients that prove another identity from now on; NULL: accept any identity. */
void gpul_rdma_strangers_expect(gpul_rdma_strangers *s, const gpul_rdma_identity *identity);

/* Describe a client for the message of a time-out, "10.9.0.2:40312 (uid 65534): it has another secret": the last one that was
 * refused because of its proof, else the first one that was dropped before HELLO, else one that has sent nothing yet; "": none.
 * Valid until the next call. */
const char *gpul_rdma_strangers_refused(gpul_rdma_strangers *s);

/** Wait for the next event.
 *
 * @s            strangers
 * @deadline_ns  absolute, in the time of gpul_clock_ns(); 0: return immediately; UINT64_MAX: none
 * @out          the event
 * @err          explains a failure
 * Errors  GPUL_ESYS epoll failed; errors of clients are only events or log lines
 * Threads one thread at a time
 * Source  Linux epoll(7) */
gpul_status gpul_rdma_strangers_next(gpul_rdma_strangers *s, uint64_t deadline_ns, gpul_rdma_stranger_event *out, gpul_error *err);

/* Make gpul_rdma_strangers_next() return NONE, now or at its next call.  Any thread and a signal handler may call. */
void gpul_rdma_strangers_wake(gpul_rdma_strangers *s);

/** Send WELCOME; the time limit for READY begins.
 *
 * @s      strangers
 * @who    the client of a HELLO event
 * @hello  what this end can do; copied
 * @why    receives the failure; then the client is removed, without a GONE event
 * Threads one thread at a time */
gpul_status gpul_rdma_stranger_welcome(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const gpul_rdma_hello *hello,
				       gpul_rdma_failure *why);

/* Send REFUSED with the reason, and remove the client; possible in any state after HELLO. */
void gpul_rdma_stranger_refuse(gpul_rdma_strangers *s, gpul_rdma_stranger *who, const gpul_rdma_failure *why);

/* Take the channel of a client that is ready, which the caller then owns, and remove the client. */
gpul_rdma_channel *gpul_rdma_stranger_take(gpul_rdma_strangers *s, gpul_rdma_stranger *who);

#ifdef __cplusplus
}
#endif

#endif
