/* slurm.c — finds rank, size and address from srun's variables, without PMIx: rank 0 listens on the first node of the step, at a
 * port computed from the step's number. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/bootstrap/job_internal.h"

/* The ports lie below Linux's ephemeral ports (32768 to 60999), and above the ports of most services.  Steps of one job, and jobs
 * with consecutive numbers, get different ports. */
enum { FIRST_PORT = 20000, N_PORTS = 12000, PORTS_PER_JOB = 16 };

/* Slurm uses the step numbers from here on for batch scripts and interactive shells, whose commands are not ranks (slurm.h). */
static const int FIRST_SPECIAL_STEP = 0x7ffffff0;

bool gpul_comm_slurm_started_this(void)
{
	const char *step = gpul_comm_variable("SLURM_STEP_ID"), *n = gpul_comm_variable("SLURM_STEP_NUM_TASKS");

	return gpul_comm_variable("SLURM_PROCID") && gpul_comm_variable("SLURM_JOB_ID") && n && strcmp(n, "1") != 0 && step &&
	       strtoul(step, NULL, 10) < (unsigned long)FIRST_SPECIAL_STEP;
}

bool gpul_comm_slurm_first_node(const char *list, char *out, size_t out_bytes)
{
	size_t n = strcspn(list, "[,");
	const char *end = strchr(list, ']');
	int length;

	if (list[n] == '[') { /* node[07-09,12].rack2: copy the first number as written (07), then the text after the brackets (.rack2) */
		const size_t digits = strspn(list + n + 1, "0123456789");

		if (!end || !digits || strcspn(end + 1, "[,") != strcspn(end + 1, ","))
			return false;
		length = snprintf(out, out_bytes, "%.*s%.*s%.*s", (int)n, list, (int)digits, list + n + 1, (int)strcspn(end + 1, ","),
				  end + 1);
	} else {
		length = snprintf(out, out_bytes, "%.*s", (int)n, list);
	}
	return length > 0 && (size_t)length < out_bytes;
}

static gpul_status choose_address(gpul_comm_job *job, int job_id, int step, gpul_error *err)
{
	const char *list = gpul_comm_variable("SLURM_STEP_NODELIST");
	const int port = FIRST_PORT + (int)(((uint64_t)job_id * PORTS_PER_JOB + (unsigned)step) % N_PORTS);
	char node[200];

	if (!list)
		return gpul_fail(err, GPUL_EINVAL, 0, "SLURM_STEP_NODELIST is not set, but the ranks are on several machines");
	if (!gpul_comm_slurm_first_node(list, node, sizeof node))
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "SLURM_STEP_NODELIST=%.80s: cannot find the first node in it; set "
				 "GPULOAD_COMM_ADDRESS=HOST:PORT, where rank 0 listens",
				 list);
	snprintf(job->address, sizeof job->address, "%s:%d", node, port);
	return GPUL_OK;
}

gpul_status gpul_comm_slurm_find(gpul_comm_job *job, gpul_error *err)
{
	const char *nodes = gpul_comm_variable("SLURM_STEP_NUM_NODES");
	int job_id, step, n_nodes = 1;
	gpul_status st = gpul_comm_job_number("SLURM_PROCID", gpul_comm_variable("SLURM_PROCID"), 0, &job->rank, err);

	st = st ? st : gpul_comm_job_number("SLURM_STEP_NUM_TASKS", gpul_comm_variable("SLURM_STEP_NUM_TASKS"), 1, &job->size, err);
	st = st ? st : gpul_comm_job_number("SLURM_JOB_ID", gpul_comm_variable("SLURM_JOB_ID"), 0, &job_id, err);
	st = st ? st : gpul_comm_job_number("SLURM_STEP_ID", gpul_comm_variable("SLURM_STEP_ID"), 0, &step, err);
	if (!st && nodes)
		st = gpul_comm_job_number("SLURM_STEP_NUM_NODES", nodes, 1, &n_nodes, err);
	if (st)
		return st;
	snprintf(job->name, sizeof job->name, "slurm-%d.%d", job_id, step);
	return n_nodes > 1 && !job->address[0] ? choose_address(job, job_id, step, err) : GPUL_OK;
}
