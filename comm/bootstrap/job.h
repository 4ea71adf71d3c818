/* job.h — the job that this process belongs to: its rank, the number of ranks, and the job's name.
 *
 * A job is N processes that some launcher has started together.  Launchers describe it in environment variables: */
#ifndef GPULOAD_COMM_BOOTSTRAP_JOB_H
#define GPULOAD_COMM_BOOTSTRAP_JOB_H

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_COMM_MAX_RANKS = 32, GPUL_COMM_JOB_BYTES = 64, GPUL_COMM_HOST_BYTES = 64 };

typedef struct gpul_comm_job {
	int rank, size;                  /* 0 <= rank < size <= GPUL_COMM_MAX_RANKS */
	char name[GPUL_COMM_JOB_BYTES];  /* equal in all ranks of a job, different between jobs: letters, digits, '.', '_', '-' */
	char host[GPUL_COMM_HOST_BYTES]; /* name of this rank's host, the same characters; "": the machine that it runs on */
	const char *source;              /* static: "gpuload", "pmix", "torchrun" or "single" */
} gpul_comm_job;

/** Find the job of this process in its environment.  The first launcher of this list whose variables are set counts:
 *
 *     gpuload    GPULOAD_COMM_RANK, _SIZE and _JOB: set by gpul_comm_launch()
 *     pmix       PMIX_RANK and PMIX_NAMESPACE, set by mpirun and srun: libpmix reports the size; without it
 *                OMPI_COMM_WORLD_SIZE or SLURM_NTASKS
 *     torchrun   RANK and WORLD_SIZE; the name is made of MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RUN_ID and
 *                TORCHELASTIC_RESTART_COUNT
 *     single     none is set: one rank
 *
 * GPULOAD_COMM_HOST, of any launcher, gives the host a name: ranks with different names do not share memory, even if they run on
 * one machine (two containers, or a test).
 *
 * @out    filled; untouched on failure
 * Errors  GPUL_EINVAL variables that are missing, malformed or contradict each other (the message names the variable);
 *         GPUL_EUNSUPPORTED more than GPUL_COMM_MAX_RANKS ranks, or ranks on several machines
 * Threads any thread, while no other thread changes the environment
 * Source  PMIx Standard 4: PMIx_Init, PMIX_JOB_SIZE, PMIX_LOCAL_SIZE; Open MPI mpirun(1); Slurm srun(1); torchrun (Elastic
 *         Launch) */
gpul_status gpul_comm_job_find(gpul_comm_job *out, gpul_error *err);

/** Check a job that the program has filled in itself.
 *
 * @job    borrowed
 * Errors  GPUL_EINVAL a rank, size or name outside the limits above
 * Threads any thread may call
 * Source  - */
gpul_status gpul_comm_job_check(const gpul_comm_job *job, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
