/* reliable_internal.h — the headers of datagrams, and the state of one end.
 *
 *     reliable.c          create, time, counters              reliable_send.c     messages, the next datagram
 *     reliable_path.c     choice, time-outs, dead paths       reliable_ack.c      acknowledgements from the peer
 *     reliable_control.c  Swift, Timely                       reliable_receive.c  chunks from the peer, acknowledgements to it
 *     reliable_chunk.c    acknowledged and lost chunks, events    reliable_arrived.c   packets, chunks and messages that have arrived
 *     reliable_writes.c   chunks as RDMA writes, late writes      reliable_close.c     closed paths */
#ifndef GPULOAD_RDMA_RELIABLE_RELIABLE_INTERNAL_H
#define GPULOAD_RDMA_RELIABLE_RELIABLE_INTERNAL_H

#include "rdma/reliable/reliable.h"

#include <assert.h>

/* ---- on the wire, little-endian --------------------------------------------------------------------------------- */

enum { REL_DATA = 0x51, REL_ACK = 0x52, REL_PING = 0x53 };
enum {
	REL_NOTIFY = 1, /* flag of a chunk: the arrival of its message is an event */
	REL_FENCE = 2,  /* flag of a chunk: its first copy was a write, which may still come */
};
enum { REL_CLOSED = 0x4000, REL_CLOSE = 0x8000 }; /* in the path number of an acknowledgement: this end has closed it; please close it */
enum { REL_ASK = 1 };                             /* flag of an acknowledgement: answer it, because this end has no credit */

/* A chunk.
 *
 *      0    1     2      4        8               16      20       24      28       32        40    48     52    56        60
 *     ┌────┬─────┬──────┬────────┬───────────────┬───────┬────────┬───────┬────────┬─────────┬─────┬──────┬─────┬─────────┬──────┐
 *     │kind│flags│ path │ packet │ token         │ chunk │message │ first │ chunks │ address │ key │bytes │ imm │ backlog │ more │ payload
 *     └────┴─────┴──────┴────────┴───────────────┴───────┴────────┴───────┴────────┴─────────┴─────┴──────┴─────┴─────────┴──────┘
 *     first, chunks: the chunk numbers of the message; bytes: of the payload; address: where the payload goes;
 *     backlog: chunks that wait at the sender; more: 0, or as reliable_writes.c says
 * A ping is a packet without a chunk: only kind, path, packet and token have a meaning. */
struct rel_data {
	uint8_t kind, flags;
	uint16_t path;
	uint32_t packet;
	uint64_t token;
	uint32_t chunk, message, first, n_chunks;
	uint64_t address, key;
	uint32_t bytes, imm, backlog, more;
};
static_assert(sizeof(struct rel_data) == 64, "as drawn");

/* An acknowledgement of chunks, and of packets of up to GPUL_REL_ACK_PATHS paths.
 *
 *      0    1     2      4       8               16      20        24
 *     ┌────┬─────┬──────┬───────┬───────────────┬───────┬─────────┬ ┬──────┬───────┬─────────┬───────────────────┐
 *     │kind│paths│flags │ next  │ token         │ limit │ backlog │ │ path │ delay │ largest │ 128 bits          │ ...
 *     └────┴─────┴──────┴───────┴───────────────┴───────┴─────────┴ ┴──────┴───────┴─────────┴───────────────────┘
 *     next: all chunks before it have arrived; limit: the chunk number that the peer may not reach;
 *     largest: the last packet of the path that has arrived; bit i: so has packet largest - 1 - i; delay: us since it arrived */
struct rel_ack {
	uint8_t kind, n_paths;
	uint16_t flags;
	uint32_t next;
	uint64_t token;
	uint32_t limit, backlog;
};
static_assert(sizeof(struct rel_ack) == 24, "as drawn");

struct rel_ack_path {
	uint16_t path, delay_us;
	uint32_t largest;
	uint64_t bits[2];
};
static_assert(sizeof(struct rel_ack_path) == 24, "as drawn");
static_assert(sizeof(struct rel_data) <= GPUL_REL_MAX_HEADER, "the buffer of a header holds both");

/* ---- numbers ------------------------------------------------------------------------------------------------------- */

/* Whether number a comes before b (RFC 1982). */
static inline bool rel_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Return the number whose low 16 bits are `low` and that is nearest to `near`. */
static inline uint32_t rel_nearest(uint32_t near, uint32_t low)
{
	const int32_t ahead = (int16_t)(uint16_t)(low - near);

	return near + (uint32_t)ahead;
}

/* ---- state of one end ------------------------------------------------------------------------------------------- */

enum rel_chunk_state { CHUNK_UNSENT, CHUNK_IN_FLIGHT, CHUNK_LOST, CHUNK_ACKED };

/* A chunk of a message to the peer, at index (chunk number % window). */
struct rel_chunk {
	uint32_t message, packet;
	uint16_t path;
	uint8_t state; /* enum rel_chunk_state */
	bool again;    /* has been sent before */
};

/* A message to the peer, at index (message number % messages). */
struct rel_out {
	gpul_rel_message m;
	uint32_t first, n_chunks, n_unacked;
};

/* A message from the peer. */
struct rel_in {
	bool used, notify;
	uint32_t first, n_chunks, n_missing, imm, bytes;
	uint32_t n_fences; /* late writes that must be excluded before the message has arrived */
};

/* A packet of a path, in flight or since then. */
struct rel_packet {
	uint32_t chunk, sent; /* sent: the time, in units of REL_TICK_NS, modulo 2^32 */
};

enum { REL_TICK_NS = 64 };

/* A path, in both directions. */
struct rel_path {
	/* Packets [oldest, next_packet) are in flight, but for those whose bit in `flying` is not set. */
	uint32_t next_packet, oldest, in_flight;
	struct rel_packet *packets; /* at index (packet % path_slots) */
	uint64_t *flying;
	bool alive, closed, must_close;
	bool is_late;        /* it is closed or should be, and the peer has not confirmed it */
	unsigned n_timeouts; /* in a row */
	uint32_t acked;      /* the largest packet that was acknowledged, if has_acked */
	bool has_acked;
	uint64_t deadline_ns; /* of the oldest packet in flight; UINT64_MAX: none */
	uint64_t probe_ns;    /* a dead path is tried again at this time */
	uint64_t rtt_ns, rttvar_ns, rtt_min_ns;

	/* reliable_control.c */
	double window, window_before, rate, gradient_ns; /* window_before: before the first time-out in a row */
	uint64_t rtt_before_ns, decreased_ns, next_send_ns, round_ns;
	uint32_t n_increases, round_acked, round_lost;
	bool slow_start;

	/* what has arrived on it */
	bool heard;
	uint32_t largest, n_unreported;
	uint64_t bits[2];
	uint64_t largest_ns;
	uint32_t fences;         /* list of struct rel_fence: index + 1; 0: none */
	uint64_t fence_since_ns; /* the last time at which the list was empty, or became shorter */
};

/* With the option `writes`: the packet of the first copy of a chunk, at index (chunk number % window). */
struct rel_first {
	uint32_t packet;
	uint16_t path;
};

/* A message must not be reported before `packet` of the path, which may carry a late write, has arrived or cannot arrive any more. */
struct rel_fence {
	uint32_t packet, message, next; /* next: index + 1 of the path's next one, or of the next free one */
};

enum { REL_RTT_SHIFT = 7, REL_RTT_BITS = 3, REL_RTT_BUCKETS = 24 << REL_RTT_BITS }; /* up to 1 s */

struct gpul_rel {
	gpul_rel_options o;
	gpul_rel_counters n;
	struct rel_path paths[GPUL_REL_MAX_PATHS];
	uint32_t path_slots;
	unsigned next_path, burst_left, ack_path, turn;
	unsigned n_healthy; /* paths that are alive and whose last packet has not timed out */
	uint64_t random;
	uint64_t heard_ns; /* time of the last datagram from the peer, or of the first chunk in flight if that is later */
	uint64_t wake_ns;  /* no time-out is before it */

	/* to the peer: chunks [oldest, next_chunk) are in flight or lost, [next_chunk, end_chunk) have not been sent */
	uint32_t oldest, next_chunk, end_chunk, limit;
	struct rel_chunk *chunks;
	uint32_t *lost; /* ring of chunk numbers that must be sent again */
	uint32_t lost_head, lost_tail;
	struct rel_out *out;
	uint32_t out_oldest, out_next, next_message; /* next_message: that of next_chunk */
	bool asking;                                 /* for credit */
	uint64_t ask_ns;                             /* when to ask again */

	/* from the peer: all chunks before `in_next` have arrived */
	uint32_t in_next, in_limit, peer_backlog;
	uint64_t *in_bits; /* bit (chunk number % window) */
	struct rel_in *in;
	uint32_t in_oldest; /* all messages before it have arrived */
	bool ack_now;
	unsigned n_ack_paths; /* paths with n_unreported > 0 */
	uint64_t ack_due_ns;  /* UINT64_MAX: nothing to acknowledge */

	/* with the option `writes`: reliable_writes.c */
	struct rel_first *firsts;
	uint32_t *in_message; /* the message of a chunk, at index rel_message_index(); may be out of date */
	struct rel_fence *fences;
	uint32_t free_fence; /* index + 1 */
	unsigned n_closed, n_must_close, n_late, close_turn;
	bool pinging;      /* a ping, or a path to close, has been sent since the last datagram from the peer */
	uint64_t close_ns; /* when to report late paths again */

	gpul_rel_event *events;
	uint32_t event_head, event_tail, event_slots;
	gpul_rel_trace *trace; /* NULL: none */

	/* round-trip times of each path, in units of 128 ns (core/log_buckets.h); apart from `paths`, because it is rarely touched */
	uint32_t (*rtts)[REL_RTT_BUCKETS];
};

static inline struct rel_chunk *rel_chunk_at(gpul_rel *r, uint32_t chunk)
{
	return &r->chunks[chunk & (r->o.window - 1)];
}

static inline struct rel_packet *rel_packet_at(const gpul_rel *r, const struct rel_path *p, uint32_t packet)
{
	return &p->packets[packet & (r->path_slots - 1)];
}

static inline bool rel_flying(const gpul_rel *r, const struct rel_path *p, uint32_t packet)
{
	const uint32_t i = packet & (r->path_slots - 1);

	return p->flying[i / 64] >> i % 64 & 1;
}

static inline void rel_land(const gpul_rel *r, struct rel_path *p, uint32_t packet)
{
	const uint32_t i = packet & (r->path_slots - 1);

	p->flying[i / 64] &= ~(UINT64_C(1) << i % 64);
	if (--p->in_flight == 0)
		p->deadline_ns = UINT64_MAX;
}

static inline void rel_wake_at(gpul_rel *r, uint64_t ns)
{
	if (ns < r->wake_ns)
		r->wake_ns = ns;
}

/* A message begins within the window, and may end half a window after it. */
static inline uint32_t rel_message_index(const gpul_rel *r, uint32_t chunk)
{
	return chunk & (2 * r->o.window - 1);
}

/* reliable_chunk.c */
void rel_add_event(gpul_rel *r, const gpul_rel_event *e);
/* Acknowledge a chunk: one less is missing of its message.  The caller has taken it out of its path. */
void rel_chunk_acked(gpul_rel *r, uint32_t chunk);
/* A chunk in flight is lost: queue it for another datagram.  The caller has taken it out of its path. */
void rel_chunk_lost(gpul_rel *r, uint32_t chunk);
/* Add a step of a chunk that has been sent to the trace, if it is of the traced message. */
__attribute__((cold)) void rel_trace_add(gpul_rel *r, const gpul_rel_step *step);
static inline void rel_trace(gpul_rel *r, gpul_rel_step step)
{
	if (r->trace)
		rel_trace_add(r, &step);
}
/* Get the first chunk that must be sent again; false: none.  The caller takes it by r->lost_tail++. */
bool rel_chunk_peek_lost(gpul_rel *r, uint32_t *chunk);

/* reliable_path.c */
/* Choose a path for a chunk; NULL: none may send now. */
struct rel_path *rel_path_choose(gpul_rel *r, uint32_t message, uint64_t now_ns);
/* The path of a datagram that carries no chunk: each one in turn, because no time-out finds that it is dead. */
unsigned rel_path_in_turn(gpul_rel *r);
/* A packet of a path has been sent at now_ns. */
void rel_path_sent(gpul_rel *r, struct rel_path *p, uint32_t chunk, uint64_t now_ns);
/* Packets of the path were acknowledged, perhaps after a time-out had given them up: the time-out begins again. */
void rel_path_heard(gpul_rel *r, struct rel_path *p, uint64_t now_ns);
void rel_path_measured(gpul_rel *r, struct rel_path *p, uint64_t rtt_ns);
/* Return a quantile of the round-trip times of a path; 0: none was measured. */
uint64_t rel_path_quantile_ns(const gpul_rel *r, unsigned path, double part);
uint64_t rel_path_rto_ns(const gpul_rel *r, const struct rel_path *p);
/* Handle the time-outs that have passed, and find the next one. */
void rel_path_tick(gpul_rel *r, uint64_t now_ns);
/* A path that is due for a probe; NULL: none. */
struct rel_path *rel_path_probe(gpul_rel *r, uint64_t now_ns);
/* Count the healthy paths again. */
void rel_path_count_healthy(gpul_rel *r);
/* All packets of the path that are in flight are lost. */
void rel_path_lose_all(gpul_rel *r, struct rel_path *p, uint64_t now_ns);

/* reliable_control.c */
void rel_control_start(const gpul_rel *r, struct rel_path *p);
void rel_control_acked(const gpul_rel *r, struct rel_path *p, uint64_t rtt_ns, uint32_t n, uint32_t n_lost, uint64_t now_ns);
void rel_control_timeout(const gpul_rel *r, struct rel_path *p);
/* The time-outs were wrong: the peer was only late. */
void rel_control_late(const gpul_rel *r, struct rel_path *p);
bool rel_control_may_send(const gpul_rel *r, const struct rel_path *p, uint64_t now_ns);
void rel_control_sent(const gpul_rel *r, struct rel_path *p, uint64_t now_ns);

/* reliable_ack.c */
bool rel_ack_receive(gpul_rel *r, uint64_t now_ns, const unsigned char *datagram, uint32_t n_bytes, gpul_rdma_failure *why);

/* reliable_receive.c */
bool rel_ack_next(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out);

/* reliable_arrived.c */
/* Note a packet for the next acknowledgement of its path. */
void rel_note_packet(gpul_rel *r, struct rel_path *p, uint32_t packet, uint64_t now_ns);
bool rel_has_arrived(const gpul_rel *r, uint32_t chunk);
/* Count a new chunk, of a message; NULL: of one that is not known yet. */
void rel_take_chunk(gpul_rel *r, uint32_t chunk, struct rel_in *m);
/* Whether the chunk cannot be processed before another message ends, which waits for a fence. */
bool rel_must_wait(const gpul_rel *r, const struct rel_data *d);
/* Let the message wait for the fence of a chunk, if it has one. */
void rel_add_fence(gpul_rel *r, const struct rel_data *d, struct rel_in *m, uint64_t now_ns);
/* The largest packet of the path has increased, or the path is closed. */
void rel_pass_fences(gpul_rel *r, struct rel_path *p, uint64_t now_ns);

/* reliable_writes.c */
gpul_status rel_writes_create(gpul_rel *r);
/* Whether the chunk is data of a message whose first chunk is a header without data. */
bool rel_is_write(const gpul_rel *r, const struct rel_out *m, uint32_t chunk);
/* Fill in the member `more` of a header, and its flag. */
void rel_fill_more(gpul_rel *r, const struct rel_out *m, struct rel_data *d);
/* Remember which message has the chunks of m, and count those that have arrived before. */
void rel_begin_writes(gpul_rel *r, struct rel_in *m, uint32_t message);
/* Check the member `more` of a header. */
bool rel_check_more(const gpul_rel *r, const struct rel_data *d, gpul_rdma_failure *why);
bool rel_ping_next(gpul_rel *r, uint64_t now_ns, gpul_rel_datagram *out);

/* reliable_close.c */
/* Close the paths on which fences have waited for too long, and repeat what the peer has not confirmed. */
void rel_close_late_paths(gpul_rel *r, uint64_t now_ns);
/* Add to an acknowledgement a path that is closed, or must be; returns the number of paths added. */
uint8_t rel_report_close(gpul_rel *r, gpul_rel_datagram *out);
/* Check, and process, what the peer says of closing a path. */
bool rel_check_close(const gpul_rel *r, unsigned path, unsigned flag, gpul_rdma_failure *why);
void rel_process_close(gpul_rel *r, unsigned path, unsigned flag);

/* Record that the peer broke the protocol; returns false. */
#define rel_broken(why, ...) \
	(gpul_rdma_fail((why), GPUL_EFORMAT, 0, "reliable", "the peer does not run the same version of gpuload, or is hostile", \
			__VA_ARGS__), \
	 false)

#endif
