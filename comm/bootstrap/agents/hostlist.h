/* hostlist.h — the hosts of a launch, and the number of ranks on each of them. */
#ifndef GPULOAD_COMM_BOOTSTRAP_AGENTS_HOSTLIST_H
#define GPULOAD_COMM_BOOTSTRAP_AGENTS_HOSTLIST_H

#include "comm/bootstrap/job.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_COMM_HOST_NAME_BYTES = 256 };

typedef struct gpul_comm_host {
	char name[GPUL_COMM_HOST_NAME_BYTES]; /* as passed to the agent: "node1", "user@node1", "10.0.0.1" */
	int n_ranks;
} gpul_comm_host;

typedef struct gpul_comm_hosts {
	gpul_comm_host at[GPUL_COMM_MAX_RANKS];
	int n, n_ranks; /* number of hosts, and of the ranks on all of them */
} gpul_comm_hosts;

/** Parse a list of hosts: "node1:2,node2:2"; without a number, a host has one rank.  "[fd00::1]:2" for IPv6 addresses.
 *
 * @text  the list
 * @out   the ranks are numbered in this order; untouched on failure
 * Errors  GPUL_EINVAL malformed, a host that is listed twice, more than GPUL_COMM_MAX_RANKS ranks
 * Source  Open MPI mpirun(1): --host */
gpul_status gpul_comm_hosts_parse(const char *text, gpul_comm_hosts *out, gpul_error *err);

/** Read a list of hosts from a file: one host per line, "node1 slots=2", "node1:2" or "node1";
 * # starts a comment.
 *
 * @path  path of the file
 * @out   as gpul_comm_hosts_parse()
 * Errors  GPUL_ESYS the file cannot be read; GPUL_EINVAL as gpul_comm_hosts_parse(), the message gives the
 *         line
 * Source  Open MPI mpirun(1): --hostfile */
gpul_status gpul_comm_hosts_read(const char *path, gpul_comm_hosts *out, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
