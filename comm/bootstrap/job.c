/* job.c — rank, size and name of the job, from the variables of the launcher. */
#include "comm/bootstrap/job_internal.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/sha256.h"

/* ---- variables -------------------------------------------------------------------------------------------------- */

/* An empty variable counts as not set. */
static const char *value_or_null(const char *value)
{
	return value && *value ? value : NULL;
}

gpul_status gpul_comm_job_number(const char *variable, const char *value, int least, int *out, gpul_error *err)
{
	char *end;
	long n;

	if (!value_or_null(value))
		return gpul_fail(err, GPUL_EINVAL, 0, "%s is not set, but other variables of the same launcher are",
				 variable);
	errno = 0;
	n = strtol(value, &end, 10);
	if (errno || end == value || *end || n < least || n > INT_MAX)
		return gpul_fail(err, GPUL_EINVAL, 0, "%s=%.40s: expected a number from %d", variable, value, least);
	*out = (int)n;
	return GPUL_OK;
}

/* Check a variable that must have the expected number if it is set. */
static gpul_status expect_number(const char *variable, const char *value, int expected, const char *meaning,
				 gpul_error *err)
{
	int n = expected;
	gpul_status st = value_or_null(value) ? gpul_comm_job_number(variable, value, 0, &n, err) : GPUL_OK;

	if (st || n == expected)
		return st;
	return gpul_fail(err, GPUL_EUNSUPPORTED, n, "%s=%d, but %s %d: all ranks must run on one machine", variable, n,
			 meaning, expected);
}

/* Names of launchers contain any characters and can be long; the socket's name has neither. */
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
	gpul_status st =
		gpul_comm_job_number("GPULOAD_COMM_RANK", secure_getenv("GPULOAD_COMM_RANK"), 0, &job->rank, err);

	if (!st)
		st = gpul_comm_job_number("GPULOAD_COMM_SIZE", secure_getenv("GPULOAD_COMM_SIZE"), 1, &job->size, err);
	if (st)
		return st;
	if (!name)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "GPULOAD_COMM_JOB is not set, but GPULOAD_COMM_RANK and GPULOAD_COMM_SIZE are");
	if (strlen(name) >= sizeof job->name)
		return gpul_fail(err, GPUL_EINVAL, 0, "GPULOAD_COMM_JOB has %zu characters, at most %zu are allowed",
				 strlen(name), sizeof job->name - 1);
	memcpy(job->name, name, strlen(name) + 1);
	return GPUL_OK;
}

/* The size without libpmix, from what Open MPI or Slurm has set besides. */
static gpul_status pmix_size_by_variables(gpul_comm_job *job, gpul_error *err)
{
	const char *ompi = value_or_null(secure_getenv("OMPI_COMM_WORLD_SIZE")),
		   *slurm = value_or_null(secure_getenv("SLURM_NTASKS"));
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

static gpul_status find_pmix(gpul_comm_job *job, gpul_error *err)
{
	const char *space = value_or_null(secure_getenv("PMIX_NAMESPACE"));
	gpul_status st = gpul_comm_job_number("PMIX_RANK", secure_getenv("PMIX_RANK"), 0, &job->rank, err);
	int n_here = 0;

	if (st)
		return st;
	if (!space)
		return gpul_fail(err, GPUL_EINVAL, 0, "PMIX_NAMESPACE is not set, but PMIX_RANK is");
	if (gpul_comm_pmix_size(&job->size, &n_here, NULL)) {
		st = pmix_size_by_variables(job, err);
		n_here = job->size;
	}
	if (st)
		return st;
	if (n_here != job->size)
		return gpul_fail(err, GPUL_EUNSUPPORTED, n_here,
				 "the job has %d ranks, %d of them on this machine: all ranks must run on one machine",
				 job->size, n_here);
	st = expect_number("OMPI_COMM_WORLD_LOCAL_SIZE", secure_getenv("OMPI_COMM_WORLD_LOCAL_SIZE"), job->size,
			   "the number of ranks is", err);
	if (!st)
		st = expect_number("SLURM_STEP_NUM_NODES", secure_getenv("SLURM_STEP_NUM_NODES"), 1, "it must be", err);
	name_by_hash("pmix", space, job->name);
	return st;
}

static gpul_status find_torchrun(gpul_comm_job *job, gpul_error *err)
{
	const char *address = value_or_null(secure_getenv("MASTER_ADDR")),
		   *port = value_or_null(secure_getenv("MASTER_PORT"));
	const char *run = value_or_null(secure_getenv("TORCHELASTIC_RUN_ID")),
		   *restart = value_or_null(secure_getenv("TORCHELASTIC_RESTART_COUNT"));
	gpul_status st = gpul_comm_job_number("RANK", secure_getenv("RANK"), 0, &job->rank, err);
	char text[1024];

	if (!st)
		st = gpul_comm_job_number("WORLD_SIZE", secure_getenv("WORLD_SIZE"), 1, &job->size, err);
	if (!st)
		st = expect_number("LOCAL_WORLD_SIZE", secure_getenv("LOCAL_WORLD_SIZE"), job->size, "WORLD_SIZE is",
				   err);
	if (!st)
		st = expect_number("LOCAL_RANK", secure_getenv("LOCAL_RANK"), job->rank, "RANK is", err);
	if (st)
		return st;
	if (!port)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "MASTER_PORT is not set, but RANK and WORLD_SIZE are: it tells jobs apart");
	snprintf(text, sizeof text, "%s %s %s %s", address ? address : "", port, run ? run : "",
		 restart ? restart : "");
	name_by_hash("torchrun", text, job->name);
	return GPUL_OK;
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

static gpul_status find_host(gpul_comm_job *job, gpul_error *err)
{
	const char *name = value_or_null(secure_getenv("GPULOAD_COMM_HOST"));

	if (name && strlen(name) >= sizeof job->host)
		return gpul_fail(err, GPUL_EINVAL, 0, "GPULOAD_COMM_HOST has %zu characters, at most %zu are allowed", strlen(name),
				 sizeof job->host - 1);
	if (name)
		memcpy(job->host, name, strlen(name) + 1);
	return GPUL_OK;
}

gpul_status gpul_comm_job_check(const gpul_comm_job *job, gpul_error *err)
{
	const char *const rule = "letters, digits, '.', '_' and '-', not starting with '.'";

	if (job->size > GPUL_COMM_MAX_RANKS)
		return gpul_fail(err, GPUL_EUNSUPPORTED, job->size, "a job of %d ranks: at most %d are supported",
				 job->size, GPUL_COMM_MAX_RANKS);
	if (job->size < 1 || job->rank < 0 || job->rank >= job->size)
		return gpul_fail(err, GPUL_EINVAL, job->rank, "rank %d of %d: expected 0 to %d", job->rank, job->size,
				 job->size - 1);
	if (!is_name(job->name, sizeof job->name))
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid job name '%.*s': expected up to %zu %s", (int)sizeof job->name,
				 job->name, sizeof job->name - 1, rule);
	if (job->host[0] && !is_name(job->host, sizeof job->host))
		return gpul_fail(err, GPUL_EINVAL, 0, "invalid host name '%.*s' (GPULOAD_COMM_HOST): expected up to %zu %s",
				 (int)sizeof job->host, job->host, sizeof job->host - 1, rule);
	return GPUL_OK;
}

gpul_status gpul_comm_job_find(gpul_comm_job *out, gpul_error *err)
{
	gpul_comm_job job = { 0 };
	gpul_status st = GPUL_OK;

	if (secure_getenv("GPULOAD_COMM_RANK") || secure_getenv("GPULOAD_COMM_SIZE") ||
	    secure_getenv("GPULOAD_COMM_JOB")) {
		job.source = "gpuload";
		st = find_gpuload(&job, err);
	} else if (value_or_null(secure_getenv("PMIX_RANK"))) {
		job.source = "pmix";
		st = find_pmix(&job, err);
	} else if (value_or_null(secure_getenv("WORLD_SIZE")) ||
		   (value_or_null(secure_getenv("RANK")) && value_or_null(secure_getenv("MASTER_ADDR")))) {
		job.source = "torchrun";
		st = find_torchrun(&job, err);
	} else {
		job.source = "single";
		find_single(&job);
	}
	if (!st)
		st = find_host(&job, err);
	if (!st)
		st = gpul_comm_job_check(&job, err);
	if (!st)
		*out = job;
	return st;
}
