/* job.c — finds rank, size and name of the job in the environment variables that launchers set. */
#include "comm/bootstrap/job_internal.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/sha256.h"
#include "rdma/oob/address.h"

/* ---- environment variables -------------------------------------------------------------------------------------- */

/* An empty variable counts as not set. */
static const char *value_or_null(const char *value)
{
	return value && *value ? value : NULL;
}

#define HOW_TO "set GPULOAD_COMM_ADDRESS=HOST:PORT, where rank 0 listens, and GPULOAD_COMM_SECRET for all ranks"

/* Check that a variable, if it is set, has the expected number. */
static gpul_status expect_number(const char *variable, const char *value, int expected, const char *meaning, gpul_error *err)
{
	int n = expected;
	gpul_status st = value_or_null(value) ? gpul_comm_job_number(variable, value, 0, &n, err) : GPUL_OK;

	if (st || n == expected)
		return st;
	return gpul_fail(err, GPUL_EUNSUPPORTED, n, "%s=%d, but %s %d: to run ranks on several machines, " HOW_TO, variable, n, meaning,
			 expected);
}

/* The job names of launchers can be long and contain any characters, but a socket's name must be short and plain: use a hash. */
static void name_by_hash(const char *launcher, const char *text, char out[GPUL_COMM_JOB_BYTES])
{
	unsigned char digest[GPUL_SHA256_BYTES];
	gpul_sha256 hash;
	char hex[17];

	gpul_sha256_begin(&hash);
	gpul_sha256_add(&hash, text, strlen(text));
	gpul_sha256_end(&hash, digest);
	for (int i = 0; i < 8; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	snprintf(out, GPUL_COMM_JOB_BYTES, "%s-%s", launcher, hex);
}

/* ---- launchers -------------------------------------------------------------------------------------------------- */

static gpul_status find_gpuload(gpul_comm_job *job, gpul_error *err)
{
	const char *name = value_or_null(secure_getenv("GPULOAD_COMM_JOB"));
	gpul_status st = gpul_comm_job_number("GPULOAD_COMM_RANK", secure_getenv("GPULOAD_COMM_RANK"), 0, &job->rank, err);

	if (!st)
		st = gpul_comm_job_number("GPULOAD_COMM_SIZE", secure_getenv("GPULOAD_COMM_SIZE"), 1, &job->size, err);
	if (st)
		return st;
	if (!name)
		return gpul_fail(err, GPUL_EINVAL, 0, "GPULOAD_COMM_JOB is not set, but GPULOAD_COMM_RANK and GPULOAD_COMM_SIZE are");
	if (strlen(name) >= sizeof job->name)
		return gpul_fail(err, GPUL_EINVAL, 0, "GPULOAD_COMM_JOB has %zu characters, at most %zu are allowed", strlen(name),
				 sizeof job->name - 1);
	memcpy(job->name, name, strlen(name) + 1);
	return GPUL_OK;
}

/* Find the size without libpmix, from the variables of Open MPI or Slurm. */
static gpul_status pmix_size_by_variables(gpul_comm_job *job, gpul_error *err)
{
	const char *ompi = value_or_null(secure_getenv("OMPI_COMM_WORLD_SIZE")), *slurm = value_or_null(secure_getenv("SLURM_NTASKS"));
	gpul_status st;

	if (!ompi && !slurm)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "PMIX_RANK is set, but the number of ranks is unknown: libpmix.so.2 cannot be used, "
				 "and neither "
				 "OMPI_COMM_WORLD_SIZE nor SLURM_NTASKS is set");
	if (ompi)
		st = gpul_comm_job_number("OMPI_COMM_WORLD_SIZE", ompi, 1, &job->size, err);
	else
		st = gpul_comm_job_number("SLURM_NTASKS", slurm, 1, &job->size, err);
	return st;
}

/* Find the number of ranks on this machine without libpmix; *out is 0 if it is unknown. */
static gpul_status pmix_here_by_variables(const gpul_comm_job *job, int *out, gpul_error *err)
{
	const char *ompi = value_or_null(secure_getenv("OMPI_COMM_WORLD_LOCAL_SIZE")),
		   *nodes = value_or_null(secure_getenv("SLURM_STEP_NUM_NODES"));
	int n_nodes = 1;
	gpul_status st;

	*out = job->size;
	if (ompi)
		return gpul_comm_job_number("OMPI_COMM_WORLD_LOCAL_SIZE", ompi, 1, out, err);
	st = nodes ? gpul_comm_job_number("SLURM_STEP_NUM_NODES", nodes, 1, &n_nodes, err) : GPUL_OK;
	if (n_nodes > 1)
		*out = 0;
	return st;
}

static gpul_status find_pmix(gpul_comm_job *job, gpul_error *err)
{
	const char *space = value_or_null(secure_getenv("PMIX_NAMESPACE"));
	gpul_status st = gpul_comm_job_number("PMIX_RANK", secure_getenv("PMIX_RANK"), 0, &job->rank, err);
	struct gpul_comm_pmix pmix;
	gpul_error why = { 0 };
	int n_here = 0;

	if (st)
		return st;
	if (!space)
		return gpul_fail(err, GPUL_EINVAL, 0, "PMIX_NAMESPACE is not set, but PMIX_RANK is");
	name_by_hash("pmix", space, job->name);
	st = gpul_comm_pmix_query(job->rank, job->interface, !job->address[0], &pmix, &why);
	if (!st) {
		job->size = pmix.size;
		if (!job->address[0])
			memcpy(job->address, pmix.address, sizeof job->address);
		if (!job->secret[0])
			memcpy(job->secret, pmix.secret, sizeof job->secret);
		return GPUL_OK;
	}
	if (st != GPUL_EUNSUPPORTED)
		return gpul_fail(err, st, why.native, "%s", why.text);
	st = pmix_size_by_variables(job, err);
	if (!st)
		st = pmix_here_by_variables(job, &n_here, err);
	if (st || n_here == job->size || job->address[0])
		return st;
	return gpul_fail(err, GPUL_EUNSUPPORTED, n_here,
			 "the job has %d ranks, not all of them on this machine, and libpmix cannot be used: " HOW_TO, job->size);
}

/* Set the address if torchrun's ranks are on several machines: rank 0 listens on MASTER_PORT + 1. */
static gpul_status torchrun_address(gpul_comm_job *job, const char *address, int port, gpul_error *err)
{
	if (!address)
		return gpul_fail(err, GPUL_EINVAL, 0, "MASTER_ADDR is not set, but the ranks are on several machines");
	if (port < 1 || port > 65534)
		return gpul_fail(err, GPUL_EINVAL, port, "MASTER_PORT=%d: expected 1 to 65534, because rank 0 listens on the next port",
				 port);
	snprintf(job->address, sizeof job->address, strchr(address, ':') ? "[%.255s]:%d" : "%.255s:%d", address, port + 1);
	return GPUL_OK;
}

static gpul_status find_torchrun(gpul_comm_job *job, gpul_error *err)
{
	const char *address = value_or_null(secure_getenv("MASTER_ADDR")), *port = value_or_null(secure_getenv("MASTER_PORT"));
	const char *run = value_or_null(secure_getenv("TORCHELASTIC_RUN_ID")),
		   *restart = value_or_null(secure_getenv("TORCHELASTIC_RESTART_COUNT"));
	const char *here = value_or_null(secure_getenv("LOCAL_WORLD_SIZE"));
	gpul_status st = gpul_comm_job_number("RANK", secure_getenv("RANK"), 0, &job->rank, err);
	int n_here = 0, port_number = 0;
	char text[1024];

	if (!st)
		st = gpul_comm_job_number("WORLD_SIZE", secure_getenv("WORLD_SIZE"), 1, &job->size, err);
	if (!st && here)
		st = gpul_comm_job_number("LOCAL_WORLD_SIZE", here, 1, &n_here, err);
	if (!st && !job->address[0] && (!here || n_here == job->size))
		st = expect_number("LOCAL_RANK", secure_getenv("LOCAL_RANK"), job->rank, "RANK is", err);
	if (st)
		return st;
	if (!port)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "MASTER_PORT is not set, but RANK and WORLD_SIZE are: set MASTER_PORT to a different port for "
				 "each job");
	st = gpul_comm_job_number("MASTER_PORT", port, 0, &port_number, err);
	if (!st && here && n_here != job->size && !job->address[0])
		st = torchrun_address(job, address, port_number, err);
	snprintf(text, sizeof text, "%s %s %s %s", address ? address : "", port, run ? run : "", restart ? restart : "");
	name_by_hash("torchrun", text, job->name);
	return st;
}

static void find_single(gpul_comm_job *job)
{
	job->rank = 0;
	job->size = 1;
	snprintf(job->name, sizeof job->name, "single-%ld", (long)getpid());
}

static bool is_name(const char *text, size_t room)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strnlen(text, room);

	return n > 0 && n < room && text[0] != '.' && strspn(text, good) == n;
}

/* Copy a variable, or "" if it is not set. */
static gpul_status copy_variable(const char *variable, char *out, size_t out_bytes, gpul_error *err)
{
	const char *value = value_or_null(secure_getenv(variable));

	if (value && strlen(value) >= out_bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s has %zu characters, at most %zu are allowed", variable, strlen(value),
				 out_bytes - 1);
	if (value)
		memcpy(out, value, strlen(value) + 1);
	return GPUL_OK;
}

/* Read the variables that apply with every launcher. */
static gpul_status find_place(gpul_comm_job *job, gpul_error *err)
{
	gpul_status st = copy_variable("GPULOAD_COMM_HOST", job->host, sizeof job->host, err);

	if (!st)
		st = copy_variable("GPULOAD_COMM_ADDRESS", job->address, sizeof job->address, err);
	if (!st)
		st = copy_variable("GPULOAD_COMM_INTERFACE", job->interface, sizeof job->interface, err);
	if (!st)
		st = copy_variable("GPULOAD_COMM_SECRET", job->secret, sizeof job->secret, err);
	return st;
}

/* True if an address such as "HOST:PORT" or "[IPv6]:PORT" has a port; an IPv6 address without brackets has none. */
static bool has_port(const char *address)
{
	const char *first = strchr(address, ':'), *last = strrchr(address, ':');

	return last && (first == last || last[-1] == ']');
}

/* Check address and secret; a message must not contain the secret. */
static gpul_status check_address(const gpul_comm_job *job, gpul_error *err)
{
	const size_t n = strnlen(job->secret, sizeof job->secret);
	gpul_rdma_address address;
	gpul_status st;

	if (strnlen(job->address, sizeof job->address) == sizeof job->address || n == sizeof job->secret ||
	    strnlen(job->interface, sizeof job->interface) == sizeof job->interface)
		return gpul_fail(err, GPUL_EINVAL, 0, "the address, interface or secret in the gpul_comm_job has no terminating NUL byte");
	st = gpul_rdma_address_parse(job->address, &address, err);
	if (st)
		return st;
	if (!address.host[0] || address.path[0] || !address.port || !has_port(job->address))
		return gpul_fail(err, GPUL_EINVAL, 0, "GPULOAD_COMM_ADDRESS=%.100s: expected HOST:PORT, where rank 0 listens",
				 job->address);
	if (n < GPUL_COMM_LEAST_SECRET)
		return gpul_fail(err, GPUL_EINVAL, (int)n,
				 "GPULOAD_COMM_SECRET %s: ranks on several machines need a common secret of at least %d characters, "
				 "for example from openssl rand -hex 16",
				 n ? "is too short" : "is not set", GPUL_COMM_LEAST_SECRET);
	return GPUL_OK;
}

gpul_status gpul_comm_job_check(const gpul_comm_job *job, gpul_error *err)
{
	const char *const rule = "letters, digits, '.', '_' and '-', not starting with '.'";

	if (job->size > GPUL_COMM_MAX_RANKS)
		return gpul_fail(err, GPUL_EUNSUPPORTED, job->size, "the job has %d ranks, but at most %d are supported", job->size,
				 GPUL_COMM_MAX_RANKS);
	if (job->size < 1 || job->rank < 0 || job->rank >= job->size)
		return gpul_fail(err, GPUL_EINVAL, job->rank, "rank %d is invalid in a job of %d ranks: expected 0 to %d", job->rank,
				 job->size, job->size - 1);
	if (!is_name(job->name, sizeof job->name))
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid job name '%.*s': expected up to %zu %s", (int)sizeof job->name, job->name,
				 sizeof job->name - 1, rule);
	if (job->host[0] && !is_name(job->host, sizeof job->host))
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid host name '%.*s' (GPULOAD_COMM_HOST): expected up to %zu %s",
				 (int)sizeof job->host, job->host, sizeof job->host - 1, rule);
	return job->address[0] && job->size > 1 ? check_address(job, err) : GPUL_OK;
}

gpul_status gpul_comm_job_find(gpul_comm_job *out, gpul_error *err)
{
	gpul_comm_job job = { 0 };
	gpul_status st = find_place(&job, err);

	if (st)
		return st;
	if (secure_getenv("GPULOAD_COMM_RANK") || secure_getenv("GPULOAD_COMM_SIZE") || secure_getenv("GPULOAD_COMM_JOB")) {
		job.source = "gpuload";
		st = find_gpuload(&job, err);
	} else if (value_or_null(secure_getenv("PMIX_RANK")) && !value_or_null(secure_getenv("TORCHELASTIC_RUN_ID"))) {
		job.source = "pmix";
		st = find_pmix(&job, err);
	} else if (value_or_null(secure_getenv("WORLD_SIZE")) ||
		   (value_or_null(secure_getenv("RANK")) && value_or_null(secure_getenv("MASTER_ADDR")))) {
		job.source = "torchrun";
		st = find_torchrun(&job, err);
	} else if (gpul_comm_slurm_started_this()) {
		job.source = "srun";
		st = gpul_comm_slurm_find(&job, err);
	} else {
		job.source = "single";
		find_single(&job);
	}
	if (!st)
		st = gpul_comm_job_check(&job, err);
	if (!st)
		*out = job;
	return st;
}
