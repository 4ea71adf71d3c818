/* sockets_internal.h — the socket files of jobs whose rank 0 was killed during the meeting. */
#ifndef GPULOAD_COMM_BOOTSTRAP_SOCKETS_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_SOCKETS_INTERNAL_H

/* Remove the files of all jobs of this user whose rank 0 has ended.  Files of running jobs are locked, and stay. */
void gpul_boot_remove_dead_sockets(void);

#endif
