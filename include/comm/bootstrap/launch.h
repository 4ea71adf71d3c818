/* launch.h — starts the ranks of a job on this machine, and ends them together. */
#ifndef GPULOAD_COMM_BOOTSTRAP_LAUNCH_H
#define GPULOAD_COMM_BOOTSTRAP_LAUNCH_H

#include "comm/bootstrap/job.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_COMM_GRACE_MS = 5000 };

typedef struct gpul_comm_launch_options {
	char *const *argv; /* the program, which is searched for in PATH, and its arguments; terminated by NULL */
	int n;             /* number of ranks, 1 to GPUL_COMM_MAX_RANKS */
	int grace_ms;      /* after a rank has failed, how long the others may take to end by themselves; 0: GPUL_COMM_GRACE_MS */
} gpul_comm_launch_options;

/** Start n processes as the ranks of a new job, and wait until all have ended.
 *
 * Each process gets GPULOAD_COMM_RANK, GPULOAD_COMM_SIZE and GPULOAD_COMM_JOB.  Standard output and error are those of the caller;
 * rank 0 also has the caller's standard input, the others /dev/null.  SIGINT, SIGTERM, SIGHUP and SIGQUIT are forwarded to the
 * ranks; a second signal kills them.  When a rank fails or is killed, the others have grace_ms to report the cause and end; then
 * they get SIGTERM, and a second later SIGKILL.  Ranks that are stopped (SIGSTOP) cannot end: when only such ranks are left, they
 * are killed after half a second.  When the caller is killed, the kernel kills the ranks.  At the end, processes that the ranks
 * started and left running are killed, and the files of the job's sockets are removed.
 *
 * @o            borrowed
 * @exit_status  always set: 0 if all ranks ended with status 0; else the exit status of the rank that failed first, or 128 +
 *               its signal; 127 or 126 if the program cannot be started
 * Errors  GPUL_EUNSUPPORTED a rank failed (the message names the rank, its pid and its signal or status); GPUL_EINVAL no
 *         program, n out of range; GPUL_ESYS a process cannot be started
 * Threads the main thread of a program without other threads: it changes the signal mask and waits for children
 * Source  Linux prctl(2): PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER; signalfd(2) */
gpul_status gpul_comm_launch(const gpul_comm_launch_options *o, int *exit_status, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
