/* net_proxy.c — the proxy's thread: polls the counters of the mirrors (net_proxy.h), puts slots, credits and grants, and makes
 * progress on the connections. */
#include "comm/net/net_proxy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "comm/net/grants.h"
#include "comm/net/mesh.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/thread/thread.h"

enum {
	FLIGHTS = 512, /* limit of the puts in flight on one connection; less than GPUL_RDMA_REQUESTS */
	FLIGHTS_MASK = FLIGHTS - 1,
	SHORTEST_SLEEP_NS = 5000,
	LONGEST_SLEEP_NS = 200 * 1000,
	QUIET_PERIOD_MS = 150,
	ENTRY_BYTES = sizeof(gpul_comm_slot),
	LATE_NS = 100 * 1000 * 1000,
};
_Static_assert((int)FLIGHTS < (int)GPUL_RDMA_REQUESTS, "the proxy's ring has fewer entries than the connection has requests");

/* What the proxy has already put for a channel, in both directions. */
struct channel {
	uint64_t sent, asked; /* number of steps put to the other rank, and of steps for which this rank has requested grants */
	/* number of the other rank's steps for which this rank has put credits, and for which it has put grants */
	uint64_t credited, granted;
};

struct flight {
	gpul_rdma_request request;
	uint32_t free_bytes; /* bytes of a slot that was put without a grant; 0: the slot has a grant */
};

struct route {
	gpul_comm_proxy_route to;
	const gpul_rdma_area *area;
	struct channel *channels;     /* array of n_blocks channels */
	gpul_comm_grants *grants;     /* grants for data that arrives at this route's NIC; NULL: no limit of the bytes in flight */
	unsigned sender;              /* index of the rank at the other end of this route among the senders of `grants` */
	gpul_comm_arrivals *arrivals; /* arrivals of slots in device memory; NULL: the slots of this rank are in host memory */
	struct flight flights[FLIGHTS];
	uint32_t head, tail;     /* positions in the ring `flights`; the oldest put is at tail */
	uint64_t free_in_flight; /* sum of free_bytes over the puts in flight */
	bool failed;
	/* since when no put has ended although puts are in flight, and their number; 0: a put has just ended, or none is in flight.
	 * Other threads read both. */
	_Atomic uint64_t stuck_ns;
	_Atomic uint32_t n_stuck;
};

struct gpul_comm_proxy {
	gpul_comm_proxy_desc desc;
	struct route *routes;
	gpul_comm_grants *grants[GPUL_COMM_MAX_NICS]; /* grants for each NIC of this rank; NULL: no limit */
	gpul_comm_net_trace trace;
	pthread_t thread;
	atomic_bool stop, leaving, tell;
};

/* ---- failures -------------------------------------------------------------------------------------------------- */

static void fail_route(gpul_comm_proxy *p, struct route *r, const char *call, const gpul_error *err)
{
	gpul_rdma_failure why;

	gpul_rdma_conn_failed(r->to.conn, &why);
	if (!why.status) /* after a call with invalid arguments, the connection itself has not failed */
		gpul_rdma_fail(&why, err->status, err->native, call, NULL, "%s", err->text);
	r->failed = true;
	if (r->grants)
		gpul_comm_grants_leave(r->grants, r->sender);
	if (!atomic_load(&p->leaving))
		p->desc.failed(p->desc.context, r->to.rank, r->to.first_block, &why);
}

/* ---- puts -------------------------------------------------------------------------------------------------------- */

/* Start a put.  Returns false if there is no room now, or the connection has failed. kind, step, bytes: for the trace. */
static bool start_put(gpul_comm_proxy *p, struct route *r, const gpul_rdma_put_desc *put, uint32_t free_bytes, uint32_t kind, uint64_t step,
		      uint32_t bytes)
{
	const uint64_t began = gpul_net_trace_now(&p->trace);
	gpul_rdma_request request = 0;
	gpul_error err = { 0 };

	if (r->head - r->tail == FLIGHTS)
		return false;
	if (gpul_rdma_put(r->to.conn, put, 0, &request, &err)) {
		fail_route(p, r, "put", &err);
		return false;
	}
	if (!request)
		return false;
	gpul_net_trace_put(&p->trace, (unsigned)(r - p->routes), r->head,
			   (gpul_comm_net_event){ .begin_ns = began,
						  .step = step,
						  .kind = kind,
						  .peer = r->to.rank,
						  .channel = (uint32_t)put->lane,
						  .bytes = bytes });
	r->flights[r->head++ & FLIGHTS_MASK] = (struct flight){ request, free_bytes };
	r->free_in_flight += free_bytes;
	return true;
}

static gpul_rdma_remote word_at(const gpul_rdma_remote *words, uint64_t offset)
{
	return (gpul_rdma_remote){ .address = words->address + offset, .key = words->key, .bytes = sizeof(uint64_t) };
}

/* Set a word in the peer's memory.  Returns false if there is no room now, or the connection has failed. kind: for the trace. */
static bool put_word(gpul_comm_proxy *p, struct route *r, unsigned block, gpul_rdma_remote word, uint64_t value, uint32_t kind)
{
	const gpul_rdma_put_desc put = { .from = { .area = r->area }, .signal = word, .signal_value = value, .lane = block };

	return start_put(p, r, &put, 0, kind, value, 0);
}

/* True if the next slot of a channel may be put now. */
static bool slot_may_go(const struct route *r, unsigned block, uint32_t n_bytes, uint32_t *free_bytes)
{
	const uint64_t granted = __atomic_load_n(&r->to.grants[block], __ATOMIC_ACQUIRE);

	if (r->to.free_bytes == UINT64_MAX)
		n_bytes = 0;
	return gpul_comm_grants_may_go(r->channels[block].sent, granted, r->to.free_bytes - r->free_in_flight, n_bytes, free_bytes);
}

/* Put the next slot of a channel, and then its tail.  If the slot needs a grant, request grants for all posted slots instead. */
static bool put_slot(gpul_comm_proxy *p, struct route *r, unsigned block, uint64_t posted)
{
	struct channel *ch = &r->channels[block];
	const unsigned slot = ch->sent % GPUL_COMM_STEPS;
	const uint64_t entry_at = block * p->desc.slots_bytes + p->desc.data_at - ENTRY_BYTES +
				  (uint64_t)slot * (p->desc.slot_bytes + GPUL_COMM_LINE_BYTES);
	const uint32_t posted_bytes = r->to.inboxes[block].sizes[slot];
	const uint32_t size = posted_bytes < p->desc.slot_bytes ? posted_bytes : p->desc.slot_bytes;
	const uint64_t n_bytes = ENTRY_BYTES + (uint64_t)size;
	const gpul_rdma_put_desc put = {
		.from = { .at = r->to.slots + entry_at, .bytes = n_bytes, .area = r->area },
		.to = { .address = r->to.data.address + entry_at, .key = r->to.data.key, .bytes = n_bytes },
		.signal = word_at(&r->to.steps, (uint64_t)block * r->to.step_stride),
		.signal_value = ch->sent + 1,
		.lane = block,
	};
	uint32_t free_bytes;

	if (slot_may_go(r, block, size, &free_bytes)) {
		if (!start_put(p, r, &put, free_bytes, GPUL_COMM_NET_SLOT, ch->sent, size))
			return false;
		ch->sent++;
		return true;
	}
	if (ch->asked < posted && put_word(p, r, block, word_at(&r->to.to_asks, block * sizeof(uint64_t)), posted, GPUL_COMM_NET_GRANT))
		ch->asked = posted;
	return false;
}

/* Send credits: the number of steps that this rank's kernels have read. */
static bool put_credit(gpul_comm_proxy *p, struct route *r, unsigned block, uint64_t head)
{
	if (!put_word(p, r, block, word_at(&r->to.heads, block * sizeof(gpul_comm_outbox) + offsetof(gpul_comm_outbox, head)), head,
		      GPUL_COMM_NET_CREDIT))
		return false;
	r->channels[block].credited = head;
	return true;
}

/* Put the steps that the kernels have posted since the last turn of the loop.  Returns true if there were any. */
static bool look_at_mirrors(gpul_comm_proxy *p, struct route *r)
{
	bool found = false;

	for (unsigned b = r->to.first_block; b < p->desc.n_blocks && !r->failed; b += r->to.block_step) {
		/* pairs with the fence and the store in gpul_simple_post() */
		const uint64_t head = __atomic_load_n(&r->to.outboxes[b].head, __ATOMIC_ACQUIRE);
		const uint64_t tail = __atomic_load_n(&r->to.inboxes[b].tail, __ATOMIC_ACQUIRE);

		if (head != r->channels[b].credited)
			found |= put_credit(p, r, b, head);
		while (r->channels[b].sent < tail && put_slot(p, r, b, tail))
			found = true;
	}
	return found;
}

/* ---- grants: comm/net/grants.h ------------------------------------------------------------------------------------- */

/* Read for which steps a rank requests grants, and which of its steps have arrived. */
static void hear_route(const gpul_comm_proxy *p, const struct route *r)
{
	for (unsigned b = r->to.first_block; b < p->desc.n_blocks; b += r->to.block_step) {
		const uint64_t asked = __atomic_load_n(&r->to.asks[b], __ATOMIC_ACQUIRE);
		const bool asks = asked > gpul_comm_grants_requested_for(r->grants, r->sender, b);

		if (asks || gpul_comm_grants_watches(r->grants, r->sender, b))
			gpul_comm_grants_arrived(r->grants, r->sender, b, __atomic_load_n(&r->to.arrived[b].tail, __ATOMIC_ACQUIRE));
		if (asks)
			gpul_comm_grants_requested(r->grants, r->sender, b, asked);
	}
}

/* Grant steps while the limits of bytes in flight allow it.  Returns true if at least one step was granted. */
static bool grant_steps(gpul_comm_proxy *p)
{
	unsigned sender, block;
	bool found = false;

	for (unsigned i = 0; i < p->desc.n_routes; i++)
		if (p->routes[i].grants && !p->routes[i].failed)
			hear_route(p, &p->routes[i]);
	for (unsigned k = 0; k < GPUL_COMM_MAX_NICS; k++) {
		if (!p->grants[k])
			continue;
		if (gpul_comm_grants_in_flight(p->grants[k]))
			gpul_comm_grants_tick(p->grants[k], gpul_clock_ns());
		while (gpul_comm_grants_next(p->grants[k], &sender, &block))
			found = true;
	}
	return found;
}

static bool put_grants(gpul_comm_proxy *p, struct route *r)
{
	bool found = false;

	for (unsigned b = r->to.first_block; b < p->desc.n_blocks && !r->failed; b += r->to.block_step) {
		const uint64_t granted = gpul_comm_grants_granted(r->grants, r->sender, b);

		if (granted == r->channels[b].granted ||
		    !put_word(p, r, b, word_at(&r->to.to_grants, b * sizeof(uint64_t)), granted, GPUL_COMM_NET_GRANT))
			continue;
		r->channels[b].granted = granted;
		found = true;
	}
	return found;
}

/* ---- progress ----------------------------------------------------------------------------------------------------- */

/* Make progress, and release the puts that have ended, the oldest first.  Returns true if a put has ended. */
static bool progress_route(gpul_comm_proxy *p, struct route *r)
{
	gpul_error err = { 0 };
	bool found = false;

	if (r->head == r->tail) {
		if (gpul_rdma_progress(r->to.conn, NULL, &err))
			fail_route(p, r, "progress", &err);
		return false;
	}
	for (bool done = true; done && r->head != r->tail;) {
		const struct flight *oldest = &r->flights[r->tail & FLIGHTS_MASK];

		done = false;
		if (gpul_rdma_test(r->to.conn, oldest->request, &done, NULL, &err)) {
			fail_route(p, r, "put", &err);
			return false;
		}
		if (!done)
			break;
		gpul_net_trace_ended(&p->trace, (unsigned)(r - p->routes), r->tail);
		r->free_in_flight -= oldest->free_bytes;
		r->tail++;
		found = true;
	}
	if (found && atomic_load_explicit(&r->stuck_ns, memory_order_relaxed))
		atomic_store_explicit(&r->stuck_ns, 0, memory_order_relaxed);
	return found;
}

/* Make data that has arrived in device memory visible to the kernels.  Returns true if there was such data. */
static bool look_at_arrivals(gpul_comm_proxy *p, struct route *r)
{
	gpul_error err = { 0 };
	bool busy = false;

	if (r->arrivals && gpul_comm_arrivals_poll(r->arrivals, &busy, &err))
		fail_route(p, r, "flush", &err);
	return busy;
}

/* Perform one turn of the loop.  Returns true if there was an event, or something is in flight. */
static bool turn(gpul_comm_proxy *p)
{
	bool found = grant_steps(p);

	for (unsigned i = 0; i < p->desc.n_routes; i++) {
		struct route *r = &p->routes[i];

		if (r->failed)
			continue;
		if (r->grants)
			found |= put_grants(p, r);
		found |= look_at_mirrors(p, r);
		if (!r->failed)
			found |= progress_route(p, r);
		if (!r->failed)
			found |= look_at_arrivals(p, r);
	}
	return found;
}

/* Sleep for a quarter of the time since the last event, so that the first step after a pause is delayed by at most a quarter of the
 * pause. */
static void rest(uint64_t idle_ns)
{
	const uint64_t quarter_ns = idle_ns / 4 < SHORTEST_SLEEP_NS ? SHORTEST_SLEEP_NS : idle_ns / 4;
	const struct timespec nap = { .tv_nsec = quarter_ns > LONGEST_SLEEP_NS ? LONGEST_SLEEP_NS : (long)quarter_ns };

	(void)nanosleep(&nap, NULL);
}

static void log_routes(const gpul_comm_proxy *p)
{
	for (unsigned i = 0; i < p->desc.n_routes; i++) {
		const struct route *r = &p->routes[i];

		for (unsigned b = r->to.first_block; b < p->desc.n_blocks; b += r->to.block_step)
			gpul_log(GPUL_LOG_DEBUG, "comm",
				 "to rank %d, block %u: %llu messages posted, %llu written, %llu consumed by that rank; from "
				 "that rank: %llu arrived, %llu read, %llu acknowledged; %u RDMA writes in flight",
				 r->to.rank, b, (unsigned long long)__atomic_load_n(&r->to.inboxes[b].tail, __ATOMIC_RELAXED),
				 (unsigned long long)r->channels[b].sent,
				 (unsigned long long)__atomic_load_n(&r->to.freed[b].head, __ATOMIC_RELAXED),
				 (unsigned long long)__atomic_load_n(&r->to.arrived[b].tail, __ATOMIC_RELAXED),
				 (unsigned long long)__atomic_load_n(&r->to.outboxes[b].head, __ATOMIC_RELAXED),
				 (unsigned long long)r->channels[b].credited, r->head - r->tail);
	}
}

/* Called after a turn without an event: record since when the puts in flight on each route have not ended. */
static void note_stuck(gpul_comm_proxy *p, uint64_t now)
{
	for (unsigned i = 0; i < p->desc.n_routes; i++) {
		struct route *r = &p->routes[i];

		if (r->failed || r->head == r->tail)
			continue;
		atomic_store_explicit(&r->n_stuck, r->head - r->tail, memory_order_relaxed);
		if (!atomic_load_explicit(&r->stuck_ns, memory_order_relaxed))
			atomic_store_explicit(&r->stuck_ns, now, memory_order_relaxed);
	}
}

/* True if nothing is in flight and the communicator has not been used for a while. */
static bool is_quiet(const gpul_comm_proxy *p, gpul_bell_ear *ear, uint64_t idle_ns)
{
	if (!p->desc.bell || !gpul_bell_is_quiet(p->desc.bell, ear) || idle_ns < (uint64_t)GPUL_BELL_QUIET_MS * 1000 * 1000)
		return false;
	for (unsigned i = 0; i < p->desc.n_routes; i++)
		if (p->routes[i].head != p->routes[i].tail && !p->routes[i].failed)
			return false;
	return true;
}

static void *serve(void *arg)
{
	gpul_comm_proxy *p = arg;
	gpul_bell_ear ear = { 0 };
	uint64_t idle_since = gpul_clock_ns();

	(void)prctl(PR_SET_TIMERSLACK, 1ul);
	if (p->desc.drv)
		/* the driver needs a current context for a flush; if this call fails, the flush reports the failure */
		(void)p->desc.drv->cuCtxSetCurrent(p->desc.gpu);
	while (!atomic_load_explicit(&p->stop, memory_order_relaxed)) {
		if (turn(p)) {
			if (idle_since)
				gpul_net_trace_waited(&p->trace, idle_since);
			idle_since = 0;
			continue;
		}
		const uint64_t now = gpul_clock_ns();

		if (!idle_since)
			idle_since = now;
		note_stuck(p, now);
		if (now - idle_since < p->desc.spin_ns)
			continue;
		if (atomic_exchange_explicit(&p->tell, false, memory_order_relaxed))
			log_routes(p);
		if (is_quiet(p, &ear, now - idle_since))
			gpul_bell_sleep(p->desc.bell, &ear, QUIET_PERIOD_MS);
		else
			rest(now - idle_since);
	}
	return NULL;
}

/* ---- create ---------------------------------------------------------------------------------------------------------- */

/* Create the grants for each NIC of this rank at which several routes arrive.  A NIC with a single route needs no grants. */
static gpul_status create_grants(gpul_comm_proxy *p, gpul_error *err)
{
	gpul_comm_grants_desc desc = {
		.n_blocks = p->desc.n_blocks, .slot_bytes = p->desc.slot_bytes, .window_bytes = p->desc.window_bytes, .late_ns = LATE_NS
	};
	unsigned n_routes[GPUL_COMM_MAX_NICS] = { 0 };
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; i < p->desc.n_routes; i++)
		p->routes[i].sender = n_routes[p->routes[i].to.nic]++;
	for (unsigned k = 0; !st && k < GPUL_COMM_MAX_NICS; k++) {
		desc.n_routes = n_routes[k];
		if (desc.window_bytes && desc.n_routes > 1)
			st = gpul_comm_grants_create(&desc, &p->grants[k], err);
	}
	for (unsigned i = 0; i < p->desc.n_routes; i++)
		p->routes[i].grants = p->grants[p->routes[i].to.nic];
	return st;
}

static void free_proxy(gpul_comm_proxy *p)
{
	for (unsigned i = 0; p->routes && i < p->desc.n_routes; i++) {
		gpul_comm_arrivals_destroy(p->routes[i].arrivals);
		free(p->routes[i].channels);
	}
	free(p->routes);
	for (unsigned k = 0; k < GPUL_COMM_MAX_NICS; k++)
		gpul_comm_grants_destroy(p->grants[k]);
	gpul_net_trace_free(&p->trace);
	free(p);
}

gpul_status gpul_comm_proxy_start(const gpul_comm_proxy_desc *desc, gpul_comm_proxy **out, gpul_error *err)
{
	gpul_comm_proxy *p = calloc(1, sizeof *p);
	gpul_status st;
	int failed;

	if (!p)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the proxy of %u ranks", desc->n_routes);
	p->desc = *desc;
	p->desc.routes = NULL; /* the routes are copied, so that the caller may free its array */
	gpul_net_trace_init(&p->trace, desc->n_routes, FLIGHTS);
	p->routes = calloc(desc->n_routes + 1, sizeof *p->routes);
	if (!p->routes)
		goto no_memory;
	for (unsigned i = 0; i < desc->n_routes; i++) {
		p->routes[i].to = desc->routes[i];
		p->routes[i].to.block_step = desc->routes[i].block_step ? desc->routes[i].block_step : 1;
		p->routes[i].area = gpul_rdma_region_area(desc->routes[i].region);
		p->routes[i].channels = calloc(desc->n_blocks + 1, sizeof *p->routes[i].channels);
		if (!p->routes[i].channels)
			goto no_memory;
		if (desc->routes[i].arrivals && gpul_comm_arrivals_create(desc->routes[i].arrivals, &p->routes[i].arrivals, NULL))
			goto no_memory;
	}
	st = create_grants(p, err);
	if (st) {
		free_proxy(p);
		return st;
	}
	failed = gpul_thread_start(&p->thread, NULL, "comm-net", serve, p);
	if (failed) {
		free_proxy(p);
		return gpul_fail(err, GPUL_ESYS, failed, "cannot start a thread: %s", strerror(failed));
	}
	*out = p;
	return GPUL_OK;
no_memory:
	free_proxy(p);
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the proxy of %u ranks", desc->n_routes);
}

gpul_comm_net_trace *gpul_comm_proxy_trace(gpul_comm_proxy *p)
{
	return p ? &p->trace : NULL;
}

bool gpul_comm_proxy_unacknowledged(const gpul_comm_proxy *p, int rank, unsigned *n_puts, uint64_t *for_ns)
{
	const uint64_t now = gpul_clock_ns();

	*n_puts = 0;
	*for_ns = 0;
	for (unsigned i = 0; p && i < p->desc.n_routes; i++) {
		const struct route *r = &p->routes[i];
		const uint64_t since = atomic_load(&r->stuck_ns);

		if (r->to.rank != rank || !since)
			continue;
		*n_puts += atomic_load(&r->n_stuck);
		if (now > since && now - since > *for_ns)
			*for_ns = now - since;
	}
	return *for_ns > 0;
}

void gpul_comm_proxy_leave(gpul_comm_proxy *p)
{
	if (p)
		atomic_store(&p->leaving, true);
}

void gpul_comm_proxy_report(gpul_comm_proxy *p)
{
	if (p)
		atomic_store(&p->tell, true);
}

void gpul_comm_proxy_stop(gpul_comm_proxy *p)
{
	if (!p)
		return;
	atomic_store(&p->leaving, true);
	atomic_store(&p->stop, true);
	if (p->desc.bell)
		gpul_bell_ring(p->desc.bell);
	(void)pthread_join(p->thread, NULL);
	free_proxy(p);
}
