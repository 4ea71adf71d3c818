/* report.h — what a reliable connection (reliable-udp) reports of itself: counters, its paths, and the chunks of one message.
 *
 *     gpul_rel_counters    of the whole connection, since it was connected         gpul_rdma_conn_stats
 *     gpul_rel_path_info   of each path, as it is now
 *     gpul_rel_trace       what happened to each chunk of one message, in order    gpul_rdma_conn_record
 *
 * A message is cut into chunks, one for each datagram.  A chunk that is sent again keeps its chunk number and gets a new packet number,
 * which counts the datagrams of its path (docs/reliable-transport.md). */
#ifndef GPULOAD_RDMA_RELIABLE_REPORT_H
#define GPULOAD_RDMA_RELIABLE_REPORT_H

#include <stdbool.h>
#include <stdint.h>

enum { GPUL_REL_MAX_PATHS = 256 };

typedef struct gpul_rel_counters {
	uint64_t chunks_sent;      /* with retransmissions */
	uint64_t chunks_again;     /* retransmissions */
	uint64_t losses, timeouts; /* chunks found lost by a later packet; time-outs of a path */
	uint64_t chunks_received, duplicates, acks_sent, acks_received;
	uint64_t strangers; /* datagrams with a wrong token or length */
	uint64_t paths_died, paths_returned;
	bool has_credit; /* the receiver grants credit; false: it accepts a whole window */
	uint32_t credit; /* chunks that this end may still send without more credit */
} gpul_rel_counters;

typedef struct gpul_rel_path_info {
	bool alive, closed;                  /* closed: for good, because a late RDMA write could come on it (reliable-verbs with UC) */
	uint64_t rtt_ns, rtt_min_ns, rto_ns; /* smoothed; shortest; 0 before the first measurement */
	uint64_t rtt_p50_ns, rtt_p99_ns;     /* median and 99th percentile of all, with an error of at most 6 %; 0 before the first one */
	double window;                       /* chunks */
	uint64_t rate;                       /* Timely: bytes/s */
	uint32_t in_flight;
} gpul_rel_path_info;

/* A step of a chunk.  LOST and TIMED_OUT are what the sender concludes: the chunk may also be late. */
typedef enum gpul_rel_step_kind {
	GPUL_REL_SENT,      /* or sent again */
	GPUL_REL_ACKED,     /* for the first time */
	GPUL_REL_LOST,      /* a later packet of the path has arrived */
	GPUL_REL_TIMED_OUT, /* no packet of the path was acknowledged in time */
} gpul_rel_step_kind;

typedef struct gpul_rel_step {
	uint64_t at_ns; /* CLOCK_MONOTONIC */
	gpul_rel_step_kind kind;
	uint32_t chunk;  /* chunk number */
	unsigned path;   /* of the datagram; ACKED: of the chunk's last one */
	uint32_t packet; /* its packet number */
	uint32_t later;  /* LOST: the largest packet that has arrived */
} gpul_rel_step;

typedef struct gpul_rel_trace {
	uint64_t local, bytes; /* the steps of messages whose data begins in these bytes are recorded */
	uint32_t max, n;       /* room for steps, and number of steps; from `max` on, they are counted and not recorded */
	gpul_rel_step *steps;  /* in the order of time */
} gpul_rel_trace;

#endif
