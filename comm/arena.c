/* arena.c — computes the layout of the memory that ranks map from each other, allocates it and exchanges it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm_internal.h"

/* Compute the offsets of an arena from its sizes. */
void gpul_comm_arena_sizes(gpul_comm_sizes *s)
{
	const uint64_t n_channels = (uint64_t)s->n_ranks * s->n_blocks;

	s->data_at = GPUL_COMM_LINE_BYTES;
	s->ll_at = s->data_at + (uint64_t)GPUL_COMM_STEPS * (s->slot_bytes + GPUL_COMM_LINE_BYTES) - GPUL_COMM_LINE_BYTES;
	s->ll128_at = s->ll_at + (uint64_t)GPUL_COMM_STEPS * s->ll_bytes;
	s->slots_bytes = s->ll128_at + (uint64_t)GPUL_COMM_STEPS * s->ll128_bytes;
	s->inboxes_at = n_channels * s->slots_bytes;
	s->outboxes_at = s->inboxes_at + n_channels * sizeof(gpul_comm_inbox);
	s->greetings_at = s->outboxes_at + n_channels * sizeof(gpul_comm_outbox);
	s->goodbyes_at = s->greetings_at + 2 * s->n_ranks * sizeof(gpul_comm_greeting);
	s->scratch_at = s->goodbyes_at + n_channels * sizeof(gpul_comm_goodbye);
	s->arena_bytes = s->scratch_at + 2 * (uint64_t)s->n_ranks * s->scratch_bytes;
}

/* A rank's description of the memory that the other ranks will map. */
struct memory_offer {
	uint64_t bytes, mapped_bytes;
	uint32_t kind;
	gpul_error failure; /* why this rank's allocation failed, if it did */
};

static gpul_status import_from(gpul_comm *c, int rank, const struct memory_offer *offer, int fd, gpul_mem **out, gpul_error *err)
{
	const gpul_mem_offer about = { .kind = (gpul_mem_kind)offer->kind,
				       .bytes = offer->bytes,
				       .mapped_bytes = offer->mapped_bytes,
				       .owner_device = c->paths[rank].device };
	const gpul_mem_desc desc = { .devices = &c->device, .n_devices = 1 };
	gpul_error why = { 0 };
	const gpul_status st = gpul_mem_import(c->drv, &about, fd, NULL, &desc, out, &why);

	return st ? gpul_fail(err, st, why.native, "rank %d cannot map memory of rank %d: %s", c->rank, rank, why.text) : GPUL_OK;
}

/* Send this rank's descriptors to all ranks, receive theirs, and map the memory. */
static gpul_status exchange(gpul_comm *c, const struct memory_offer *offers, const bool *wanted, int my_fd, gpul_mem **theirs,
			    int timeout_ms, gpul_error *err)
{
	int fds[GPUL_COMM_MAX_PEERS];
	gpul_status st = gpul_boot_exchange_fds(c->boot, &my_fd, 1, fds, timeout_ms, err);

	if (st)
		return st;
	for (int r = 0; r < c->n_ranks; r++) {
		if (!st && r != c->rank && wanted[r])
			st = import_from(c, r, &offers[r], fds[r], &theirs[r], err);
		close(fds[r]);
	}
	return st;
}

/* Every rank completes the exchange, even one whose allocation or import failed, so that all ranks return the same failure. */
gpul_status gpul_comm_map_all(gpul_comm *c, const gpul_mem_desc *desc, const bool *wanted, gpul_mem **mine, gpul_mem **theirs,
			      int timeout_ms, gpul_error *err)
{
	struct memory_offer offer = { 0 }, *offers = calloc((size_t)c->n_ranks, sizeof *offers);
	gpul_error *results = calloc((size_t)c->n_ranks, sizeof *results), result = { 0 };
	gpul_status st = GPUL_OK;
	int fd = -1;

	*mine = NULL;
	if (!offers || !results) {
		st = gpul_fail(err, GPUL_ENOMEM, 0, "no memory to exchange file descriptors with the other ranks");
		goto out;
	}
	if (!gpul_mem_create(c->drv, desc, mine, &offer.failure) && !gpul_mem_export_fd(*mine, &fd, &offer.failure))
		offer = (struct memory_offer){ .bytes = gpul_mem_about(*mine)->bytes,
					       .kind = gpul_mem_about(*mine)->kind,
					       .mapped_bytes = gpul_mem_about(*mine)->mapped_bytes };
	st = gpul_boot_allgather(c->boot, &offer, sizeof offer, offers, timeout_ms, err);
	for (int r = 0; !st && r < c->n_ranks; r++)
		if (offers[r].failure.status)
			st = gpul_fail(err, offers[r].failure.status, offers[r].failure.native, "rank %d: %s", r, offers[r].failure.text);
	if (st)
		goto out;
	(void)exchange(c, offers, wanted, fd, theirs, timeout_ms, &result);
	st = gpul_boot_allgather(c->boot, &result, sizeof result, results, timeout_ms, err);
	for (int r = 0; !st && r < c->n_ranks; r++)
		if (results[r].status)
			st = gpul_fail(err, results[r].status, results[r].native, "%s", results[r].text);
out:
	free(offers);
	free(results);
	return st;
}

static gpul_status create_kind(gpul_comm *c, struct arena *arena, gpul_mem_kind kind, int timeout_ms, gpul_error *err)
{
	const gpul_mem_desc desc = { .kind = kind,
				     .bytes = c->sizes.arena_bytes,
				     .node = GPUL_MEM_NODE_OF_GPU,
				     .devices = &c->device,
				     .n_devices = 1,
				     .exportable = true };
	bool wanted[GPUL_COMM_MAX_PEERS];
	gpul_status st;

	for (int r = 0; r < c->n_ranks; r++)
		wanted[r] = c->paths[r].transport == (kind == GPUL_MEM_DEVICE ? GPUL_COMM_DEVICE : GPUL_COMM_HOST);
	st = gpul_comm_map_all(c, &desc, wanted, &arena->mine, arena->theirs, timeout_ms, err);
	if (st)
		return st;
	return gpul_cu(c->drv, err, cuMemsetD8Async(gpul_mem_gpu(arena->mine), 0, c->sizes.arena_bytes, NULL));
}

/* Allocate the device arena and the host arena, each only if some pair of ranks uses it.  All ranks allocate the same arenas; on
 * return their memory is zero. */
gpul_status gpul_comm_arenas_create(gpul_comm *c, int timeout_ms, gpul_error *err)
{
	uint8_t needs[2] = { 0, 0 }, all[GPUL_COMM_MAX_PEERS][2];
	gpul_status st;

	for (int r = 0; r < c->n_ranks; r++)
		if (c->paths[r].transport != GPUL_COMM_NET && (r != c->rank || !c->has_network))
			needs[c->paths[r].transport != GPUL_COMM_DEVICE] = 1;
	st = gpul_boot_allgather(c->boot, needs, sizeof needs, all, timeout_ms, err);
	if (st)
		return st;
	for (int r = 0; r < c->n_ranks; r++)
		for (int kind = 0; kind < 2; kind++)
			needs[kind] |= all[r][kind];
	if (needs[0])
		st = create_kind(c, &c->device_arena, GPUL_MEM_DEVICE, timeout_ms, err);
	if (!st && needs[1])
		st = create_kind(c, &c->host_arena, GPUL_MEM_AUTO, timeout_ms, err);
	if (!st)
		st = gpul_cu(c->drv, err, cuStreamSynchronize(NULL));
	c->direct = !needs[1] && !c->has_network;
	return st ? st : gpul_boot_barrier(c->boot, timeout_ms, err);
}

static void destroy_arena(struct arena *arena, int n_ranks)
{
	for (int r = 0; r < n_ranks; r++)
		gpul_mem_destroy(arena->theirs[r]);
	gpul_mem_destroy(arena->mine);
}

void gpul_comm_arenas_destroy(gpul_comm *c)
{
	destroy_arena(&c->device_arena, c->n_ranks);
	destroy_arena(&c->host_arena, c->n_ranks);
}

/* Return the address at which kernels access the memory. */
static unsigned char *address(const gpul_mem *m)
{
	return (unsigned char *)(uintptr_t)gpul_mem_gpu(m);
}

void gpul_comm_arenas_describe(const gpul_comm *c, gpul_comm_view *view)
{
	const gpul_comm_sizes *s = &c->sizes;

	for (int r = 0; r < c->n_ranks; r++) {
		const struct arena *arena = c->paths[r].transport == GPUL_COMM_DEVICE ? &c->device_arena : &c->host_arena;
		unsigned char *mine, *theirs;

		/* the memory of a rank on another host is mapped by network.c; arena->mine is NULL if no pair uses this arena */
		if (c->paths[r].transport == GPUL_COMM_NET || !arena->mine)
			continue;
		mine = address(arena->mine);
		theirs = r == c->rank ? mine : address(arena->theirs[r]);
		view->peers[r] = (gpul_comm_peer){
			.inboxes = mine + s->inboxes_at,
			.their_inboxes = theirs + s->inboxes_at,
			.slots = mine,
			.their_slots = theirs,
			.outboxes = mine + s->outboxes_at,
			.their_outboxes = theirs + s->outboxes_at,
			.desk = mine,
			.their_desk = theirs,
		};
	}
}
