/* ranks.c — ranks as threads and as processes. */
#include "tests/comm/bootstrap/ranks.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

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

void ranks_run(const gpul_comm_job *jobs, int n, rank_body *body, void *arg, struct rank_end *ends)
{
	struct rank_thread threads[GPUL_COMM_MAX_RANKS];

	for (int r = 0; r < n; r++) {
		threads[r] = (struct rank_thread){ .job = jobs[r], .body = body, .arg = arg, .end = &ends[r] };
		assert_int_equal(pthread_create(&threads[r].thread, NULL, run_rank, &threads[r]), 0);
	}
	for (int r = 0; r < n; r++)
		pthread_join(threads[r].thread, NULL);
}

void ranks_as_threads(int size, rank_body *body, void *arg, struct rank_end *ends)
{
	gpul_comm_job jobs[GPUL_COMM_MAX_RANKS];
	const gpul_comm_job job = ranks_job(0, size);

	for (int r = 0; r < size; r++)
		jobs[r] = ranks_of(&job, r);
	ranks_run(jobs, size, body, arg, ends);
}

void ranks_expect_ok(const struct rank_end *ends, int size)
{
	int failed = 0;

	for (int r = 0; r < size; r++) {
		failed += ends[r].status != GPUL_OK;
		if (ends[r].status)
			print_error("rank %d: %s\n", r, ends[r].err.text);
	}
	assert_int_equal(failed, 0);
	assert_int_equal(ranks_n_files(), 0);
}

int ranks_n_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Return the byte at an offset of a rank's block. */
static unsigned char byte_at(int rank, size_t at)
{
	return (unsigned char)(rank * 37 + (int)(at % 251));
}

static gpul_status gather_once(gpul_boot *b, size_t bytes, gpul_error *err)
{
	int rank = gpul_boot_rank(b), size = gpul_boot_size(b);
	unsigned char *mine = malloc(bytes + 1), *all = malloc(bytes * (size_t)size + 1);
	gpul_status st;

	if (!mine || !all)
		abort();
	for (size_t i = 0; i < bytes; i++)
		mine[i] = byte_at(rank, i);
	st = gpul_boot_allgather(b, mine, bytes, all, RANKS_LONG_MS, err);
	for (int r = 0; !st && r < size; r++)
		for (size_t i = 0; !st && i < bytes; i++)
			if (all[(size_t)r * bytes + i] != byte_at(r, i))
				st = gpul_fail(err, GPUL_EFORMAT, 0, "byte %zu of rank %d is wrong", i, r);
	free(mine);
	free(all);
	return st;
}

gpul_status ranks_gather_sizes(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const size_t *bytes = arg;
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);

	if (!st && (gpul_boot_rank(b) != job->rank || gpul_boot_size(b) != job->size))
		st = gpul_fail(err, GPUL_EFORMAT, 0, "wrong rank or size");
	for (; !st && *bytes != SIZE_MAX; bytes++)
		st = gather_once(b, *bytes, err);
	if (!st)
		st = gpul_boot_barrier(b, RANKS_LONG_MS, err);
	if (!st)
		st = gpul_boot_last_barrier(b, RANKS_LONG_MS, err);
	gpul_boot_close(b);
	return st;
}

gpul_status ranks_meet_often(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (int i = 0; !st && i < *(int *)arg; i++) {
		gpul_boot *b = NULL;

		st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);
		gpul_boot_close(b);
	}
	return st;
}

gpul_status ranks_call_differently(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	const struct ranks_difference *d = arg;
	unsigned char all[GPUL_COMM_MAX_RANKS * 2] = { 0 };
	gpul_error mine = { .status = GPUL_ECUDA, .native = 719, .text = "the kernel failed" };
	gpul_boot *b = NULL;
	gpul_status st = gpul_boot_open(job, RANKS_LONG_MS, &b, err);
	const bool odd = job->rank == d->odd;

	if (!st && strcmp(d->what, "size") == 0)
		st = gpul_boot_allgather(b, "ab", odd ? 2 : 1, all, RANKS_LONG_MS, err);
	if (!st && strcmp(d->what, "call") == 0)
		st = odd ? gpul_boot_barrier(b, RANKS_LONG_MS, err) : gpul_boot_allgather(b, "", 0, all, RANKS_LONG_MS, err);
	if (!st && strcmp(d->what, "order") == 0)
		st = odd ? gpul_boot_exchange_fds(b, NULL, 0, NULL, RANKS_LONG_MS, err) : gpul_boot_barrier(b, RANKS_LONG_MS, err);
	if (!st && strcmp(d->what, "leave") == 0 && !odd)
		st = gpul_boot_barrier(b, RANKS_LONG_MS, err);
	if (!st && strcmp(d->what, "late") == 0 && !odd)
		st = gpul_boot_barrier(b, d->late_ms, err);
	if (!st && strcmp(d->what, "fail") == 0 && odd)
		gpul_boot_fail(b, &mine, d->odd);
	if (!st && strcmp(d->what, "fail") == 0)
		st = gpul_boot_barrier(b, RANKS_LONG_MS, err);
	while (!st && odd && !gpul_boot_failure(b, NULL) && strcmp(d->what, "leave") != 0)
		usleep(1000);
	if (!st && odd)
		st = gpul_boot_failed(b, err);
	gpul_boot_close(b);
	return st;
}

void ranks_expect_difference(const struct ranks_difference *d, const struct rank_end *ends, int size)
{
	for (int r = 0; r < size; r++)
		if ((strcmp(d->what, "leave") != 0 || r != d->odd) && (!ends[r].status || !strstr(ends[r].err.text, d->text)))
			fail_msg("%s, rank %d: %s", d->what, r, ends[r].err.text);
	assert_int_equal(ranks_n_files(), 0);
}

gpul_status ranks_1_and_3_stay_away(const gpul_comm_job *job, void *arg, gpul_error *err)
{
	gpul_boot *b = NULL;
	gpul_status st = GPUL_OK;

	(void)arg;
	if (job->rank != 1 && job->rank != 3)
		st = gpul_boot_open(job, 1000, &b, err);
	gpul_boot_close(b);
	return st;
}

void ranks_expect_absence(const struct rank_end *ends)
{
	for (int r = 0; r < 5; r += 2) {
		assert_int_equal(ends[r].status, GPUL_ESYS);
		if (!strstr(ends[r].err.text, "ranks 1, 3 of 5 ranks did not answer within 1000 ms"))
			fail_msg("rank %d: %s", r, ends[r].err.text);
	}
	assert_int_equal(ranks_n_files(), 0);
}

static void *open_boot(void *arg)
{
	struct ranks_opener *r = arg;

	r->status = gpul_boot_open(&r->job, r->timeout_ms, &r->boot, &r->err);
	return NULL;
}

void ranks_start(struct ranks_opener *r, const gpul_comm_job *job, int timeout_ms)
{
	*r = (struct ranks_opener){ .job = *job, .timeout_ms = timeout_ms };
	assert_int_equal(pthread_create(&r->thread, NULL, open_boot, r), 0);
}

void ranks_expect_failure(struct ranks_opener *r, const char *text)
{
	pthread_join(r->thread, NULL);
	assert_null(r->boot);
	assert_int_not_equal(r->status, GPUL_OK);
	if (!strstr(r->err.text, text))
		fail_msg("expected '%s': %s", text, r->err.text);
	assert_true(!r->job.secret[0] || !strstr(r->err.text, r->job.secret));
}

void ranks_expect_meeting(struct ranks_opener *r)
{
	pthread_join(r->thread, NULL);
	if (r->status)
		fail_msg("rank %d: %s", r->job.rank, r->err.text);
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
