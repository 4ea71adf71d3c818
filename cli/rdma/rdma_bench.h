/* rdma_bench.h — the parts of gpuload rdma bench and gpuload rdma serve.
 *
 *     bench: rdma_bench.c                                       serve: rdma_serve.c, or a child (rdma_bench_child.c)
 *     options: rdma_bench_request.c                                    │
 *             ▼                                                        ▼
 *     rdma_bench_client.c  ── hello, plans ──────────────────>  rdma_bench_server.c
 *             │            <──────────── welcome, answers ────         │            rdma_bench_wire.h
 *             ▼                                                        ▼
 *     rdma_bench_run.c     ── messages or puts ──────────────>  rdma_bench_run.c    rdma_bench_memory.h: buffers, patterns
 *             │
 *     result ──> rdma_bench_text.c, rdma_bench_json.c, rdma_bench_svg.c */
#ifndef GPULOAD_CLI_RDMA_RDMA_BENCH_H
#define GPULOAD_CLI_RDMA_RDMA_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/command.h"
#include "cli/lib/options/devices_arg.h"
#include "cli/lib/out.h"
#include "cli/rdma/reliable/reliable_stats.h"
#include "cli/rdma/reliable/reliable_trace.h"
#include "rdma/rdma.h"

extern const struct cli_cmd cli_rdma_bench, cli_rdma_serve;

enum {
	RDMA_MOST_FLOWS = 64,
	RDMA_MOST_ROWS = 64,
	RDMA_MOST_REQUESTS = 256, /* maximum value of --nreq */
	RDMA_MOST_RING = 512,     /* maximum number of messages in flight of one flow: --nreq x --nmsg */
	RDMA_MOST_THREADS = 64,
	RDMA_ADDRESS_BYTES = 280, /* size of an address in the form "HOST:PORT" */
	RDMA_NAME_BYTES = 64,
};

enum rdma_mode { RDMA_TPT, RDMA_BI, RDMA_LAT, RDMA_PUT, RDMA_PUT_LAT, RDMA_BASIC, RDMA_N_MODES };
extern const char *const rdma_mode_names[RDMA_N_MODES]; /* "tpt", "bi" ... */

/* The kind of memory for messages: "host", "host-numa" or "device" on the command line. */
enum rdma_memory { RDMA_HOST, RDMA_HOST_NUMA, RDMA_DEVICE, RDMA_N_MEMORIES };
extern const char *const rdma_memory_names[RDMA_N_MEMORIES];

/* ---- the command line (rdma_bench_request.c) -------------------------------------------------------- */

/* Indices of the options that bench and serve have in common; each option table begins with them. */
/* clang-format off */
enum {
	RDMA_OPT_PORT, RDMA_OPT_BACKEND, RDMA_OPT_PROVIDER, RDMA_OPT_DEVICE, RDMA_OPT_GID, RDMA_OPT_TIMEOUT, RDMA_OPT_RETRY, RDMA_OPT_PATHS,
	RDMA_OPT_QP, RDMA_OPT_UC, RDMA_OPT_LOSSLESS, RDMA_OPT_RELIABLE, RDMA_OPT_DATAGRAMS, RDMA_OPT_FLUSH_BY, RDMA_OPT_MEMORY, RDMA_OPT_GPU, RDMA_OPT_THREADS, RDMA_OPT_DRIVER, RDMA_OPT_JSON,
	RDMA_N_COMMON_OPTS
};
/* clang-format on */
/* clang-format off */
#define RDMA_COMMON_OPTS \
	[RDMA_OPT_PORT] = { "port", "N", "TCP port of the server (default: 18515)", NULL }, \
	[RDMA_OPT_BACKEND] = { "backend", "NAME", \
		"verbs, libfabric, reliable-udp, reliable-verbs, or auto (default): verbs if there is a usable NIC", \
		"auto verbs libfabric reliable-udp reliable-verbs" }, \
	[RDMA_OPT_PROVIDER] = { "provider", "NAME", \
		"libfabric's provider: tcp, shm, verbs, efa ... (selects libfabric); or reliable-udp: UDP sockets, whose lost datagrams are sent again", NULL }, \
	[RDMA_OPT_DEVICE] = { "device", "NAME", "NIC, such as mlx5_0, or libfabric domain (default: chosen automatically)", NULL }, \
	[RDMA_OPT_GID] = { "gid", "N", "verbs: index of the GID (default: RoCE v2 with IPv4 first)", NULL }, \
	[RDMA_OPT_TIMEOUT] = { "timeout", "N", \
		"verbs: wait 4.096 us x 2^N before a retransmission; N is 1 to 31 (default: 18)", NULL }, \
	[RDMA_OPT_RETRY] = { "retry", "N", "verbs: number of retransmissions, 1 to 6 (default: 6)", NULL }, \
	[RDMA_OPT_PATHS] = { "paths", "N", "paths of a reliable connection, the smaller number of both ends: 1 to 256, with --reliable 1 to 16 (default: 8)", NULL }, \
	[RDMA_OPT_QP] = { "qp", "TYPE", "verbs: type of the queue pairs, rc (default), uc or ud", "rc uc ud" }, \
	[RDMA_OPT_UC] = { "uc", NULL, "the same as --qp uc: unreliable connections; the fabric must be lossless, or give --reliable", NULL }, \
	[RDMA_OPT_LOSSLESS] = { "lossless", NULL, "confirm that an Ethernet fabric loses no packets (for --qp uc)", NULL }, \
	[RDMA_OPT_RELIABLE] = { "reliable", NULL, "verbs: send lost packets again, over several paths, for --qp uc (default) or ud", NULL }, \
	[RDMA_OPT_DATAGRAMS] = { "datagrams", NULL, "verbs: send clear-to-send slots as datagrams (UD) instead of RDMA writes", NULL }, \
	[RDMA_OPT_FLUSH_BY] = { "flush-by", "POLICY", \
		"verbs: how data in GPU memory is made visible: auto (default), none, read, atomic (on a null MR) or cuda", "auto none read atomic cuda" }, \
	[RDMA_OPT_MEMORY] = { "memory", "KIND", \
		"memory that holds the messages: host (default), host-numa or device", "host host-numa device" }, \
	[RDMA_OPT_GPU] = { "gpu", "N", "GPU for --memory host-numa and device, counted from 0 (default: 0)", NULL }, \
	[RDMA_OPT_THREADS] = { "threads", "N", "threads that share the flows (default: 1)", NULL }, \
	[RDMA_OPT_DRIVER] = CLI_DRIVER_OPT, \
	[RDMA_OPT_JSON] = CLI_JSON_OPT
/* clang-format on */

/* The options of bench and serve for opening a device and the memory. */
struct rdma_setup {
	gpul_rdma_desc rdma; /* its strings are borrowed from the command line */
	enum rdma_memory memory;
	struct devices_arg devices; /* exactly one device */
	unsigned port, n_threads;
	bool json;
};

/* The parameters of the measurement, which the client chooses for both ends. */
struct rdma_shape {
	enum rdma_mode mode;
	unsigned n_flows;    /* number of connections */
	unsigned n_parts;    /* number of messages that one receive can take (multi-receive) */
	unsigned n_requests; /* number of receives, or groups of sends, in flight per flow */
	bool flush;
	uint64_t buffer_bytes; /* bytes of the buffer of each flow and direction */
};

struct rdma_bench_request {
	struct rdma_setup setup;
	struct rdma_shape shape;
	const char *host;               /* address of the server; NULL: start one as a child process */
	uint64_t bytes[RDMA_MOST_ROWS]; /* sizes of the messages to measure */
	unsigned n_sizes;
	unsigned n_buffers;  /* number of different positions for a flow's messages in a buffer; 0: one for each message in flight */
	uint64_t iterations; /* number of messages per size and flow; 0: limited by time */
	int time_ms;         /* time to measure each size */
	int wait_ms;         /* how long to wait for the server */
	const char *plot;    /* file of --plot; NULL: none; borrowed */
	const char *trace;   /* file of --trace, as plot */
	uint64_t trace_message;
	int stats_ms; /* time between two lines of --stats; 0: none */
	bool force;
};

extern const struct cli_opt rdma_bench_opts[];
extern const char rdma_bench_details[];

/** Parse the options that bench and serve have in common.
 *
 * @args  parsed with an option table that begins with RDMA_COMMON_OPTS
 * @out   filled; its strings are borrowed
 * Errors  GPUL_EINVAL */
gpul_status rdma_setup_parse(const struct cli_args *args, struct rdma_setup *out, gpul_error *err);

/** Parse the command line of gpuload rdma bench.
 *
 * @args  parsed with rdma_bench_opts
 * @out   filled; its strings are borrowed
 * Errors  GPUL_EINVAL */
gpul_status rdma_bench_parse(const struct cli_args *args, struct rdma_bench_request *out, gpul_error *err);

/* Return the number of groups in flight for messages of this size: n_requests, or fewer if the buffer is too small for them. */
unsigned rdma_bench_window(const struct rdma_shape *shape, uint64_t bytes, unsigned n_parts);
/* Return the number of messages of one group: n_parts, but 1 if a message is longer than a segment. */
unsigned rdma_bench_parts(const struct rdma_shape *shape, uint64_t bytes, uint32_t segment_bytes);

/* ---- the result ------------------------------------------------------------------------------------------- */

/* The results of one end (client or server) for one size. */
struct rdma_figures {
	uint64_t messages, bytes; /* numbers of messages and bytes that were sent and received in `ns` */
	uint64_t ns;
	uint64_t p50_ns, p99_ns; /* median and 99th percentile of the latency; 0: not measured */
};

struct rdma_row {
	uint64_t bytes;
	uint64_t iterations;      /* number of groups of messages per flow */
	unsigned window, n_parts; /* window: groups in flight per flow; n_parts: messages per group */
	struct rdma_figures here, there;
	uint64_t checked; /* bytes that were compared with the expected pattern, at both ends */
};

/* A description of one end, which it sends to the other end. */
struct rdma_end {
	char backend[16], device[RDMA_NAME_BYTES], why[200], host[RDMA_NAME_BYTES], memory[16];
	int pid;
};

struct rdma_bench_result {
	struct rdma_end here, there;
	gpul_rdma_conn_info conn; /* the connection of flow 0, with the address of the peer */
	struct rdma_shape shape;
	unsigned n_threads;
	bool client; /* false: this is the result of a server */
	struct rdma_row row[RDMA_MOST_ROWS];
	unsigned n_rows;
	struct reliable_conn *reliable; /* owned; array of shape.n_flows elements; NULL: not a reliable connection */
};

/* Append the result as a table.  A client has the results of both ends, a server only its own. */
void rdma_bench_text(const struct rdma_bench_result *result, struct out *o);
/* Append the result as one JSON object, without a newline. */
struct json;
void rdma_bench_json(const struct rdma_bench_result *result, struct json *j);
/* Append the plot of the result. */
void rdma_bench_svg(const struct rdma_bench_result *result, struct out *o);

/* ---- the two ends ------------------------------------------------------------------------------------------ */

/* Data that a measuring thread shares with the thread that waits for it. */
struct rdma_watch {
	atomic_bool stop; /* set to end the thread early; it then fails with GPUL_ESYS, native ECANCELED */
	atomic_uint row;  /* index of the row that is measured now; permille: progress of this row, in thousandths */
	atomic_uint permille;
	struct reliable_live *live;   /* borrowed, like trace; NULL: none */
	struct reliable_trace *trace; /* of a message of flow 0 */
};

/** Measure: connect to a server, run all sizes, and check the data.
 *
 * @q        the request
 * @r        an open device
 * @address  address of the server
 * @watch    progress, and a request to stop
 * @out      filled
 * Errors  GPUL_ESYS, GPUL_EVERBS, GPUL_EUNSUPPORTED, GPUL_ENOMEM, GPUL_ECUDA; GPUL_EFORMAT wrong data */
gpul_status rdma_bench_measure(const struct rdma_bench_request *q, gpul_rdma *r, const char *address, struct rdma_watch *watch,
			       struct rdma_bench_result *out, gpul_error *err);

struct rdma_serve_request {
	struct rdma_setup setup;
	const char *address; /* address to listen at */
	bool once;           /* end after the first client */
	/* descriptor to which a child process writes a struct rdma_ready instead of printing; -1: not a child */
	int ready_fd;
};

/* The report of a child process: it is listening, or it has failed. */
struct rdma_ready {
	gpul_error err;
	char address[RDMA_ADDRESS_BYTES];
};

/** Serve clients until a signal, or until the first has ended (once).
 *
 * @q    the request
 * @err  explains a failure
 * Errors  GPUL_ESYS, GPUL_EVERBS, GPUL_EUNSUPPORTED, GPUL_ENOMEM, GPUL_ECUDA; with once, the failure of the client's session
 * Threads the main thread */
gpul_status rdma_serve(struct rdma_serve_request *q, gpul_error *err);

/* The server process that bench has started. */
struct rdma_child {
	int pid; /* process id; 0: none */
	int fd;  /* pipe for a second report, if the child fails after it was ready */
	char address[RDMA_ADDRESS_BYTES];
};

/** Start a server as a child process, which is killed when this process dies.
 *
 * @setup  options; no driver may be open yet
 * @out    rdma_child_end() ends it; untouched on failure
 * Errors  GPUL_ESYS; the child's error
 * Threads the main thread
 * Source  fork(2), prctl(2) PR_SET_PDEATHSIG */
gpul_status rdma_child_start(const struct rdma_setup *setup, struct rdma_child *out, gpul_error *err);
/* Wait until the child has ended, and kill it if it does not end soon.  failed: an error of this process; if the child's error or
 * death caused it, *failed is set to that cause.  Accepts a child of zeros. */
void rdma_child_end(struct rdma_child *child, gpul_error *failed);

#endif
