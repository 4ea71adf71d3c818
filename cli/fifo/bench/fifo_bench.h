/* fifo_bench.h — the parts of gpuload fifo bench.
 *
 *     request (fifo_bench_request.c) ──> fifo_bench.c: for each mode, size and number of threads
 *                                             │        a FIFO, and for each way of pushing some runs
 *                                             ▼
 *     kernel (fifo_bench.cu) ──> FIFO ──> fifo_bench_run.c: one run: launch, take out, check, clock
 *                                             │
 *     result ──> fifo_bench_text.c, fifo_bench_json.c, fifo_bench_svg.c;  beside it upstream's (fifo_bench_peer.c) */
#ifndef GPULOAD_CLI_FIFO_BENCH_FIFO_BENCH_H
#define GPULOAD_CLI_FIFO_BENCH_FIFO_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/lib/command.h"
#include "cli/lib/devices_arg.h"
#include "cli/lib/out.h"
#include "loader/loader.h"
#include "proxy/fifo.h"

extern const struct cli_cmd cli_fifo_bench;
extern const struct cli_opt fifo_bench_opts[];  /* and the help text, both in fifo_bench_request.c */
extern const char fifo_bench_details[];

enum fifo_mode { FIFO_SHARED, FIFO_LANES, FIFO_N_MODES };
enum fifo_op { FIFO_PUSH, FIFO_RELEASE, FIFO_PUSH_SYNC, FIFO_RELEASE_SYNC, FIFO_N_OPS };
enum { FIFO_MOST_CONFIGS = 64, FIFO_MOST_WARPS = 3, FIFO_WARP_SLOTS = 65536, FIFO_MOST_RUNS = 99, FIFO_MOST_BATCH = 1024 };

extern const char *const fifo_mode_names[FIFO_N_MODES];  /* "shared", "lanes" */
extern const char *const fifo_op_names[FIFO_N_OPS];    /* "push", "push_release", ... as the kernels and JSON have them */

struct fifo_config {
	unsigned size, parallel;  /* slots in all; threads */
};

struct fifo_bench_request {
	struct fifo_config config[FIFO_MOST_CONFIGS];
	unsigned n_configs, n_left;  /* n_left: combinations that were left out, as they have more threads than slots */
	bool mode[FIFO_N_MODES];
	unsigned repeat;
	uint64_t triggers;           /* of each thread; 0: by size */
	unsigned batch;              /* triggers at most that are taken out at a time; 0: the usual */
	gpul_mem_kind kind;
	struct devices_arg devices;  /* one */
	int cpu;                     /* -1: not pinned */
	int timeout_ms;
	const char *plot;            /* NULL: none; borrowed */
	bool force, json;
};

/* Of the runs of one kind: triggers a second. */
struct fifo_rate {
	double median, least, most;
};

enum { FIFO_N_PERCENTILES = 5 };
extern const double fifo_percentiles[FIFO_N_PERCENTILES];  /* 50 ... 100 */

struct fifo_latency {
	int64_t ns[FIFO_N_PERCENTILES];
};

struct fifo_latencies {
	uint64_t n;                /* triggers */
	struct fifo_latency to_pop, to_sync;
	double to_pop_bound_ns;    /* to_pop is wrong by so much at most: it takes the clocks of GPU and CPU */
};

struct fifo_row {
	enum fifo_mode mode;
	struct fifo_config config;
	unsigned lanes;
	uint64_t triggers;  /* of each thread, in each run */
	struct fifo_rate rate[FIFO_N_OPS];
	struct fifo_latencies latency;
};

struct fifo_warp_row {
	enum fifo_mode mode;
	unsigned warps, lanes;
	uint64_t slots;  /* pushed in each run, in all */
	struct fifo_rate rate;
};

struct fifo_bench_result {
	struct fifo_row row[FIFO_N_MODES * FIFO_MOST_CONFIGS];
	unsigned n_rows;
	struct fifo_warp_row warp[FIFO_N_MODES * FIFO_MOST_WARPS];
	unsigned n_warps;
	char gpu[128];
	const char *driver;       /* "nvidia", "soft" */
	int driver_version;
	bool interprets;       /* the kernels ran on the CPU */
	gpul_mem_kind kind;       /* of the FIFO's memory, and */
	int node;                 /* where it is; -1: the driver chose */
	unsigned cpu, cpu_node;   /* where this thread was at the end */
};

/* ---- one FIFO, and runs over it (fifo_bench_run.c) ---- */

struct fifo_bench;  /* driver, module and what runs need; opaque */

/** Load the kernels and make the stream.
 *
 * @drv         borrowed; must outlive *out; a context is current, the same for all calls below
 * @device      its ordinal
 * @kind        of the FIFOs' memory
 * @batch       triggers at most between two releases, up to FIFO_MOST_BATCH; 0: the usual
 * @timeout_ms  of each wait
 * @out         owned by the caller: fifo_bench_destroy(); untouched on failure
 * Errors  GPUL_ECUDA, GPUL_ENOMEM
 * Threads any thread may call; one thread at a time uses it
 * Source  - */
gpul_status fifo_bench_create(const gpul_driver *drv, int device, gpul_mem_kind kind, unsigned batch, int timeout_ms,
			      struct fifo_bench **out, gpul_error *err);
void fifo_bench_destroy(struct fifo_bench *b);  /* NULL is fine */

/** Make the FIFO that the next runs use, in place of the one before.
 *
 * @b      created
 * @shape  of it
 * Errors  those of gpul_fifo_create()
 * Threads one at a time
 * Source  - */
gpul_status fifo_bench_create_fifo(struct fifo_bench *b, gpul_fifo_shape shape, gpul_error *err);
const gpul_mem_info *fifo_bench_memory(const struct fifo_bench *b);  /* of that FIFO */

/** Have threads push, take all triggers out, and count each in a hash map: its key is the number within its thread.
 *
 * @b         with a FIFO
 * @mode      whether threads share lane 0, or each has its own
 * @way       what each thread does
 * @parallel  threads, each in a block of its own
 * @triggers  of each thread
 * @out_ns    from the launch until the stream is synchronised
 * Errors  GPUL_EFORMAT triggers were lost, repeated or wrong: how many; GPUL_ESYS native = ETIMEDOUT nothing came
 *         for timeout_ms, or a kernel gave up; native = EINTR a signal; GPUL_ECUDA the kernel failed; GPUL_ENOMEM
 * Threads one at a time
 * Source  - */
gpul_status fifo_bench_push(struct fifo_bench *b, enum fifo_mode mode, enum fifo_op op, unsigned parallel,
			    uint64_t triggers, uint64_t *out_ns, gpul_error *err);

/** Have warps push 32 triggers at once, and look at each.
 *
 * @b       with a FIFO
 * @mode    whether warps share lane 0, or each has its own
 * @warps   each in a block of its own
 * @pushes  of each warp
 * @out_ns  from the launch until the stream is synchronised
 * Errors  those of fifo_bench_push()
 * Threads one at a time
 * Source  - */
gpul_status fifo_bench_warp_push(struct fifo_bench *b, enum fifo_mode mode, unsigned warps, uint64_t pushes,
				 uint64_t *out_ns, gpul_error *err);

/** Have threads push and sync, one trigger after the other, and write down when.
 *
 * @b         with a FIFO
 * @mode      whether threads share lane 0, or each has its own
 * @parallel  threads, each in a block of its own
 * @triggers  of each thread
 * @out       filled
 * Errors  those of fifo_bench_push() and fifo_clock_take()
 * Threads one at a time
 * Source  - */
gpul_status fifo_bench_latency(struct fifo_bench *b, enum fifo_mode mode, unsigned parallel, uint64_t triggers,
			     struct fifo_latencies *out, gpul_error *err);

/* ---- the rest ---- */

/** Read the command line.
 *
 * @args  parsed
 * @out   filled; its texts are borrowed from args
 * Errors  GPUL_EINVAL which option, and what it takes
 * Threads any thread may call
 * Source  - */
gpul_status fifo_bench_parse(const struct cli_args *args, struct fifo_bench_request *out, gpul_error *err);

/* The median of n, at least 1, which become sorted. */
struct fifo_rate fifo_rate_of(double *per_s, unsigned n);
/* The same with percentiles: the least time that so many per cent do not exceed. */
void fifo_latency_of(int64_t *ns, uint64_t n, struct fifo_latency *out);

/* Figures of the best public FIFO, in million triggers a second: measured elsewhere; 0: not measured.  Its push is a
 * release. */
struct fifo_peer {
	struct fifo_config config;
	double push, push_sync;
};
extern const struct fifo_peer fifo_peers[];  /* ends with {0} */
extern const char fifo_peer_name[], fifo_peer_about[];
/* NULL: not measured there. */
const struct fifo_peer *fifo_peer_of(struct fifo_config config);

/* Add the tables; the picture. */
void fifo_bench_text(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct out *o);
void fifo_bench_svg(const struct fifo_bench_request *r, const struct fifo_bench_result *result, struct out *o);
/** The same as JSON, on stdout.
 *
 * @r       request
 * @result  measured
 * Errors  those of json_print()
 * Threads one at a time
 * Source  - */
gpul_status fifo_bench_json(const struct fifo_bench_request *r, const struct fifo_bench_result *result,
			    gpul_error *err);

#endif
