/* relstates.h — visits every state that two ends of a reliable connection can reach, for small numbers of messages.
 *
 *     relstates.c       shapes, and the search                   relstates_save.c  a state as bytes
 *     relstates_step.c  what can happen next, and the checks
 *
 * The network is the set of all datagrams that were sent so far.  Each of them may arrive at any time, any number of times, or never: that is every loss,
 * every duplicate and every order.  Time stands still, and each timer that is set may run out at any moment: that is every delay. */
#ifndef GPULOAD_TESTS_RDMA_RELIABLE_RELSTATES_H
#define GPULOAD_TESTS_RDMA_RELIABLE_RELSTATES_H

#include "rdma/reliable/reliable_internal.h"

enum { ENDS = 2, MOST_MESSAGES = 4, MOST_CHUNKS = 128, MOST_SENT = 120, MOST_DATAGRAMS = 60000, MOST_REGIONS = 16, MOST_BYTES = 32768 };
static const uint64_t NOW_NS = UINT64_C(1) << 40;

struct shape {
	const char *name;
	gpul_rel_options o;
	unsigned n_chunks[ENDS][MOST_MESSAGES]; /* of each message; 0: no more messages */
	uint32_t silent;                        /* bits of messages without notify */
	unsigned timeouts;                      /* most time-outs of paths */
	unsigned
		delivered; /* the search begins when this number of chunks of end 0 (all but the first one) and their acknowledgements have arrived in order */
	bool acks_at_once; /* an acknowledgement that is due is sent before anything else happens; false: at any time */
	bool keeps_acks;   /* also acknowledgements that the receiver knows stay in the network */
	bool large;        /* only searched with --large */
};

enum step_kind { STEP_SEND, STEP_ARRIVE, STEP_TIMEOUT, STEP_PROBE, STEP_ACK_DUE, STEP_ASK_DUE, STEP_GRANT };

struct step {
	uint8_t kind, end;
	uint16_t which; /* path, or datagram */
};

struct datagram {
	uint16_t to, n_bytes, header_bytes;
	unsigned char bytes[GPUL_REL_MAX_HEADER];
};

/* The part of a state that is not in the ends. */
struct world {
	uint16_t sent[MOST_SENT]; /* numbers of the datagrams in the network, ascending */
	uint32_t n_sent, timeouts_left;
	uint64_t placed[ENDS][MOST_CHUNKS / 64]; /* chunks that were written at this end */
	uint32_t begun[ENDS];                    /* messages that this end has given to gpul_rel_send */
	uint32_t arrived[ENDS], done[ENDS];      /* bits of messages */
};

struct model {
	const struct shape *shape;
	gpul_rel *ends[ENDS];
	struct world w;
	uint64_t now_ns;
	uint32_t n_datagrams;
	struct datagram *datagrams;
	uint16_t *table; /* hash table of datagrams: number + 1; 0: empty */
	struct {
		unsigned char *at;
		size_t bytes;
	} regions[ENDS * MOST_REGIONS];
	unsigned n_regions;
	size_t n_words;
	uint64_t *first, *copy; /* the words of the first state; of another one, for load_end() */
	bool trace;
	const char *error;
	char text[200];
};

/* relstates_step.c */
bool model_create(struct model *m, const struct shape *shape);
void model_destroy(struct model *m);
void model_fail(struct model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Take a step, and check what it does; false: it is not possible in this state. */
bool model_step(struct model *m, struct step step);
/* List the steps that may be possible. */
unsigned model_steps(const struct model *m, struct step *out);
/* From now on the network works, but for one path (GPUL_REL_MAX_PATHS: on all paths): check that both ends finish.  The state is then lost. */
void model_finish(struct model *m, unsigned dead_path);

/* relstates_save.c */
void save_start(struct model *m);
/* Set members that have no influence any more to 0, so that states that differ in nothing else are one. */
void save_normalize(struct model *m, unsigned e);
/* Write the state to `out`, of MOST_BYTES; returns its size. */
size_t save_state(const struct model *m, unsigned char *out);
void load_state(struct model *m, const unsigned char *from);
/* Copy the words of an end to m->copy, or back; or return whether they are equal. */
void copy_end(struct model *m, unsigned e);
void load_end(struct model *m, unsigned e);
bool is_copy(const struct model *m, unsigned e);

#endif
