/* proxy_loop.c — the loop of the proxy's thread.
 *
 *     turn:  each FIFO: poll ─ handlers by kind ─ release         a trigger was found ──> next turn
 *            desc.progress()                                      all empty: drained?  spin, or sleep
 *            every 8th turn (every turn while turns are slow): read the clock (25 ns); check whether a kernel
 *            has aborted, or a process has ended
 *
 * While triggers keep arriving, the loop adds only a few loads and stores to the work of poll, the handlers and release. */
#include "proxy/proxy_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

enum {
	TURNS_PER_CHECK = 8,     /* turns of the loop between two checks of the clock and the abort words */
	WATCH_NS = 1000000,      /* time between two checks of the watched descriptors */
	SLOW_TURN_NS = 100000,   /* if turns of the loop take longer, each turn makes these checks, whose cost is then negligible */
	BATCHES_PER_SAMPLE = 64, /* one batch in 64 is timed for handler_ns */
	HOT_POLLS = 1024,        /* after this many turns without a trigger, each further one executes `pause`: at least 40 ns */
	SHORTEST_SLEEP_NS = 1000,
	RETRY_NS = 100000000, /* time between two attempts to sleep, while sleeps end later than max_sleep_ns allows */
};

/* State that only the proxy's thread uses. */
struct loop {
	gpul_proxy *p;
	unsigned turns;       /* number of turns of the loop until the next check of the clock and the abort words */
	bool slow;            /* the most recent turns of the loop took longer than SLOW_TURN_NS */
	uint64_t empty_polls; /* number of consecutive turns in which all FIFOs were empty */
	uint64_t now;         /* time of the last check or sleep */
	uint64_t idle_since;  /* since when all FIFOs have been empty; 0: they are not */
	uint64_t watched_ns, retry_ns;
	uint32_t code; /* the code with which all FIFOs are aborted; 0: none */
};

static inline void add_count(_Atomic uint64_t *what, uint64_t more)
{
	atomic_store_explicit(what, atomic_load_explicit(what, memory_order_relaxed) + more, memory_order_relaxed);
}

static inline void raise_max(_Atomic uint64_t *what, uint64_t value)
{
	if (value > atomic_load_explicit(what, memory_order_relaxed))
		atomic_store_explicit(what, value, memory_order_relaxed);
}

/* ---- handling triggers ----------------------------------------------------------- */

static gpul_status run_handlers(const gpul_proxy_desc *desc, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, unsigned *done,
				gpul_error *err)
{
	for (unsigned at = 0, run; at < n; at += run) {
		const gpul_fifo_item *first = items + at;
		const unsigned kind = gpul_fifo_kind(first);
		gpul_status st;

		*done = at;
		if (!desc->kinds[kind].handler)
			return gpul_fail(err, GPUL_EINVAL, (int)kind,
					 "trigger %llu of lane %u is of kind %u, for which no handler is registered",
					 (unsigned long long)first->position, first->lane, kind);
		for (run = 1; at + run < n && gpul_fifo_kind(first + run) == kind; run++)
			;
		st = desc->kinds[kind].handler(desc->kinds[kind].context, fifo, first, run, err);
		if (st)
			return gpul_fail(err, st, 0, "the handler of kind %u failed with status %d at position %llu of lane %u", kind,
					 (int)st, (unsigned long long)first->position, first->lane);
	}
	*done = n;
	return GPUL_OK;
}

/* Release the first n triggers of a batch, because the handler of the next trigger has failed. */
static void release_handled(gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (i + 1 == n || items[i + 1].lane != items[i].lane)
			gpul_fifo_release_lane(fifo, items[i].lane, items[i].position + 1);
}

static gpul_status serve_fifo(gpul_proxy *p, gpul_fifo *fifo, bool *found, gpul_error *err)
{
	struct gpul_proxy_counts *c = &p->counts;
	const unsigned n = gpul_fifo_poll(fifo, p->items, p->desc.batch);
	uint64_t begun = 0;
	unsigned done = 0;
	gpul_status st;

	if (!n)
		return GPUL_OK;
	*found = true;
	const bool timed = atomic_load_explicit(&c->batches, memory_order_relaxed) % BATCHES_PER_SAMPLE == 0;

	if (timed)
		begun = gpul_clock_ns();
	st = run_handlers(&p->desc, fifo, p->items, n, &done, err);
	if (timed)
		add_count(&c->handler_ns, BATCHES_PER_SAMPLE * (gpul_clock_ns() - begun));
	if (!p->desc.release_later && !st)
		gpul_fifo_release(fifo);
	else if (!p->desc.release_later)
		release_handled(fifo, p->items, done);
	add_count(&c->triggers, done);
	add_count(&c->batches, 1);
	raise_max(&c->max_batch, n);
	return st;
}

/* ---- aborts, and other processes --------------------------------------------------- */

static gpul_status check_aborts(struct loop *l, gpul_error *err)
{
	for (unsigned i = 0; i < l->p->desc.n_fifos; i++) {
		const uint32_t code = gpul_fifo_aborted(l->p->fifos[i]);
		char text[64];

		if (!code)
			continue;
		l->code = code;
		return gpul_fail(err, GPUL_ESYS, ECANCELED, "FIFO %u of %u was aborted with code 0x%x: %s", i, l->p->desc.n_fifos, code,
				 gpul_fifo_code_text(code, text));
	}
	return GPUL_OK;
}

static gpul_status check_watched_fds(struct loop *l, gpul_error *err)
{
	const struct pollfd *watched = l->p->waits + 1;

	for (unsigned i = 0; i < l->p->desc.n_watch_fds; i++) {
		if (!watched[i].revents)
			continue;
		l->code = GPUL_FIFO_CODE_PEER_GONE;
		if (watched[i].revents & POLLNVAL)
			return gpul_fail(err, GPUL_ESYS, EBADF, "file descriptor %d, which the proxy watches (desc.watch_fds), was closed",
					 watched[i].fd);
		return gpul_fail(err, GPUL_ESYS, EPIPE,
				 "the process at the other end of file descriptor %d has ended: the triggers that it pushed and "
				 "that are not handled stay in the FIFO",
				 watched[i].fd);
	}
	return GPUL_OK;
}

/* Check the lifelines in the FIFOs (gpul_fifo_gpu_hold_lifeline()), which report a death much earlier than a descriptor does. */
static gpul_status check_peers(struct loop *l, gpul_error *err)
{
	for (unsigned i = 0; i < l->p->desc.n_fifos; i++) {
		if (!gpul_fifo_peer_died(l->p->fifos[i]))
			continue;
		l->code = GPUL_FIFO_CODE_PEER_GONE;
		return gpul_fail(err, GPUL_ESYS, EPIPE,
				 "the process whose kernels push into FIFO %u of %u has died: the triggers that are not handled "
				 "stay in the FIFO",
				 i, l->p->desc.n_fifos);
	}
	return GPUL_OK;
}

static gpul_status check_surroundings(struct loop *l, gpul_error *err)
{
	gpul_proxy *p = l->p;
	const uint64_t before = l->now, turns = l->slow ? 1 : TURNS_PER_CHECK;

	l->now = gpul_clock_ns();
	l->slow = l->now - before > turns * SLOW_TURN_NS;
	l->turns = l->slow ? 1 : TURNS_PER_CHECK;
	if (p->desc.n_watch_fds && l->now - l->watched_ns >= WATCH_NS) {
		l->watched_ns = l->now;
		if (poll(p->waits + 1, p->desc.n_watch_fds, 0) > 0 && check_watched_fds(l, err))
			return GPUL_ESYS;
	}
	if (check_peers(l, err))
		return GPUL_ESYS;
	return check_aborts(l, err);
}

/* ---- backing off ------------------------------------------------------------------- */

/* Execute `pause`, so that the core's other hyperthread runs faster while this one spins. */
static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/* Update the estimate of how late sleeps end.  It rises by four times as much as it falls, so it settles where four of five sleeps
 * end earlier, and a single preemption hardly changes it. */
static uint64_t update_lateness(uint64_t late, uint64_t sample, uint64_t max)
{
	const uint64_t step = late / 64 + 25;

	late = sample > late ? late + 4 * step : late - (step < late ? step : late);
	return late < max ? late : max;
}

/* Sleep for ns, or until gpul_proxy_stop(), gpul_proxy_drain() or a watched descriptor wakes the thread. */
static gpul_status sleep_until_woken(struct loop *l, uint64_t ns, gpul_error *err)
{
	gpul_proxy *p = l->p;
	struct gpul_proxy_counts *c = &p->counts;
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
	const uint64_t begun = gpul_clock_ns();
	const int ready = ppoll(p->waits, 1 + p->desc.n_watch_fds, &t, NULL);
	uint64_t took, wishes;

	l->now = gpul_clock_ns();
	took = l->now - begun;
	add_count(&c->sleeps, 1);
	add_count(&c->slept_ns, took);
	raise_max(&c->longest_sleep_ns, took);
	if (ready == 0 && took >= ns)
		atomic_store_explicit(&c->late_ns,
				      update_lateness(atomic_load_explicit(&c->late_ns, memory_order_relaxed), took - ns,
						      p->desc.max_sleep_ns),
				      memory_order_relaxed);
	if (ready > 0 && p->waits[0].revents)
		(void)!read(p->wake_fd, &wishes, sizeof wishes); /* resets the eventfd; does not block */
	if (ready > 0 && check_watched_fds(l, err))
		return GPUL_ESYS;
	return check_peers(l, err);
}

/* Sleep for a quarter of the time since the last trigger, so that the latency that the sleep adds is small compared with that time. */
static gpul_status back_off(struct loop *l, gpul_error *err)
{
	const uint64_t max = l->p->desc.max_sleep_ns;
	const uint64_t late = atomic_load_explicit(&l->p->counts.late_ns, memory_order_relaxed);
	uint64_t ns = (l->now - l->idle_since) / 4;

	if (late + SHORTEST_SLEEP_NS > max) { /* this system cannot sleep for a time this short */
		if (l->now < l->retry_ns) {
			sched_yield();
			return GPUL_OK;
		}
		l->retry_ns = l->now + RETRY_NS;
		ns = SHORTEST_SLEEP_NS;
	} else if (ns > max - late) {
		ns = max - late;
	}
	l->turns = 1; /* the next turn checks the clock and the abort words */
	return sleep_until_woken(l, ns > SHORTEST_SLEEP_NS ? ns : SHORTEST_SLEEP_NS, err);
}

static void complete_drains(gpul_proxy *p, uint64_t wanted)
{
	pthread_mutex_lock(&p->lock);
	p->drains_done = wanted;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

/* Called after a turn in which all FIFOs were empty: spin or sleep. */
static gpul_status handle_empty_turn(struct loop *l, gpul_error *err)
{
	gpul_proxy *p = l->p;

	add_count(&p->counts.empty_polls, 1);
	l->empty_polls++;
	if (p->alone)
		sched_yield();
	else if (l->empty_polls > HOT_POLLS)
		pause_cpu();
	if (l->empty_polls < TURNS_PER_CHECK) /* l->now may be from before the last trigger */
		return GPUL_OK;
	if (!l->idle_since)
		l->idle_since = l->now;
	return l->now - l->idle_since < p->desc.spin_ns ? GPUL_OK : back_off(l, err);
}

/* ---- the loop -------------------------------------------------------------------- */

static gpul_status run_turn(struct loop *l, bool *found, bool *busy, gpul_error *err)
{
	gpul_proxy *p = l->p;
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < p->desc.n_fifos; i++)
		st = serve_fifo(p, p->fifos[i], found, err);
	if (st)
		return st;
	if (p->desc.progress)
		st = p->desc.progress(p->desc.progress_context, busy, err);
	if (st)
		return gpul_fail(err, st, 0, "the callback desc.progress failed with status %d", (int)st);
	return --l->turns ? GPUL_OK : check_surroundings(l, err);
}

static gpul_status serve_until_stopped(struct loop *l, gpul_error *err)
{
	gpul_proxy *p = l->p;
	uint64_t drains = 0;

	for (;;) {
		/* The requests are read before the turn, so that the turn finds every trigger that was pushed before the request. */
		const bool stop = atomic_load_explicit(&p->stop, memory_order_acquire);
		const uint64_t wanted = atomic_load_explicit(&p->drains_wanted, memory_order_acquire);
		bool found = false, busy = false;
		gpul_status st = run_turn(l, &found, &busy, err);

		if (!st && (found || busy)) {
			l->idle_since = l->empty_polls = 0;
		} else if (!st) {
			if (wanted != drains)
				complete_drains(p, drains = wanted);
			if (!stop)
				st = handle_empty_turn(l, err);
		}
		if (!st && !stop)
			continue;
		if (!st && found)
			l->code = GPUL_FIFO_CODE_STOPPED;
		return st;
	}
}

void *gpul_proxy_loop(void *arg)
{
	gpul_proxy *p = arg;
	struct loop l = { .p = p, .now = p->started_ns, .turns = 1 };
	gpul_error err = { 0 };
	struct timespec used = { 0 };
	gpul_status st;

	prctl(PR_SET_TIMERSLACK, 1UL); /* the default timer slack of 50 us would delay triggers */
	st = serve_until_stopped(&l, &err);
	if (st && !l.code)
		l.code = (uint32_t)st;
	for (unsigned i = 0; l.code && i < p->desc.n_fifos; i++)
		gpul_fifo_abort(p->fifos[i], l.code);

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	pthread_mutex_lock(&p->lock);
	p->ended = true;
	p->ended_ns = gpul_clock_ns();
	p->cpu_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
	p->status = st;
	p->failed = err;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}
