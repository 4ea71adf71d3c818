/* comm_job.c — the launcher of gpuload comm, and the command gpuload comm launch. */
#include "cli/comm/comm_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/comm/comm_bench.h"
#include "comm/bootstrap/launch.h"

enum { SIGNALED = 128 };  /* the exit status of a process that signal s killed is 128 + s */

gpul_status comm_job_find(int n_ranks, gpul_comm_job *job, bool *launches, gpul_error *err)
{
	gpul_status st = gpul_comm_job_find(job, err);
	const bool alone = !st && !strcmp(job->source, "single");

	*launches = false;
	if (st)
		return st;
	if (alone && n_ranks == 0)
		return gpul_fail(err, GPUL_EINVAL, 0, "-n is missing: the number of ranks to start here; or start the ranks with mpirun, srun or "
				 "torchrun");
	if (!alone && n_ranks && n_ranks != job->size)
		return gpul_fail(err, GPUL_EINVAL, 0, "-n %d contradicts the launcher (%s), which has started %d ranks", n_ranks, job->source,
				 job->size);
	*launches = alone && n_ranks > 1;
	return GPUL_OK;
}

void comm_job_quiet(const gpul_comm_job *job, gpul_error *err)
{
	if (job->rank)
		*err = (gpul_error){ 0 };
}

void comm_job_sign(const gpul_comm_job *job, gpul_error *err)
{
	gpul_error signed_one = *err;

	if (!err->status || job->size < 2)
		return;
	(void)snprintf(signed_one.text, sizeof signed_one.text, "rank %d: %.230s", job->rank, err->text);
	*err = signed_one;
}

/* ---- the launcher -------------------------------------------------------------------------------------------- */

/* The command line of this process: one string of n_bytes with NULs.  NULL: no memory, or no /proc. */
static char *read_command_line(size_t *n_bytes)
{
	FILE *f = fopen("/proc/self/cmdline", "re");
	char *text = NULL;
	size_t room = 0;

	*n_bytes = 0;
	while (f && !feof(f) && !ferror(f)) {
		char *more = *n_bytes + 4096 > room ? realloc(text, room = 2 * room + 8192) : text;

		if (!more)
			break;
		text = more;
		*n_bytes += fread(text + *n_bytes, 1, 4096, f);
	}
	if (f)
		(void)fclose(f);
	return text;
}

/* The strings of a command line, with argv[0] replaced; owned by the caller: free(). */
static char **split_command_line(char *text, size_t n_bytes, char *program)
{
	char **argv;
	size_t n = 0;

	for (size_t i = 0; i < n_bytes; i++)
		n += !text[i];
	argv = calloc(n + 2, sizeof *argv);
	n = 0;
	for (size_t at = 0; argv && at < n_bytes; at += strlen(text + at) + 1)
		argv[n++] = text + at;
	if (argv)
		argv[0] = program;
	return argv;
}

static int launch(int n_ranks, char *const *argv, gpul_error *err)
{
	const gpul_comm_launch_options o = { .argv = argv, .n = n_ranks };
	int exit_status;

	(void)gpul_comm_launch(&o, &exit_status, err);
	return exit_status;
}

int comm_job_launch(int n_ranks, gpul_error *err)
{
	char program[4096] = "";
	size_t n_bytes;
	char *text = read_command_line(&n_bytes);
	char **argv = text && readlink("/proc/self/exe", program, sizeof program - 1) > 0 ? split_command_line(text, n_bytes, program) : NULL;
	int exit_status = CLI_FAILED;

	if (argv) {
		exit_status = launch(n_ranks, argv, err);
		if (exit_status < SIGNALED || exit_status == CLI_INTERRUPTED)
			*err = (gpul_error){ 0 };  /* the ranks have printed their errors */
		if (exit_status > SIGNALED && exit_status != CLI_INTERRUPTED)
			exit_status = CLI_FAILED;
	} else {
		gpul_fail(err, GPUL_ESYS, 0, "cannot read the command line of this process in /proc/self, to start the ranks with it");
	}
	free(argv);
	free(text);
	return exit_status;
}

/* ---- gpuload comm launch ------------------------------------------------------------------------------------- */

enum { OPT_N };
static const struct cli_opt launch_opts[] = {
	[OPT_N] = { "n", "N", "number of ranks, 1 to 32", NULL },
	{ 0 },
};

static int cmd_launch(const struct cli_args *args, gpul_error *err)
{
	char **argv;
	int n_ranks = 0, exit_status;
	gpul_status st = comm_parse_int("-n", cli_value(args, OPT_N), 1, GPUL_COMM_MAX_RANKS, &n_ranks, err);

	if (!st && !n_ranks)
		st = gpul_fail(err, GPUL_EINVAL, 0, "-n is missing: the number of ranks");
	if (!st && args->n_operands == 0)
		st = gpul_fail(err, GPUL_EINVAL, 0, "a program is missing: gpuload comm launch -n N -- PROGRAM ARGUMENTS");
	if (st)
		return CLI_USAGE;
	argv = calloc(args->n_operands + 1, sizeof *argv);
	if (!argv) {
		gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the arguments");
		return CLI_FAILED;
	}
	for (size_t i = 0; i < args->n_operands; i++)
		argv[i] = (char *)(uintptr_t)args->operands[i];
	exit_status = launch(n_ranks, argv, err);
	free(argv);
	return exit_status;
}

const struct cli_cmd cli_comm_launch = {
	"comm launch", "-- PROGRAM [ARGUMENT...]", "start a program as several ranks",
	"Starts PROGRAM N times on this machine, as the ranks of a new job: in each process\n"
	"gpul_comm_job_find() finds its rank, and gpul_comm_create() meets the other ranks. When a rank\n"
	"fails or is killed, the others are ended, too, and the exit status is that of the rank that\n"
	"failed first (128 plus the signal that killed it).\n",
	launch_opts, cmd_launch, CLI_FILES, NULL,
};
