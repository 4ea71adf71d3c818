/* comm_rank.c — a rank opens the driver and the communicator, and watches its measuring thread. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/comm/trace/comm_trace.h"
#include "cli/lib/cli_stop.h"
#include "comm/bootstrap/roster.h"
#include "core/log.h"
#include "core/thread/thread.h"

enum { LOOK_MS = 50, OPEN_MS = 60 * 1000, LEAST_OPEN_MS = 4000 };

/* Return the time-out for ranks that do not join, and for a rank's process that is silent: the kernels' time-out, but at least
 * LEAST_OPEN_MS, because a time-out that is meant for kernels may be very short. */
static int open_ms(const struct comm_place *place)
{
	if (place->timeout_ms <= 0)
		return OPEN_MS;
	return place->timeout_ms > LEAST_OPEN_MS ? place->timeout_ms : LEAST_OPEN_MS;
}

/* ---- opening ------------------------------------------------------------------------------------------------ */

static gpul_status open_comm(const struct comm_place *place, gpul_comm_options o, struct comm_rank *r, gpul_error *err)
{
	gpul_status st = gpul_driver_open(place->driver, &r->drv, err);

	o.job = &r->job;
	o.device = place->n_devices ? place->devices[(unsigned)r->job.rank % place->n_devices] : -1;
	o.transport = place->transport;
	o.net = &place->net;
	o.timeout_ms = place->timeout_ms;
	o.create_timeout_ms = open_ms(place);
	o.ranks_per_host = (unsigned)place->ranks_per_host;
	st = st ? st : gpul_comm_create(r->drv, &o, &r->comm, err);
	return st ? st : gpul_cu(r->drv, err, cuStreamCreate(&r->stream, CU_STREAM_NON_BLOCKING));
}

/* Send the first error of any rank to every rank; rank 0 prints it, and the others print nothing. */
static gpul_status agree(struct comm_rank *r, gpul_error *mine, gpul_error *err)
{
	gpul_error all[GPUL_COMM_MAX_RANKS];
	gpul_status st = gpul_boot_allgather(r->boot, mine, sizeof *mine, all, COMM_MEET_MS, err);

	for (int k = 0; !st && k < r->job.size; k++)
		if (all[k].status)
			st = r->job.rank ? all[k].status : gpul_fail(err, all[k].status, all[k].native, "%s", all[k].text);
	return st;
}

gpul_status comm_rank_open(const struct comm_place *place, const gpul_comm_options *options, const gpul_comm_job *job,
			   struct comm_rank *out, gpul_error *err)
{
	gpul_error mine = { 0 };
	gpul_status st;

	if (job->rank && strcmp(job->source, "threads") != 0 && !gpul_log_shows(GPUL_LOG_INFO))
		/* only rank 0 prints notices, which are the same on all ranks; with --threads, all ranks share one log level */
		gpul_log_set_level(GPUL_LOG_OFF);
	*out = (struct comm_rank){ .job = *job, .output = PTHREAD_MUTEX_INITIALIZER };
	st = gpul_boot_open(job, open_ms(place), &out->boot, err);
	if (st)
		return st;
	gpul_boot_limit(out->boot, UINT64_MAX, 0, open_ms(place));
	(void)open_comm(place, *options, out, &mine);
	return agree(out, &mine, err);
}

void comm_rank_close(struct comm_rank *r)
{
	comm_trace_free(r->tracer);
	if (r->comm && !r->registered) {
		(void)r->drv->cuMemFree(r->send);
		(void)r->drv->cuMemFree(r->recv);
	}
	if (r->staging)
		(void)r->drv->cuMemFreeHost(r->staging);
	if (r->stream)
		(void)r->drv->cuStreamDestroy(r->stream);
	gpul_comm_destroy(r->comm);
	gpul_boot_close(r->boot);
}

gpul_status comm_rank_introduce(struct comm_rank *r, struct comm_about *all, gpul_error *err)
{
	struct comm_about mine = { .pid = (int)getpid(),
				   .device = gpul_comm_device(r->comm),
				   .host = gpul_boot_host(r->boot, r->job.rank) };
	CUdevice device;
	gpul_status st = gpul_cu(r->drv, err, cuDeviceGet(&device, mine.device));

	st = st ? st : gpul_cu(r->drv, err, cuDeviceGetName(mine.name, sizeof mine.name, device));
	if (st)
		return st;
	(void)snprintf(mine.host_name, sizeof mine.host_name, "%s", gpul_boot_host_name(r->boot, r->job.rank));
	for (int k = 0; k < r->job.size; k++) {
		gpul_comm_path path;

		gpul_comm_path_to(r->comm, k, &path);
		mine.paths[k].transport = path.transport;
		(void)snprintf(mine.paths[k].reason, sizeof mine.paths[k].reason, "%s", path.reason);
	}
	return gpul_boot_allgather(r->boot, &mine, sizeof mine, all, COMM_MEET_MS, err);
}

/* ---- the measuring thread ------------------------------------------------------------------------------------ */

struct job {
	struct comm_rank *r;
	gpul_status (*function)(struct comm_rank *r, void *argument, gpul_error *err);
	void *argument;
	int end_fd; /* a descriptor that is readable when the thread has ended */
	gpul_status status;
	gpul_error err;
};

static void *run_job(void *context)
{
	struct job *j = context;
	const uint64_t one = 1;

	j->status = gpul_cu(j->r->drv, &j->err, cuCtxSetCurrent(gpul_comm_context(j->r->comm)));
	if (!j->status)
		j->status = j->function(j->r, j->argument, &j->err);
	while (write(j->end_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	return NULL;
}

static bool has_ended(const struct job *j)
{
	uint64_t n;

	return read(j->end_fd, &n, sizeof n) == sizeof n;
}

static void show_progress(struct comm_rank *r)
{
	(void)pthread_mutex_lock(&r->output);
	if (r->job.rank == 0)
		r->progress.hook.tell(r->progress.hook.context, atomic_load(&r->permille), 1000);
	(void)pthread_mutex_unlock(&r->output);
}

static gpul_status watch_job(struct job *j, gpul_error *err)
{
	struct comm_rank *r = j->r;
	gpul_status st = GPUL_OK;

	while (!has_ended(j)) {
		show_progress(r);
		if (!st)
			st = stop_wait(j->end_fd, LOOK_MS, err);
		if ((st || stop_requested()) && !atomic_exchange(&r->stop, true))
			gpul_comm_abort(r->comm);
		if (st)
			(void)poll(NULL, 0, LOOK_MS);
	}
	progress_wipe(&r->progress);
	return st;
}

/* Report a failure of only this rank to the other ranks, which may wait for it in a kernel or in a call of boot.h.  If this rank
 * was aborted because of another rank's failure, it reports that failure. */
static gpul_status fail_all(struct comm_rank *r, const gpul_error *why, gpul_error *err)
{
	gpul_roster_event event;

	if (why->status != GPUL_ECOMM) {
		gpul_boot_fail(r->boot, why, r->job.rank);
		gpul_comm_abort(r->comm);
	} else if (why->native == GPUL_COMM_ABORTED && gpul_boot_failure(r->boot, &event)) {
		return gpul_fail(err, GPUL_ECOMM, GPUL_COMM_ABORTED, "rank %d failed: %s", event.rank, event.text);
	}
	return gpul_fail(err, why->status, why->native, "%s", why->text);
}

gpul_status comm_rank_run(struct comm_rank *r, const char *what,
			  gpul_status (*function)(struct comm_rank *r, void *argument, gpul_error *err), void *argument, gpul_error *err)
{
	struct job j = { .r = r, .function = function, .argument = argument, .end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) };
	pthread_t thread;
	gpul_status st = j.end_fd < 0 ? gpul_fail(err, GPUL_ESYS, errno, "eventfd: %s", strerror(errno)) : stop_begin(err);
	int failed;

	if (st)
		goto close_fd;
	progress_begin(&r->progress, what);
	failed = gpul_thread_start(&thread, NULL, "measure", run_job, &j);
	if (failed) {
		st = gpul_fail(err, GPUL_ESYS, failed, "cannot start a thread: %s", strerror(failed));
		goto close_fd;
	}
	st = watch_job(&j, err);
	(void)pthread_join(thread, NULL);
	if (!st && j.status && stop_requested())
		st = gpul_fail(err, GPUL_ESYS, ECANCELED, "stopped: %s", stop_requested());
	else if (!st && j.status)
		st = fail_all(r, &j.err, err);
close_fd:
	if (j.end_fd >= 0)
		(void)close(j.end_fd);
	return st;
}
