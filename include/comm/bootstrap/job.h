/* job.h — the job that this process belongs to: its rank, the number of ranks, and the job's name.
 *
 * A job is N processes that a launcher has started together; gpul_comm_job_find() lists the variables by which launchers describe it. */
#ifndef GPULOAD_COMM_BOOTSTRAP_JOB_H
#define GPULOAD_COMM_BOOTSTRAP_JOB_H

#include "core/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { GPUL_COMM_MAX_RANKS = 32, GPUL_COMM_JOB_BYTES = 64, GPUL_COMM_HOST_BYTES = 64 };
enum { GPUL_COMM_ADDRESS_BYTES = 264, GPUL_COMM_SECRET_BYTES = 132, GPUL_COMM_LEAST_SECRET = 16 };

typedef struct gpul_comm_job {
	int rank, size;                        /* 0 <= rank < size <= GPUL_COMM_MAX_RANKS */
	char name[GPUL_COMM_JOB_BYTES];        /* equal in all ranks of a job, different between jobs: letters, digits, '.', '_', '-' */
	char host[GPUL_COMM_HOST_BYTES];       /* name of this rank's host, of the same characters as .name; "": the machine's host name */
	char address[GPUL_COMM_ADDRESS_BYTES]; /* "HOST:PORT" at which rank 0 listens; "": all ranks are on this machine */
	char interface[GPUL_COMM_HOST_BYTES];  /* only for rank 0, with an address: the interface, or its IP address, to listen on;
					        * "": the host part of the address */
	char secret[GPUL_COMM_SECRET_BYTES];   /* with an address: equal in all ranks, at least 16 characters; never sent */
	const char *source;                    /* the launcher, a static text: "gpuload", "pmix", "torchrun", "srun" or "single" */
} gpul_comm_job;

/** Find the job of this process in its environment.  The job is that of the first launcher in this list whose variables are set:
 *
 *     gpuload    GPULOAD_COMM_RANK, _SIZE and _JOB: set by gpul_comm_launch(), or by the user on several hosts
 *     pmix       PMIX_RANK and PMIX_NAMESPACE, set by mpirun and srun: libpmix reports the size; without it
 *                OMPI_COMM_WORLD_SIZE or SLURM_NTASKS.  If the ranks are on several machines, rank 0 chooses an address and a
 *                secret and PMIx passes them to the others
 *     torchrun   RANK and WORLD_SIZE; the name consists of MASTER_ADDR, MASTER_PORT, TORCHELASTIC_RUN_ID and
 *                TORCHELASTIC_RESTART_COUNT.  If LOCAL_WORLD_SIZE is smaller than WORLD_SIZE, the address is MASTER_ADDR with port
 *                MASTER_PORT + 1, because torchrun's own store listens on MASTER_PORT.  If TORCHELASTIC_RUN_ID is set, torchrun
 *                comes before pmix: then srun has started torchrun, and torchrun the ranks
 *     srun       SLURM_PROCID, SLURM_STEP_NUM_TASKS (at least 2), SLURM_JOB_ID and SLURM_STEP_ID, set by srun without PMIx.  On several
 *                nodes, the address is the first node of SLURM_STEP_NODELIST, with port 20000 + (job * 16 + step) % 12000
 *     single     none is set: one rank
 *
 * GPULOAD_COMM_ADDRESS=HOST:PORT, with any launcher, is where rank 0 listens and the others connect; they prove to each other that they
 * know GPULOAD_COMM_SECRET.  With GPULOAD_COMM_INTERFACE=NAME, or an IP address, rank 0 listens only on that interface.
 *
 * GPULOAD_COMM_HOST, with any launcher, gives the host a name: ranks with different names do not share memory, even if they run on
 * one machine (two containers, or a test).
 *
 * @out    filled; untouched on failure
 * Errors  GPUL_EINVAL variables are missing or malformed, or contradict each other (the message names the variable);
 *         GPUL_EUNSUPPORTED more than GPUL_COMM_MAX_RANKS ranks, or ranks on several machines without an address;
 *         GPUL_ESYS PMIx does not pass on rank 0's address within 60 s, or rank 0 has no network
 * Threads any thread, while no other thread changes the environment
 * Source  PMIx Standard 4: PMIx_Init, PMIX_JOB_SIZE, PMIX_LOCAL_SIZE; Open MPI mpirun(1); Slurm srun(1), output environment
 *         variables; torchrun (Elastic Launch) */
gpul_status gpul_comm_job_find(gpul_comm_job *out, gpul_error *err);

/** Check a job that the program has filled in itself.
 *
 * @job    borrowed
 * Errors  GPUL_EINVAL a rank, size, name, address or secret outside the limits above */
gpul_status gpul_comm_job_check(const gpul_comm_job *job, gpul_error *err);

#ifdef __cplusplus
}
#endif

#endif
