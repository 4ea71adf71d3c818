/* incast_rank.h — one rank of gpuload comm incast: connections, memory, and the page that all ranks map.
 *
 *     rank 0, for each sender                                        a sender
 *    ┌──────────────────────────────────────────┐                   ┌─────────────────────────────────┐
 *    │ data: n_slots messages                   │ <── puts, or ──── │ data: n_slots messages          │
 *    │ mail: requested, arrived, probe          │     sends         │ mail: sources of small writes   │
 *    └──────────────────────────────────────────┘                   └─────────────────────────────────┘
 *
 * Message m uses slot m % n_slots at both ends.  The shared page is only for the measurement: it records when each message
 * was handed over to the send path, and how many bytes were posted.  The protocol itself uses the network: requests to send,
 * clear-to-send slots, arrivals. */
#ifndef GPULOAD_CLI_COMM_INCAST_INCAST_RANK_H
#define GPULOAD_CLI_COMM_INCAST_INCAST_RANK_H

#include <stdatomic.h>

#include "cli/comm/incast/incast.h"
#include "comm/bootstrap/boot.h"
#include "comm/net/mesh.h"

enum { INCAST_MEET_MS = 60 * 1000, INCAST_WAIT_MS = 60 * 1000, INCAST_TAG = 1 };

/* Words in the receiver's memory into which a sender puts new values (RDMA writes). */
struct incast_mail {
	_Atomic uint64_t requested; /* receiver-driven: number of messages that the sender wants to send */
	uint64_t unused[7];
	_Atomic uint64_t arrived; /* sender-driven: number of messages that are in the receiver's memory */
	uint64_t unused2[7];
	_Atomic uint64_t probe; /* probe: time at which the probe was sent */
	uint64_t unused3[7];
};

/* A rank's counters, in the page that all ranks map. */
struct incast_counters {
	_Atomic uint64_t posted; /* number of bytes that the rank has posted to the network */
	_Atomic uint64_t retransmissions;
	_Atomic uint32_t ended; /* number of the last run whose requests have all ended on this rank */
	uint32_t unused[27];
};

struct incast_rank {
	const struct incast_request *q; /* borrowed */
	gpul_comm_job job;
	gpul_boot *boot;
	gpul_comm_mesh *mesh, *probe_mesh; /* probe_mesh connects rank 1 with rank 0 */
	int queue_fd, queue_device;        /* rank 0 in a private network: netlink socket and index of the device; else -1, 0 */

	unsigned n_slots;
	size_t slot_bytes;
	unsigned char *data;      /* messages; on rank 0 those of all ranks, one after the other; on another rank only its own */
	struct incast_mail *mail; /* array: on rank 0 one element for each rank; on another rank one element */
	gpul_rdma_region *data_region, *mail_region;
	gpul_rdma_region *probe_region;              /* `mail`, registered for probe_mesh */
	gpul_rdma_remote to_data, to_mail, to_probe; /* on a sender: the parts of rank 0's memory into which it puts */

	struct incast_counters *counters; /* counters of all ranks; in the page that all ranks map */
	_Atomic uint64_t *handed_ns;      /* by rank and message: time at which it was handed to the send path; in the shared page */
	size_t shared_bytes;
	uint32_t run; /* number of the current run, from 1 */
};

/* A run: one transfer by all senders, which measures the round trip, the rate, or a mode. */
struct incast_run {
	enum incast_mode mode;
	size_t bytes;          /* bytes of a message; at most q->bytes */
	unsigned n_messages;   /* number of messages of each sender; at most q->n_messages */
	uint64_t window_bytes; /* receiver-driven: the window of all senders together */
	bool recorded;         /* true: send probes, and sample the queue */
};

/** Open a rank: join the job, connect to the other ranks, allocate and register memory.
 *
 * @q    borrowed; must outlive *out
 * @job  copied
 * @out  released by incast_rank_close(), even after a failure
 * Errors  as gpul_boot_open(), gpul_comm_mesh_create(); GPUL_EUNSUPPORTED the ranks are on several hosts; GPUL_ENOMEM; GPUL_ESYS
 * Threads the main thread */
gpul_status incast_rank_open(const struct incast_request *q, const gpul_comm_job *job, struct incast_rank *out, gpul_error *err);
void incast_rank_close(struct incast_rank *r);

/* Return the slot of a sender's message: on rank 0 in that sender's part, on a sender in its own memory. */
unsigned char *incast_slot(const struct incast_rank *r, int rank, uint64_t message);
/* Return the address of the time at which a rank handed a message to the send path. */
_Atomic uint64_t *incast_handed(const struct incast_rank *r, int rank, uint64_t message);

/* incast_fill() writes the content of a message; incast_count_wrong() counts the bytes that differ from it. */
void incast_fill(unsigned char *at, size_t n_bytes, int rank, uint64_t message);
uint64_t incast_count_wrong(const unsigned char *at, size_t n_bytes, int rank, uint64_t message);

/* The state of a polling loop, which spins for a moment, then sleeps between polls, because there may be more ranks than CPUs. */
struct incast_pace {
	const struct incast_rank *r; /* borrowed */
	uint64_t busy_ns;            /* time of the last event */
	uint64_t checked_ns;         /* time of the last check of the other ranks */
};

/** End an iteration of a polling loop: sleep if nothing has happened for a while, and check at intervals whether the job has failed.
 *
 * @p     begins as { .r = r, .busy_ns = now, .checked_ns = now }
 * @busy  something has happened in this iteration
 * Errors  the failure of the job; GPUL_ESYS native = ETIMEDOUT: nothing has happened for INCAST_WAIT_MS
 * Threads one at a time */
gpul_status incast_pace_turn(struct incast_pace *p, bool busy, gpul_error *err);

/** A sender's part of a run: hand all messages to the send path, and wait until their requests have ended.
 *
 * @r    an open rank
 * @run  the same on all ranks; window_bytes is not used here
 * Errors  the failure of a connection or of the job; GPUL_ENOMEM
 * Threads one at a time */
gpul_status incast_send(struct incast_rank *r, const struct incast_run *run, gpul_error *err);

/** The receiver's part of a run: record arrivals and send grants until all messages of all senders have arrived.
 *
 * @r    an open rank; rank 0
 * @run  the same on all ranks
 * @f    all zeros before the call; filled in, except `measured`
 * Errors  the failure of a connection or of the job; GPUL_ENOMEM; GPUL_ESYS
 * Threads one at a time */
gpul_status incast_receive(struct incast_rank *r, const struct incast_run *run, struct incast_figures *f, gpul_error *err);

/** Measure everything, on all ranks together.
 *
 * @r       an open rank
 * @result  on rank 0: filled, except the fields that incast.c sets
 * Errors  as incast_send()
 * Threads one at a time */
gpul_status incast_measure(struct incast_rank *r, struct incast_result *result, gpul_error *err);

#endif
