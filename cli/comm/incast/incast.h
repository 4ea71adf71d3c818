/* incast.h — the parts of gpuload comm incast: all other ranks send messages to rank 0 at the same time.
 *
 *     incast.c           a launcher (incast_net.c: first a private network) starts the same command line N times
 *        │
 *     incast_request.c   options ──> incast_request
 *     incast_rank.c      each rank: connections, memory, one page of counters that all ranks map
 *     incast_measure.c   round trip and rate ──> window; then each mode
 *        ├── incast_send.c     a sender: puts messages within its own window, or sends what the receiver grants
 *        └── incast_receive.c  rank 0: arrivals, grants (comm/net/admission.h), the depth of the queue (incast_queue.c)
 *     incast_result on rank 0 ──> incast_text.c, incast_json.c, incast_svg.c */
#ifndef GPULOAD_CLI_COMM_INCAST_INCAST_H
#define GPULOAD_CLI_COMM_INCAST_INCAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/command.h"
#include "cli/lib/out.h"
#include "comm/bootstrap/job.h"

extern const struct cli_cmd cli_comm_incast;

/* Which side decides when a message enters the network: the sender or the receiver. */
enum incast_mode { INCAST_SENDER, INCAST_RECEIVER, INCAST_N_MODES };
extern const char *const incast_mode_names[INCAST_N_MODES]; /* the names for --mode */

/* ---- the command line (incast_request.c) -------------------------------------------------------------------- */

enum { INCAST_MOST_MESSAGES = 100000 };

struct incast_request {
	int n_ranks;    /* value of -n; 0: not given */
	size_t bytes;   /* bytes of a message */
	int n_messages; /* number of messages of each sender */
	bool modes[INCAST_N_MODES];
	uint64_t rate_bits;         /* rate of the token bucket, in bits per second; 0: no private network */
	size_t queue_bytes;         /* size of the queue in front of the token bucket */
	const char *congestion;     /* TCP's congestion control in the private network; NULL without one; borrowed */
	size_t window_bytes;        /* receiver-driven: window of all senders together; 0: computed from measurements */
	size_t sender_window_bytes; /* sender-driven: window of each sender, for messages that are not acknowledged yet */
	size_t grant_bytes;
	const char *backend, *provider; /* as in gpul_rdma_desc; borrowed */
	bool json, force;
	const char *plot; /* path of the picture; NULL: none; borrowed */
};

extern const struct cli_opt incast_opts[];

/** Parse the command line.
 *
 * @args  parsed with incast_opts
 * @out   filled; its strings are borrowed
 * Errors  GPUL_EINVAL */
gpul_status incast_request_parse(const struct cli_args *args, struct incast_request *out, gpul_error *err);

/* ---- the result ---------------------------------------------------------------------------------------------- */

/* Statistics of n durations. */
struct incast_times {
	uint64_t n, p50_ns, p99_ns, most_ns;
};

struct incast_sample {
	uint64_t ns;    /* time since the first message */
	uint64_t bytes; /* bytes in the queue */
};

struct incast_figures {
	bool measured;
	/* duration and number of bytes, from the start of the first message to the end of the last one */
	uint64_t ns, bytes;
	uint64_t share[GPUL_COMM_MAX_RANKS]; /* number of bytes of each rank that had arrived when the first sender was done */
	double fairness;                     /* Jain's index of the shares; 1: all equal; 1/n: one sender had everything */
	struct incast_times message;         /* time of a message, from when the sender hands it over until it has arrived */
	struct incast_times probe;           /* time of a probe: 8 bytes that are sent during the transfer on a separate connection */
	uint64_t queue_most, queue_mean;
	uint64_t drops, retransmissions; /* known only if there is a private network */
	uint64_t wrong;                  /* number of wrong bytes */
	struct incast_sample *samples;   /* owned: incast_result_free() */
	size_t n_samples;
};

struct incast_result {
	struct incast_request q;
	int n_ranks;
	char launcher[16], device[80], congestion[32]; /* congestion: TCP's congestion control */
	/* true: the queue is that of the token bucket; false: it is estimated as all bytes in flight */
	bool private_network;
	uint64_t round_trip_ns; /* time from a grant to the arrival of its data; 0: not measured */
	double rate_gb_s;       /* rate of the token bucket, or the measured rate; 0: unknown */
	uint64_t window_bytes;
	struct incast_figures figures[INCAST_N_MODES];
};

void incast_result_free(struct incast_result *r);
/* True if any byte is wrong. */
bool incast_result_wrong(const struct incast_result *r);

/* Append the result as a table; as one JSON object without a newline; as the plot of --plot. */
void incast_text(const struct incast_result *r, struct out *o);
struct json;
void incast_json(const struct incast_result *r, struct json *j);
void incast_svg(const struct incast_result *r, struct out *o);

#endif
