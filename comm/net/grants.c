/* grants.c — grants steps of channels: each step is a message of the admission (admission.h). */
#include "comm/net/grants.h"

#include <stdlib.h>

#include "comm/device/channel_layout.h"
#include "comm/net/admission.h"

struct granted_channel {
	uint64_t asked; /* number of steps that were requested; the members below are also numbers of steps */
	uint64_t arrived;
	unsigned waiting; /* steps that were requested and have not been granted: the last ones before `asked` */
	unsigned held;    /* steps that were granted and have not arrived */
};

struct gpul_comm_grants {
	gpul_comm_grants_desc desc;
	gpul_admission *admission;
	struct granted_channel *channels; /* indexed by [route][block] */
	unsigned *next_block;             /* for each route, the block that gets the next grant if it has a waiting step */
};

static uint64_t window_of(const gpul_comm_grants_desc *desc)
{
	const uint64_t least = 2 * (uint64_t)desc->slot_bytes;

	return desc->window_bytes < least ? least : desc->window_bytes;
}

uint64_t gpul_comm_grants_free_bytes(const gpul_comm_grants_desc *desc)
{
	return window_of(desc) / 2 / desc->n_routes;
}

bool gpul_comm_grants_may_go(uint64_t step, uint64_t granted, uint64_t free_left, uint32_t n_bytes, uint32_t *free_bytes)
{
	*free_bytes = step < granted ? 0 : n_bytes;
	return *free_bytes <= free_left;
}

gpul_status gpul_comm_grants_create(const gpul_comm_grants_desc *desc, gpul_comm_grants **out, gpul_error *err)
{
	gpul_admission_desc admission = { .n_senders = desc->n_routes,
					  .max_messages = desc->n_blocks * GPUL_COMM_STEPS,
					  .grant_bytes = desc->slot_bytes,
					  .late_ns = desc->late_ns };
	gpul_comm_grants *g;
	gpul_status st;

	if (desc->n_routes < 1 || desc->n_blocks < 1 || desc->slot_bytes < 1)
		return gpul_fail(err, GPUL_EINVAL, 0, "flow control (grants): n_routes, n_blocks and slot_bytes must be at least 1");
	admission.window_bytes = window_of(desc) - desc->n_routes * gpul_comm_grants_free_bytes(desc);
	g = calloc(1, sizeof *g);
	if (!g)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the flow control of %u connections", desc->n_routes);
	g->desc = *desc;
	g->channels = calloc((size_t)desc->n_routes * desc->n_blocks, sizeof *g->channels);
	g->next_block = calloc(desc->n_routes, sizeof *g->next_block);
	st = g->channels && g->next_block
		     ? gpul_admission_create(&admission, &g->admission, err)
		     : gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the flow control of %u connections", desc->n_routes);
	if (st)
		gpul_comm_grants_destroy(g);
	else
		*out = g;
	return st;
}

void gpul_comm_grants_destroy(gpul_comm_grants *g)
{
	if (!g)
		return;
	gpul_admission_destroy(g->admission);
	free(g->next_block);
	free(g->channels);
	free(g);
}

static struct granted_channel *channel_of(const gpul_comm_grants *g, unsigned route, unsigned block)
{
	return &g->channels[(size_t)route * g->desc.n_blocks + block];
}

/* Return the number of the first waiting step, which the sender reads as `granted`.  Later steps may have been sent without a
 * grant, as free bytes. */
static uint64_t first_waiting(const struct granted_channel *c)
{
	return c->asked - c->waiting;
}

uint64_t gpul_comm_grants_granted(const gpul_comm_grants *g, unsigned route, unsigned block)
{
	return first_waiting(channel_of(g, route, block));
}

uint64_t gpul_comm_grants_requested_for(const gpul_comm_grants *g, unsigned route, unsigned block)
{
	return channel_of(g, route, block)->asked;
}

bool gpul_comm_grants_watches(const gpul_comm_grants *g, unsigned route, unsigned block)
{
	return channel_of(g, route, block)->held;
}

void gpul_comm_grants_arrived(gpul_comm_grants *g, unsigned route, unsigned block, uint64_t tail)
{
	struct granted_channel *c = channel_of(g, route, block);
	const uint64_t granted = first_waiting(c);
	const uint64_t left = granted > tail ? granted - tail : 0;

	c->arrived = tail > c->arrived ? tail : c->arrived;
	if (left >= c->held)
		return;
	gpul_admission_arrived(g->admission, route, (c->held - left) * g->desc.slot_bytes);
	c->held = (unsigned)left;
}

/* Steps before `arrived` need no grant.  At most GPUL_COMM_STEPS steps of a channel can be in flight. */
void gpul_comm_grants_requested(gpul_comm_grants *g, unsigned route, unsigned block, uint64_t asked)
{
	struct granted_channel *c = channel_of(g, route, block);
	const uint64_t known = c->asked > c->arrived ? c->asked : c->arrived;

	if (asked <= c->asked)
		return;
	c->asked = asked;
	for (uint64_t step = known; step < asked && c->waiting < GPUL_COMM_STEPS; step++)
		c->waiting += gpul_admission_request(g->admission, route, g->desc.slot_bytes);
}

bool gpul_comm_grants_next(gpul_comm_grants *g, unsigned *route, unsigned *block)
{
	gpul_admission_grant grant;
	struct granted_channel *c;
	unsigned b;

	if (!gpul_admission_next(g->admission, &grant))
		return false;
	for (b = g->next_block[grant.sender]; !channel_of(g, grant.sender, b)->waiting;)
		b = (b + 1) % g->desc.n_blocks; /* this loop ends, because a request in the admission implies a waiting step */
	g->next_block[grant.sender] = (b + 1) % g->desc.n_blocks;
	c = channel_of(g, grant.sender, b);
	c->waiting--;
	if (first_waiting(c) > c->arrived)
		c->held++;
	else /* the step has arrived in the meantime without a grant, as free bytes */
		gpul_admission_arrived(g->admission, grant.sender, g->desc.slot_bytes);
	*route = grant.sender;
	*block = b;
	return true;
}

void gpul_comm_grants_leave(gpul_comm_grants *g, unsigned route)
{
	gpul_admission_leave(g->admission, route);
	for (unsigned b = 0; b < g->desc.n_blocks; b++) {
		struct granted_channel *c = channel_of(g, route, b);

		c->asked -= c->waiting;
		c->waiting = c->held = 0;
	}
}

void gpul_comm_grants_tick(gpul_comm_grants *g, uint64_t now_ns)
{
	gpul_admission_tick(g->admission, now_ns);
}

uint64_t gpul_comm_grants_in_flight(const gpul_comm_grants *g)
{
	return gpul_admission_held(g->admission);
}
