/* channel_layout.h — the memory of a channel between two ranks: for C and for CUDA C++.
 *
 *     rank S, the sender                                   rank R, the receiver
 *     outbox of S for R, in S's arena                      inbox of R from S, in R's arena
 *    ┌───────────────────────────────┐                    ┌────────────────────────────────────────────┐
 *    │ head    steps that R has read │ <── R writes       │ tail    steps that S has written           │ <── S writes
 *    │ offers  R's buffer, or none   │ <── R writes       │ sizes   of the data in the slots of Simple │ <── S writes
 *    └───────────────────────────────┘                    └────────────────────────────────────────────┘
 *                                                          its slots
 *                                                         ┌────────────────────────────────────────────┐
 *                                                         │ GPUL_COMM_STEPS slots of Simple            │ <── S writes
 *                                                         │ ll      the same for LL                    │ <── S writes
 *                                                         │ ll128   the same for LL128                 │ <── S writes
 *                                                         └────────────────────────────────────────────┘
 *
 * The slots are separate from the counters, because over a network the slots can be in device memory, while the counters are in host
 * memory, where the CPU also reads and writes them (comm/network.c).
 *
 *    a slot:  │ <── GPUL_COMM_LINE_BYTES ──> │ <── slot_bytes ──────────────────────────────────> │
 *             │ unused             │ entry   │ data                                               │
 *                                  │ <── one write over a network ──> │
 *
 * Each word is written by one side only; each side polls its own memory, and writes the other's, because a remote write is
 * posted and a remote read takes a round trip.  Step n uses slot n % GPUL_COMM_STEPS.  S may write step n when
 * n - head < GPUL_COMM_STEPS (a credit); R may read step n when n < tail (Simple), or when the flags of its words are those
 * of step n (LL, LL128: prims_ll.cuh).  All protocols that use a channel share one sequence of steps. */
#ifndef GPULOAD_COMM_DEVICE_CHANNEL_LAYOUT_H
#define GPULOAD_COMM_DEVICE_CHANNEL_LAYOUT_H

#include <stdint.h>

enum {
	GPUL_COMM_STEPS = 8,        /* slots of a channel */
	GPUL_COMM_LINE_BYTES = 128, /* bytes of a cache line; words with different writers are in different lines */
};

/* The content of a slot, or the location of its data. */
typedef struct gpul_comm_slot {
	uint16_t mode;   /* a value of gpul_comm_slot_mode */
	uint16_t window; /* in an offer: the window of the receiver's buffer */
	uint32_t unused;
	uint64_t offset; /* in an offer: offset of the buffer in its window; in an entry: the call's signature */
} gpul_comm_slot;

enum gpul_comm_slot_mode {
	GPUL_COMM_SLOT_DATA = 0,   /* the data is in the slot */
	GPUL_COMM_SLOT_DIRECT = 1, /* the data is in the receiver's buffer */
};

typedef struct gpul_comm_inbox {
	uint64_t tail;
	uint32_t sizes[GPUL_COMM_STEPS]; /* bytes of data in each slot of Simple */
	uint64_t unused[11];
} gpul_comm_inbox;

typedef struct gpul_comm_outbox {
	uint64_t head;
	uint64_t unused[15];
	uint64_t offered; /* 1 + the first step of the call for which the receiver made its last offer */
	uint64_t unused2[15];
	gpul_comm_slot offers[GPUL_COMM_STEPS];
} gpul_comm_outbox;

#endif
