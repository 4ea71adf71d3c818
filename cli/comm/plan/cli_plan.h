/* cli_plan.h — gpuload comm plan: predicted times of collectives for any number of ranks (lab/predict).
 *
 *     cli_plan.c          options ──> plan_request; --measure and --check start ranks, as the collectives do
 *        │
 *     plan_measure.c  a rank: times rings ─> gpul_comm_fit() ─> parameters; with --check, also times each algorithm
 *     plan_compute.c  the machine: parameters, links ─> a row for each size, the ranges of sizes in which an algorithm is the best
 *        │
 *     plan_result on rank 0 ──> plan_text.c, plan_json.c, plan_svg.c */
#ifndef GPULOAD_CLI_COMM_PLAN_CLI_PLAN_H
#define GPULOAD_CLI_COMM_PLAN_CLI_PLAN_H

#include "cli/comm/comm_run.h"
#include "lab/predict/params.h"

extern const struct cli_cmd cli_comm_plan;

enum { PLAN_MOST_ROWS = COMM_MOST_ROWS, PLAN_MOST_RANGES = 32, PLAN_MOST_CHECKS = 512, PLAN_MOST_POINTS = 32 };

struct plan_request {
	struct comm_place place; /* for --measure and --check */
	gpul_comm_call call;
	uint32_t n_ranks, ranks_per_host;                 /* numbers of ranks, and of ranks per host; 0: not given */
	size_t min_bytes, max_bytes, factor;              /* max_bytes is 0 if no sizes were given */
	const char *link, *inside, *params, *path, *plot; /* borrowed; NULL: not given */
	int iterations;                                   /* -1: not given */
	bool measure, check, json, force;
};

/* The predicted times of one size; negative: the algorithm is not possible. */
struct plan_row {
	uint64_t bytes;
	double us[GPUL_COMM_N_ALGOS][GPUL_COMM_N_PROTOS];
	gpul_comm_algo algo; /* the fastest algorithm */
	gpul_comm_proto proto;
};

/* A range of sizes for which an algorithm and protocol are the best. */
struct plan_range {
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	uint64_t from, to; /* bytes; the next range begins at `to` */
};

/* The size below which an algorithm is faster than a ring, each with its best protocol.  0: never faster; the largest size: always. */
struct plan_turn {
	gpul_comm_algo algo;
	uint64_t below;
};

/* The predicted and the measured time of one algorithm and size. */
struct plan_check {
	gpul_comm_algo algo;
	gpul_comm_proto proto;
	uint64_t bytes;
	double predicted_us, measured_us;
};

struct plan_result {
	struct plan_request q;
	gpul_comm_params params;
	const char *source;          /* source of the parameters: "built-in", "measured here" or the file */
	gpul_comm_link link, inside; /* values of --link and --inside; the member name is NULL if the option is not given */
	gpul_comm_machine machine;
	struct plan_row rows[PLAN_MOST_ROWS];
	unsigned n_rows;
	struct plan_range ranges[PLAN_MOST_RANGES];
	unsigned n_ranges;
	struct plan_turn turns[2]; /* for the tree and the two-level algorithm, if they are possible */
	unsigned n_turns;

	/* The following members are for --measure and --check. */
	int n_here; /* number of ranks that measure; 0: nothing is measured */
	gpul_comm_transport transport;
	char device[64];
	struct comm_about about[GPUL_COMM_MAX_RANKS];
	struct plan_check checks[PLAN_MOST_CHECKS];
	unsigned n_checks;
};

/** Describe the machine to predict for: read the parameters, unless they were measured, and parse the links.
 *
 * @r    q is complete, and so is params if n_here is not 0
 * Errors  GPUL_EINVAL a bad link, or no network is given; as gpul_comm_params_read(); GPUL_EUNSUPPORTED the file has no
 *         parameters for memory */
gpul_status plan_find_machine(struct plan_result *r, gpul_error *err);
/* Compute the predicted rows and ranges. */
void plan_compute(struct plan_result *r);
/* Store the sizes of a request, at most PLAN_MOST_ROWS, in sizes; returns their number. */
unsigned plan_sizes(const struct plan_request *q, uint64_t sizes[PLAN_MOST_ROWS]);

/** Measure parameters, and with --check the times of each algorithm; all ranks call it.
 *
 * @r         an open rank
 * @argument  the struct plan_result
 * Errors  as comm_time_calls(); GPUL_EINVAL no parameters fit the measured times
 * Threads one at a time */
gpul_status plan_measure(struct comm_rank *r, void *argument, gpul_error *err);

/* Append the result as text, as an SVG file, or as JSON. */
void plan_text(const struct plan_result *r, struct out *o);
void plan_svg(const struct plan_result *r, struct out *o);
struct json;
void plan_json(const struct plan_result *r, struct json *j);
/* Append the content of the file of parameters: the old rows of other transports, then the measured rows. */
void plan_write_params(const gpul_comm_params *old, const gpul_comm_params *measured, struct out *o);

#endif
