/* boot.c — opens and closes the connection of one rank with its job. */
#include "comm/bootstrap/hosts/hosts_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ipc/place.h"

/* Free the connection. why: the failure of gpul_boot_open(); NULL: gpul_boot_open() has succeeded. */
static void free_boot(gpul_boot *b, const gpul_error *why)
{
	gpul_boot_watch_stop(b);
	gpul_boot_links_close(b, why);
	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++) {
		int fd = atomic_load(&b->socket[r]);

		if (fd >= 0)
			close(fd);
		gpul_boot_stream_destroy(b->stream[r]);
	}
	if (b->roster_fd >= 0)
		close(b->roster_fd);
	gpul_roster_unmap(b->roster);
	gpul_notice_unmap(b->notice);
	if (b->alarm >= 0)
		close(b->alarm);
	if (b->stop >= 0)
		close(b->stop);
	pthread_mutex_destroy(&b->lock);
	free(b->packet);
	free(b);
}

static gpul_status create_boot(const gpul_comm_job *job, gpul_boot **out, gpul_error *err)
{
	gpul_boot *b = calloc(1, sizeof *b);

	if (!b)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to start rank %d", job->rank);
	b->job = *job;
	pthread_mutex_init(&b->lock, NULL);
	b->roster_fd = -1;
	b->limit_ns = BOOT_NEVER;
	b->local = (uint32_t)((1ull << job->size) - 1);
	for (int r = 0; r < GPUL_COMM_MAX_RANKS; r++) {
		b->reach[r] = 1u << r;
		atomic_store(&b->socket[r], -1);
	}
	if (job->source && strcmp(job->source, "gpuload") == 0)
		b->notice = gpul_notice_find();
	b->packet = malloc(sizeof *b->packet);
	b->alarm = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	b->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!b->packet || b->alarm < 0 || b->stop < 0) {
		gpul_status st = b->packet ? gpul_fail(err, GPUL_ESYS, errno, "eventfd: %s%s", strerror(errno),
						       errno == EMFILE ? " (ulimit -n)" : "")
					   : gpul_fail(err, GPUL_ENOMEM, 0, "no memory to start rank %d", job->rank);

		free_boot(b, NULL);
		return st;
	}
	*out = b;
	return GPUL_OK;
}

/* Connect the ranks of this host.  The socket's name contains the host's number, because one machine can play several hosts
 * (GPULOAD_COMM_HOST). */
static gpul_status meet_on_host(gpul_boot *b, const struct boot_wait *w, char name[GPUL_COMM_JOB_BYTES + 8], gpul_error *err)
{
	char path[GPUL_IPC_PATH_BYTES] = "";
	gpul_status st = GPUL_OK;

	snprintf(name, GPUL_COMM_JOB_BYTES + 8, b->links ? "%s-h%d" : "%s", b->job.name, b->host[b->job.rank]);
	if (b->local != 1u << b->job.rank)
		st = gpul_ipc_place(name, true, path, err);
	if (st)
		return st;
	return b->job.rank == b->leader ? gpul_boot_lead(b, path, w, err) : gpul_boot_join(b, path, w, err);
}

gpul_status gpul_boot_open(const gpul_comm_job *job, int timeout_ms, gpul_boot **out, gpul_error *err)
{
	char doing[96 + GPUL_COMM_JOB_BYTES], name[GPUL_COMM_JOB_BYTES + 8] = "";
	struct boot_wait w = { .doing = doing, .deadline_ns = gpul_boot_deadline(timeout_ms), .timeout_ms = timeout_ms };
	gpul_boot *b = NULL;
	gpul_error why = { 0 };
	gpul_status st = gpul_comm_job_check(job, err);
	bool cleared, is_leader;

	if (!st)
		st = create_boot(job, &b, err);
	if (st)
		return st;
	snprintf(doing, sizeof doing, "rank %d, start of job %s", job->rank, job->name);
	if (job->address[0] && job->size > 1)
		st = job->rank == 0 ? gpul_boot_gate(b, &w, &why) : gpul_boot_enter(b, &w, &why);
	if (!st)
		st = meet_on_host(b, &w, name, &why);
	if (st) {
		is_leader = job->rank == b->leader;
		free_boot(b, &why);
		if (!is_leader && name[0]) /* remove the socket file of a leader that was killed */
			(void)gpul_ipc_place_clear(name, &cleared, NULL);
		return gpul_fail(err, st, why.native, "%s", why.text);
	}
	atomic_store(&b->met, true);
	*out = b;
	return GPUL_OK;
}

void gpul_boot_close(gpul_boot *b)
{
	if (!b)
		return;
	/* RANK_LEFT is set before the lifeline and sockets are closed, so that the other ranks can distinguish a normal
	 * end from a death. */
	atomic_store(&b->roster->entry[b->job.rank].state, RANK_LEFT);
	free_boot(b, NULL);
}

int gpul_boot_rank(const gpul_boot *b)
{
	return b->job.rank;
}

int gpul_boot_size(const gpul_boot *b)
{
	return b->job.size;
}
