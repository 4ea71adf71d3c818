/* watch.c — the watch thread of a rank: raises its heartbeat, and finds the first death or failure of the job. */
#include "comm/bootstrap/boot_internal.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/thread.h"

enum { PERIOD_MS = 5 };

/* The sockets whose end the thread has handled, and the heartbeats of the last scan. */
struct watched {
	bool ended[GPUL_COMM_MAX_RANKS];
	uint64_t beat[GPUL_COMM_MAX_RANKS];
};

/* ---- records ---------------------------------------------------------------------------------------------------- */

/* Write this rank's record, unless the job has failed already or the rank has written one. */
static void publish_record(gpul_boot *b, const struct roster_record *record)
{
	pthread_mutex_lock(&b->lock);
	if (!b->published && !gpul_boot_failure(b, NULL)) {
		b->published = true;
		gpul_roster_publish(b->roster, b->job.rank, record);
	}
	pthread_mutex_unlock(&b->lock);
	(void)eventfd_write(b->alarm, 1);
}

/* Publish what gpuload's launcher reports; false: nothing. */
static bool publish_notice(gpul_boot *b)
{
	struct roster_record record = { 0 };
	gpul_roster_event e;

	if (!gpul_notice_read(b->notice, &e))
		return false;
	record.kind = (int32_t)e.kind;
	record.rank = e.rank;
	record.pid = (int32_t)e.pid;
	record.culprit = e.culprit;
	record.status = (int32_t)e.status;
	memcpy(record.text, e.text, sizeof record.text);
	publish_record(b, &record);
	return true;
}

void gpul_boot_report_end(gpul_boot *b, int rank)
{
	struct roster_entry *e = &b->roster->entry[rank];
	struct roster_record record = {
		.kind = GPUL_RANK_DIED, .rank = rank, .culprit = rank, .status = GPUL_EUNSUPPORTED
	};

	if (atomic_load(&e->state) == RANK_LEFT)
		return;
	/* A rank that has not arrived may have ended because of what the launcher has reported. */
	if (atomic_load(&e->state) == RANK_ABSENT && publish_notice(b))
		return;
	record.pid = atomic_load(&e->pid);
	if (atomic_load(&e->state) == RANK_JOINED)
		snprintf(record.text, sizeof record.text, "rank %d (pid %d) died", rank, (int)record.pid);
	else
		snprintf(record.text, sizeof record.text, "rank %d ended before all ranks had met", rank);
	publish_record(b, &record);
}

void gpul_boot_fail(gpul_boot *b, const gpul_error *why, int culprit)
{
	struct roster_record record = { .kind = GPUL_RANK_FAILED,
					.rank = b->job.rank,
					.pid = (int32_t)getpid(),
					.culprit = culprit,
					.status = (int32_t)why->status,
					.native = why->native };

	snprintf(record.text, sizeof record.text, "%.*s", (int)sizeof record.text - 1, why->text);
	publish_record(b, &record);
}

bool gpul_boot_failure(const gpul_boot *b, gpul_roster_event *out)
{
	gpul_roster_event unused;

	return gpul_roster_first(b->roster, out ? out : &unused);
}

gpul_status gpul_boot_failed(const gpul_boot *b, gpul_error *err)
{
	gpul_roster_event e;

	if (!gpul_boot_failure(b, &e))
		return GPUL_OK;
	if (e.kind == GPUL_RANK_DIED || e.rank == b->job.rank)
		return gpul_fail(err, e.status, e.native, "%s", e.text);
	return gpul_fail(err, e.status, e.native, "rank %d (pid %ld) failed: %s", e.rank, (long)e.pid, e.text);
}

gpul_status gpul_boot_fail_job(gpul_boot *b, int culprit, gpul_status status, int native, const char *text,
				gpul_error *err)
{
	gpul_error why = { 0 };

	gpul_fail(&why, status, native, "%s", text);
	gpul_boot_fail(b, &why, culprit);
	return gpul_boot_failed(b, err);
}

gpul_status gpul_boot_ended(gpul_boot *b, int rank, const char *doing, gpul_error *err)
{
	char text[128];

	gpul_boot_report_end(b, rank);
	if (gpul_boot_failure(b, NULL))
		return gpul_boot_failed(b, err);
	snprintf(text, sizeof text, "%s: rank %d (pid %ld) has left the job", doing, rank,
		 (long)gpul_boot_pid(b, rank));
	return gpul_boot_fail_job(b, rank, GPUL_EUNSUPPORTED, 0, text, err);
}

/* ---- the thread ------------------------------------------------------------------------------------------------- */

/* Wait one period, or until a socket ends; false: the thread shall end. */
static bool wait_period(gpul_boot *b, struct watched *w)
{
	struct pollfd fds[1 + GPUL_COMM_MAX_RANKS] = { { .fd = b->stop, .events = POLLIN } };
	int ranks[1 + GPUL_COMM_MAX_RANKS];
	nfds_t n = 1;

	for (int r = 0; r < b->job.size; r++) {
		int fd = atomic_load(&b->socket[r]);

		if (fd < 0 || w->ended[r])
			continue;
		ranks[n] = r;
		fds[n++] = (struct pollfd){ .fd = fd, .events = POLLRDHUP };
	}
	if (poll(fds, n, PERIOD_MS) <= 0)
		return true;
	for (nfds_t i = 1; i < n; i++) {
		if (!(fds[i].revents & (POLLRDHUP | POLLHUP | POLLERR)))
			continue;
		w->ended[ranks[i]] = true;
		gpul_boot_report_end(b, ranks[i]);
	}
	return !fds[0].revents;
}

static void scan_entries(gpul_boot *b, struct watched *w)
{
	uint64_t now = gpul_clock_ns();

	for (int r = 0; r < b->job.size; r++) {
		struct roster_entry *e = &b->roster->entry[r];
		uint64_t beat = atomic_load_explicit(&e->heartbeat, memory_order_relaxed);

		if (beat != w->beat[r] || !atomic_load(&b->moved_ns[r]))
			atomic_store(&b->moved_ns[r], now);
		w->beat[r] = beat;
		if (r != b->job.rank && gpul_lifeline_read(&e->lifeline) == GPUL_LIFE_LOST)
			gpul_boot_report_end(b, r);
	}
	atomic_store(&b->scanned_ns, now);
}

/* The launcher knows of ranks that ended before they arrived. */
static void read_notice(gpul_boot *b)
{
	uint32_t ended = b->notice ? atomic_load(&b->notice->ended) : 0;

	(void)publish_notice(b);
	for (int r = 0; r < b->job.size; r++)
		if (ended & 1u << r && atomic_load(&b->roster->entry[r].state) == RANK_ABSENT)
			gpul_boot_report_end(b, r);
}

/* Call on_event, once, without the lock, so that it may call the functions of roster.h. */
static void deliver_event(gpul_boot *b)
{
	gpul_roster_event e;
	gpul_roster_callback *on_event = NULL;

	if (!gpul_boot_failure(b, &e))
		return;
	pthread_mutex_lock(&b->lock);
	if (b->on_event && !b->reported) {
		b->reported = true;
		on_event = b->on_event;
	}
	pthread_mutex_unlock(&b->lock);
	(void)eventfd_write(b->alarm, 1);
	if (on_event)
		on_event(b->arg, &e);
}

static void *watch_ranks(void *arg)
{
	gpul_boot *b = arg;
	struct watched w = { 0 };

	do {
		atomic_fetch_add_explicit(&b->roster->entry[b->job.rank].heartbeat, 1, memory_order_relaxed);
		scan_entries(b, &w);
		read_notice(b);
		deliver_event(b);
	} while (wait_period(b, &w));
	return NULL;
}

gpul_status gpul_boot_watch_start(gpul_boot *b, gpul_error *err)
{
	struct roster_entry *e = &b->roster->entry[b->job.rank];
	gpul_error why = { 0 };
	gpul_status st;
	int failed;

	st = gpul_lifeline_hold(&e->lifeline, &b->lifeline, &why);
	if (st && why.native != ENOSYS) /* without robust futexes, the end of a socket still shows a death */
		return gpul_fail(err, st, why.native, "%s", why.text);
	failed = gpul_thread_start(&b->watcher, NULL, "gpul-watch", watch_ranks, b);
	if (failed)
		return gpul_fail(err, GPUL_ESYS, failed, "cannot create the watch thread of rank %d: %s", b->job.rank,
				 strerror(failed));
	b->watching = true;
	return GPUL_OK;
}

void gpul_boot_watch_stop(gpul_boot *b)
{
	if (b->watching) {
		(void)eventfd_write(b->stop, 1);
		pthread_join(b->watcher, NULL);
	}
	b->watching = false;
	gpul_lifeline_let_go(b->lifeline);
	b->lifeline = NULL;
}

gpul_status gpul_boot_watch(gpul_boot *b, gpul_roster_callback *on_event, void *arg, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	pthread_mutex_lock(&b->lock);
	if (b->on_event) {
		st = gpul_fail(err, GPUL_EINVAL, 0, "gpul_boot_watch() has been called before");
	} else {
		b->arg = arg;
		b->on_event = on_event;
	}
	pthread_mutex_unlock(&b->lock);
	return st;
}

unsigned gpul_boot_silent_ms(const gpul_boot *b, int rank)
{
	const uint64_t scanned = atomic_load(&b->scanned_ns), moved = atomic_load(&b->moved_ns[rank]);

	return moved && scanned > moved ? (unsigned)((scanned - moved) / 1000000) : 0;
}

void gpul_boot_set_waits(gpul_boot *b, uint32_t ranks)
{
	atomic_store(&b->roster->entry[b->job.rank].waits, ranks);
}

uint32_t gpul_boot_waits(const gpul_boot *b, int rank)
{
	return atomic_load(&b->roster->entry[rank].waits);
}

int gpul_boot_stalled(const gpul_boot *b, unsigned for_ms)
{
	uint64_t scanned = atomic_load(&b->scanned_ns), longest = (uint64_t)for_ms * 1000000;
	int stalled = -1;

	for (int r = 0; r < b->job.size; r++) {
		uint64_t moved = atomic_load(&b->moved_ns[r]);

		if (r == b->job.rank || !moved || scanned < moved ||
		    atomic_load(&b->roster->entry[r].state) != RANK_JOINED)
			continue;
		if (scanned - moved >= longest) {
			longest = scanned - moved;
			stalled = r;
		}
	}
	return stalled;
}

pid_t gpul_boot_pid(const gpul_boot *b, int rank)
{
	return atomic_load(&b->roster->entry[rank].pid);
}
