/* damage.c — see soak.h: mistakes that have to be found, done to what poll gave before the checker sees it. */
#include <string.h>

#include "tests/proxy/soak/soak.h"

const struct damage_row damages[N_DAMAGES] = {
	[NO_DAMAGE] = { "none", "", SOAK_PUSH },
	[DROP] = { "drop", "wrong position", SOAK_PUSH },
	[REPEAT] = { "repeat", "wrong position", SOAK_PUSH },
	[SWAP] = { "swap", "lost or overtaken", SOAK_PUSH },
	[STALE_WORD] = { "stale-word", "torn", SOAK_PUSH },
	[STALE_SLOT] = { "stale-slot", "repeated", SOAK_PUSH },
	[FLIP] = { "flip", "torn", SOAK_RELEASE },
	[NO_PAYLOAD] = { "no-payload", "was released, but", SOAK_RELEASE },
	[NO_ANSWER] = { "no-answer", "the answer is not there", SOAK_SYNC },
	[WRONG_LANE] = { "wrong-lane", "wrong lane", SOAK_PUSH },
};

static void swap(gpul_fifo_item *a, gpul_fifo_item *b)
{
	const gpul_fifo_item was = *a;

	memcpy(a->word, b->word, sizeof(a->word));
	memcpy(b->word, was.word, sizeof(b->word));
}

/* items: at least two of one lane, one after the other, of one thread; n is theirs and of what follows. */
static void change(enum damage damage, struct checker *c, gpul_fifo_item *items, unsigned *n)
{
	const unsigned thread = items->word[0] >> SOAK_THREAD_SHIFT & (SOAK_MAX_THREADS - 1);

	switch (damage) {
	case DROP: memmove(items, items + 1, --*n * sizeof(*items)); break;
	case REPEAT: items[1] = items[0]; break;
	case SWAP: swap(&items[0], &items[1]); break;
	case STALE_WORD: items[1].word[1] = items[0].word[1]; break;
	case STALE_SLOT: memcpy(items[1].word, items[0].word, sizeof(items->word)); break;
	case FLIP: items[1].word[0] ^= 1ull << SOAK_RELEASE_SHIFT; break;
	case WRONG_LANE: items[1].lane ^= 1; break;
	case NO_ANSWER: c->forgets_answer = true; break;
	case NO_PAYLOAD:
		for (unsigned i = 0; i <= c->payload_mask; i++)
			c->payload[(size_t)thread * (c->payload_mask + 1) + i] = 0;
		break;
	default: break;
	}
}

bool damage_do(enum damage damage, struct checker *c, gpul_fifo_item *items, unsigned *n)
{
	if (damage == NO_ANSWER && *n) {  /* who syncs has one trigger at a time */
		c->forgets_answer = true;
		return true;
	}
	for (unsigned i = 0; i + 1 < *n; i++) {
		unsigned rest = *n - i;

		if (items[i].lane != items[i + 1].lane ||
		    items[i].word[0] >> SOAK_THREAD_SHIFT != items[i + 1].word[0] >> SOAK_THREAD_SHIFT)
			continue;
		change(damage, c, items + i, &rest);
		*n = i + rest;
		return true;
	}
	return false;
}
