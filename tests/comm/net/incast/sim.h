/* sim.h — receiver-driven admission in a simulated network: senders, one link with a queue in front of it, one receiver.
 *
 *     sender ── delay, jitter ──> ┌─────────┐
 *     sender ── delay, jitter ──> │ queue   │ ── the link: one byte per ns_per_byte ──> receiver ── admission
 *     sender ── delay, jitter ──> └─────────┘                                              │
 *        ↑                                                                                 │
 *        └──────────────────────────── grants: delay, jitter ──────────────────────────────┘
 *
 * All times are virtual, and the same seed gives the same run.  After each event the simulation checks the invariants. */
#ifndef GPULOAD_TESTS_COMM_NET_INCAST_SIM_H
#define GPULOAD_TESTS_COMM_NET_INCAST_SIM_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_SENDERS = 12 };

struct sim_plan {
	uint64_t seed;
	unsigned n_senders;
	uint64_t window_bytes, grant_bytes;
	uint64_t ns_per_byte;
	uint64_t delay_ns, jitter_ns;        /* delay of each direction, to which a random part of jitter_ns is added */
	uint64_t message_bytes[SIM_SENDERS]; /* maximum size of a message of each sender */
	unsigned n_messages;                 /* number of messages of each sender */
	bool backlogged;                     /* all messages are requested at the start */
	uint64_t late_ns;
	int dies;   /* sender whose process ends in the middle; -1: none */
	int stalls; /* sender that stops sending for a while; -1: none */
};

struct sim_figures {
	uint64_t end_ns;             /* time at which all messages had arrived */
	uint64_t bytes;              /* number of bytes that have arrived */
	uint64_t first_done_ns;      /* time at which the first sender had no more messages */
	uint64_t share[SIM_SENDERS]; /* bytes that each sender had delivered at first_done_ns */
	uint64_t most_queued;        /* maximum number of bytes in the queue */
	uint64_t longest_wait_ns;    /* longest time of a message, from its request to its end */
	uint64_t late_bytes;         /* maximum of the credits that late senders held at one time */
	unsigned n_unfinished;       /* number of unfinished messages of senders that are alive */
};

/* Run a plan to its end; a violated invariant fails the test (cmocka). */
struct sim_figures sim_run(const struct sim_plan *p);

/* Return a random number below n. */
uint64_t sim_random(uint64_t *state, uint64_t n);

#endif
