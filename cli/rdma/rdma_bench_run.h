/* rdma_bench_run.h — runs one phase of the benchmark at one end: a number of messages or puts of one size on all flows.
 *
 * Each flow is a small state machine; a thread advances its flows in turn until all have finished:
 *
 *     tpt, bi, basic   client: isend ... test oldest       server: irecv ... test oldest ─ iflush ─ irecv again
 *     lat              isend ─ irecv for later rounds ─ test receive ─ next round; the server answers
 *     put              client: put ... test oldest         server: progress until the last signal has arrived
 *     put-lat          put ─ poll the signal word that the peer writes ─ next round; the server answers
 *
 * Requests end in the order in which they began, or nearly so: only the oldest is tested. */
#ifndef GPULOAD_CLI_RDMA_RDMA_BENCH_RUN_H
#define GPULOAD_CLI_RDMA_RDMA_BENCH_RUN_H

#include "cli/rdma/rdma_bench_memory.h"
#include "cli/rdma/rdma_bench_wire.h"

/* A histogram of latencies, with an error below 1 %: 64 buckets for each power of two. */
enum { RDMA_BUCKETS = 64 * 40 };
struct rdma_histogram {
	uint64_t n, count[RDMA_BUCKETS];
};

void rdma_histogram_add(struct rdma_histogram *h, uint64_t ns);
void rdma_histogram_merge(struct rdma_histogram *h, const struct rdma_histogram *other);
/* Return a quantile: the value that a fraction `part` of all values does not exceed; 0 if there are no values. */
uint64_t rdma_histogram_at(const struct rdma_histogram *h, double part);

/* The requests in flight; request number i is in element i modulo the size of the ring. */
struct rdma_ring {
	gpul_rdma_request request[RDMA_MOST_RING];
	uint64_t begun_ns[RDMA_MOST_RING];
	uint64_t posted, done;
};

struct rdma_flow {
	gpul_rdma_conn *conn;
	gpul_rdma_region *mail_region;
	struct rdma_mail *mail;
	unsigned number, n_lanes;
	gpul_rdma_remote peer_in, peer_signals;
	uint64_t put_base, arrived_base;     /* values of the signals before this phase: put_base at the peer, arrived_base at this end */
	struct rdma_ring send, recv, flush;  /* `send` is also used for puts; `recv` counts groups of messages */
	bool waiting, finished;              /* waiting: the flow waits for a message of the other end (modes lat and put-lat) */
	uint64_t sent_ns;                    /* modes lat and put-lat: time at which this round started */
	uint64_t first_ns, last_ns, n_first; /* times of the first and of the last event; n_first: number of messages in the first event */
};

struct rdma_phase {
	enum rdma_mode mode;
	enum rdma_plan_kind kind;
	uint64_t number, bytes, count;
	unsigned window, n_parts, n_places; /* n_places: positions for messages in a buffer; at most window x n_parts */
	bool flush;
};

struct rdma_session {
	bool client;
	gpul_rdma *r; /* borrowed, like setup and watch */
	const struct rdma_setup *setup;
	struct rdma_watch *watch;
	struct rdma_shape shape;
	struct rdma_buffers buffers;
	struct rdma_flow *flow; /* array of shape.n_flows flows */
	unsigned n_threads;
	int deadline_ms; /* time-out of each request */
};

/** Allocate and register the memory for the control messages of a flow.
 *
 * @r  an open device
 * @f  f->conn is open; rdma_flow_close() frees both, even after a failure
 * Errors  GPUL_ENOMEM; as gpul_rdma_register()
 * Threads the thread of the connection */
gpul_status rdma_flow_open(gpul_rdma *r, struct rdma_flow *f, gpul_error *err);
void rdma_flow_close(struct rdma_flow *f); /* accepts a flow of zeros; closes the connection */

/** Send, or receive, a control message and wait until it has ended.
 *
 * @s           session; on a server's main thread, only its `watch` is used
 * @f           flow
 * @at          inside f->mail
 * @bytes       size of the message
 * @timeout_ms  0: no limit
 * @got         set to the number of received bytes; NULL: send the message
 * @err         explains a failure
 * Errors  GPUL_ESYS native = ECANCELED: a request to stop, ETIMEDOUT; the connection's failure
 * Threads the thread of the connection */
gpul_status rdma_control(const struct rdma_session *s, struct rdma_flow *f, void *at, uint64_t bytes, int timeout_ms, uint64_t *got,
			 gpul_error *err);

/* Take snapshots of flows `first`, `first` + `step` ..., for --stats, by the thread of these flows. */
void rdma_take_stats(const struct rdma_session *s, unsigned first, unsigned step);
/* Read the counters of all flows into out->reliable, if they are reliable connections.  No other thread may use the flows. */
void rdma_read_stats(const struct rdma_session *s, struct rdma_bench_result *out);

/* Tell --trace that a message of this flow, whose data is at `at`, has been posted in this phase; that its oldest one has been sent. */
void rdma_trace_begin(const struct rdma_session *s, const struct rdma_phase *p, const struct rdma_flow *f, uint64_t at);
void rdma_trace_end(const struct rdma_session *s, const struct rdma_phase *p, const struct rdma_flow *f);

/** Prepare the flows for a phase.  For CHECK, write the pattern into the messages to send, and clear the receive buffers.
 *
 * @s  session
 * @p  phase
 * Errors  GPUL_ECUDA
 * Threads the session's thread */
gpul_status rdma_phase_prepare(struct rdma_session *s, const struct rdma_phase *p, gpul_error *err);

/** Run a phase, on the session's threads.
 *
 * @s    session
 * @p    phase; the other end runs the same
 * @out  the figures of this end
 * Errors  the failure of a connection; GPUL_ESYS native = ECANCELED a request to stop; GPUL_EFORMAT messages in wrong order
 *         or of wrong size; GPUL_ENOMEM
 * Threads the session's thread */
gpul_status rdma_phase_run(struct rdma_session *s, const struct rdma_phase *p, struct rdma_figures *out, gpul_error *err);

/** Compare what this end has received in a CHECK phase with its pattern.
 *
 * @s        session
 * @p        phase
 * @checked  number of bytes
 * Errors  GPUL_EFORMAT wrong data; GPUL_ECUDA
 * Threads the session's thread */
gpul_status rdma_phase_check(const struct rdma_session *s, const struct rdma_phase *p, uint64_t *checked, gpul_error *err);

#endif
