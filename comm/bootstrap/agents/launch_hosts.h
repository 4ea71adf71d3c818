/* launch_hosts.h — starts the ranks of a job on several hosts, and ends them together. */
#ifndef GPULOAD_COMM_BOOTSTRAP_AGENTS_LAUNCH_HOSTS_H
#define GPULOAD_COMM_BOOTSTRAP_AGENTS_LAUNCH_HOSTS_H

#include <stdbool.h>

#include "comm/bootstrap/agents/hostlist.h"

#ifdef __cplusplus
extern "C" {
#endif

/* BatchMode: ssh must not ask for a password, because it would ask for several hosts at the same time. */
#define GPUL_COMM_AGENT "ssh -o BatchMode=yes -o ConnectTimeout=10"
enum { GPUL_COMM_START_MS = 30 * 1000 };

typedef struct gpul_comm_launch_hosts_options {
	char *const *argv; /* the program and its arguments, terminated by NULL */
	gpul_comm_hosts hosts;
	const char *agent;   /* the agent: "AGENT HOST COMMAND..." must run the shell command on the host; NULL: GPUL_COMM_AGENT */
	char *const *part;   /* the command on each host, which calls gpul_comm_launch_part(); terminated by NULL */
	const char *address; /* HOST:PORT where rank 0 listens; NULL: the host launcher of rank 0 chooses it */
	/* interface on which rank 0 listens if address is NULL (see gpul_comm_job); NULL: that of the default route */
	const char *interface;
	bool tag;     /* true: prefix each line of a rank's output with its number: "[3] " */
	int start_ms; /* time in which all hosts must report that they are ready; 0: GPUL_COMM_START_MS */
	int grace_ms; /* as in gpul_comm_launch_options */
} gpul_comm_launch_hosts_options;

/** Start processes on several hosts as the ranks of a new job, and wait until all have ended.
 *
 * The ranks are numbered in the order of the hosts.  No agent is used for this machine ("localhost", its name or one of its
 * addresses).  On each host, a host launcher (the command @o->part) starts the ranks in the caller's working directory, if it exists
 * there, with the caller's variables GPULOAD_*, except those for a single host (GPULOAD_COMM_HOST, GPULOAD_RUNTIME_DIR); all other
 * variables come from the agent's environment.  The host launchers receive a new secret and the address of rank 0 on their standard
 * input.  Standard output and error of all ranks become the caller's, line by line; their standard input is /dev/null.  Signals, the
 * grace period and processes that ranks leave running are treated as in gpul_comm_launch().  If this process ends, the host
 * launchers kill their ranks.  If a connection is silent for 30 s, both its sides kill the ranks.
 *
 * @o            borrowed
 * @exit_status  as gpul_comm_launch(); 1 if a host cannot be reached
 * Errors  GPUL_EUNSUPPORTED a rank failed, a host cannot be reached, or has another version (the message names rank and host);
 *         GPUL_EINVAL no program; GPUL_ESYS native = ETIMEDOUT: a host did not answer in time; an agent cannot be started
 * Threads as gpul_comm_launch()
 * Source  Open MPI mpirun(1): --host, plm_rsh_agent */
gpul_status gpul_comm_launch_hosts(const gpul_comm_launch_hosts_options *o, int *exit_status, gpul_error *err);

/** Run as the host launcher of one host: read orders from standard input, start the ranks, write reports to standard output, and return
 * when all ranks of the host have ended.
 *
 * @exit_status  for this process: 0, or 1 if the launcher has ended
 * Errors  GPUL_ESYS standard input or output failed; GPUL_EFORMAT a malformed order
 * Threads as gpul_comm_launch() */
gpul_status gpul_comm_launch_part(int *exit_status, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
