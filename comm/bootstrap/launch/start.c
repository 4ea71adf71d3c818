/* start.c — starts the process of one rank. */
#include "comm/bootstrap/launch/launch_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file/io.h"

enum { N_VARIABLES = 4 };
static const char *const variables[N_VARIABLES] = { "GPULOAD_COMM_RANK=", "GPULOAD_COMM_SIZE=", "GPULOAD_COMM_JOB=",
						    "GPULOAD_COMM_NOTICE=" };

/* The environment of a rank: the variables of this process and of the job. text: memory for the values of the job's variables. */
struct environment {
	char **all;
	char text[N_VARIABLES][32 + GPUL_COMM_JOB_BYTES];
};

static bool is_ours(const char *entry)
{
	for (int i = 0; i < N_VARIABLES; i++)
		if (strncmp(entry, variables[i], strlen(variables[i])) == 0)
			return true;
	return false;
}

static bool make_environment(const gpul_comm_job *job, int notice, struct environment *e)
{
	size_t n = 0, kept = 0;

	while (environ[n])
		n++;
	e->all = malloc((n + N_VARIABLES + 1) * sizeof *e->all);
	if (!e->all)
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_ours(environ[i]))
			e->all[kept++] = environ[i];
	snprintf(e->text[0], sizeof e->text[0], "%s%d", variables[0], job->rank);
	snprintf(e->text[1], sizeof e->text[1], "%s%d", variables[1], job->size);
	snprintf(e->text[2], sizeof e->text[2], "%s%s", variables[2], job->name);
	snprintf(e->text[3], sizeof e->text[3], "%s%d", variables[3], notice);
	for (int i = 0; i < N_VARIABLES; i++)
		e->all[kept++] = e->text[i];
	e->all[kept] = NULL;
	return true;
}

/* Run in the child process until exec(). failed: the write end of a close-on-exec pipe, which receives errno if exec() fails. */
static _Noreturn void become_rank(char *const *argv, const struct rank_files *files, int rank, pid_t launcher, const sigset_t *mask,
				  char **variables_of_rank, int failed)
{
	int error, null;

	/* Linux sends SIGKILL when the thread that started this process ends.  If the launcher had ended before prctl(), the parent
	 * is another process. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != launcher)
		_exit(126);
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (files->out >= 0)
		(void)signal(SIGPIPE, SIG_DFL); /* part.c ignores SIGPIPE */
	if (files->out >= 0 && (dup2(files->out, STDOUT_FILENO) < 0 || dup2(files->err, STDERR_FILENO) < 0))
		_exit(126);
	if (files->in >= 0) {
		dup2(files->in, STDIN_FILENO);
	} else if (rank) {
		null = open("/dev/null", O_RDONLY);
		if (null >= 0 && null != STDIN_FILENO) {
			dup2(null, STDIN_FILENO);
			close(null);
		}
	}
	execvpe(argv[0], argv, variables_of_rank);
	error = errno;
	(void)gpul_write_all(failed, &error, sizeof error);
	_exit(error == ENOENT ? 127 : 126);
}

gpul_status gpul_launch_start(char *const *argv, const struct rank_files *files, const gpul_comm_job *job, int notice, const sigset_t *mask,
			      struct rank_process *out, int *exit_status, gpul_error *err)
{
	struct environment e;
	pid_t launcher = getpid(), child;
	int failed[2], error = 0;

	*exit_status = 126;
	if (!make_environment(job, notice, &e))
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the environment of rank %d", job->rank);
	if (pipe2(failed, O_CLOEXEC)) {
		free(e.all);
		return gpul_fail(err, GPUL_ESYS, errno, "cannot start rank %d: pipe: %s", job->rank, strerror(errno));
	}
	child = fork();
	if (child == 0)
		become_rank(argv, files, job->rank, launcher, mask, e.all, failed[1]);
	error = child < 0 ? errno : 0;
	free(e.all);
	close(failed[1]);
	if (child > 0 && !gpul_read_all(failed[0], &error, sizeof error))
		error = 0; /* end of file: exec() has succeeded and closed the pipe */
	close(failed[0]);
	if (!error) {
		*out = (struct rank_process){ .started = true, .pid = child };
		return GPUL_OK;
	}
	if (child > 0)
		waitpid(child, NULL, 0);
	*exit_status = child > 0 && error == ENOENT ? 127 : 126;
	return gpul_fail(err, GPUL_ESYS, error, "cannot start %s as rank %d: %s", argv[0], job->rank, strerror(error));
}
