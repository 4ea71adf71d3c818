/* agent_internal.h — starts and ends agents: processes, such as ssh, that start a host launcher (`--part`) on another host. */
#ifndef GPULOAD_COMM_BOOTSTRAP_AGENTS_AGENT_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_AGENTS_AGENT_INTERNAL_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "comm/bootstrap/agents/launch_hosts.h"

struct agent {
	pid_t pid;         /* process id of the agent, and number of its process group; 0: not started */
	int to, from, err; /* pipes to the agent's standard input, and from its standard output and error; -1: closed */
	bool ended;
	int status; /* exit status from waitpid() */
};

/** Start the agent of a host, or the host launcher itself if the host is this machine.  It runs in a process
 * group of its own, so that a signal from the terminal reaches it only through the launcher.
 *
 * @o     the commands of the agent and of the host launcher (part)
 * @host  the name of the host
 * @here  true: this machine, no agent is needed
 * @mask  the signal mask of the new process
 * @out   filled
 * Errors  GPUL_ESYS it cannot be started; GPUL_ENOMEM
 * Threads as gpul_comm_launch() */
gpul_status gpul_agent_start(const gpul_comm_launch_hosts_options *o, const char *host, bool here, const sigset_t *mask, struct agent *out,
			     gpul_error *err);
/* True if the agent has ended.  Does not wait. */
bool gpul_agent_has_ended(struct agent *a);
/* Close the agent's input and output, and kill its process group. */
void gpul_agent_end(struct agent *a);
/* Describe how the agent ended: "ended with status 255", or the signal that killed it. */
void gpul_agent_describe_end(const struct agent *a, char *text, size_t text_bytes);
/* True if a host is this machine: "localhost", its name, or one of its IP addresses. */
bool gpul_agent_is_here(const char *host);

#endif
