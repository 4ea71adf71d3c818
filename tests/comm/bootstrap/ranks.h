/* ranks.h — ranks for tests: threads of this process, or forked processes, that share one job. */
#ifndef GPULOAD_TESTS_COMM_BOOTSTRAP_RANKS_H
#define GPULOAD_TESTS_COMM_BOOTSTRAP_RANKS_H

#include <stdbool.h>
#include <sys/types.h>

#include "comm/bootstrap/roster.h"

/* The function that each rank runs.  A rank that is a thread reports its status by the return value, a process by its exit status. */
typedef gpul_status rank_body(const gpul_comm_job *job, void *arg, gpul_error *err);

/* The result of a rank. */
struct rank_end {
	gpul_status status;
	gpul_error err;
};

/* Make the folder for the sockets of this test program.  ranks_remove_folder() removes it, and fails if it still contains a file. */
int ranks_make_folder(void **state);
int ranks_remove_folder(void **state);

/* Return the number of files in that folder. */
int ranks_n_files(void);
/* Return the number of open descriptors of this process. */
int ranks_n_open(void);

/* Create a job with a name that this program has not used yet. */
gpul_comm_job ranks_job(int rank, int size);
/* Copy a job for another rank. */
gpul_comm_job ranks_of(const gpul_comm_job *job, int rank);

/* Run the ranks of these jobs as threads, and wait for all of them. */
void ranks_run(const gpul_comm_job *jobs, int n, rank_body *body, void *arg, struct rank_end *ends);
/* Run ranks 0 to size - 1 of a new job as threads, and wait for all of them. */
void ranks_as_threads(int size, rank_body *body, void *arg, struct rank_end *ends);
/* Check that all ranks have succeeded, and that no file is left. */
void ranks_expect_ok(const struct rank_end *ends, int size);

/* A rank_body: gpul_boot_open(), an all-gather of blocks of each size in arg (size_t[], ends with SIZE_MAX), two barriers. */
gpul_status ranks_gather_sizes(const gpul_comm_job *job, void *arg, gpul_error *err);
enum { RANKS_LONG_MS = 60000 }; /* a time-out that only a failing test reaches */

/* Start a rank as a forked process.  The result goes to *end, in memory shared with the child (ranks_shared()). */
pid_t ranks_fork(const gpul_comm_job *job, rank_body *body, void *arg, struct rank_end *end);
/* Map zeroed memory that this process shares with processes that it forks later; ranks_unshare() unmaps it. */
void *ranks_shared(size_t bytes);
void ranks_unshare(void *at, size_t bytes);

#endif
