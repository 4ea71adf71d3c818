/* ranks.c — ranks as threads and as processes. */
#include "tests/comm/bootstrap/ranks.h"

#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

int ranks_make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/gpul-comm-XXXXXX");
	return !mkdtemp(folder) || setenv("GPULOAD_RUNTIME_DIR", folder, 1);
}

int ranks_n_files(void)
{
	DIR *d = opendir(folder);
	int n = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

int ranks_remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

gpul_comm_job ranks_job(int rank, int size)
{
	static int n_jobs;
	gpul_comm_job job = { .rank = rank, .size = size, .source = "gpuload" };

	snprintf(job.name, sizeof job.name, "test-%ld-%d", (long)getpid(), n_jobs++);
	return job;
}

gpul_comm_job ranks_of(const gpul_comm_job *job, int rank)
{
	gpul_comm_job other = *job;

	other.rank = rank;
	return other;
}

struct rank_thread {
	pthread_t thread;
	gpul_comm_job job;
	rank_body *body;
	void *arg;
	struct rank_end *end;
};

static void *run_rank(void *arg)
{
	struct rank_thread *t = arg;

	t->end->err = (gpul_error){ 0 };
	t->end->status = t->body(&t->job, t->arg, &t->end->err);
	return NULL;
}

void ranks_as_threads(int size, rank_body *body, void *arg, struct rank_end *ends)
{
	struct rank_thread threads[GPUL_COMM_MAX_RANKS];
	gpul_comm_job job = ranks_job(0, size);

	for (int r = 0; r < size; r++) {
		threads[r] =
			(struct rank_thread){ .job = ranks_of(&job, r), .body = body, .arg = arg, .end = &ends[r] };
		assert_int_equal(pthread_create(&threads[r].thread, NULL, run_rank, &threads[r]), 0);
	}
	for (int r = 0; r < size; r++)
		pthread_join(threads[r].thread, NULL);
}

pid_t ranks_fork(const gpul_comm_job *job, rank_body *body, void *arg, struct rank_end *end)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	end->status = body(job, arg, &end->err);
	_exit(end->status != GPUL_OK);
}

void *ranks_shared(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

void ranks_unshare(void *at, size_t bytes)
{
	munmap(at, bytes);
}
