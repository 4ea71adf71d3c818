/* reliable.h — reliable messages over datagrams that may be lost, duplicated or reordered, over several paths: a pure state machine.
 *
 *     gpul_rel_send ──> message ── cut into chunks ── window ──> gpul_rel_next ──> a datagram to send, and on which path
 *     gpul_rel_receive <── a datagram that has arrived           acknowledgements take the same way
 *     gpul_rel_poll ──> a message has arrived, or all of a message is acknowledged
 *
 * A gpul_rel is one end of a connection.  It does no I/O, reads no clock and allocates only in create: the caller
 * passes the time, sends the datagrams, and copies the bytes of arrived chunks.
 *
 * A chunk has two numbers.  Its chunk number is its place in the stream of all chunks of this end, which it keeps for life: by it the
 * receiver recognizes duplicates.  Its packet number counts the datagrams of one path: a chunk that is sent again gets a new one.  So an
 * acknowledgement always says which of the copies has arrived, and a round-trip time is never ambiguous (RFC 9002, section 3).
 *
 *     chunk   10    11    12    13    14    15        the receiver has all before 11, and 12 to 14; 11 was lost on path 0,
 *     path 0  p7    p8(x)       p9                    because p9 arrived and p8 did not
 *     path 1              p3          p4    p5
 *     acknowledgement: all before 11;  path 0: largest p9, before it .1;  path 1: largest p4, before it 1
 *
 * Over queue pairs of type UC the first copy of a chunk is an RDMA write with immediate, which the peer's NIC performs: option `writes`,
 * explained in reliable_writes.c.
 *
 * Numbers are 32 bits and wrap around; they are compared as in RFC 1982.  Each member of a header is checked: a peer that
 * breaks the protocol ends the connection, but cannot write outside of the memory that it was given. */
#ifndef GPULOAD_RDMA_RELIABLE_RELIABLE_H
#define GPULOAD_RDMA_RELIABLE_RELIABLE_H

#include "core/error.h"
#include "rdma/protocol/protocol_failure.h"
#include "rdma/reliable/report.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	GPUL_REL_MAX_WINDOW = 1 << 16, /* chunks in flight */
	GPUL_REL_MAX_WRITES = 1 << 14, /* the same, with the option `writes` */
	GPUL_REL_ACK_PATHS = 16,       /* paths that one acknowledgement reports */
	GPUL_REL_ACK_BITS = 128,       /* packets before the largest that an acknowledgement reports */
};

typedef struct gpul_rel gpul_rel;

/* How the path of a chunk is chosen among the paths that may send. */
typedef enum gpul_rel_spread {
	GPUL_REL_ROUND_ROBIN,
	GPUL_REL_TWO_CHOICES, /* of two random paths the one with the shorter round-trip time */
	GPUL_REL_PINNED,      /* all chunks of a message use one path, as ECMP does with a flow */
} gpul_rel_spread;

/* What limits the chunks in flight of a path. */
typedef enum gpul_rel_control_kind {
	GPUL_REL_SWIFT,  /* a window that holds the queueing delay near a target (Kumar and others, SIGCOMM 2020) */
	GPUL_REL_TIMELY, /* a rate that follows the gradient of the round-trip time (Mittal and others, SIGCOMM 2015) */
	GPUL_REL_FIXED,  /* path_window, always */
} gpul_rel_control_kind;

/* A field that is 0 has the default that its comment gives, if it gives one; gpul_rel_defaults() fills them in. */
typedef struct gpul_rel_options {
	uint32_t chunk_bytes;   /* payload of a datagram, at least 64; default: 1024 */
	uint32_t window;        /* most chunks in flight, a power of two; default: 4096 */
	uint32_t messages;      /* most messages in flight, a power of two; default: 256 */
	unsigned n_paths;       /* number of paths between the two ends; default: 1 */
	gpul_rel_spread spread; /* default: GPUL_REL_ROUND_ROBIN */
	unsigned burst;         /* chunks in a row on one path; default: 1 */
	gpul_rel_control_kind control;
	uint32_t path_window; /* most chunks in flight of a path, at most window; default: window */
	int threshold;        /* a packet counts as lost when the packet this many after it, on its path, has arrived: 1 if paths keep the
				 * order, usually 3; 0: only a time-out finds a loss */
	uint64_t rto_min_ns, rto_max_ns; /* limits of the retransmission time-out; defaults: 1 ms, 1 s */
	unsigned dead_after;             /* a path is dead after this many time-outs in a row, if another one is alive; default: 3 */
	uint64_t silence_ns;   /* the connection fails when the peer is silent for this long while chunks are in flight; 0: never */
	uint64_t target_ns;    /* Swift: queueing delay; default: 50 us.  Timely: T_low, and T_high is ten times it */
	uint64_t rate;         /* Timely: the rate of the link in bytes/s, at which a path starts; default: 1.25e9 */
	unsigned ack_every;    /* chunks of a path that one acknowledgement covers at most; default: 1 */
	uint64_t ack_delay_ns; /* longest delay of an acknowledgement; default: 20 us */
	uint32_t credit;       /* 0: the receiver accepts a whole window.  Otherwise this many chunks without credit, then as many as the
				 * receiver grants by gpul_rel_grant().  Both ends have the same value */
	uint32_t first;        /* the first number of chunks, packets and messages; the same on both ends */
	bool writes; /* the first copy of a chunk is an RDMA write: needs paths that keep the order; window at most GPUL_REL_MAX_WRITES */
	uint64_t fence_ns;          /* writes: a path on which a late write may still come is closed after this time; default: 100 ms */
	uint64_t token, peer_token; /* in each datagram from the peer, and in each to it; random, so that nobody else can send one */
	uint64_t seed;              /* of the random choice of paths */
} gpul_rel_options;

/* Return the options with the defaults filled in. */
gpul_rel_options gpul_rel_defaults(const gpul_rel_options *options);

/** Create one end of a connection.
 *
 * @options  copied
 * @now_ns   time on a monotonic clock
 * @out      owned by the caller: gpul_rel_destroy(); untouched on failure
 * Errors  GPUL_EINVAL an option is out of range (the text says which); GPUL_ENOMEM
 * Threads an end belongs to one thread at a time */
gpul_status gpul_rel_create(const gpul_rel_options *options, uint64_t now_ns, gpul_rel **out, gpul_error *err);
void gpul_rel_destroy(gpul_rel *r); /* accepts NULL */

/* ---- messages ------------------------------------------------------------------------------------------------ */

typedef struct gpul_rel_message {
	uint64_t id;           /* of the caller; returned when all chunks are acknowledged */
	uint64_t local;        /* address of the data, which must not change before that */
	uint64_t local_key;    /* passed on in the datagrams */
	uint64_t address, key; /* where the peer writes it: not interpreted here */
	uint32_t bytes;        /* at most gpul_rel_max_message(); may be 0 */
	uint32_t imm;          /* reported with the arrival, if notify */
	bool notify;           /* the arrival of the message is an event at the peer */
} gpul_rel_message;

/* Most bytes of a message: half a window of chunks. */
uint32_t gpul_rel_max_message(const gpul_rel *r);

/* Accept a message.  False: too many messages are in flight; try again after gpul_rel_poll() has returned one. */
bool gpul_rel_send(gpul_rel *r, const gpul_rel_message *message);

typedef struct gpul_rel_event {
	bool arrived; /* a message of the peer with `notify` has arrived as a whole; false: all of message `id` has been acknowledged */
	uint32_t imm, bytes;
	uint64_t id;
} gpul_rel_event;

/* Take the next event; false: none. */
bool gpul_rel_poll(gpul_rel *r, gpul_rel_event *out);

/* ---- datagrams ------------------------------------------------------------------------------------------------ */

enum { GPUL_REL_MAX_HEADER = 24 + GPUL_REL_ACK_PATHS * 24 };

typedef struct gpul_rel_datagram {
	unsigned path;
	uint32_t header_bytes;
	uint32_t bytes;                /* of the payload, which is at `local` and follows the header */
	uint64_t local, local_key, id; /* of the message, if there is a payload */
	bool again;                    /* a chunk that has been sent before */
	bool write;                    /* an RDMA write of the payload with this immediate, without a header */
	uint32_t imm;
	uint64_t address, key; /* of a write */
	unsigned char header[GPUL_REL_MAX_HEADER];
} gpul_rel_datagram;

/* Get the next datagram to send now; it counts as sent.  False: none may be sent before gpul_rel_wake_ns(), or before one arrives. */
bool gpul_rel_next(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out);

/* What the caller does with a datagram that has arrived. */
typedef struct gpul_rel_chunk {
	bool place; /* copy `bytes` bytes of payload, which begin at `skip`, to `address` under `key`; false: drop it */
	uint32_t bytes, skip;
	uint64_t address, key; /* from the peer, so not trusted: it may only be written if `key` grants it */
} gpul_rel_chunk;

/* Process a datagram.  Datagrams with a wrong token, and duplicates, are dropped and counted.  The caller copies the payload before it
 * polls for events.  Returns false, and *why, if the peer breaks the protocol: the connection must then end. */
bool gpul_rel_receive(gpul_rel *r, uint64_t now_ns, const unsigned char *datagram, uint32_t n_bytes, gpul_rel_chunk *out,
		      gpul_rdma_failure *why);

/* Process the arrival of an RDMA write with immediate on a path.  Otherwise the same as gpul_rel_receive(). */
bool gpul_rel_receive_write(gpul_rel *r, uint64_t now_ns, unsigned path, uint32_t imm, gpul_rdma_failure *why);

/* With `writes`: get a path that must be closed; false: none.  The caller stops its queue pair, so that nothing that is sent on the path
 * can reach this end any more, and then calls gpul_rel_path_closed().  The path is not used again. */
bool gpul_rel_path_to_close(const gpul_rel *r, unsigned *path);
void gpul_rel_path_closed(gpul_rel *r, unsigned path, uint64_t now_ns);

/* Handle time-outs: call it when gpul_rel_wake_ns() has passed.  Returns false, and *why, if the peer has been silent for too long. */
bool gpul_rel_tick(gpul_rel *r, uint64_t now_ns, gpul_rdma_failure *why);
/* The time of the next time-out, or of the next datagram that waits for its time; UINT64_MAX: none. */
uint64_t gpul_rel_wake_ns(const gpul_rel *r);

/* ---- receiver-driven credit --------------------------------------------------------------------------------------- */

/* The number of chunks that the peer wants to send and has no credit for, as it last reported; and of those that it may still send. */
uint32_t gpul_rel_wanted(const gpul_rel *r);
uint32_t gpul_rel_granted(const gpul_rel *r);
/* Allow the peer n more chunks. */
void gpul_rel_grant(gpul_rel *r, uint32_t n);

/* ---- what it has done ------------------------------------------------------------------------------------------------ */

/* report.h explains the structs. */
void gpul_rel_count(const gpul_rel *r, gpul_rel_counters *out);
void gpul_rel_path_about(const gpul_rel *r, unsigned path, gpul_rel_path_info *out);
/* Record the steps of messages in *trace, which is borrowed until the next call; NULL: of none. */
void gpul_rel_record(gpul_rel *r, gpul_rel_trace *trace);
/* Chunks that are in flight, or wait to be sent. */
uint32_t gpul_rel_backlog(const gpul_rel *r);

#endif
