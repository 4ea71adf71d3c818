/* put.c — performs the puts that kernels request: starts a put for each trigger, and releases the triggers whose puts have ended.
 *
 *     queue:  tail ─ oldest put in flight ... newest ─ head      in the order of the triggers, all lanes together
 *
 * A trigger is released when its put and all puts before it have ended, so the positions of a lane are released in order,
 * even if its puts take different routes. */
#include "rdma/put/put.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/clock.h"
#include "rdma/rdma_internal.h"

enum { QUEUE = 4096, QUEUE_MASK = QUEUE - 1, TURNS_PER_LOOK = 64 };

struct flying {
	gpul_rdma_conn *conn;
	gpul_fifo *fifo;
	gpul_rdma_request request;
	uint32_t lane;
	uint64_t position, popped_ns, posted_ns;
};

struct route {
	gpul_rdma_put_route to;
	const gpul_rdma_area *from;
	uint64_t *steps; /* for each step, its value after all puts so far */
};

struct gpul_rdma_putter {
	gpul_rdma_putter_desc desc;
	struct route *routes;
	gpul_rdma_conn **conns; /* the connections of the routes; each connection appears once */
	unsigned n_conns;
	struct flying queue[QUEUE];
	uint32_t head, tail;
	uint32_t posted; /* the puts before this position have been posted; counted only if desc.observer is set */
	_Atomic uint64_t ended;
};

/* ---- create ---------------------------------------------------------------------------------------------- */

static uint64_t area_bytes(const gpul_rdma_area *a)
{
	const gpul_rdma_piece *last = &a->pieces[a->n_pieces - 1];

	return last->at + last->bytes - a->pieces[0].at;
}

static gpul_status check_route(const gpul_rdma_put_route *route, unsigned i, gpul_error *err)
{
	if (!route->conn || !route->from)
		return gpul_fail(err, GPUL_EINVAL, 0, "route %u has no connection or no region", i);
	if (gpul_rdma_region_area(route->from)->staged)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "route %u: the NIC cannot read this GPU memory: let the kernels put from host-NUMA memory", i);
	if (route->n_steps > GPUL_RDMA_PUT_NO_STEP || route->n_steps * sizeof(uint64_t) > route->steps.bytes)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "route %u: %u step counters of 8 bytes do not fit into %llu bytes (at most %d step counters are "
				 "possible)",
				 i, route->n_steps, (unsigned long long)route->steps.bytes, GPUL_RDMA_PUT_NO_STEP);
	if (route->n_steps && route->steps.address % sizeof(uint64_t))
		return gpul_fail(err, GPUL_EINVAL, 0, "route %u: the step counters are at 0x%llx: expected a multiple of 8", i,
				 (unsigned long long)route->steps.address);
	return GPUL_OK;
}

/* Check that all memory of a route can be reached with the offsets of a trigger, which have a limited number of bits. */
static gpul_status check_reach(const gpul_rdma_put_route *route, unsigned i, gpul_error *err)
{
	const uint64_t from = area_bytes(gpul_rdma_region_area(route->from));

	if (from > GPUL_RDMA_PUT_FROM_END)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "route %u: the region has %llu bytes, but a put can address only %llu: register parts of the "
				 "memory, and use one route for each part",
				 i, (unsigned long long)from, GPUL_RDMA_PUT_FROM_END);
	if (route->to.bytes > GPUL_RDMA_PUT_TO_END)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "route %u: the peer's memory has %llu bytes, but a put can address only %llu: send handles for "
				 "parts of the memory, and use one route for each part",
				 i, (unsigned long long)route->to.bytes, GPUL_RDMA_PUT_TO_END);
	if (route->to.bytes > UINT64_MAX - route->to.address || route->steps.bytes > UINT64_MAX - route->steps.address)
		return gpul_fail(err, GPUL_EINVAL, 0, "route %u: the peer's memory or steps end beyond the address space", i);
	return GPUL_OK;
}

/* Add a connection to the list, unless it is there already. */
static void add_conn(gpul_rdma_putter *p, gpul_rdma_conn *conn)
{
	for (unsigned i = 0; i < p->n_conns; i++)
		if (p->conns[i] == conn)
			return;
	p->conns[p->n_conns++] = conn;
}

gpul_status gpul_rdma_putter_create(const gpul_rdma_putter_desc *desc, gpul_rdma_putter **out, gpul_error *err)
{
	gpul_rdma_putter *p;

	if (desc->n_routes < 1 || desc->n_routes > GPUL_RDMA_PUT_ROUTES)
		return gpul_fail(err, GPUL_EINVAL, 0, "the number of routes is %u: expected 1 to %d", desc->n_routes, GPUL_RDMA_PUT_ROUTES);
	for (unsigned i = 0; i < desc->n_routes; i++) {
		gpul_status st = check_route(&desc->routes[i], i, err);

		st = st ? st : check_reach(&desc->routes[i], i, err);
		if (st)
			return st;
	}
	p = calloc(1, sizeof *p);
	if (!p)
		goto no_memory;
	p->desc = *desc;
	p->desc.routes = NULL; /* p->routes is this putter's copy, because the caller may free its array */
	if (!p->desc.timeout_ms)
		p->desc.timeout_ms = GPUL_RDMA_PUT_TIMEOUT_MS;
	p->routes = calloc(desc->n_routes, sizeof *p->routes);
	p->conns = calloc(desc->n_routes, sizeof *p->conns);
	if (!p->routes || !p->conns)
		goto no_memory;
	for (unsigned i = 0; i < desc->n_routes; i++) {
		struct route *r = &p->routes[i];

		r->to = desc->routes[i];
		r->from = gpul_rdma_region_area(r->to.from);
		r->steps = calloc(r->to.n_steps + 1, sizeof *r->steps);
		if (!r->steps)
			goto no_memory;
		add_conn(p, r->to.conn);
	}
	*out = p;
	return GPUL_OK;
no_memory:
	gpul_rdma_putter_destroy(p);
	return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the puts of %u routes", desc->n_routes);
}

void gpul_rdma_putter_destroy(gpul_rdma_putter *p)
{
	if (!p)
		return;
	for (unsigned i = 0; p->routes && i < p->desc.n_routes; i++)
		free(p->routes[i].steps);
	free(p->routes);
	free(p->conns);
	free(p);
}

uint64_t gpul_rdma_putter_ended(const gpul_rdma_putter *p)
{
	return atomic_load_explicit(&p->ended, memory_order_relaxed);
}

/* ---- the end of puts ----------------------------------------------------------------------------------------- */

static void report(const gpul_rdma_putter *p, const struct flying *f)
{
	const gpul_rdma_put_event event = {
		.lane = f->lane,
		.position = f->position,
		.popped_ns = f->popped_ns,
		.posted_ns = f->posted_ns,
		.ended_ns = gpul_clock_ns(),
	};

	p->desc.observer(p->desc.observer_context, &event);
}

static gpul_status release_ended(gpul_rdma_putter *p, gpul_error *err)
{
	const struct flying *last = NULL; /* the newest ended put of one lane; one store then releases all triggers of the lane up to it */
	gpul_status st = GPUL_OK;
	uint64_t n = 0;

	for (; p->tail != p->head; p->tail++, n++) {
		const struct flying *f = &p->queue[p->tail & QUEUE_MASK];
		bool done = false;

		st = gpul_rdma_link_test(f->conn->link, f->request, &done, NULL, err);
		if (st || !done)
			break;
		if (p->desc.observer)
			report(p, f);
		if (last && (last->lane != f->lane || last->fifo != f->fifo))
			gpul_fifo_release_lane(last->fifo, last->lane, last->position + 1);
		last = f;
	}
	if (last)
		gpul_fifo_release_lane(last->fifo, last->lane, last->position + 1);
	atomic_store_explicit(&p->ended, atomic_load_explicit(&p->ended, memory_order_relaxed) + n, memory_order_relaxed);
	return st;
}

/* Record the time of posting for the puts whose operations have been posted since the last call. */
static void stamp_posted(gpul_rdma_putter *p)
{
	const uint64_t now_ns = gpul_clock_ns();

	for (; p->posted != p->head; p->posted++) {
		struct flying *f = &p->queue[p->posted & QUEUE_MASK];

		if (!gpul_rdma_link_emitted(f->conn->link, f->request))
			return;
		f->posted_ns = now_ns;
	}
}

gpul_status gpul_rdma_put_progress(void *context, bool *busy, gpul_error *err)
{
	gpul_rdma_putter *p = context;

	for (unsigned i = 0; i < p->n_conns; i++) {
		bool conn_busy = false;
		const gpul_status st = gpul_rdma_progress(p->conns[i], &conn_busy, err);

		if (st)
			return st;
		*busy |= conn_busy;
	}
	if (p->desc.observer && p->posted != p->head)
		stamp_posted(p);
	return release_ended(p, err);
}

/* ---- new puts -------------------------------------------------------------------------------------------------- */

static gpul_status fill_put(gpul_rdma_putter *p, const gpul_fifo_item *item, gpul_rdma_put_desc *put, struct route **route, gpul_error *err)
{
	const unsigned index = GPUL_RDMA_PUT_ROUTE(item->word[1]), step = GPUL_RDMA_PUT_STEP(item->word[1]);
	const uint64_t bytes = GPUL_RDMA_PUT_BYTES(item->word[1]);
	const uint64_t from = GPUL_RDMA_PUT_FROM(item->word[0]), to = GPUL_RDMA_PUT_TO(item->word[0]);
	struct route *r;

	if (from == GPUL_RDMA_PUT_FROM_END || to == GPUL_RDMA_PUT_TO_END || bytes == GPUL_RDMA_PUT_BYTES_END)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "a put pushed in lane %u is out of range: offsets must be multiples of 16, that of the source "
				 "below 64 GiB - 16, that of the destination below 32 GiB - 16, and the size below 2 GiB - 1 "
				 "bytes",
				 item->lane);
	if (index >= p->desc.n_routes)
		return gpul_fail(err, GPUL_EINVAL, (int)index, "a put pushed in lane %u uses route %u, but there are only %u routes",
				 item->lane, index, p->desc.n_routes);
	r = &p->routes[index];
	if (step != GPUL_RDMA_PUT_NO_STEP && step >= r->to.n_steps)
		return gpul_fail(err, GPUL_EINVAL, (int)step,
				 "a put pushed in lane %u increments step counter %u, but route %u has only %u step counters", item->lane,
				 step, index, r->to.n_steps);
	if (from > area_bytes(r->from) || bytes > area_bytes(r->from) - from)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "a put pushed in lane %u: %llu bytes at offset %llu are not inside the source region of %llu "
				 "bytes",
				 item->lane, (unsigned long long)bytes, (unsigned long long)from, (unsigned long long)area_bytes(r->from));
	if (to > r->to.to.bytes || bytes > r->to.to.bytes - to)
		return gpul_fail(err, GPUL_EINVAL, 0,
				 "a put pushed in lane %u: %llu bytes at offset %llu are not inside the peer's memory of %llu "
				 "bytes",
				 item->lane, (unsigned long long)bytes, (unsigned long long)to, (unsigned long long)r->to.to.bytes);
	*put = (gpul_rdma_put_desc){
		.from = { .at = r->from->pieces[0].at + from, .bytes = bytes, .area = r->from },
		.to = { .address = r->to.to.address + to, .key = r->to.to.key, .bytes = bytes },
		.lane = item->lane,
	};
	if (step != GPUL_RDMA_PUT_NO_STEP) {
		put->signal = (gpul_rdma_remote){ .address = r->to.steps.address + step * sizeof(uint64_t),
						  .key = r->to.steps.key,
						  .bytes = sizeof(uint64_t) };
		put->signal_value = r->steps[step] + 1;
	}
	*route = r;
	return GPUL_OK;
}

/* Make progress until a put ends, because too many are in flight.  The proxy's loop does not run meanwhile, so check here whether a
 * kernel has aborted the FIFO. */
static gpul_status make_room(gpul_rdma_putter *p, gpul_fifo *fifo, unsigned turn, gpul_error *err)
{
	bool busy = false;

	if (turn % TURNS_PER_LOOK == 0 && gpul_fifo_aborted(fifo)) {
		char text[64];

		return gpul_fail(err, GPUL_ESYS, ECANCELED, "the FIFO was aborted, with %u puts in flight: %s", p->head - p->tail,
				 gpul_fifo_code_text(gpul_fifo_aborted(fifo), text));
	}
	return gpul_rdma_put_progress(p, &busy, err);
}

static gpul_status start_put(gpul_rdma_putter *p, gpul_fifo *fifo, const gpul_fifo_item *item, uint64_t now_ns, gpul_error *err)
{
	const uint64_t deadline_ns = p->desc.timeout_ms > 0 ? now_ns + (uint64_t)p->desc.timeout_ms * 1000000 : 0;
	struct flying *f = &p->queue[p->head & QUEUE_MASK];
	gpul_rdma_put_desc put;
	gpul_rdma_request request = 0;
	struct route *route = NULL;
	gpul_status st = fill_put(p, item, &put, &route, err);

	for (unsigned turn = 1; !st; turn++) {
		if (p->head - p->tail < QUEUE)
			st = gpul_rdma_link_put(route->to.conn->link, &put, deadline_ns, &request, err);
		if (st || request)
			break;
		st = make_room(p, fifo, turn, err);
	}
	if (st)
		return st;
	if (put.signal.bytes)
		route->steps[GPUL_RDMA_PUT_STEP(item->word[1])]++;
	*f = (struct flying){ .conn = route->to.conn,
			      .fifo = fifo,
			      .request = request,
			      .lane = item->lane,
			      .position = item->position,
			      .popped_ns = now_ns };
	p->head++;
	return GPUL_OK;
}

gpul_status gpul_rdma_put_handle(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	gpul_rdma_putter *p = context;
	const uint64_t now_ns = gpul_clock_ns(); /* read once per batch, because it costs 25 ns */
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < n; i++)
		st = start_put(p, fifo, &items[i], now_ns, err);
	return st;
}
