/* walk_plan.c — makes random groups of messages from a seed. */
#include "tests/nccl/net/walk_plan.h"

#include <stdlib.h>

uint32_t random_below(struct rng *r, uint32_t n)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ull; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (uint32_t)(((z ^ z >> 31) >> 32) * n >> 32);
}

static size_t choose_bytes(struct rng *r, size_t most)
{
	static const size_t special[] = { 0, 0, 1, 3, 8, 4096, 65536, SMALL_BYTES };
	const size_t bytes = random_below(r, 2) ? special[random_below(r, 8)] : random_below(r, SMALL_BYTES + 1);

	return bytes < most ? bytes : most;
}

static void make_group(struct rng *r, struct group *g, size_t most_bytes)
{
	const int alike = random_below(r, 8) == 0; /* true: messages of the group may have the same tag */
	size_t slot_at = 0;
	int tag = (int)random_below(r, N_TAGS);

	g->n = random_below(r, 3) ? 1 + (int)random_below(r, MAX_GROUP) : 1;
	for (int i = 0; i < g->n; i++) {
		struct message *m = &g->at[i];
		const int big = i == 0 && random_below(r, 16) == 0;

		m->tag = tag;
		tag = alike ? (int)random_below(r, N_TAGS) : (tag + 1) % N_TAGS;
		m->bytes = big ? random_below(r, BIG_BYTES) + 1 : choose_bytes(r, most_bytes);
		m->bytes = m->bytes < most_bytes ? m->bytes : most_bytes;
		m->room = m->bytes + (random_below(r, 2) ? random_below(r, GUARD_BYTES + 1) : 0);
		m->noise_at = random_below(r, NOISE_BYTES - (uint32_t)m->bytes);
		m->slot_at = slot_at;
		slot_at += m->bytes + GUARD_BYTES;
	}
}

struct group *make_plan(uint64_t seed, int n_groups, size_t most_bytes)
{
	struct group *plan = calloc((size_t)n_groups, sizeof *plan);
	struct rng r = { seed };

	for (int i = 0; plan && i < n_groups; i++)
		make_group(&r, &plan[i], most_bytes);
	return plan;
}

unsigned char *make_noise(void)
{
	unsigned char *noise = malloc(NOISE_BYTES);
	struct rng r = { 42 };

	for (size_t i = 0; noise && i < NOISE_BYTES / sizeof(uint32_t); i++)
		((uint32_t *)(void *)noise)[i] = random_below(&r, UINT32_MAX);
	return noise;
}
