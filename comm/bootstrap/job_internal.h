/* job_internal.h — the parts of job.c: numbers in variables, and the size from libpmix. */
#ifndef GPULOAD_COMM_BOOTSTRAP_JOB_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_JOB_INTERNAL_H

#include "comm/bootstrap/job.h"

/** Parse the number in a variable.
 *
 * @variable  its name, for the message
 * @value     its value; NULL or "": not set
 * @least     smallest number
 * @out       the number
 * Errors  GPUL_EINVAL not set, or not such a number
 * Threads any thread may call
 * Source  - */
gpul_status gpul_comm_job_number(const char *variable, const char *value, int least, int *out, gpul_error *err);

/** Ask the PMIx server of this process' launcher for the number of ranks.
 *
 * @size     set: in the job
 * @n_local  set: on this machine
 * Errors  GPUL_EUNSUPPORTED built without libpmix, libpmix.so.2 was not found, or the server does not answer
 * Threads any thread may call
 * Source  PMIx Standard 4: PMIx_Init, PMIx_Get, PMIX_JOB_SIZE, PMIX_LOCAL_SIZE */
gpul_status gpul_comm_pmix_size(int *size, int *n_local, gpul_error *err);

#endif
