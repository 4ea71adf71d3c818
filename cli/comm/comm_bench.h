/* comm_bench.h — the parts of gpuload comm allreduce and the other collectives.
 *
 *     comm_bench.c      a launcher starts the same command line N times; each of these processes is a rank:
 *        │
 *     comm_request.c    options ──> comm_request
 *     comm_rank.c       opens the driver and the communicator; a thread measures, the main thread waits for signals
 *     comm_run.c        for each size: warm-up calls, timed calls, and one call whose data is checked (comm_data.h)
 *        │
 *     comm_result on rank 0 ──> comm_text.c (rows as they are measured), comm_json.c, comm_svg.c
 *
 * The ranks exchange their times through a separate gpul_boot, not through the collectives that they measure. */
#ifndef GPULOAD_CLI_COMM_COMM_BENCH_H
#define GPULOAD_CLI_COMM_COMM_BENCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/lib/command.h"
#include "cli/lib/out.h"
#include "comm/bootstrap/agents/hostlist.h"
#include "comm/bootstrap/boot.h"
#include "comm/calls.h"
#include "comm/comm.h"
#include "comm/plan.h"
#include "rdma/rdma.h"

/* The commands of the collectives: cli_comm_allreduce ... */
#define GPUL_COMM_CALL(id, name, ...) extern const struct cli_cmd cli_comm_##name;
#include "comm/calls.def"

enum { COMM_MOST_ROWS = 64, COMM_MOST_DEVICES = 32, COMM_MOST_ITERATIONS = 1000000 };

/* ---- the command line (comm_request.c) -------------------------------------------------------------------- */

/* The options that determine where the ranks run, which are also those of gpuload comm tune. */
struct comm_place {
	int n_ranks;           /* -n, or the sum over --hosts; 0: not given */
	gpul_comm_hosts hosts; /* hosts given by --hosts; n is 0 if there are none */
	const char *agent;     /* value of --agent; NULL: not given; borrowed */
	gpul_driver_choice driver;
	int devices[COMM_MOST_DEVICES]; /* rank r uses devices[r % n_devices] */
	unsigned n_devices;             /* 0: --devices not given */
	gpul_comm_transport transport;
	int timeout_ms;     /* like timeout_ms of gpul_comm_options */
	int ranks_per_host; /* like ranks_per_host of gpul_comm_options */
	gpul_rdma_desc net; /* how to open the network; its strings are borrowed */
};

struct comm_request {
	struct comm_place place;
	gpul_comm_call call;
	size_t min_bytes, max_bytes, factor; /* max_bytes is 0: the driver's default sizes apply */
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	int root;
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	unsigned n_blocks;
	size_t window;           /* bytes in flight to a rank, as net_window of gpul_comm_options */
	const char *table;       /* file of the tuning table; borrowed; NULL: not given */
	int iterations, warmups; /* numbers of timed calls and of warm-up calls; -1: default of the driver */
	bool out_of_place, in_place;
	bool ungrouped; /* --ungrouped: make the sends and receives without groups */
	bool graph, no_register, check, json, explain, force;
	bool threads;             /* run the ranks as threads of this process */
	const char *plot, *trace; /* paths of files to write; NULL: none; borrowed */
};

/* Indices of the options that gpuload comm tune also has; each option table begins with them. */
enum {
	COMM_OPT_N,
	COMM_OPT_HOSTS,
	COMM_OPT_AGENT,
	COMM_OPT_DEVICES,
	COMM_OPT_TRANSPORT,
	COMM_OPT_TIMEOUT,
	COMM_OPT_PER_HOST,
	COMM_OPT_BACKEND,
	COMM_OPT_PROVIDER,
	COMM_OPT_NIC,
	COMM_OPT_QPS,
	COMM_OPT_GPU_DIRECT,
	COMM_OPT_DRIVER,
	COMM_N_PLACE_OPTS
};
/* clang-format off */
#define COMM_PLACE_OPTS \
	[COMM_OPT_N] = { "n", "N", "start N ranks on this machine, 1 to 32", NULL }, \
	[COMM_OPT_HOSTS] = { "hosts", "LIST", "start ranks on several machines, such as node1:2,node2:2", NULL }, \
	[COMM_OPT_AGENT] = { "agent", "COMMAND", \
		"with --hosts: program that runs a command on a host, as in COMMAND HOST ... (default: $GPULOAD_COMM_AGENT or " \
		"ssh)", NULL }, \
	[COMM_OPT_DEVICES] = { "devices", "LIST", \
		"devices to assign to the ranks in turn, such as 0,1 (default: all)", NULL }, \
	[COMM_OPT_TRANSPORT] = { "transport", "NAME", \
		"data path between ranks: auto (default), device memory, host memory, or net (the network)", "auto device host net" }, \
	[COMM_OPT_TIMEOUT] = { "timeout", "SECONDS", "maximum time that a rank waits for another rank (default: 60; 0: no limit)", NULL }, \
	[COMM_OPT_PER_HOST] = { "ranks-per-host", "N", "treat each N ranks as one host, for algorithms tree and twolevel (default: the " \
						       "real hosts)", NULL }, \
	[COMM_OPT_BACKEND] = { "backend", "NAME", \
		"backend of the network: auto (default: verbs if there is a usable NIC), verbs, libfabric, reliable-udp or reliable-verbs", \
		"auto verbs libfabric reliable-udp reliable-verbs" }, \
	[COMM_OPT_PROVIDER] = { "provider", "NAME", "libfabric's provider: tcp, shm, verbs, efa ... (selects libfabric)", NULL }, \
	[COMM_OPT_NIC] = { "nic", "NAME,...", "NIC such as mlx5_0, or libfabric domain; with several, each sends for a share of the " \
					      "blocks (default: one is chosen)", NULL }, \
	[COMM_OPT_QPS] = { "qps", "N", "queue pairs of each connection, 1 to 16 (default: 1)", NULL }, \
	[COMM_OPT_GPU_DIRECT] = { "gpu-direct", "WHEN", \
		"whether the NIC accesses GPU memory directly: auto (default: if it can), yes, or no (data is copied through host " \
		"memory)", "auto yes no" }, \
	[COMM_OPT_DRIVER] = CLI_DRIVER_OPT
/* clang-format on */

extern const struct cli_opt comm_bench_opts[];

/** Parse the options of COMM_PLACE_OPTS.
 *
 * @args  parsed with an option table that begins with COMM_PLACE_OPTS
 * @out   filled
 * Errors  GPUL_EINVAL */
gpul_status comm_place_parse(const struct cli_args *args, struct comm_place *out, gpul_error *err);

/** Parse the command line of a collective.
 *
 * @args  parsed with comm_bench_opts
 * @call  the collective
 * @out   filled; its strings are borrowed
 * Errors  GPUL_EINVAL */
gpul_status comm_request_parse(const struct cli_args *args, gpul_comm_call call, struct comm_request *out, gpul_error *err);

/** Parse "8:256M:2", "8:256M" (factor 2) or "1M".
 *
 * @text    the value of --bytes
 * @min     set
 * @max     set; at least *min
 * @factor  set; at least 2
 * Errors  GPUL_EINVAL */
gpul_status comm_parse_bytes(const char *text, size_t *min, size_t *max, size_t *factor, gpul_error *err);

/** Parse a whole number.
 *
 * @option  name of the option for the message, such as "--root"
 * @text    NULL: the option is not given, and *out keeps its value
 * @least   smallest number, not below 0
 * @most    largest number
 * @out     set
 * Errors  GPUL_EINVAL */
gpul_status comm_parse_int(const char *option, const char *text, int least, int most, int *out, gpul_error *err);

/** Parse --hosts or --hostfile.
 *
 * @list     value of --hosts; NULL: not given
 * @file     value of --hostfile; NULL: not given
 * @n_ranks  -n, 0: not given; set to the sum of the ranks
 * @out      its n is 0 if neither option was given
 * Errors  GPUL_EINVAL as gpul_comm_hosts_parse(), or -n is another number of ranks; GPUL_ESYS the file cannot be read */
gpul_status comm_parse_hosts(const char *list, const char *file, int *n_ranks, gpul_comm_hosts *out, gpul_error *err);

/* ---- one call ------------------------------------------------------------------------------------------------ */

/* The buffers of one call, with sizes as in nccl-tests. */
struct comm_shape {
	gpul_comm_call call;
	size_t count; /* the argument `count` of the collective */
	size_t bytes; /* size of the larger buffer in bytes; the table shows this size, and the plan is chosen for it */
	size_t send_bytes, recv_bytes;
	size_t n_parts;          /* number of parts of the larger buffer: n_ranks, or 1 */
	bool in_place;           /* this call can be made in place */
	size_t send_at, recv_at; /* in place: offsets of input and output in the only buffer */
};

/* Compute the buffers of a rank's call.  The larger buffer has `bytes` bytes, rounded down to whole elements for each rank (at least 1). */
struct comm_shape comm_shape_of(gpul_comm_call call, gpul_comm_dtype dtype, int rank, int n_ranks, size_t bytes);

/* Return the ratio of bus bandwidth to algorithm bandwidth: the bytes that each rank must at least send or receive, divided by the
 * size. PERFORMANCE.md of nccl-tests explains the factors. */
double comm_bus_factor(gpul_comm_call call, int n_ranks);

/** Enqueue one call on a stream.
 *
 * @c       communicator
 * @s       sizes and offsets of the buffers
 * @q       its dtype, op and root are used
 * @send    device address of the send buffer
 * @recv    device address of the recv buffer
 * @stream  stream
 * Errors  as the functions of comm/comm.h
 * Threads as the functions of comm/comm.h */
gpul_status comm_call_enqueue(gpul_comm *c, const struct comm_shape *s, const struct comm_request *q, CUdeviceptr send, CUdeviceptr recv,
			      CUstream stream, gpul_error *err);

/* ---- the result ---------------------------------------------------------------------------------------------- */

/* The results for one size, either of the out-of-place calls or of the in-place calls. */
struct comm_figures {
	bool measured;                /* false: not requested, or not possible */
	double us, least_us, mean_us; /* time of a call: the maximum, minimum and mean over all ranks */
	double algo_gb_s, bus_gb_s;
	uint64_t wrong; /* wrong elements, summed over all ranks */
	bool differs;   /* ranks that must have the same result have different bits */
};

struct comm_row {
	size_t bytes, count;
	gpul_comm_plan plan;
	char reason[200];               /* why the library has chosen the plan */
	struct comm_figures figures[2]; /* [0] out of place, [1] in place */
};

/* A rank's description of itself, which it sends to all ranks. */
struct comm_about {
	int pid, device;
	int host; /* index in the hosts of the job */
	char host_name[GPUL_COMM_HOST_BYTES];
	char name[96]; /* name of the device */
	struct comm_about_path {
		uint32_t transport;
		char reason[256];
	} paths[GPUL_COMM_MAX_RANKS];
};

/* How long a rank has waited, computed from the trace. */
struct comm_waiting {
	uint64_t n_events, n_lost;
	uint64_t n_net, n_net_lost;     /* events of the network proxy */
	uint64_t kernel_ns, waiting_ns; /* sums over all blocks */
};

/* The clock of a host relative to the clock of rank 0's host, computed from the trace.  All members are 0 for rank 0's host. */
struct comm_host {
	int64_t offset_ns;                 /* rank 0's clock minus this host's clock, at the start */
	double drift_ppm, drift_bound_ppm; /* relative speed of rank 0's clock, and its error bound */
	double bound_ns;                   /* largest error of this host's CPU times after conversion to rank 0's clock */
	uint64_t round_trip_ns;            /* the shortest round trip */
};

struct comm_result {
	struct comm_request q; /* the request, with the defaults filled in */
	int rank, n_ranks;
	char driver[16], launcher[16];
	bool interprets;
	struct comm_about about[GPUL_COMM_MAX_RANKS];
	struct comm_row row[COMM_MOST_ROWS];
	unsigned n_rows;
	struct comm_waiting waiting[GPUL_COMM_MAX_RANKS];
	int n_hosts;
	struct comm_host host[GPUL_COMM_MAX_RANKS];
	double rank_bound_ns[GPUL_COMM_MAX_RANKS]; /* for each rank, the largest error of its kernels' times in the trace */
	double clock_bound_ns;                     /* the largest of rank_bound_ns */
};

/* True if any result is wrong, or differs between ranks. */
bool comm_result_wrong(const struct comm_result *r);
/* Return the mean of all measured bus bandwidths, in GB/s; 0 if there are none. */
double comm_result_mean_bus(const struct comm_result *r);

/* Append the head of the table, one row, and the end of the table. */
void comm_text_head(const struct comm_result *r, struct out *o);
void comm_text_row(const struct comm_result *r, const struct comm_row *row, struct out *o);
void comm_text_end(const struct comm_result *r, struct out *o);
/* Append parts of the table, which gpuload comm sparse-allreduce uses, too: a time; the number of wrong elements ("-" if check is
 * false); at the end, whether any element is wrong. */
void comm_text_time(struct out *o, double us);
void comm_text_wrong(const struct comm_figures *f, bool check, struct out *o);
void comm_text_verdict(uint64_t wrong, bool differs, bool check, struct out *o);
/* Append the table of --explain. */
void comm_text_explain(const struct comm_result *r, struct out *o);
struct json;
/* Append the result as one JSON object, without a newline. */
void comm_json(const struct comm_result *r, struct json *j);
/* Append the figures as the member `key`. */
void comm_json_figures(const struct comm_figures *f, bool check, const char *key, struct json *j);
/* Append the hosts and their clocks, as member "hosts". */
void comm_json_hosts(const struct comm_result *r, struct json *j);
/* Append the SVG picture that --plot writes. */
void comm_svg(const struct comm_result *r, struct out *o);

#endif
