/* several.h — ranks of several simulated hosts on this machine, which connect over TCP on 127.0.0.1. */
#ifndef GPULOAD_TESTS_COMM_BOOTSTRAP_HOSTS_SEVERAL_H
#define GPULOAD_TESTS_COMM_BOOTSTRAP_HOSTS_SEVERAL_H

#include "tests/comm/bootstrap/ranks.h"

#define SEVERAL_SECRET "a secret of the tests"

/* Create a job whose address no other process uses. */
gpul_comm_job several_job(int rank, int size);
/* Copy a job for another rank, on the host that letter `rank` of `hosts` names. */
gpul_comm_job several_of(const gpul_comm_job *job, int rank, const char *hosts);

/* Run all ranks of a job as threads; `hosts` has one letter for each rank, the name of its host. */
void several_as_threads(const char *hosts, rank_body *body, void *arg, struct rank_end *ends);

/* Connect to rank 0's port, which may not listen yet. */
int several_connect(const gpul_comm_job *job);

#endif
