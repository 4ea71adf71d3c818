/* ranks.h — the ranks of a job as threads of one process, on the software driver. */
#ifndef GPULOAD_TESTS_COMM_RANKS_H
#define GPULOAD_TESTS_COMM_RANKS_H

#include "comm/comm.h"

struct rank {
	const gpul_driver *drv;
	gpul_comm *comm;
	int rank, n_ranks;
	CUstream stream;
	void *arg;
};

/* Create a communicator of n ranks, run the function on a thread for each rank, destroy the communicator. */
void run_ranks(int n, const gpul_comm_options *options, void (*run)(struct rank *r, void *arg), void *arg);

/* Like run_ranks(), with the ranks distributed in order over n_hosts simulated hosts. */
void run_ranks_on_hosts(int n, int n_hosts, const gpul_comm_options *options, void (*run)(struct rank *r, void *arg), void *arg);

/* Create a job with a unique name; the caller sets its rank. */
gpul_comm_job new_job(int n_ranks);

/* Fail the test with the text of err, unless st is GPUL_OK. */
void must(gpul_status st, const gpul_error *err, const char *what);

#endif
