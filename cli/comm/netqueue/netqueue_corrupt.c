/* netqueue_corrupt.c — --corrupt: replaces one member of random entries by a value that the kernel must refuse. */
#include <stdlib.h>

#include "cli/comm/netqueue/cli_netqueue.h"

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 20;
}

static void remember(struct netqueue_corruptor *c, const gpul_netqueue_entry *e)
{
	if (c->n == c->n_reserved) {
		const size_t n = c->n_reserved ? 2 * c->n_reserved : 256;
		void *larger = realloc(c->entries, n * sizeof *c->entries);

		if (!larger) {
			c->no_memory = true;
			return;
		}
		c->entries = larger;
		c->n_reserved = n;
	}
	c->entries[c->n++] = (struct netqueue_corrupted){ gpul_netqueue_destination_of(e), gpul_netqueue_length_of(e) };
}

void netqueue_corrupt(void *context, uint64_t n, gpul_netqueue_entry *e)
{
	struct netqueue_corruptor *c = context;
	uint64_t source = gpul_netqueue_source_of(e), destination = gpul_netqueue_destination_of(e);
	uint32_t length = gpul_netqueue_length_of(e), lap = (uint32_t)(e->word[0] >> GPUL_NETQUEUE_LAP_SHIFT);

	(void)n;
	if ((double)(next_random(&c->seed) % 1000000) >= c->probability * 1e6)
		return;
	remember(c, e);
	const uint64_t far = next_random(&c->seed) % (1 << 20);

	switch (next_random(&c->seed) % 8) {
	case 0:
		length = 0;
		break;
	case 1:
		length = c->slot_bytes + 1 + (uint32_t)far % (c->slot_bytes - 1);
		break;
	case 2:
		source = c->bounce_bytes + far;
		break;
	case 3: /* a source that begins at the last byte of the last slot and ends after it */
		source = c->bounce_bytes - 1;
		length = 2;
		break;
	case 4: /* a source that crosses the end of the first slot */
		source = c->slot_bytes - 1;
		length = 2;
		break;
	case 5:
		destination = c->destination_bytes + far;
		break;
	case 6:
		destination = c->destination_bytes - (length > 1 ? length - 1 : 0); /* end one byte after the end of the destination */
		break;
	default:
		lap = (lap + 2 + (uint32_t)far % 200) % GPUL_NETQUEUE_LAPS;
	}
	*e = gpul_netqueue_pack(lap, source, length, destination);
}
