/* put.c — puts of kernels: triggers become requests; requests that have ended release their triggers.
 *
 *     queue:  tail ─ oldest put in flight ... newest ─ head      in the order of the triggers, all lanes together
 *
 * A trigger is released when all puts before it have ended: the positions of a lane are then released in order, whatever the
 * routes of its puts. */
#include "rdma/put/put.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/clock.h"
#include "rdma/rdma_internal.h"

enum { QUEUE = 4096, QUEUE_MASK = QUEUE - 1 };

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
	uint64_t *steps;           /* the value that each step has after the puts so far */
};

struct gpul_rdma_putter {
	gpul_rdma_putter_desc desc;
	struct route *routes;
	struct flying queue[QUEUE];
	uint32_t head, tail;
	uint32_t posted;           /* puts up to here have been posted, for the trace */
	_Atomic uint64_t ended;
};

/* ---- create ---------------------------------------------------------------------------------------------- */

static gpul_status check_route(const gpul_rdma_put_route *route, unsigned i, gpul_error *err)
{
	if (!route->conn || !route->from)
		return gpul_fail(err, GPUL_EINVAL, 0, "route %u has no connection or no region", i);
	if (gpul_rdma_region_area(route->from)->staged)
		return gpul_fail(err, GPUL_EUNSUPPORTED, 0,
				 "route %u: the fabric cannot read this GPU memory: let the kernels put from host-NUMA memory", i);
	if (route->n_steps > GPUL_RDMA_PUT_NO_STEP || route->n_steps * sizeof(uint64_t) > route->steps.bytes)
		return gpul_fail(err, GPUL_EINVAL, 0, "route %u: %u steps of 8 bytes do not fit into %llu bytes (at most %d steps)", i,
				 route->n_steps, (unsigned long long)route->steps.bytes, GPUL_RDMA_PUT_NO_STEP);
	return GPUL_OK;
}

gpul_status gpul_rdma_putter_create(const gpul_rdma_putter_desc *desc, gpul_rdma_putter **out, gpul_error *err)
{
	gpul_rdma_putter *p;

	if (desc->n_routes < 1 || desc->n_routes > GPUL_RDMA_PUT_ROUTES)
		return gpul_fail(err, GPUL_EINVAL, 0, "%u routes: expected 1 to %d", desc->n_routes, GPUL_RDMA_PUT_ROUTES);
	for (unsigned i = 0; i < desc->n_routes; i++) {
		const gpul_status st = check_route(&desc->routes[i], i, err);

		if (st)
			return st;
	}
	p = calloc(1, sizeof *p);
	if (p)
		p->routes = calloc(desc->n_routes, sizeof *p->routes);
	if (!p || !p->routes)
		goto no_memory;
	p->desc = *desc;
	for (unsigned i = 0; i < desc->n_routes; i++) {
		struct route *r = &p->routes[i];

		r->to = desc->routes[i];
		r->from = gpul_rdma_region_area(r->to.from);
		r->steps = calloc(r->to.n_steps + 1, sizeof *r->steps);
		if (!r->steps)
			goto no_memory;
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
		.lane = f->lane, .position = f->position, .popped_ns = f->popped_ns, .posted_ns = f->posted_ns,
		.ended_ns = gpul_clock_ns(),
	};

	p->desc.observer(p->desc.observer_context, &event);
}

static gpul_status release_ended(gpul_rdma_putter *p, gpul_error *err)
{
	const struct flying *last = NULL;  /* of a run of one lane, which one store releases */
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

gpul_status gpul_rdma_put_progress(void *context, bool *busy, gpul_error *err)
{
	gpul_rdma_putter *p = context;

	for (unsigned i = 0; i < p->desc.n_routes; i++) {
		bool conn_busy = false;
		gpul_status st;

		if (i && p->routes[i].to.conn == p->routes[i - 1].to.conn)
			continue;
		st = gpul_rdma_progress(p->routes[i].to.conn, &conn_busy, err);
		if (st)
			return st;
		*busy |= conn_busy;
	}
	if (p->desc.observer && p->posted != p->head)
		for (const uint64_t now = gpul_clock_ns(); p->posted != p->head; p->posted++)
			p->queue[p->posted & QUEUE_MASK].posted_ns = now;
	return release_ended(p, err);
}

/* ---- new puts -------------------------------------------------------------------------------------------------- */

static gpul_status fill_put(gpul_rdma_putter *p, const gpul_fifo_item *item, gpul_rdma_put_desc *put, struct route **route,
			    gpul_error *err)
{
	const unsigned index = GPUL_RDMA_PUT_ROUTE(item->word[1]), step = GPUL_RDMA_PUT_STEP(item->word[1]);
	const uint64_t bytes = GPUL_RDMA_PUT_BYTES(item->word[1]);
	const uint64_t from = GPUL_RDMA_PUT_FROM(item->word[0]), to = GPUL_RDMA_PUT_TO(item->word[0]);
	struct route *r;

	if (index >= p->desc.n_routes)
		return gpul_fail(err, GPUL_EINVAL, (int)index, "a put of lane %u names route %u, but there are %u", item->lane, index,
				 p->desc.n_routes);
	r = &p->routes[index];
	if (step != GPUL_RDMA_PUT_NO_STEP && step >= r->to.n_steps)
		return gpul_fail(err, GPUL_EINVAL, (int)step, "a put of lane %u raises step %u, but route %u has %u", item->lane, step,
				 index, r->to.n_steps);
	if (to > r->to.to.bytes || bytes > r->to.to.bytes - to)
		return gpul_fail(err, GPUL_EINVAL, 0, "a put of lane %u: %llu bytes at offset %llu are not inside the peer's %llu bytes",
				 item->lane, (unsigned long long)bytes, (unsigned long long)to, (unsigned long long)r->to.to.bytes);
	*put = (gpul_rdma_put_desc){
		.from = { .at = r->from->pieces[0].at + from, .bytes = bytes, .area = r->from },
		.to = { .address = r->to.to.address + to, .key = r->to.to.key, .bytes = bytes },
		.lane = item->lane,
	};
	if (step != GPUL_RDMA_PUT_NO_STEP) {
		put->signal = (gpul_rdma_remote){ .address = r->to.steps.address + step * sizeof(uint64_t), .key = r->to.steps.key,
						  .bytes = sizeof(uint64_t) };
		put->signal_value = r->steps[step] + 1;
	}
	*route = r;
	return GPUL_OK;
}

/* Start a put; when too many are in flight, make progress first. */
static gpul_status start_put(gpul_rdma_putter *p, gpul_fifo *fifo, const gpul_fifo_item *item, uint64_t now_ns,
			     gpul_error *err)
{
	const uint64_t deadline_ns = p->desc.timeout_ms > 0 ? now_ns + (uint64_t)p->desc.timeout_ms * 1000000 : 0;
	struct flying *f = &p->queue[p->head & QUEUE_MASK];
	gpul_rdma_put_desc put;
	gpul_rdma_request request = 0;
	struct route *route = NULL;
	bool busy;
	gpul_status st = fill_put(p, item, &put, &route, err);

	while (!st && !request) {
		if (p->head - p->tail < QUEUE)
			st = gpul_rdma_link_put(route->to.conn->link, &put, deadline_ns, &request, err);
		if (!st && !request)
			st = gpul_rdma_put_progress(p, &busy, err);
	}
	if (st)
		return st;
	if (put.signal.bytes)
		route->steps[GPUL_RDMA_PUT_STEP(item->word[1])]++;
	*f = (struct flying){ .conn = route->to.conn, .fifo = fifo, .request = request, .lane = item->lane,
			      .position = item->position, .popped_ns = now_ns };
	p->head++;
	return GPUL_OK;
}

gpul_status gpul_rdma_put_handle(void *context, gpul_fifo *fifo, const gpul_fifo_item *items, unsigned n, gpul_error *err)
{
	gpul_rdma_putter *p = context;
	const uint64_t now_ns = p->desc.timeout_ms > 0 || p->desc.observer ? gpul_clock_ns() : 0;
	gpul_status st = GPUL_OK;

	for (unsigned i = 0; !st && i < n; i++)
		st = start_put(p, fifo, &items[i], now_ns, err);
	return st;
}
