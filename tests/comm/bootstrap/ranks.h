/* ranks.h — ranks for tests: threads of this process, or forked processes, that share one job. */
#ifndef GPULOAD_TESTS_COMM_BOOTSTRAP_RANKS_H
#define GPULOAD_TESTS_COMM_BOOTSTRAP_RANKS_H

#include <pthread.h>
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
/* A rank_body: gpul_boot_open() and gpul_boot_close() as often as *arg (int) says. */
gpul_status ranks_meet_often(const gpul_comm_job *job, void *arg, gpul_error *err);

/* One way in which the call of rank `odd` differs from the calls of the other ranks. */
struct ranks_difference {
	const char *what; /* size, call, order, leave, late or fail */
	int odd;
	int late_ms;      /* `late`: the time-out of the other ranks */
	const char *text; /* text that each rank's error message must contain */
};

/* A rank_body; arg: struct ranks_difference. */
gpul_status ranks_call_differently(const gpul_comm_job *job, void *arg, gpul_error *err);
/* Check that all ranks have failed with the text, and that no file is left. */
void ranks_expect_difference(const struct ranks_difference *d, const struct rank_end *ends, int size);

/* A rank_body for 5 ranks, of which 1 and 3 do not call gpul_boot_open(); ranks_expect_absence() checks the messages of the others. */
gpul_status ranks_1_and_3_stay_away(const gpul_comm_job *job, void *arg, gpul_error *err);
void ranks_expect_absence(const struct rank_end *ends);

/* A rank that calls gpul_boot_open() on a thread. */
struct ranks_opener {
	pthread_t thread;
	gpul_comm_job job;
	int timeout_ms;
	gpul_boot *boot;
	gpul_status status;
	gpul_error err;
};

void ranks_start(struct ranks_opener *r, const gpul_comm_job *job, int timeout_ms);
/* Wait for the call's end, and check that it has failed with the text, which does not contain the job's secret; or that it was successful. */
void ranks_expect_failure(struct ranks_opener *r, const char *text);
void ranks_expect_meeting(struct ranks_opener *r);

/* Start a rank as a forked process.  The result goes to *end, in memory shared with the child (ranks_shared()). */
pid_t ranks_fork(const gpul_comm_job *job, rank_body *body, void *arg, struct rank_end *end);
/* Map zeroed memory that this process shares with processes that it forks later; ranks_unshare() unmaps it. */
void *ranks_shared(size_t bytes);
void ranks_unshare(void *at, size_t bytes);

#endif
