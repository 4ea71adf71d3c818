/* job_internal.h — helpers of job.c: environment variables, and queries of libpmix and Slurm. */
#ifndef GPULOAD_COMM_BOOTSTRAP_JOB_INTERNAL_H
#define GPULOAD_COMM_BOOTSTRAP_JOB_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/bootstrap/job.h"

/* Return the value of a variable; NULL: not set, or empty. */
const char *gpul_comm_variable(const char *name);

/** Parse the number in a variable.
 *
 * @variable  its name, for the message
 * @value     its value; NULL or "": not set
 * @least     smallest number
 * @out       the number
 * Errors  GPUL_EINVAL not set, not a number, or smaller than least */
gpul_status gpul_comm_job_number(const char *variable, const char *value, int least, int *out, gpul_error *err);

/* What the PMIx server of this process's launcher has replied. */
struct gpul_comm_pmix {
	int size, n_here; /* number of ranks of the job, and of those on this machine */
	/* address and secret from rank 0, if the ranks are on several machines */
	char address[GPUL_COMM_ADDRESS_BYTES], secret[GPUL_COMM_SECRET_BYTES];
};

/** Ask the PMIx server for the number of ranks.  If they are on several machines, all ranks call this: rank 0 chooses an address
 * and a secret, and the server passes them to the other ranks.  Later calls of a process return the result of the first one.
 *
 * @rank       rank of this process
 * @interface  rank 0: see gpul_comm_reserve_address()
 * @share      false: address and secret are already known, and need not be exchanged
 * @out        set
 * Errors  GPUL_EUNSUPPORTED built without libpmix, libpmix.so.2 was not found, or the server does not answer; GPUL_ESYS it does not
 *         bring the address within 60 s, or rank 0 has no network
 * Source  PMIx Standard 4: PMIx_Init, PMIX_JOB_SIZE, PMIX_LOCAL_SIZE; PMIx_Put, PMIx_Commit, PMIx_Fence, PMIx_Get */
gpul_status gpul_comm_pmix_query(int rank, const char *interface, bool share, struct gpul_comm_pmix *out, gpul_error *err);

/* True if srun has started this process as one of several ranks; false in the shell of salloc, and in the script of sbatch. */
bool gpul_comm_slurm_started_this(void);

/** Find rank, size, name and address of a process that srun has started without PMIx.
 *
 * @job  an address that is already set is kept
 * Errors  GPUL_EINVAL variables that are missing or malformed
 * Threads any thread, while no other thread changes the environment
 * Source  Slurm srun(1), output environment variables */
gpul_status gpul_comm_slurm_find(gpul_comm_job *job, gpul_error *err);

/* Write the first node of a list such as "node[07-09,12],big3"; false: it is malformed, or too long. */
bool gpul_comm_slurm_first_node(const char *list, char *out, size_t out_bytes);

/** Choose an address of this machine for rank 0, and reserve a port there as long as this process runs.
 *
 * @interface  its name, or an IP address; "": that of the default route, else the first one that is up
 * @out        "ADDRESS:PORT", both numeric
 * Errors  GPUL_ESYS no such interface, or none is up
 * Source  Linux getifaddrs(3), socket(7): SO_REUSEADDR */
gpul_status gpul_comm_reserve_address(const char *interface, char out[GPUL_COMM_ADDRESS_BYTES], gpul_error *err);

/** Make a secret for a job.
 *
 * @out  random hexadecimal digits
 * Errors  GPUL_ESYS the kernel has no random numbers
 * Source  Linux getrandom(2) */
gpul_status gpul_comm_make_secret(char out[GPUL_COMM_SECRET_BYTES], gpul_error *err);

#endif
