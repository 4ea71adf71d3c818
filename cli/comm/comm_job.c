/* comm_job.c — launches the ranks of gpuload comm; implements the command gpuload comm launch. */
#include "cli/comm/comm_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/comm/comm_bench.h"
#include "comm/bootstrap/agents/launch_hosts.h"
#include "comm/bootstrap/launch.h"
#include "core/thread/thread.h"

/* A shell reports 128 + s as the exit status of a process that signal s has killed. */
enum { SIGNALED = 128 };

gpul_status comm_job_find(int n_ranks, bool hosts, gpul_comm_job *job, bool *launches, gpul_error *err)
{
	gpul_status st = gpul_comm_job_find(job, err);
	const bool alone = !st && !strcmp(job->source, "single");

	*launches = false;
	if (st)
		return st;
	if (alone && n_ranks == 0)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "-n, the number of ranks to start on this machine, is missing; or start the ranks with --hosts, "
				 "mpirun, srun or torchrun");
	if (!alone && n_ranks && n_ranks != job->size)
		return gpul_fail(err, GPUL_EINVAL, 0, "-n %d contradicts the launcher (%s), which has started %d ranks", n_ranks,
				 job->source, job->size);
	*launches = alone && (n_ranks > 1 || hosts);
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

/* Read the command line of this process: *n_bytes bytes, with a NUL after each argument.  NULL: out of memory, or /proc is missing. */
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

/* Return the arguments of a command line, with argv[0] replaced; owned by the caller: free(). */
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

/* Start the ranks of a program on this host (if o->hosts.n is 0) or on several hosts; o contains the options for these hosts. */
static int launch(int n_ranks, char *const *argv, gpul_comm_launch_hosts_options *o, gpul_error *err)
{
	static char words[][8] = { "comm", "launch", "--part" };
	const gpul_comm_launch_options here = { .argv = argv, .n = n_ranks };
	char program[4096] = "";
	char *const part[] = { program, words[0], words[1], words[2], NULL };
	int exit_status = CLI_FAILED;

	if (!o->hosts.n) {
		(void)gpul_comm_launch(&here, &exit_status, err);
		return exit_status;
	}
	if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0) {
		gpul_fail(err, GPUL_ESYS, 0, "cannot read the path of this program in /proc/self, to start it on other hosts");
		return exit_status;
	}
	o->argv = argv;
	o->part = part;
	o->agent = o->agent ? o->agent : secure_getenv("GPULOAD_COMM_AGENT");
	o->address = secure_getenv("GPULOAD_COMM_ADDRESS");
	o->interface = secure_getenv("GPULOAD_COMM_INTERFACE");
	(void)gpul_comm_launch_hosts(o, &exit_status, err);
	return exit_status;
}

int comm_job_launch(int n_ranks, const gpul_comm_hosts *hosts, const char *agent, gpul_error *err)
{
	gpul_comm_launch_hosts_options o = { .agent = agent };
	char program[4096] = "";
	size_t n_bytes;
	char *text = read_command_line(&n_bytes);
	char **argv = text && readlink("/proc/self/exe", program, sizeof program - 1) > 0 ? split_command_line(text, n_bytes, program)
											  : NULL;
	int exit_status = CLI_FAILED;

	if (hosts)
		o.hosts = *hosts;
	if (argv) {
		exit_status = launch(n_ranks, argv, &o, err);
		if (!strncmp(err->text, "rank ", 5) && (exit_status < SIGNALED || exit_status == CLI_INTERRUPTED))
			*err = (gpul_error){ 0 }; /* the ranks have already printed their errors */
		if (exit_status > SIGNALED && exit_status != CLI_INTERRUPTED)
			exit_status = CLI_FAILED;
	} else {
		gpul_fail(err, GPUL_ESYS, 0, "cannot read the command line of this process in /proc/self, to start the ranks with it");
	}
	free(argv);
	free(text);
	return exit_status;
}

/* ---- ranks as threads ------------------------------------------------------------------------------------------ */

struct rank_thread {
	gpul_comm_job job;
	int (*run)(const void *what, const gpul_comm_job *job, gpul_error *err);
	const void *what;
	pthread_t thread;
	bool started;
	int exit_status;
	gpul_error err;
};

static void *run_rank_thread(void *argument)
{
	struct rank_thread *t = argument;

	t->exit_status = t->run(t->what, &t->job, &t->err);
	return NULL;
}

int comm_job_threads(int n_ranks, int (*run)(const void *what, const gpul_comm_job *job, gpul_error *err), const void *what,
		     gpul_error *err)
{
	struct rank_thread *ranks = calloc((size_t)n_ranks, sizeof *ranks);
	int exit_status = CLI_DONE, failed = ranks ? 0 : ENOMEM;

	/* otherwise a first launch, which loads code, would wait for kernels of other ranks */
	(void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	for (int r = 0; r < n_ranks && !failed; r++) {
		struct rank_thread *t = &ranks[r];

		*t = (struct rank_thread){ .job = { .rank = r, .size = n_ranks, .source = "threads" }, .run = run, .what = what };
		(void)snprintf(t->job.name, sizeof t->job.name, "threads-%d", (int)getpid());
		failed = gpul_thread_start(&t->thread, NULL, "rank", run_rank_thread, t);
		t->started = !failed;
	}
	for (int r = n_ranks - 1; ranks && r >= 0; r--) {
		if (!ranks[r].started)
			continue;
		(void)pthread_join(ranks[r].thread, NULL); /* ends soon: the started ranks wait at most OPEN_MS for the others */
		if (ranks[r].exit_status != CLI_DONE) {
			exit_status = ranks[r].exit_status;
			if (ranks[r].err.status)
				*err = ranks[r].err;
		}
	}
	free(ranks);
	if (failed) {
		gpul_fail(err, GPUL_ESYS, failed, "cannot start %d threads: %s", n_ranks, strerror(failed));
		exit_status = CLI_FAILED;
	}
	return exit_status;
}

/* ---- gpuload comm launch ------------------------------------------------------------------------------------- */

enum { OPT_N, OPT_HOSTS, OPT_HOSTFILE, OPT_AGENT, OPT_TAG, OPT_START, OPT_PART };
static const struct cli_opt launch_opts[] = {
	[OPT_N] = { "n", "N", "number of ranks, 1 to 32", NULL },
	[OPT_HOSTS] = { "hosts", "LIST", "machines and their numbers of ranks, such as node1:2,node2:2", NULL },
	[OPT_HOSTFILE] = { "hostfile", "FILE", "read the machines and their numbers of ranks from FILE: lines such as node1 slots=2",
			   CLI_FILES },
	[OPT_AGENT] = { "agent", "COMMAND",
			"program that runs a command on a host, as in COMMAND HOST ... (default: $GPULOAD_COMM_AGENT or ssh)", NULL },
	[OPT_TAG] = { "tag-output", NULL, "begin each line that a rank prints with its number: [3]", NULL },
	[OPT_START] = { "start-timeout", "SECONDS", "seconds to wait until all machines answer (default: 30)", NULL },
	[OPT_PART] = { "part", NULL, "internal: --agent starts it on each machine, and it reads its instructions from standard input",
		       NULL },
	{ 0 },
};

static int run_part(gpul_error *err)
{
	int exit_status;

	(void)gpul_comm_launch_part(&exit_status, err);
	return exit_status;
}

/* Fill in the options of the launcher, except the program. */
static gpul_status parse_launch(const struct cli_args *args, int *n_ranks, gpul_comm_launch_hosts_options *o, gpul_error *err)
{
	const char *list = cli_value(args, OPT_HOSTS), *file = cli_value(args, OPT_HOSTFILE);
	int start_s = 0;
	gpul_status st = comm_parse_int("-n", cli_value(args, OPT_N), 1, GPUL_COMM_MAX_RANKS, n_ranks, err);

	st = st ? st : comm_parse_int("--start-timeout", cli_value(args, OPT_START), 1, 3600, &start_s, err);
	o->tag = cli_value(args, OPT_TAG);
	if (!st && o->tag && !list && !file && *n_ranks) { /* treat this machine as a host, so that its ranks also write to pipes */
		o->hosts = (gpul_comm_hosts){ .at = { { "localhost", *n_ranks } }, .n = 1, .n_ranks = *n_ranks };
		return GPUL_OK;
	}
	st = st ? st : comm_parse_hosts(list, file, n_ranks, &o->hosts, err);
	o->agent = cli_value(args, OPT_AGENT);
	o->start_ms = start_s * 1000;
	if (!st && (o->agent || start_s) && !o->hosts.n)
		st = gpul_fail(err, GPUL_EINVAL, 0, "--agent and --start-timeout need --hosts or --hostfile, but neither is given");
	if (!st && !*n_ranks)
		st = gpul_fail(err, GPUL_EINVAL, 0, "-n, the number of ranks, is missing; or give --hosts");
	return st;
}

static int cmd_launch(const struct cli_args *args, gpul_error *err)
{
	gpul_comm_launch_hosts_options o = { .argv = NULL };
	char **argv;
	int n_ranks = 0, exit_status;
	gpul_status st = GPUL_OK;

	if (cli_value(args, OPT_PART))
		return run_part(err);
	st = parse_launch(args, &n_ranks, &o, err);
	if (!st && args->n_operands == 0)
		st = gpul_fail(err, GPUL_EINVAL, 0, "a program is missing: gpuload comm launch -n N -- PROGRAM ARGUMENTS");
	if (st)
		return cli_exit_code(st);
	argv = calloc(args->n_operands + 1, sizeof *argv);
	if (!argv) {
		gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the arguments");
		return CLI_FAILED;
	}
	for (size_t i = 0; i < args->n_operands; i++)
		argv[i] = (char *)(uintptr_t)args->operands[i];
	exit_status = launch(n_ranks, argv, &o, err);
	free(argv);
	return exit_status;
}

/* clang-format off */
const struct cli_cmd cli_comm_launch = {
	"comm launch", "-- PROGRAM [ARGUMENT...]", "start a program as several ranks",
	"Starts PROGRAM N times on this machine, or on several machines (--hosts), as the ranks of a new\n"
	"job: in each process gpul_comm_job_find() finds its rank, and gpul_comm_create() connects to the other\n"
	"ranks. When a rank fails or is killed, the others are stopped, too, and the exit status is that of\n"
	"the rank that failed first (128 plus the signal that killed it).\n"
	"\n"
	"With --hosts, an agent such as ssh starts gpuload on each other machine, under the same path as\n"
	"here; ssh must not ask for a password. The agent's arguments are the machine and a command for a\n"
	"shell. gpuload makes a secret for the job, hands it over by standard input, and chooses an address\n"
	"on the first machine, where rank 0 listens (GPULOAD_COMM_INTERFACE and GPULOAD_COMM_ADDRESS choose\n"
	"others). The ranks start in the same folder, with the GPULOAD_* variables of this process.\n",
	launch_opts, cmd_launch, CLI_FILES, NULL,
};
/* clang-format on */
