/* messages.c — send the items of a round, and receive those of the peer and check them. */
#include "tests/rdma/exchange/exchange.h"

#include <inttypes.h>
#include <string.h>

enum { BEFORE = 16, BEHIND = 80, CANARY = 0xc5 }; /* numbers of bytes before and after a message that must keep the value CANARY */

/* ---- send --------------------------------------------------------------------------------------------------------- */

/* Post the next message of the item; *did false: too many requests are in flight. */
static gpul_status send_part(session *s, const part *x, uint32_t slot, sends *all, bool *did, gpul_error *err)
{
	const uint64_t at = slot * s->slot + x->offset + x->from;
	const gpul_rdma_buffer b = buffer_in(&s->out, at, x->bytes, x->tag);
	gpul_rdma_request *r = &all->requests[slot][all->n_requests[slot]];
	gpul_status st;

	pattern_fill(s->out.at + at, x->bytes, x->seed);
	st = gpul_rdma_isend(s->conn, &b, s->deadline_ms, r, err);
	if (st || !*r)
		return st;
	*did = true;
	all->n_requests[slot]++;
	s->totals.messages++;
	s->totals.bytes += x->bytes;
	return GPUL_OK;
}

static gpul_status begin_send(session *s, const plan *p, sends *x, bool *did, gpul_error *err)
{
	const uint32_t slot = x->begun % s->n_slots;
	gpul_status st = GPUL_OK;
	bool posted = true;
	item i;

	item_make(p, s->serving, x->begun, &i);
	while (!st && posted && x->n_requests[slot] < i.n) {
		posted = false;
		st = send_part(s, &i.parts[i.order[x->n_requests[slot]]], slot, x, &posted, err);
		*did |= posted;
	}
	if (!st && x->n_requests[slot] == i.n)
		x->begun++;
	return st;
}

gpul_status sends_step(session *s, const plan *p, sends *x, bool *did, gpul_error *err)
{
	const uint32_t slot = x->ended % s->n_slots;
	bool done = true;
	gpul_status st = GPUL_OK;

	if (x->begun < p->n_items && x->begun - x->ended < s->n_slots)
		st = begin_send(s, p, x, did, err);
	if (st || x->begun == x->ended)
		return st;
	while (!st && done && x->n_ended[slot] < x->n_requests[slot]) {
		st = gpul_rdma_test(s->conn, x->requests[slot][x->n_ended[slot]], &done, NULL, err);
		x->n_ended[slot] += done;
		*did |= done;
	}
	if (!st && x->n_ended[slot] == x->n_requests[slot]) {
		x->n_requests[slot] = x->n_ended[slot] = 0;
		x->ended++;
	}
	return st;
}

/* ---- receive ------------------------------------------------------------------------------------------------------- */

static unsigned char *target_of(const session *s, uint32_t k, const part *x)
{
	return s->in.at + k % s->n_slots * s->slot + x->offset + x->to;
}

static gpul_status begin_receive(session *s, const plan *p, receives *x, bool *did, gpul_error *err)
{
	gpul_rdma_buffer buffers[GPUL_RDMA_MAX_PARTS];
	gpul_rdma_request *r = &x->requests[x->begun % s->n_slots];
	gpul_status st;
	item i;

	item_make(p, !s->serving, x->begun, &i);
	for (unsigned n = 0; n < i.n; n++) {
		unsigned char *at = target_of(s, x->begun, &i.parts[n]);

		memset(at - BEFORE, CANARY, BEFORE);
		memset(at + i.parts[n].bytes, CANARY, BEHIND);
		buffers[n] = buffer_in(&s->in, (uint64_t)(at - s->in.at), i.parts[n].room, i.parts[n].tag);
	}
	st = gpul_rdma_irecv(s->conn, buffers, i.n, s->deadline_ms, r, err);
	if (!st && *r) {
		x->begun++;
		*did = true;
	}
	return st;
}

static bool is_canary(const unsigned char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != CANARY)
			return false;
	return true;
}

static gpul_status check_part(const session *s, const plan *p, uint32_t k, unsigned n, const part *x, uint64_t got, gpul_error *err)
{
	const unsigned char *at = target_of(s, k, x);
	const uint64_t wrong = pattern_check(at, x->bytes, x->seed);

	if (got != x->bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "WRONG DATA: connection %u, round %u, item %u, message %u: %" PRIu64 " bytes reported, %" PRIu64 " sent",
				 p->connection, p->round, k, n, got, x->bytes);
	if (wrong != x->bytes)
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "WRONG DATA: connection %u, round %u, item %u, message %u: byte %" PRIu64 " of %" PRIu64 " is 0x%02x",
				 p->connection, p->round, k, n, wrong, x->bytes, at[wrong]);
	if (!is_canary(at - BEFORE, BEFORE) || !is_canary(at + x->bytes, BEHIND))
		return gpul_fail(err, GPUL_EFORMAT, 0,
				 "WRONG DATA: connection %u, round %u, item %u, message %u of %" PRIu64
				 " bytes: a byte beside it has changed",
				 p->connection, p->round, k, n, x->bytes);
	return GPUL_OK;
}

gpul_status receives_step(session *s, const plan *p, receives *x, bool *did, gpul_error *err)
{
	uint64_t got[GPUL_RDMA_MAX_PARTS] = { 0 };
	bool done = false;
	gpul_status st = GPUL_OK;
	item i;

	if (x->begun < p->n_items && x->begun - x->ended < s->n_slots)
		st = begin_receive(s, p, x, did, err);
	if (st || x->begun == x->ended)
		return st;
	st = gpul_rdma_test(s->conn, x->requests[x->ended % s->n_slots], &done, got, err);
	if (st || !done)
		return st;
	*did = true;
	item_make(p, !s->serving, x->ended, &i);
	for (unsigned n = 0; !st && n < i.n; n++)
		st = check_part(s, p, x->ended, n, &i.parts[n], got[n], err);
	x->ended++;
	return st;
}
