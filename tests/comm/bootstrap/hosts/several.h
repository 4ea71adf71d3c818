/* several.h — ranks of several "hosts" on this machine: they meet over TCP on 127.0.0.1. */
#ifndef GPULOAD_TESTS_COMM_BOOTSTRAP_HOSTS_SEVERAL_H
#define GPULOAD_TESTS_COMM_BOOTSTRAP_HOSTS_SEVERAL_H

#include "tests/comm/bootstrap/ranks.h"

enum { SEVERAL_LONG_MS = 60000 }; /* time-out of a test: never reached by a passing test */
#define SEVERAL_SECRET "a secret of the tests"

/* A job with an address that nobody else uses. */
gpul_comm_job several_job(int rank, int size);
/* The same job for another rank, on a host: one letter of a text, the rank's. */
gpul_comm_job several_of(const gpul_comm_job *job, int rank, const char *hosts);

/* Run all ranks of a job as threads; the hosts are the letters of a text, as many as ranks. */
void several_as_threads(const char *hosts, rank_body *body, void *arg, struct rank_end *ends);

/* Connect to rank 0's port, which may not listen yet. */
int several_connect(const gpul_comm_job *job);

#endif
