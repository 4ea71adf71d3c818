/* relsim.h — a simulation of one reliable connection, in virtual time; a seed determines everything.
 *
 *     relsim.c      options, seeds in several processes      relsim_net.c  paths that lose, reorder, duplicate, die and return
 *     relsim_end.c  two ends that send messages into each other's buffers, and the checks */
#ifndef GPULOAD_TESTS_RDMA_RELIABLE_RELSIM_H
#define GPULOAD_TESTS_RDMA_RELIABLE_RELSIM_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma/reliable/reliable.h"

enum { ENDS = 2, BUFFERS = 8, MOST_IN_NET = 1 << 15, MOST_DATAGRAM = 2048, MOST_MESSAGE = 1 << 16 };

struct datagram {
	uint64_t at_ns, order; /* arrives at this time; equal times in this order */
	unsigned to, path;
	uint32_t n_bytes;
	bool write; /* an RDMA write of `bytes` to `address` */
	uint32_t imm;
	uint64_t address, key;
	unsigned char bytes[MOST_DATAGRAM];
};

/* A buffer of an end, into which the peer sends one message after the other. */
struct buffer {
	unsigned char *bytes;
	uint32_t message, n_bytes; /* the message that may be written now */
	bool open;                 /* it has been sent, and has not arrived yet */
	bool busy;                 /* the sender still waits for its acknowledgement */
	uint64_t key;
};

struct end {
	gpul_rel *rel;
	struct buffer buffers[BUFFERS];
	uint32_t n_sent, n_acked, n_arrived;
	uint64_t paused_until_ns, failed_ns;
	uint64_t timeouts_before; /* the network went silent */
	bool failed;
	bool closed[GPUL_REL_MAX_PATHS]; /* its queue pair is stopped */
	gpul_rdma_failure why;
};

struct net {
	unsigned loss_permille, duplicate_permille, late_permille;
	uint64_t delay_ns, jitter_ns, gap_ns; /* gap_ns: time that a datagram occupies a path */
	bool dead[GPUL_REL_MAX_PATHS];
	uint64_t free_ns[ENDS][GPUL_REL_MAX_PATHS];
	uint64_t last_ns[ENDS][GPUL_REL_MAX_PATHS]; /* arrival of the last datagram: with writes, a path keeps the order */
	uint64_t change_ns;                         /* then a path dies or works again */
	uint64_t all_dead_ns;                       /* from this time on nothing arrives; UINT64_MAX: never */
};

struct sim {
	uint64_t seed, random, now_ns, order;
	gpul_rel_options o;
	struct net net;
	struct end ends[ENDS];
	struct datagram *heap[MOST_IN_NET];
	unsigned n_heap;
	uint32_t n_messages, most_bytes;
	bool hostile, trace;
	bool freed; /* a buffer, in this step: the peer may start a message */
	const char *error;
	char text[200];
};

uint64_t sim_random(struct sim *s);
uint32_t sim_below(struct sim *s, uint32_t n);
bool sim_chance(struct sim *s, unsigned permille);
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(const struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* relsim_net.c */
void net_choose(struct sim *s);
void net_send(struct sim *s, unsigned from, const gpul_rel_datagram *d);
uint64_t net_next_ns(const struct sim *s);
struct datagram *net_take(struct sim *s);
void net_free(struct sim *s);

/* relsim_end.c */
void end_create(struct sim *s, unsigned e);
void end_destroy(struct sim *s, unsigned e);
void end_receive(struct sim *s, const struct datagram *d);
void end_run(struct sim *s, unsigned e);
bool end_finished(const struct sim *s, unsigned e);

#endif
