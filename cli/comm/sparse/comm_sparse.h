/* comm_sparse.h — gpuload comm sparse-allreduce: compares a sparse all-reduce with the dense one, for several sizes and densities.
 *
 *     comm_sparse.c       options ──> sparse_request; launcher or rank, as for a collective (comm_bench.h)
 *     comm_sparse_run.c   for each size and density: fill, check, time both
 *     comm_sparse_data.c  the data; each rank can compute the data of all ranks
 *     comm_sparse_text.c  the table and the JSON */
#ifndef GPULOAD_CLI_COMM_SPARSE_COMM_SPARSE_H
#define GPULOAD_CLI_COMM_SPARSE_COMM_SPARSE_H

#include "cli/comm/comm_run.h"
#include "lab/sparse/sparse.h"

extern const struct cli_cmd cli_comm_sparse;

enum { SPARSE_MOST_DENSITIES = 16, SPARSE_MOST_ROWS = 256 };

struct sparse_request {
	struct comm_place place;
	size_t min_bytes, max_bytes, factor;
	double percent[SPARSE_MOST_DENSITIES]; /* percentage of a rank's blocks that are not zero */
	unsigned n_percent;
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	gpul_comm_sparse_options options; /* only block and percent are used */
	int iterations, warmups;          /* -1: default of the driver */
	bool check, json;
};

struct sparse_row {
	size_t bytes, count;
	double percent;                 /* the requested percentage of blocks that are not zero */
	gpul_comm_sparse_report report; /* rank 0's report, but sent_bytes is the mean over all ranks */
	struct comm_figures sparse, dense;
};

struct sparse_result {
	struct sparse_request q;
	int rank, n_ranks;
	char driver[16], launcher[16];
	char path[200]; /* the network that sparse messages use */
	bool interprets;
	struct comm_about about[GPUL_COMM_MAX_RANKS];
	struct sparse_row rows[SPARSE_MOST_ROWS];
	unsigned n_rows;
};

/* ---- data ---------------------------------------------------------------------------------------------------------- */

/* The parameters from which a rank's input is computed. */
struct sparse_data {
	uint64_t seed;
	double percent;
	uint32_t block;
	gpul_comm_dtype dtype;
	gpul_comm_op op;
	int n_ranks;
};

/* Write n elements of a rank's input, beginning with element `first`: 0 in zero blocks, and in the others whole numbers from -4 to
 * 4 except 0, so that sums are exact in every order of additions. */
void sparse_data_fill(const struct sparse_data *d, int rank, size_t first, size_t n, void *out);
/* Compare n elements of a result, beginning with element `first`; returns the number of wrong ones. */
uint64_t sparse_data_check(const struct sparse_data *d, size_t first, size_t n, const void *got);

/* ---- measurement -------------------------------------------------------------------------------------------------- */

/** Measure all rows, and print them on rank 0.
 *
 * @r         an open rank
 * @argument  the struct sparse_result
 * Errors  as gpul_comm_mesh_create(), gpul_comm_sparse_allreduce(), comm_time_calls()
 * Threads one at a time */
gpul_status sparse_measure(struct comm_rank *r, void *argument, gpul_error *err);

/* True if any result is wrong, or differs between ranks. */
bool sparse_result_wrong(const struct sparse_result *r);
/* Return the time of the dense call divided by that of the sparse one. */
double sparse_speedup(const struct sparse_row *row);

void sparse_text_head(const struct sparse_result *r, struct out *o);
void sparse_text_row(const struct sparse_result *r, const struct sparse_row *row, struct out *o);
void sparse_text_end(const struct sparse_result *r, struct out *o);
void sparse_json(const struct sparse_result *r, struct json *j);

#endif
