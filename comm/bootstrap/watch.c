/* watch.c — the watch thread of a rank: increments its heartbeat, and detects the first death or failure in the job. */
#include "comm/bootstrap/hosts/hosts_internal.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/thread/thread.h"

enum { PERIOD_MS = 5, QUIET_PERIOD_MS = 200 };

/* The sockets whose end the thread has already handled, and the heartbeats that it read in its last scan. */
struct watched {
	bool ended[GPUL_COMM_MAX_RANKS];
	uint64_t beat[GPUL_COMM_MAX_RANKS], waits[GPUL_COMM_MAX_RANKS];
	gpul_bell_ear ear;
};

/* If the rank is idle, sleep for a long period.  Returns false if the thread has not slept. */
static bool sleep_if_quiet(gpul_boot *b, struct watched *w)
{
	if (!gpul_bell_is_quiet(&b->bell, &w->ear) || atomic_load(&b->in_call) || !atomic_load(&b->met))
		return false;
	gpul_bell_sleep(&b->bell, &w->ear, QUIET_PERIOD_MS);
	return true;
}

/* Wait for one period, or until a socket ends.  Returns false if the thread must end. */
static bool wait_period(gpul_boot *b, struct watched *w)
{
	struct pollfd fds[1 + 2 * GPUL_COMM_MAX_RANKS] = { { .fd = b->stop, .events = POLLIN } };
	int ranks[1 + GPUL_COMM_MAX_RANKS], linked[GPUL_COMM_MAX_RANKS], n_links;
	nfds_t n = 1;

	for (int r = 0; r < b->job.size; r++) {
		int fd = atomic_load(&b->socket[r]);

		if (fd < 0 || w->ended[r] || b->stream[r])
			continue;
		ranks[n] = r;
		fds[n++] = (struct pollfd){ .fd = fd, .events = POLLRDHUP };
	}
	n_links = gpul_boot_links_poll(b, fds + n, linked);
	if (poll(fds, n + (nfds_t)n_links, sleep_if_quiet(b, w) ? 0 : PERIOD_MS) <= 0)
		return true;
	for (int i = 0; i < n_links; i++)
		if (fds[n + (nfds_t)i].revents)
			gpul_boot_links_receive(b, linked[i]);
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
		/* wake the threads that sleep on the bell: another rank may ask which ranks this rank waits for */
		if (atomic_load(&e->waits) != w->waits[r])
			gpul_bell_ring(&b->bell);
		w->waits[r] = atomic_load(&e->waits);
		if (r != b->job.rank && gpul_lifeline_read(&e->lifeline) == GPUL_LIFE_LOST)
			gpul_boot_report_end(b, r);
	}
	atomic_store(&b->scanned_ns, now);
}

/* Read the launcher's notice, which also reports ranks that ended before they joined. */
static void read_notice(gpul_boot *b)
{
	uint32_t ended = b->notice ? atomic_load(&b->notice->ended) : 0;

	(void)gpul_boot_publish_notice(b);
	for (int r = 0; r < b->job.size; r++)
		if (ended & 1u << r && gpul_boot_is_missing(b, r))
			gpul_boot_report_end(b, r);
}

/* Call on_event once.  The lock is not held, so on_event may call the functions of roster.h. */
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
		if (b->links)
			gpul_boot_links_notify(b);
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
	if (st && why.native != ENOSYS) /* without robust futexes, a death is still detected, by the end of the socket */
		return gpul_fail(err, st, why.native, "%s", why.text);
	failed = gpul_thread_start(&b->watcher, NULL, "gpul-watch", watch_ranks, b);
	if (failed)
		return gpul_fail(err, GPUL_ESYS, failed, "cannot create the thread of rank %d that detects failed ranks: %s", b->job.rank,
				 strerror(failed));
	b->watching = true;
	return GPUL_OK;
}

void gpul_boot_watch_stop(gpul_boot *b)
{
	if (b->watching) {
		(void)eventfd_write(b->stop, 1);
		gpul_bell_ring(&b->bell);
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
		st = gpul_fail(err, GPUL_EINVAL, 0, "gpul_boot_watch() has been called already; it may be called only once");
	} else {
		b->arg = arg;
		b->on_event = on_event;
	}
	pthread_mutex_unlock(&b->lock);
	return st;
}
