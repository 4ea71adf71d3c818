/* oob_watch.c — the thread that watches the sockets of all connections. */
#include "rdma/oob/oob_watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/thread/thread.h"
#include "rdma/protocol/lease.h"

struct gpul_rdma_watched {
	gpul_rdma_watch *w;
	gpul_rdma_watched *next;
	uint64_t id; /* id for epoll; not a pointer, because a late event could name an entry that has been removed */
	int fd;
	gpul_rdma_channel *channel; /* NULL: the entry watches a descriptor that is not a socket of a connection */
	gpul_rdma_lease lease;      /* after gpul_rdma_watch_add(), only the watching thread uses it */
	gpul_rdma_on_failure *on_failure;
	gpul_rdma_on_readable *on_readable;
	void *context;
	bool again; /* whole frames may be in the channel's buffer, which epoll does not report */
	bool ended; /* the entry has failed, or is being ended or removed: its callbacks are not called any more */
	bool said;  /* FAILED or BYE has been sent */
	bool bye;   /* the peer has closed the connection, with the totals below */
	gpul_rdma_totals totals;
};

struct gpul_rdma_watch {
	int epoll, wake;
	pthread_t thread;
	pthread_mutex_t lock; /* protects the list, .busy, .stopping, .ended and .said */
	pthread_cond_t idle;
	gpul_rdma_watched *all;
	gpul_rdma_watched *busy; /* the entry that the thread handles without holding the lock; remove waits until the thread has
				  * finished */
	uint64_t last_id;
	bool stopping;
};

/* ---- the thread ------------------------------------------------------------------------------------------------- */

enum { MAX_FRAMES = 64 };

/* Stop watching e, and call none of its callbacks again; the caller holds the lock.  Returns false if e had already ended. */
static bool end_watched(gpul_rdma_watched *e)
{
	bool first = !e->ended;

	e->ended = true;
	if (first)
		(void)epoll_ctl(e->w->epoll, EPOLL_CTL_DEL, e->fd, NULL);
	return first;
}

/* Receive frames that have arrived, but at most MAX_FRAMES, so that a peer that sends continuously does not delay the other connections. */
static void receive_frames(gpul_rdma_watched *e, gpul_rdma_failure *why)
{
	gpul_rdma_frame frame;

	for (int i = 0; i < MAX_FRAMES; i++) {
		bool got = false;

		if (gpul_rdma_channel_receive(e->channel, &frame, &got, why)) {
			e->bye = got && frame.type == GPUL_RDMA_BYE;
			e->totals = e->bye ? frame.totals : (gpul_rdma_totals){ 0 };
			return;
		}
		if (!got)
			return;
		gpul_rdma_lease_received(&e->lease, gpul_clock_ns());
		if (frame.type != GPUL_RDMA_BEAT) {
			(void)gpul_rdma_fail(why, GPUL_EFORMAT, 0, "socket", NULL,
					     "the peer sent an unexpected %s message on an open connection",
					     gpul_rdma_frame_name(frame.type));
			return;
		}
	}
	e->again = true;
}

/* Check the lease, and send a heartbeat if it is due now or soon, since this thread is awake anyway.  The peers do the same, so all
 * ends of a job send their heartbeats at the same time, and idle threads sleep in between. */
static void check_lease(gpul_rdma_watched *e, gpul_rdma_failure *why)
{
	gpul_rdma_frame beat = { .type = GPUL_RDMA_BEAT };
	gpul_rdma_failure of_send = { 0 }, silent = { 0 };
	uint64_t now = gpul_clock_ns();

	gpul_rdma_lease_tick(&e->lease, now);
	if (gpul_rdma_lease_beat_early(&e->lease, now) && gpul_rdma_channel_send(e->channel, &beat, &of_send)) {
		receive_frames(e, why); /* the peer may have sent the reason for its failure: report that reason instead */
		if (!why->status)
			*why = of_send;
	}
	if (!why->status && gpul_rdma_lease_expired(&e->lease, now, &silent)) {
		receive_frames(e, why); /* frames may be waiting, because this thread may have been late */
		if (!why->status)
			(void)gpul_rdma_lease_expired(&e->lease, now, why);
	}
}

/* Handle the events of e.  The caller holds the lock; this function releases it meanwhile.  events: from epoll; 0: a heartbeat or
 * the expiry of the lease is due. */
static void serve_watched(gpul_rdma_watched *e, uint32_t events)
{
	gpul_rdma_watch *w = e->w;
	gpul_rdma_failure why = { 0 };
	bool report;

	w->busy = e;
	pthread_mutex_unlock(&w->lock);
	if (e->channel && events)
		receive_frames(e, &why);
	if (e->channel && !why.status)
		check_lease(e, &why);
	if (!e->channel && events & EPOLLIN)
		e->on_readable(e->context);
	pthread_mutex_lock(&w->lock);
	if (!e->channel && !(events & EPOLLIN))
		end_watched(e); /* the device has been removed, and epoll would report this error again and again */
	report = why.status && end_watched(e);
	if (report) {
		if (!why.peer[0])
			memcpy(why.peer, gpul_rdma_channel_peer(e->channel), sizeof why.peer);
		pthread_mutex_unlock(&w->lock);
		e->on_failure(e->context, &why, e->bye ? &e->totals : NULL);
		pthread_mutex_lock(&w->lock);
	}
	w->busy = NULL;
	pthread_cond_broadcast(&w->idle);
}

static gpul_rdma_watched *find_watched(const gpul_rdma_watch *w, uint64_t id)
{
	gpul_rdma_watched *e = w->all;

	while (e && e->id != id)
		e = e->next;
	return e;
}

/* Return the time in ms until the next heartbeat or expiry of a lease; -1: none is due.  The caller holds the lock. */
static int wait_ms(const gpul_rdma_watch *w)
{
	uint64_t until = UINT64_MAX, now = gpul_clock_ns();

	for (const gpul_rdma_watched *e = w->all; e; e = e->next)
		if (e->channel && !e->ended && (e->again || gpul_rdma_lease_next(&e->lease) < until))
			until = e->again ? 0 : gpul_rdma_lease_next(&e->lease);
	if (until == UINT64_MAX)
		return -1;
	until = until > now ? (until - now + 999999) / 1000000 : 0;
	return until < INT32_MAX ? (int)until : INT32_MAX;
}

/* Read the channels whose buffers may contain frames, and send heartbeats on all channels; the caller holds the lock. */
static void serve_all(gpul_rdma_watch *w)
{
	for (gpul_rdma_watched *e = w->all; e; e = e->next) { /* serve_watched() releases the lock, but e stays in the list while it
							       * is busy */
		bool again = e->again;

		e->again = false;
		if (e->channel && !e->ended)
			serve_watched(e, again ? EPOLLIN : 0);
	}
}

static void *watch_main(void *argument)
{
	gpul_rdma_watch *w = argument;
	struct epoll_event ready[32];

	pthread_mutex_lock(&w->lock);
	while (!w->stopping) {
		int ms = wait_ms(w), n;

		pthread_mutex_unlock(&w->lock);
		n = epoll_wait(w->epoll, ready, sizeof ready / sizeof ready[0], ms);
		pthread_mutex_lock(&w->lock);
		for (int i = 0; i < n; i++) {
			gpul_rdma_watched *e = find_watched(w, ready[i].data.u64);

			if (ready[i].data.u64 == 0)
				(void)!read(w->wake, &(uint64_t){ 0 }, sizeof(uint64_t));
			else if (e && !e->ended)
				serve_watched(e, ready[i].events);
		}
		serve_all(w);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- the callers' side -------------------------------------------------------------------------------------------- */

static void wake_thread(gpul_rdma_watch *w)
{
	(void)!write(w->wake, &(uint64_t){ 1 }, sizeof(uint64_t)); /* fails only if the eventfd is already readable */
}

gpul_status gpul_rdma_watch_create(gpul_rdma_watch **out, gpul_error *err)
{
	gpul_rdma_watch *w = calloc(1, sizeof *w);
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = 0 };
	int error;

	if (!w)
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: the thread that watches connections needs %zu bytes", sizeof *w);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->idle, NULL);
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	error = w->wake < 0 || w->epoll < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake, &e)
			? errno
			: gpul_thread_start(&w->thread, NULL, "gpul-rdma-watch", watch_main, w);
	if (!error) {
		*out = w;
		return GPUL_OK;
	}
	if (w->epoll >= 0)
		close(w->epoll);
	if (w->wake >= 0)
		close(w->wake);
	pthread_cond_destroy(&w->idle);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return gpul_fail(err, GPUL_ESYS, error, "cannot start the thread that watches connections: %s", strerror(error));
}

void gpul_rdma_watch_destroy(gpul_rdma_watch *w)
{
	if (!w)
		return;
	assert(!w->all);
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_mutex_unlock(&w->lock);
	wake_thread(w);
	pthread_join(w->thread, NULL);
	close(w->epoll);
	close(w->wake);
	pthread_cond_destroy(&w->idle);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Add a copy of *model to the list. */
static gpul_status add_watched(gpul_rdma_watch *w, const gpul_rdma_watched *model, gpul_rdma_watched **out, gpul_error *err)
{
	gpul_rdma_watched *e = malloc(sizeof *e);
	struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP };
	int error = 0;

	if (!e)
		return gpul_fail(err, GPUL_ENOMEM, 0, "out of memory: a watched connection needs %zu bytes", sizeof *e);
	*e = *model;
	pthread_mutex_lock(&w->lock);
	e->id = event.data.u64 = ++w->last_id;
	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, e->fd, &event)) {
		error = errno;
	} else {
		e->next = w->all;
		w->all = e;
		*out = e; /* set under the lock, so that callbacks read a valid pointer */
	}
	pthread_mutex_unlock(&w->lock);
	if (error) {
		free(e);
		return gpul_fail(err, GPUL_ESYS, error, "cannot watch a connection: epoll_ctl: %s", strerror(error));
	}
	wake_thread(w);
	return GPUL_OK;
}

gpul_status gpul_rdma_watch_add(gpul_rdma_watch *w, gpul_rdma_channel *c, uint64_t limit_ns, uint64_t peer_limit_ns,
				gpul_rdma_on_failure *on_failure, void *context, gpul_rdma_watched **out, gpul_error *err)
{
	gpul_rdma_watched e = {
		.w = w, .fd = gpul_rdma_channel_fd(c), .channel = c, .on_failure = on_failure, .context = context, .again = true
	};

	/* The system's limit is longer than the lease, so that the lease, whose message is clearer, expires first. */
	gpul_rdma_channel_set_limit(c, 2 * limit_ns);
	e.lease = gpul_rdma_lease_begin(limit_ns, peer_limit_ns, gpul_clock_ns());
	return add_watched(w, &e, out, err);
}

gpul_status gpul_rdma_watch_add_fd(gpul_rdma_watch *w, int fd, gpul_rdma_on_readable *on_readable, void *context, gpul_rdma_watched **out,
				   gpul_error *err)
{
	gpul_rdma_watched e = { .w = w, .fd = fd, .on_readable = on_readable, .context = context };

	return add_watched(w, &e, out, err);
}

void gpul_rdma_watch_end(gpul_rdma_watched *e, const gpul_rdma_failure *why, gpul_rdma_totals totals)
{
	gpul_rdma_frame frame = { .type = why ? GPUL_RDMA_FAILED : GPUL_RDMA_BYE };
	gpul_rdma_failure ignored = { 0 }; /* errors are ignored, because the peer may already be gone */
	bool said;

	pthread_mutex_lock(&e->w->lock);
	end_watched(e);
	said = e->said;
	e->said = true;
	pthread_mutex_unlock(&e->w->lock);
	if (said)
		return;
	if (why)
		frame.failure = *why;
	else
		frame.totals = totals;
	(void)gpul_rdma_channel_send(e->channel, &frame, &ignored);
	gpul_rdma_channel_shutdown(e->channel);
}

void gpul_rdma_watch_remove(gpul_rdma_watched *e)
{
	gpul_rdma_watch *w;

	if (!e)
		return;
	w = e->w;
	assert(!pthread_equal(pthread_self(), w->thread));
	pthread_mutex_lock(&w->lock);
	end_watched(e);
	while (w->busy == e)
		pthread_cond_wait(&w->idle, &w->lock);
	for (gpul_rdma_watched **at = &w->all; *at; at = &(*at)->next)
		if (*at == e) {
			*at = e->next;
			break;
		}
	pthread_mutex_unlock(&w->lock);
	free(e);
}
