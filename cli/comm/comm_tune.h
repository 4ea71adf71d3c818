/* comm_tune.h — gpuload comm tune: measures the possible plans of each call and size, and writes the best ones as a table (comm/table.h).
 *
 *     for each call and size: each algorithm and protocol that is possible, with several numbers of blocks and threads
 *         └─> the fastest; its data are checked ─> a row; equal neighbours become one row */
#ifndef GPULOAD_CLI_COMM_COMM_TUNE_H
#define GPULOAD_CLI_COMM_COMM_TUNE_H

#include "cli/comm/comm_run.h"
#include "comm/table.h"

extern const struct cli_cmd cli_comm_tune;

enum { COMM_TUNE_MOST_ROWS = GPUL_COMM_N_CALLS * COMM_MOST_ROWS };

struct comm_tuning {
	struct comm_place place;
	size_t min_bytes, max_bytes, factor;
	struct comm_request q; /* its iterations and warmups are set by options; the calls reduce f32 by sum */
	const char *path;      /* file to write; borrowed; NULL: stdout */
	struct comm_about about[GPUL_COMM_MAX_RANKS];
	char host[64], date[16];
	gpul_comm_table_row rows[COMM_TUNE_MOST_ROWS];
	size_t n_rows;
};

/* Append the content of the file: from an old table the rows for other devices, numbers of ranks or transports, then the new rows. */
void comm_tune_write(const gpul_comm_table *old, const gpul_comm_table_row *rows, size_t n_rows, struct out *o);

#endif
