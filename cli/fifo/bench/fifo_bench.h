/* fifo_bench.h — the parts of gpuload fifo bench.
 *
 *     request (fifo_bench_request.c) ──> fifo_bench.c: for each mode, size and number of threads
 *                                             │        create a FIFO, and run each kind of push several times
 *                                             ▼
 *     kernel (fifo_bench.cu) ──> FIFO ──> fifo_bench_run.c: one run: launch, poll, check, time
 *                                             │
 *     result ──> fifo_bench_text.c, fifo_bench_json.c, fifo_bench_svg.c, compared with fifo_bench_peer.c */
#ifndef GPULOAD_CLI_FIFO_BENCH_FIFO_BENCH_H
#define GPULOAD_CLI_FIFO_BENCH_FIFO_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/bench/samples.h"
#include "cli/lib/command.h"
#include "cli/lib/options/devices_arg.h"
#include "cli/lib/out.h"
#include "loader/loader.h"
#include "proxy/fifo.h"

extern const struct cli_cmd cli_fifo_bench;
extern const struct cli_opt fifo_bench_opts[]; /* the options; they and the help text are in fifo_bench_request.c */
extern const char fifo_bench_details[];

enum fifo_mode { FIFO_SHARED, FIFO_LANES, FIFO_N_MODES };
enum fifo_op { FIFO_PUSH, FIFO_RELEASE, FIFO_PUSH_SYNC, FIFO_RELEASE_SYNC, FIFO_N_OPS };
enum { FIFO_MOST_CONFIGS = 64, FIFO_MOST_WARPS = 3, FIFO_WARP_SLOTS = 65536, FIFO_MOST_RUNS = 99, FIFO_MOST_BATCH = 1024 };

extern const char *const fifo_mode_names[FIFO_N_MODES]; /* "shared", "lanes" */
extern const char *const fifo_op_names[FIFO_N_OPS];     /* "push", "push_release", ...: names in kernels and JSON */

struct fifo_config {
	unsigned size, parallel; /* total number of slots; number of threads that push */
};

struct fifo_bench_request {
	struct fifo_config config[FIFO_MOST_CONFIGS];
	unsigned n_configs, n_left; /* n_left: number of combinations left out, because they have more threads than slots */
	bool mode[FIFO_N_MODES];
	unsigned repeat;
	uint64_t triggers; /* triggers per thread; 0: the default, which depends on the size */
	unsigned batch;    /* maximum number of triggers between two releases; 0: the default */
	gpul_mem_kind kind;
	struct devices_arg devices; /* exactly one device */
	int cpu;                    /* CPU to which the main thread is pinned; -1: not pinned */
	int timeout_ms;
	const char *plot; /* file for --plot; NULL: no plot; borrowed */
	bool force, json;
};

enum { FIFO_N_PERCENTILES = 5 };

struct fifo_latency {
	int64_t ns[FIFO_N_PERCENTILES]; /* the percentiles 50, 90, 99, 99.9 and 100 */
};

struct fifo_latencies {
	uint64_t n; /* number of triggers */
	struct fifo_latency to_pop, to_sync;
	double to_pop_bound_ns; /* largest error of to_pop, which compares the clocks of GPU and CPU */
};

struct fifo_row {
	enum fifo_mode mode;
	struct fifo_config config;
	unsigned lanes;
	uint64_t triggers;                      /* number of triggers per thread and run */
	struct samples_spread rate[FIFO_N_OPS]; /* triggers per second: the spread over the runs */
	struct fifo_latencies latency;
};

struct fifo_warp_row {
	enum fifo_mode mode;
	unsigned warps, lanes;
	uint64_t slots; /* triggers pushed in each run by all warps */
	struct samples_spread rate;
};

struct fifo_bench_result {
	struct fifo_row row[FIFO_N_MODES * FIFO_MOST_CONFIGS];
	unsigned n_rows;
	struct fifo_warp_row warp[FIFO_N_MODES * FIFO_MOST_WARPS];
	unsigned n_warps;
	char gpu[128];
	const char *driver; /* such as "nvidia" or "soft" */
	int driver_version;
	bool interprets;        /* the driver interprets kernels on the CPU */
	gpul_mem_kind kind;     /* kind of the FIFO's memory */
	int node;               /* NUMA node of that memory; -1: chosen by the driver */
	unsigned cpu, cpu_node; /* CPU on which the main thread runs after the measurement, and its NUMA node */
};

/* ---- one FIFO, and the runs that use it (fifo_bench_run.c) ---- */

struct fifo_bench; /* driver, module, stream and FIFO of the runs; opaque */

/** Load the kernels and create the stream.
 *
 * @drv         borrowed; must outlive *out; all calls below need the same current context
 * @device      ordinal of the GPU
 * @kind        kind of the FIFOs' memory
 * @batch       maximum number of triggers between two releases, up to FIFO_MOST_BATCH; 0: the default
 * @timeout_ms  limit of each wait
 * @out         owned by the caller: fifo_bench_destroy(); untouched on failure
 * Errors  GPUL_ECUDA, GPUL_ENOMEM
 * Threads any thread may call; one thread at a time uses it */
gpul_status fifo_bench_create(const gpul_driver *drv, int device, gpul_mem_kind kind, unsigned batch, int timeout_ms,
			      struct fifo_bench **out, gpul_error *err);
void fifo_bench_destroy(struct fifo_bench *b); /* accepts NULL */

/** Create the FIFO for the next runs; it replaces the previous one.
 *
 * @b      a benchmark
 * @shape  shape of the FIFO
 * Errors  as gpul_fifo_create()
 * Threads one at a time */
gpul_status fifo_bench_create_fifo(struct fifo_bench *b, gpul_fifo_shape shape, gpul_error *err);
const gpul_mem_info *fifo_bench_memory(const struct fifo_bench *b); /* memory of the current FIFO */

/** Run a kernel whose threads push; receive all triggers, and count each in a hash map by its number within its thread.
 *
 * @b         a benchmark with a FIFO
 * @mode      whether all threads share lane 0, or each owns a lane
 * @op        what each thread does
 * @parallel  number of threads, each in a separate block
 * @triggers  triggers per thread
 * @out_ns    time from the launch until the stream is synchronised
 * Errors  GPUL_EFORMAT triggers were lost, repeated or wrong; GPUL_ESYS native = ETIMEDOUT no trigger within timeout_ms,
 *         or a kernel timed out; native = EINTR a signal; GPUL_ECUDA the kernel failed; GPUL_ENOMEM
 * Threads one at a time */
gpul_status fifo_bench_push(struct fifo_bench *b, enum fifo_mode mode, enum fifo_op op, unsigned parallel, uint64_t triggers,
			    uint64_t *out_ns, gpul_error *err);

/** Run a kernel whose warps push 32 triggers at a time; receive all triggers, and check each.
 *
 * @b       a benchmark with a FIFO
 * @mode    whether all warps share lane 0, or each owns a lane
 * @warps   number of warps, each in a separate block
 * @pushes  pushes per warp
 * @out_ns  time from the launch until the stream is synchronised
 * Errors  as fifo_bench_push()
 * Threads one at a time */
gpul_status fifo_bench_warp_push(struct fifo_bench *b, enum fifo_mode mode, unsigned warps, uint64_t pushes, uint64_t *out_ns,
				 gpul_error *err);

/** Run a kernel whose threads push one trigger after the other and wait for its handling; compute the latencies.
 *
 * @b         a benchmark with a FIFO
 * @mode      whether all threads share lane 0, or each owns a lane
 * @parallel  number of threads, each in a separate block
 * @triggers  triggers per thread
 * @out       filled in
 * Errors  as fifo_bench_push() and fifo_clock_take()
 * Threads one at a time */
gpul_status fifo_bench_latency(struct fifo_bench *b, enum fifo_mode mode, unsigned parallel, uint64_t triggers, struct fifo_latencies *out,
			       gpul_error *err);

/* ---- command line, figures, output ---- */

/** Read the command line.
 *
 * @args  the command line, split by cli_parse()
 * @out   filled in; its strings point into args
 * Errors  GPUL_EINVAL a wrong option; the message gives the allowed values */
gpul_status fifo_bench_parse(const struct cli_args *args, struct fifo_bench_request *out, gpul_error *err);

/* Compute the percentiles (nearest rank) of n >= 1 times; sorts the array.  A time below 0, which the error of two clocks
 * can cause, counts as 0. */
void fifo_latency_of(int64_t *ns, uint64_t n, struct fifo_latency *out);

/* The rates of the fastest public FIFO (the "peer"), in million triggers per second, measured once on an H200; 0: not measured.
 * Its push has release order. */
struct fifo_peer {
	struct fifo_config config;
	double push, push_sync;
};
extern const struct fifo_peer fifo_peers[]; /* ends with {0} */
extern const char fifo_peer_name[], fifo_peer_about[];
/* Return the rates of the peer FIFO for a configuration; NULL: not measured. */
const struct fifo_peer *fifo_peer_of(struct fifo_config config);

/* Append the result to *o as text tables, or as an SVG picture. */
void fifo_bench_text(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct out *o);
void fifo_bench_svg(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct out *o);
/* Append the result as one JSON object, without a newline. */
struct json;
void fifo_bench_json(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct json *j);

#endif
