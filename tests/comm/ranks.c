/* ranks.c — the ranks of a job as threads of one process. */
#include "tests/comm/ranks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct starter {
	gpul_comm_options options;
	gpul_comm_job job;
	void (*run)(struct rank *r, void *arg);
	void *arg;
};

void must(gpul_status st, const gpul_error *err, const char *what)
{
	if (st == GPUL_OK)
		return;
	(void)fprintf(stderr, "%s: %s\n", what, err->text);
	abort();
}

gpul_comm_job new_job(int n_ranks)
{
	static atomic_uint n;
	gpul_comm_job job = { .size = n_ranks, .source = "test" };

	(void)snprintf(job.name, sizeof job.name, "test-%d-%u", (int)getpid(), atomic_fetch_add(&n, 1));
	return job;
}

static void *start_rank(void *arg)
{
	struct starter *s = arg;
	struct rank r = { .rank = s->job.rank, .n_ranks = s->job.size, .arg = s->arg };
	gpul_error err = { 0 };

	s->options.job = &s->job;
	must(gpul_driver_open(GPUL_DRIVER_AUTO, &r.drv, &err), &err, "gpul_driver_open");
	must(gpul_comm_create(r.drv, &s->options, &r.comm, &err), &err, "gpul_comm_create");
	must(gpul_cu(r.drv, &err, cuStreamCreate(&r.stream, CU_STREAM_NON_BLOCKING)), &err, "cuStreamCreate");
	s->run(&r, s->arg);
	must(gpul_cu(r.drv, &err, cuStreamDestroy(r.stream)), &err, "cuStreamDestroy");
	gpul_comm_destroy(r.comm);
	return NULL;
}

void run_ranks(int n, const gpul_comm_options *options, void (*run)(struct rank *r, void *arg), void *arg)
{
	run_ranks_on_hosts(n, 1, options, run, arg);
}

void run_ranks_on_hosts(int n, int n_hosts, const gpul_comm_options *options, void (*run)(struct rank *r, void *arg), void *arg)
{
	static const gpul_comm_options defaults = { .device = -1 };
	struct starter *starters = calloc((size_t)n, sizeof *starters);
	pthread_t *threads = calloc((size_t)n, sizeof *threads);
	const gpul_comm_job job = new_job(n);

	if (!starters || !threads)
		abort();
	for (int i = 0; i < n; i++) {
		starters[i] = (struct starter){ .options = options ? *options : defaults, .job = job, .run = run, .arg = arg };
		starters[i].job.rank = i;
		if (n_hosts > 1)
			(void)snprintf(starters[i].job.host, sizeof starters[i].job.host, "host%d", i * n_hosts / n);
		if (pthread_create(&threads[i], NULL, start_rank, &starters[i]))
			abort();
	}
	for (int i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	free(starters);
	free(threads);
}
