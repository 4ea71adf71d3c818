/* sim.h — a deterministic simulation of one connection: two ends of rdma/protocol/protocol_link.h, a fabric and a socket.
 *
 *     plan.c    from a seed: parameters, regions, requests, the fault
 *     end.c     one end's thread: ticks, events, requests, operations
 *     fabric.c  executes operations between the two memories, with random delays
 *     fault.c   errors, deaths, stalls, lost messages, forged events; the socket beside the fabric
 *     check.c   invariants of each operation and request, and at the end
 *     referee.c which arrivals are valid
 *     base.c    random numbers, the queue of future events, the trace
 *     sim.c     main: seeds, jobs
 *
 * Nothing depends on the machine's time, on addresses or on threads: a seed gives the same run on every machine. */
#ifndef GPULOAD_TESTS_RDMA_SIM_SIM_H
#define GPULOAD_TESTS_RDMA_SIM_SIM_H

#include <stdio.h>

#include "rdma/protocol/lease.h"
#include "rdma/protocol/protocol_link.h"

enum {
	ENDS = 2,
	AREAS = 3, /* area 0 is registered in one piece, area 1 in several; area 2 is device memory, staged or to be flushed */
	REGISTRATIONS = 2 + AREAS * GPUL_RDMA_MAX_PIECES,
	MAX_WORKS = 2400, /* maximum number of requests of one end */
	MAX_BUFFERS = 4 * MAX_WORKS,
	AREA_BYTES = 64 << 20, /* address space of an area; little of it is used */
	STAGE_BYTES = 64 << 20,
	MAX_BACKLOG = 1 << 16,
	TOLD_MESSAGES = 4096,   /* messages that the referee remembers, by number: more than a run has; a power of two */
	NOISE_BYTES = 24 << 20, /* random bytes: the content of each message is a part of them */
	UNTOUCHED = 0xee,       /* content of memory that must not be written */
	REUSED = 0x5a,          /* content of a buffer whose request has ended, and which its owner may reuse */
	MAX_TAKE = 160,
	REASON = 400,
};

#define US        1000ull
#define MS        (1000 * US)
#define SECOND    (1000 * MS)
#define LEASE_NS  (5 * SECOND)
#define NOTICE_NS (7500 * MS)     /* from the loss of a path until the error completion */
#define FOREVER   (1000 * SECOND) /* a deadline that a correct run never reaches */
#define HANG_NS   (60 * SECOND)   /* time limit of a run */

struct rng {
	uint64_t state;
};
uint64_t random_bits(struct rng *r);
uint32_t below(struct rng *r, uint32_t n); /* random number from 0 to n - 1 */
bool chance(struct rng *r, unsigned per_mille);
uint64_t delay(struct rng *r, uint64_t typical_ns); /* random time of about typical_ns, sometimes much longer */

/* ---- the plan ----------------------------------------------------------------------------- */

enum fault {
	NO_FAULT,
	ERROR_COMPLETION, /* one operation of `victim` completes with an error */
	DEATH,            /* the process of `victim` ends */
	STALL,            /* the thread of `victim` stops; its socket's thread may continue */
	PARTITION,        /* the socket no longer delivers anything */
	BLACK_HOLE,       /* the fabric no longer delivers anything */
	WRONG_TAG,
	SHORT_BUFFER,
	DEADLINE,      /* deadlines of requests expire */
	HOSTILE,       /* `victim` gets invalid slots, immediates, datagrams and completions */
	HOSTILE_ORDER, /* `victim` gets immediates for its slots in any order */
	ABANDON,       /* both ends are destroyed with requests in flight */
	N_FAULTS,
};

enum role { SEND_FROM, RECV_INTO, PUT_FROM, PUT_INTO, SIGNAL_INTO };

struct work;

/* A part of an area.  Buffers are sorted by address, with untouched bytes between them. */
struct buffer {
	uint64_t at;
	uint32_t bytes, noise; /* noise: offset of its content in sim.noise */
	uint32_t filled;       /* RECV_INTO: size of the message */
	uint8_t role;
	struct work *owner; /* PUT_INTO, SIGNAL_INTO: a request of the other end */
};

enum work_kind { SEND, RECV, PUT, FLUSH, STREAMS };
enum work_state { PLANNED, ACTIVE, ENDED, FAILED, REFUSED };

struct work { /* one request */
	uint8_t kind, state, end;
	uint8_t n_parts;        /* RECV: number of its buffers */
	uint32_t first_message; /* RECV: number of its first message */
	uint8_t area;
	uint16_t put_number; /* PUT: its number among the puts of its lane */
	uint32_t tags[GPUL_RDMA_MAX_PARTS];
	uint32_t buffers[GPUL_RDMA_MAX_PARTS]; /* indexes of its buffers in end.buffers */
	uint32_t to, signal;                   /* PUT: indexes of buffers of the other end, or NONE */
	uint64_t value, landed;                /* PUT: the signal's value; bytes that arrived */
	bool effective;                        /* PUT: data and signal have arrived */
	struct work *proves;                   /* FLUSH: the receive whose data it makes visible */
	unsigned lane;
	uint64_t pause_ns, limit_ns; /* pause after the previous request of the stream; deadline after the start, 0: none */
	uint64_t deadline_ns;
	gpul_rdma_request handle;
};
#define NONE UINT32_MAX

/* The kind of traffic in a run. */
enum shape {
	MIXED,
	MANY,  /* more messages than slots */
	LONG,  /* a message of more segments than slots */
	FLOOD, /* a message of thousands of segments, then many small ones, to an end that often pauses */
};

struct params {
	uint32_t first_counter;
	unsigned n_qps;
	uint32_t segment_bytes, stripe_bytes;
	gpul_rdma_striping striping;
	bool ordered, completes_in_order, datagrams, unnamed; /* unnamed: an arrival does not tell its queue pair */
	enum shape shape;
	unsigned datagram_loss; /* lost datagrams per mille */
	uint64_t repeat_ns;
	uint64_t post_ns, ack_ns, arrive_ns, copy_ns; /* typical delays */
	unsigned slow_qp;                             /* index of a slow queue pair; GPUL_RDMA_MAX_QPS: none */
	unsigned in_parts;                            /* per mille of the writes that land in two parts */
	unsigned naps;                                /* per mille of the threads' steps that a long pause follows */
	bool eager;                                   /* requests start without pauses */
	bool early;                                   /* operations complete before their data lands, unless DELIVERED is set */
	bool offsets;                                 /* remote addresses count from the start of the piece */
	bool strictly_checked;                        /* true: also make the checks that take long */

	enum fault fault;
	unsigned victim;
	uint64_t at_ns, for_ns; /* time of the fault; STALL: its duration */
	uint32_t at_op;         /* ERROR_COMPLETION: number of the operation */
	int wc_status;
	bool lands;                 /* ERROR_COMPLETION: the failed operation takes effect */
	bool beats_stop;            /* STALL: the socket's thread stops, too */
	bool failed_lost, eof_lost; /* true: the peer does not receive the socket's FAILED message, or its end of file */
	bool harmless, must_fail;   /* harmless: no link may fail; must_fail: both must fail */
	uint64_t socket_ns;
};

/* ---- referee.c: the slots that an end has granted to its peer, and what has arrived in them ---- */

struct told_slot {
	bool is_told, ends, last, full, returned; /* ends: last slot of its buffer; returned: its message ends in an earlier slot */
	uint32_t sequence, message, segment, room, bytes;
	unsigned awaited; /* mask of the queue pairs whose stripes are missing; 0 before the first stripe */
};

struct told_message {
	bool has_last;
	uint32_t last, seen, n_full; /* last: index of the last segment; seen: 1 + highest arrived index; n_full: complete segments */
	uint64_t bytes;
};

struct referee {
	uint32_t told, message, segment; /* the numbers of the slot that was granted last */
	uint32_t first_message;
	struct told_slot slots[GPUL_RDMA_SLOTS];
	struct told_message messages[TOLD_MESSAGES];
};

/* ---- the two ends -------------------------------------------------------------------------- */

struct registration {
	gpul_rdma_piece piece;
	const char *name;
	bool control, stages;
	unsigned area;
};

struct area {
	unsigned char *memory;
	uint32_t used, clean; /* the first `clean` bytes were filled with UNTOUCHED */
	gpul_rdma_area registered;
	bool small_writes_wait;       /* true for device memory that needs a flush: a write becomes visible later */
	uint32_t *buffers, n_buffers; /* sorted by address */
};

struct inbox_item {
	gpul_rdma_event event;
	bool error; /* true: an error completion */
	int wc_status;
	uint32_t flying; /* index of the completed operation; NONE: forged */
};

struct sent_queue {                                                    /* one queue pair */
	uint64_t last_lands, last_done, last_early_done, last_arrived; /* times of the last events, which later events must not precede */
	uint32_t taken, retired;                                       /* counts of operations */
	int recvs;
	bool in_error;
};

struct end {
	unsigned index;
	gpul_rdma_link *link;
	gpul_rdma_link_desc desc;
	gpul_rdma_control *control;
	unsigned char *stages;
	struct area areas[AREAS];
	struct registration registered[REGISTRATIONS];
	unsigned n_registered;

	struct buffer *buffers;
	uint32_t n_buffers;
	struct work *works;
	uint32_t n_works;
	struct work *stream[STREAMS][MAX_WORKS];
	uint32_t planned[STREAMS], started[STREAMS];
	uint64_t ready_ns[STREAMS];
	struct work *active[MAX_WORKS];
	uint32_t n_active, n_left;
	uint64_t next_deadline_ns; /* no active request has an earlier deadline */
	uint64_t ended_copy;       /* id of the last ended copy operation */
	uint32_t n_messages;       /* number of messages of the receives that have begun */
	struct referee referee;
	gpul_rdma_request stale; /* handle of a request that gpul_rdma_link_test() has reported as ended */

	struct inbox_item *inbox;
	uint32_t inbox_head, inbox_tail, inbox_room;
	uint32_t *backlog; /* operations that were taken from the link, but are not posted yet */
	uint32_t backlog_head, backlog_tail;
	struct sent_queue queues[GPUL_RDMA_MAX_QPS];
	uint32_t n_writes;
	uint16_t lane_next[GPUL_RDMA_MAX_QPS * 2], lane_planned[GPUL_RDMA_MAX_QPS * 2];

	uint64_t thread_ns; /* typical time between two steps of this end's thread */
	uint64_t next_run_ns, idle_ns, last_tick_ns, away_until_ns;
	uint32_t run_stamp;
	gpul_rdma_lease lease; /* heartbeats of this end's socket thread */
	unsigned copies;       /* number of copies in flight */
	bool dead, stalled, failed;
	uint64_t failed_ns;
};

/* An operation that the fabric executes. */
struct flying {
	gpul_rdma_op op;
	uint8_t end;
	bool used, landed, error;
	uint32_t number;                   /* number in its queue pair */
	uint32_t landed_from, landed_upto; /* the part of a write that has landed before the rest */
	unsigned char inlined[256];
	uint64_t earlier_done_ns; /* time at which all earlier writes that complete early have completed */
	unsigned char *captured;  /* the bytes of a write that completes before it lands */
};

enum happening { RUN, LAND, LAND_PART, DELIVER, COPIED, SETTLE, FAULT, SOCKET_FAILED, SOCKET_EOF, SOCKET_BEAT, SOCKET_TICK, WAKE, FORGE };

struct future {
	uint64_t ns, order;
	uint8_t what, end;
	uint32_t index; /* RUN: run_stamp of the end (another value is outdated); otherwise an index in sim.flying or sim.items */
};

/* A write to device memory that no flush has made visible yet. */
struct unsettled {
	uint64_t to;
	unsigned char *data;
	uint32_t bytes;
};

struct sim {
	uint64_t seed, now;
	struct rng rng;
	struct params p;
	struct end ends[ENDS];

	struct future *heap;
	uint32_t n_heap, heap_room;
	uint64_t n_futures;
	struct flying *flying;
	uint32_t *free_flying, n_free_flying, flying_room;
	struct inbox_item *items; /* items that have not reached an inbox yet */
	uint32_t *free_items, n_free_items, items_room;
	struct unsettled *unsettled[ENDS];
	uint32_t n_unsettled[ENDS], n_settled[ENDS], unsettled_room[ENDS];

	unsigned char *noise;
	bool path_broken, hole, partition, aborted, lenient;
	uint64_t steps;
	bool trace;
	char reason[REASON];
};

/* ---- base.c ---- */
/* Record why the run is wrong; only the first reason is kept. */
void wrong(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void trace(const struct sim *s, unsigned end, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void happen(struct sim *s, uint64_t ns, enum happening what, unsigned end, uint32_t index);
bool next_future(struct sim *s, struct future *f);
uint32_t new_flying(struct sim *s);
void end_flying(struct sim *s, uint32_t i);
void *grow(void *array, uint32_t *room, size_t each);
uint32_t new_item(struct sim *s, const struct inbox_item *item);
const char *name_place(const struct sim *s, unsigned end, uint64_t at, char text[64]);
const char *name_op(const struct sim *s, unsigned end, const gpul_rdma_op *op, char text[256]);

/* ---- plan.c ---- */
bool sim_open(struct sim *s); /* allocates memory, which is used for any number of runs */
void sim_close(struct sim *s);
bool make_plan(struct sim *s, uint64_t seed);
extern const char *const fault_names[N_FAULTS];

/* ---- regions.c ---- */
uint32_t new_buffer(struct sim *s, unsigned end, unsigned area, enum role role, uint32_t bytes, struct work *owner);
void register_all(struct sim *s);
bool create_links(struct sim *s);

/* ---- end.c ---- */
void run_end(struct sim *s, unsigned end);
void wake(struct sim *s, unsigned end, uint64_t ns);
bool settled(const struct sim *s);

/* ---- fabric.c ---- */
void take_operations(struct sim *s, struct end *e);
void land(struct sim *s, uint32_t flying);
void land_part(struct sim *s, uint32_t flying);
void deliver(struct sim *s, unsigned end, uint32_t item);
void copied(struct sim *s, uint32_t flying);
void settle(struct sim *s, unsigned end, uint32_t upto);
void drop_item(struct sim *s, uint32_t item);

/* ---- fault.c ---- */
void plan_fault(struct sim *s);
void spoil_requests(struct sim *s); /* for WRONG_TAG and SHORT_BUFFER */
void begin_fault(struct sim *s);
void forge(struct sim *s);
void watch_failure(struct sim *s, struct end *e); /* called after each call of the link */
void fail_end(struct sim *s, unsigned end, const char *call, int native, const char *what);
void start_leases(struct sim *s);
void socket_event(struct sim *s, const struct future *f);
const char *wc_name(int status);

/* ---- referee.c ---- */
void reset_referee(struct end *e, uint32_t first);
void slots_told(struct sim *s, struct end *e, const gpul_rdma_op *op);
void give_event(struct sim *s, struct end *e, const gpul_rdma_event *v);
void check_complete(struct sim *s, const struct work *w, const uint64_t *bytes);
void forge_arrivals(struct sim *s, struct end *e);

/* ---- check.c ---- */
struct buffer *find_buffer(const struct sim *s, unsigned end, uint64_t at, uint64_t bytes);
struct registration *find_registration(struct sim *s, unsigned end, uint64_t key, uint64_t remote, uint64_t bytes);
void check_taken(struct sim *s, struct end *e, const gpul_rdma_op *op);
void check_local(struct sim *s, unsigned end, const gpul_rdma_op *op);
void check_copy(struct sim *s, unsigned end, const gpul_rdma_op *op);
void check_write(struct sim *s, unsigned to, const struct registration *r, uint64_t at, const gpul_rdma_op *op);
void put_landed(struct sim *s, unsigned to, uint64_t at, const void *data, uint32_t bytes);
void check_ended(struct sim *s, struct work *w, const uint64_t *bytes);
void check_memory(struct sim *s);

/* ---- sim.c ---- */
bool run_seed(struct sim *s, uint64_t seed); /* false: s->reason is set */

#endif
