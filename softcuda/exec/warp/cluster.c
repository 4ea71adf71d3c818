/* cluster.c — clusters of blocks: their barrier (PTX ISA 9.7.13.4), and the search for the block to which a shared address belongs.
 *
 * All blocks of a cluster run on one worker thread, so the cluster's state needs no atomic operations. */
#include <stdlib.h>

#include "softcuda/exec/warp/warp_internal.h"

struct cluster *gpul_cluster_create(struct gpul_exec_launch *l)
{
	struct cluster *c = calloc(1, sizeof *c);

	if (c)
		c->n_blocks = l->cluster_blocks;
	return c;
}

void gpul_cluster_add(struct cluster *c, struct block *b, unsigned rank)
{
	c->block[rank] = b;
	c->n_running++;
	c->n_live += b->n_threads;
	b->cluster = c;
	b->rank = rank;
}

/* Complete the barrier of the cluster if all threads that have not exited have arrived. */
static void complete_if_all_arrived(struct cluster *c)
{
	if (!c->arrived || c->arrived < c->n_live)
		return;
	c->arrived = 0;
	for (unsigned k = 0; k < c->n_blocks; k++) {
		struct block *b = c->block[k];

		if (!b)
			continue;
		EACH_OBSERVER(o, b->launch->machine, barrier_completes)
		o->barrier_completes(o, b, CLUSTER_BARRIER);
		b->progressed = true;
		for (unsigned n = 0; n < b->n_warps; n++)
			b->warps[n].arrived[CLUSTER_BARRIER] = 0;
	}
}

void gpul_cluster_arrive(struct warp_state *s, uint32_t lanes)
{
	struct cluster *c = s->block->cluster;

	c->arrived += count_lanes(lanes & ~s->arrived[CLUSTER_BARRIER]);
	s->arrived[CLUSTER_BARRIER] |= lanes;
	complete_if_all_arrived(c);
}

void gpul_cluster_lanes_ended(struct warp_state *s, uint32_t lanes)
{
	struct cluster *c = s->block->cluster;

	c->n_live -= count_lanes(lanes);
	c->arrived -= count_lanes(lanes & s->arrived[CLUSTER_BARRIER]);
	s->arrived[CLUSTER_BARRIER] &= ~lanes;
	complete_if_all_arrived(c);
}

void gpul_cluster_remove(struct block *b)
{
	struct cluster *c = b->cluster;

	if (!c)
		return;
	c->block[b->rank] = NULL;
	b->cluster = NULL;
	if (!--c->n_running)
		free(c);
}

struct block *gpul_cluster_find(const struct block *b, uint64_t at, uint64_t *offset)
{
	const struct cluster *c = b->cluster;

	for (unsigned k = 0; c && k < c->n_blocks; k++) {
		struct block *one = c->block[k];

		if (!one)
			continue;
		*offset = at - (uintptr_t)one->shared;
		if (*offset < one->shared_bytes)
			return one;
	}
	return NULL;
}
