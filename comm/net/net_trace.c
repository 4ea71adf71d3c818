/* net_trace.c — records the events of the proxy's thread. */
#include "comm/net/net_trace.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEAST_WAIT_NS = 5000, STOP_NAPS = 3000, NAP_NS = 1000 * 1000 };

struct gpul_comm_net_pending {
	gpul_comm_net_event event;
	uint32_t flight;
	bool is_used;
};

void gpul_net_trace_init(gpul_comm_net_trace *t, unsigned n_routes, unsigned n_flights)
{
	*t = (gpul_comm_net_trace){ .lock = PTHREAD_MUTEX_INITIALIZER, .n_routes = n_routes, .n_flights = n_flights };
}

void gpul_net_trace_free(gpul_comm_net_trace *t)
{
	free(t->pending);
	free(t->events);
	(void)pthread_mutex_destroy(&t->lock);
}

/* ---- start, stop, read ------------------------------------------------------------------------------------------- */

static gpul_status allocate(gpul_comm_net_trace *t, size_t max_events, gpul_error *err)
{
	gpul_comm_net_event *events = calloc(max_events, sizeof *events);

	if (!t->pending)
		t->pending = calloc((size_t)t->n_routes * t->n_flights, sizeof *t->pending);
	if (!events || !t->pending) {
		free(events);
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for a trace of %zu network events", max_events);
	}
	free(t->events);
	t->events = events;
	t->max = max_events;
	t->n = t->n_lost = 0;
	return GPUL_OK;
}

gpul_status gpul_net_trace_start(gpul_comm_net_trace *t, size_t max_events, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	(void)pthread_mutex_lock(&t->lock);
	if (max_events)
		st = allocate(t, max_events, err);
	else if (!t->events)
		st = gpul_fail(err, GPUL_EINVAL, 0,
			       "max_events is 0, which continues an earlier trace of the network, but no trace was started");
	if (!st) {
		memset(t->pending, 0, (size_t)t->n_routes * t->n_flights * sizeof *t->pending);
		t->n_pending = 0;
		t->started_ns = gpul_clock_ns();
		__atomic_store_n(&t->on, true, __ATOMIC_SEQ_CST);
	}
	(void)pthread_mutex_unlock(&t->lock);
	return st;
}

void gpul_net_trace_stop(gpul_comm_net_trace *t)
{
	const struct timespec nap = { .tv_nsec = NAP_NS };
	unsigned left = 1;

	for (int i = 0; left && gpul_net_trace_is_on(t) && i < STOP_NAPS; i++) {
		(void)pthread_mutex_lock(&t->lock);
		left = t->n_pending;
		(void)pthread_mutex_unlock(&t->lock);
		if (left)
			(void)nanosleep(&nap, NULL);
	}
	(void)pthread_mutex_lock(&t->lock);
	if (__atomic_exchange_n(&t->on, false, __ATOMIC_SEQ_CST))
		t->n_lost += t->n_pending;
	t->n_pending = 0;
	(void)pthread_mutex_unlock(&t->lock);
}

void gpul_net_trace_read(gpul_comm_net_trace *t, gpul_comm_net_event *out, size_t max, size_t *n, size_t *n_lost)
{
	(void)pthread_mutex_lock(&t->lock);
	*n = t->n < max ? t->n : max;
	*n_lost = t->n_lost + t->n - *n;
	if (*n)
		memcpy(out, t->events, *n * sizeof *out);
	(void)pthread_mutex_unlock(&t->lock);
}

/* ---- record an event: these functions take the lock, and test again whether the trace is on ---------------------- */

static void add_event(gpul_comm_net_trace *t, const gpul_comm_net_event *event)
{
	if (t->n < t->max)
		t->events[t->n++] = *event;
	else
		t->n_lost++;
}

static struct gpul_comm_net_pending *pending_of(gpul_comm_net_trace *t, unsigned route, uint32_t flight)
{
	return &t->pending[(size_t)route * t->n_flights + flight % t->n_flights];
}

void gpul_net_trace_add_put(gpul_comm_net_trace *t, unsigned route, uint32_t flight, const gpul_comm_net_event *event)
{
	(void)pthread_mutex_lock(&t->lock);
	if (gpul_net_trace_is_on(t) && event->begin_ns >= t->started_ns) {
		*pending_of(t, route, flight) = (struct gpul_comm_net_pending){ *event, flight, true };
		t->n_pending++;
	}
	(void)pthread_mutex_unlock(&t->lock);
}

void gpul_net_trace_end_put(gpul_comm_net_trace *t, unsigned route, uint32_t flight)
{
	(void)pthread_mutex_lock(&t->lock);
	if (gpul_net_trace_is_on(t)) {
		struct gpul_comm_net_pending *p = pending_of(t, route, flight);

		if (p->is_used && p->flight == flight) { /* false if the put began before the trace */
			p->event.end_ns = gpul_clock_ns();
			add_event(t, &p->event);
			p->is_used = false;
			t->n_pending--;
		}
	}
	(void)pthread_mutex_unlock(&t->lock);
}

/* Record a wait, unless it is short: the thread waits briefly in every turn while puts are in flight. */
void gpul_net_trace_add_wait(gpul_comm_net_trace *t, uint64_t began_ns)
{
	gpul_comm_net_event e = { .begin_ns = began_ns, .end_ns = gpul_clock_ns(), .kind = GPUL_COMM_NET_WAIT, .peer = -1 };

	(void)pthread_mutex_lock(&t->lock);
	if (e.begin_ns < t->started_ns)
		e.begin_ns = t->started_ns;
	if (gpul_net_trace_is_on(t) && e.end_ns >= e.begin_ns + LEAST_WAIT_NS)
		add_event(t, &e);
	(void)pthread_mutex_unlock(&t->lock);
}
