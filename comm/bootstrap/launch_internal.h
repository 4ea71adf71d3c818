/* launch_internal.h — the processes of a launch. */
#ifndef GPULOAD_COMM_BOOTSTRAP_LAUNCH_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_LAUNCH_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "comm/bootstrap/launch.h"

struct rank_process {
	pid_t pid;
	int status;   /* of waitpid(), once ended */
	bool ended;
	bool forced;  /* the launcher has sent it SIGTERM or SIGKILL */
};

/** Start one rank; returns after its exec().
 *
 * @o     the program
 * @job   rank, size and name, for the environment
 * @notice  the descriptor of the launcher's page, which the process inherits
 * @mask  the signal mask of the new process
 * @out   filled
 * @exit_status  set on failure: 127 the program does not exist, else 126
 * Errors  GPUL_ESYS
 * Threads as gpul_comm_launch()
 * Source  Linux prctl(2): PR_SET_PDEATHSIG */
gpul_status gpul_launch_start(const gpul_comm_launch_options *o, const gpul_comm_job *job, int notice,
			      const sigset_t *mask, struct rank_process *out, int *exit_status, gpul_error *err);

/* The children that this process has before the launch, so that only processes of the ranks are killed at the end. */
struct orphans {
	pid_t *known;
	size_t n_known, room;
	size_t n_killed;  /* in the current round */
	int was_subreaper;
};

/* From now on, processes whose parent is a rank that ended become children of this process. */
void gpul_launch_adopt(struct orphans *o);
/* Kill and reap the adopted processes, and undo gpul_launch_adopt(). */
void gpul_launch_end_orphans(struct orphans *o);

#endif
