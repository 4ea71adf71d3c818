/* arrivals.c — polls the announced steps, starts flushes, and then raises the tails. */
#include "comm/net/arrivals.h"

#include <stdlib.h>

enum { FLUSHED_BYTES = 8 };

struct gpul_comm_arrivals {
	gpul_comm_arrivals_desc desc;
	gpul_rdma_request flush; /* the flush that is in flight; 0: none */
	bool waiting;            /* there are steps that were announced after the last flush began */
	/* for each block: the number of steps that the flush in flight covers, or, if there is none, that the next flush will cover */
	uint64_t seen[];
};

gpul_status gpul_comm_arrivals_create(const gpul_comm_arrivals_desc *desc, gpul_comm_arrivals **out, gpul_error *err)
{
	gpul_comm_arrivals *a = calloc(1, sizeof *a + desc->n_blocks * sizeof *a->seen);

	if (!a)
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory to record the messages that arrive for %u blocks", desc->n_blocks);
	a->desc = *desc;
	a->desc.block_step = desc->block_step ? desc->block_step : 1;
	if (a->desc.slots.bytes > FLUSHED_BYTES)
		a->desc.slots.bytes = FLUSHED_BYTES; /* flushing a part of the memory flushes the whole memory */
	for (unsigned b = 0; b < desc->n_blocks; b++)
		a->seen[b] = desc->inboxes[b].tail;
	*out = a;
	return GPUL_OK;
}

void gpul_comm_arrivals_destroy(gpul_comm_arrivals *a)
{
	free(a);
}

/* Read the announced steps.  A word may arrive in parts, its low bytes first, so a partial value is less than the new value, and
 * may even be less than the old one; it is ignored until it has increased. */
static void look(gpul_comm_arrivals *a)
{
	for (unsigned b = a->desc.first_block; b < a->desc.n_blocks; b += a->desc.block_step) {
		const uint64_t announced = __atomic_load_n(&a->desc.announced[b], __ATOMIC_ACQUIRE);

		if (announced > a->seen[b]) {
			a->seen[b] = announced;
			a->waiting = true;
		}
	}
}

static void raise_tails(gpul_comm_arrivals *a)
{
	for (unsigned b = a->desc.first_block; b < a->desc.n_blocks; b += a->desc.block_step) {
		gpul_comm_inbox *inbox = &a->desc.inboxes[b];

		if (inbox->tail != a->seen[b])
			__atomic_store_n(&inbox->tail, a->seen[b], __ATOMIC_RELEASE); /* pairs with the acquire in gpul_simple_wait() */
	}
}

gpul_status gpul_comm_arrivals_poll(gpul_comm_arrivals *a, bool *busy, gpul_error *err)
{
	bool done = false;
	gpul_status st = GPUL_OK;

	if (!a->flush) {
		look(a);
		*busy = a->waiting;
		if (a->waiting)
			st = gpul_rdma_iflush(a->desc.conn, &a->desc.slots, 0, &a->flush, err);
		if (st || !a->flush)
			return st;
		a->waiting = false;
	}
	*busy = true;
	st = gpul_rdma_test(a->desc.conn, a->flush, &done, NULL, err);
	if (st || !done)
		return st;
	a->flush = 0;
	raise_tails(a);
	return GPUL_OK;
}
