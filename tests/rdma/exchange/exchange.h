/* exchange.h — two processes that send each other messages and puts, and check every byte.
 *
 *     exchange serve            exchange HOST                     exchange.c   command line, threads
 *       accept ──────────────── connect                           session.c    a connection: memory, notes, rounds
 *       note: plan    <──────── note: plan
 *       messages, puts <──────> messages, puts   (a round)        messages.c, puts.c, items.c, pattern.c
 *       note: checked  ───────> note: plan of the next round ...
 *       a planned fault <─────> the same fault                    faults.c
 *
 * Both ends know the plan, from which each can compute the size, the address and the bytes of every message.  The connecting side
 * chooses the plan; the serving side receives it with the first note. */
#ifndef GPULOAD_TESTS_RDMA_EXCHANGE_EXCHANGE_H
#define GPULOAD_TESTS_RDMA_EXCHANGE_EXCHANGE_H

#include <stdatomic.h>

#include "rdma/rdma.h"

enum {
	WINDOW = 4, /* items in flight, in each direction */
	PUT_SLOTS = 8,
	LANES = 4,
	PAD = 256,           /* bytes between adjacent buffers */
	SPARE = 70000,       /* a buffer is at most this number of bytes larger than its message */
	MULTI_BYTES = 65536, /* maximum size of a buffer of a multi-receive */
	PUT_BYTES = 65536,
	NOTE_TAG = 0x6e6f7465,
};

/* ---- pattern.c: bytes that depend on their position --------------------------------------------------------------- */

void pattern_fill(unsigned char *at, uint64_t bytes, uint64_t seed);
/* Return the index of the first wrong byte; `bytes`: all are right. */
uint64_t pattern_check(const unsigned char *at, uint64_t bytes, uint64_t seed);
uint64_t mix(uint64_t x);

/* ---- items.c: which messages a round has -------------------------------------------------------------------------- */

/* The parameters of a round, the same in both directions. */
typedef struct plan {
	uint64_t seed;
	uint32_t connection, round, n_items, n_puts;
	uint64_t max_bytes;     /* maximum size of a message */
	uint64_t segment_bytes; /* segment size of the connection, the maximum size of a message of a multi-receive */
} plan;

typedef struct part {
	uint64_t bytes, room; /* size of the message; size of its buffer */
	uint64_t offset;      /* offset of the buffer in its slot, before `from` or `to` is added */
	uint32_t from, to;    /* added to the offset by the sender, and by the receiver, to vary the alignment */
	uint32_t tag;
	uint64_t seed; /* seed of the content */
} part;

/* One receive: a message, or the messages of a multi-receive. */
typedef struct item {
	unsigned n;
	part parts[GPUL_RDMA_MAX_PARTS];
	unsigned order[GPUL_RDMA_MAX_PARTS]; /* order in which the sender sends the messages */
} item;

/* Make item k of a direction: 0 is from the client, 1 from the server. */
void item_make(const plan *p, unsigned direction, uint32_t k, item *out);
/* Return the size of a slot that is large enough for any item. */
uint64_t slot_bytes(uint64_t max_bytes);
/* Return the size of put k; *align (0 to 63) and *seed are set to its alignment and the seed of its content. */
uint64_t put_make(const plan *p, unsigned direction, uint64_t k, uint32_t *align, uint64_t *seed);

/* ---- session.c: one connection -------------------------------------------------------------------------------------- */

typedef enum note_kind { NOTE_HELLO = 1, NOTE_ROUND, NOTE_FAULT, NOTE_CHECKED, NOTE_END } note_kind;

/* A control message between the two processes. */
typedef struct note {
	uint32_t kind, deadline_ms;
	plan plan;                    /* NOTE_HELLO: only connection, max_bytes and n_items; NOTE_ROUND: all fields */
	gpul_rdma_remote puts, words; /* NOTE_HELLO: memory into which the peer may put */
	uint32_t fault, outstanding;  /* NOTE_FAULT: the fault, and the kind of request that is outstanding when it occurs */
} note;

/* Words in the memory of this end, to which the peer writes by the signals of its puts. */
typedef struct words {
	uint64_t steps[LANES]; /* for each lane: number of puts that have arrived */
	uint64_t checked;      /* number of this end's puts that the peer has checked */
	uint64_t kill;         /* 1: this process must kill itself */
} words;

typedef struct memory {
	unsigned char *at;
	size_t bytes;
	gpul_rdma_region *region;
} memory;

typedef struct totals {
	uint64_t messages, puts, bytes; /* totals of what this end has sent */
} totals;

typedef struct session {
	gpul_rdma *r;
	gpul_rdma_conn *conn;
	gpul_rdma_conn_info info;
	bool serving;
	int deadline_ms;
	uint32_t connection;
	memory notes, out, in; /* out, in: WINDOW slots, then PUT_SLOTS of puts */
	memory word_memory;
	words *words; /* in word_memory */
	gpul_rdma_remote peer_puts, peer_words;
	uint64_t slot;                    /* size of a slot in bytes */
	uint32_t n_slots;                 /* WINDOW, or the number of items in a round, if that is smaller */
	uint64_t puts_sent, puts_checked; /* counts since the start of the connection */
	totals totals;
} session;

/* The command-line settings of the connecting end. */
typedef struct wishes {
	uint64_t seed, max_bytes;
	uint32_t n_items, n_puts, rounds;
	double seconds;  /* repeat rounds for this time; 0: run `rounds` rounds */
	int deadline_ms; /* deadline of each request */
	int fault;       /* index of a fault; -1: none */
	unsigned outstanding;
	void (*begun)(void); /* called before the first round; NULL: none */
} wishes;

/* Each returns the first failure, explained in *err. */
gpul_status session_client(session *s, const wishes *w, gpul_error *err);
gpul_status session_server(session *s, const wishes *w, gpul_error *err);
void session_close(session *s);

/* Send a note; receive the next one, which must be of this kind (0: any). */
gpul_status session_tell(session *s, const note *n, gpul_error *err);
gpul_status session_hear(session *s, note_kind kind, note *out, gpul_error *err);
/* Describe a buffer inside a memory. */
gpul_rdma_buffer buffer_in(const memory *m, uint64_t offset, uint64_t bytes, uint32_t tag);
/* Yield the CPU at intervals, because the peer may need it. */
void relax(unsigned *turns, bool idle);

/* ---- messages.c, puts.c: sends, receives and puts, which run at the same time in a round ------------------------- */

typedef struct sends {
	uint32_t begun, ended; /* numbers of items whose requests have begun, or ended */
	gpul_rdma_request requests[WINDOW][GPUL_RDMA_MAX_PARTS];
	unsigned n_requests[WINDOW]; /* number of requests that are posted for the item in each slot */
	unsigned n_ended[WINDOW];
} sends;

typedef struct receives {
	uint32_t begun, ended;
	gpul_rdma_request requests[WINDOW];
} receives;

/* Make all progress that is possible without waiting; *did is set to true if there was any. */
gpul_status sends_step(session *s, const plan *p, sends *x, bool *did, gpul_error *err);
gpul_status receives_step(session *s, const plan *p, receives *x, bool *did, gpul_error *err);

typedef struct put_stream {
	uint64_t until; /* number of the last put of this round */
	gpul_rdma_request requests[PUT_SLOTS];
	uint64_t posted, ended; /* counted like session.puts_sent */
	gpul_rdma_request acknowledgement;
	uint64_t acknowledged; /* counted like session.puts_checked */
	uint64_t waits_since_ns;
} put_stream;

void puts_begin(session *s, const plan *p, put_stream *x);
gpul_status puts_step(session *s, const plan *p, put_stream *x, bool *did, gpul_error *err);
bool puts_done(const session *s, const put_stream *x);

/* ---- faults.c ------------------------------------------------------------------------------------------------------- */

int fault_find(const char *name); /* -1: no such fault */
void fault_list(char *out, size_t out_bytes);
int outstanding_find(const char *name); /* -1: no such kind of request */
/* Cause a fault; the connecting side announces it by a NOTE_FAULT, with which session_server() calls fault_server().  GPUL_OK: the text
 * and the time of the failure are as expected. */
gpul_status fault_client(session *s, const wishes *w, gpul_error *err);
gpul_status fault_server(session *s, const note *n, gpul_error *err);

#endif
