/* comm_job.h — determines the role of a process of gpuload comm: the launcher, a rank, or, with --threads, all ranks.
 *
 *     gpuload comm allreduce -n 4             no launcher: this process becomes the launcher of 4 ranks, which run the same command line
 *     gpuload comm allreduce --hosts a:2,b:2  likewise, through an agent such as ssh
 *     gpuload comm allreduce -n 4 --threads   this process is all ranks
 *     mpirun -n 4 gpuload comm allreduce      each process is a rank; likewise with srun, torchrun and gpuload comm launch */
#ifndef GPULOAD_CLI_COMM_COMM_JOB_H
#define GPULOAD_CLI_COMM_COMM_JOB_H

#include <stdbool.h>

#include "cli/lib/command.h"
#include "comm/bootstrap/agents/hostlist.h"

extern const struct cli_cmd cli_comm_launch;

/** Find out whether this process is a rank.
 *
 * @n_ranks  -n, or the sum over --hosts; 0: not given
 * @hosts    --hosts was given
 * @job      filled if this process is a rank
 * @launches set: true, this process must start n_ranks ranks
 * Errors  GPUL_EINVAL no launcher and no -n, or a launcher with another number of ranks; as gpul_comm_job_find()
 * Threads one at a time */
gpul_status comm_job_find(int n_ranks, bool hosts, gpul_comm_job *job, bool *launches, gpul_error *err);

/* Start the command line of this process n times and wait; returns the exit status.  hosts: the hosts on which to start; NULL, or n 0:
 * this host.  The ranks print their errors; err gets a text if a rank was killed or a host cannot be reached.  agent NULL: the default. */
int comm_job_launch(int n_ranks, const gpul_comm_hosts *hosts, const char *agent, gpul_error *err);

/** Run n ranks as threads of this process, and wait.  Their kernels can run concurrently on one GPU, whereas kernels of different
 * processes take turns.
 *
 * @n_ranks  2 to GPUL_COMM_MAX_RANKS
 * @run      runs one rank, on a thread of its own; returns its exit status
 * @what     passed to run
 * @err      the error of the failed rank with the lowest number
 * Returns the exit status of that rank, or CLI_DONE
 * Threads the main thread */
int comm_job_threads(int n_ranks, int (*run)(const void *what, const gpul_comm_job *job, gpul_error *err), const void *what,
		     gpul_error *err);

/* Prepare a rank's error for printing.  comm_job_quiet() clears an error that all ranks have, except on rank 0; comm_job_sign() puts
 * the rank's number before the text. */
void comm_job_quiet(const gpul_comm_job *job, gpul_error *err);
void comm_job_sign(const gpul_comm_job *job, gpul_error *err);

#endif
